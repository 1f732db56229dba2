"""Buffers: globals, views, and accesses to vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import add, index
from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir import types
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import producer

# Ops that view a buffer, or a slice of it, in another shape.
VIEWS = ("memref.subview", "memref.expand_shape")


def vector_alignment(type_: ir.VectorType) -> dict[str, ir.Attribute]:
    """Returns the attributes of a load or store of a vector at an address that is a multiple of the vector's size.

    Args:
        type_: of rank 1, of elements of whole bytes.
    """
    bytes_ = type_.shape[0] * types.byte_width(type_.element_type)
    return {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), bytes_)}


def load_vector(type_: ir.VectorType, buffer: ir.Value, *indices: ir.Value) -> ir.Value:
    """Returns a vector that is loaded from an aligned address, at the current insertion point.

    Args:
        type_: of rank 1.
        buffer: of the vector's element type.
        indices: of the first element, one for each dimension of the buffer.
    """
    return ir.Operation.create(
        "vector.load", results=[type_], operands=[buffer, *indices], attributes=vector_alignment(type_)
    ).results[0]


def store_vector(value: ir.Value, buffer: ir.Value, *indices: ir.Value) -> None:
    """Stores a vector to an aligned address, at the current insertion point.

    Args:
        value: a vector of rank 1.
        buffer: of the vector's element type.
        indices: of the first element, one for each dimension of the buffer.
    """
    attributes = vector_alignment(ir.VectorType(value.type))
    ir.Operation.create("vector.store", operands=[value, buffer, *indices], attributes=attributes)


def write(value: ir.Value, buffer: ir.Value, place: Sequence[ir.Value], accumulates: bool) -> None:
    """Stores an element, or a vector to an aligned address, or adds it, at the current insertion point.

    Args:
        value: a scalar, or a vector of rank 1.
        buffer: of its element type.
        place: of the first element, an index for each dimension of the buffer.
        accumulates: whether to add.
    """
    dialect, attributes = "memref", {}
    if isinstance(value.type, ir.VectorType):
        dialect, attributes = "vector", vector_alignment(value.type)
    if accumulates:
        old = ir.Operation.create(
            f"{dialect}.load", results=[value.type], operands=[buffer, *place], attributes=attributes
        )
        value = add(old.results[0], value)
    ir.Operation.create(f"{dialect}.store", operands=[value, buffer, *place], attributes=attributes)


def linalg_uses(tile: ir.Value) -> list[tuple[ir.Operation, int]]:
    """Returns (op, operand number) for the linalg ops that use a tile, directly or through views.

    Args:
        tile: a buffer.
    """
    views = [tile]
    for view in views:  # grows in the loop
        views += [use.owner.results[0] for use in view.uses if use.owner.name in VIEWS]
    return [
        (use.owner.operation, use.operand_number)
        for view in views
        for use in view.uses
        if use.owner.name.startswith("linalg.")
    ]


def alloc_of(view: ir.Value) -> ir.Operation | None:
    """Returns the `memref.alloc` that a value is a chain of views and casts of, or None where it is no such chain.

    Args:
        view: a buffer, or a view of one.
    """
    source = producer(view)
    while source is not None and source.name != "memref.alloc":
        source = producer(source.operands[0]) if len(source.operands) else None
    return source


def viewed(value: ir.Value) -> ir.Value:
    """Returns the buffer that a value is a chain of views of, or the value itself.

    Args:
        value: a buffer, or a view of one.
    """
    source = producer(value)
    return viewed(source.operands[0]) if source is not None and source.name in VIEWS else value


def shared_tile_of(op: ir.Operation, view: ir.Value) -> ir.Operation:
    """Returns the `memref.alloc` of the buffer in shared memory that an operand of `op` views.

    Args:
        op: which the message names.
        view: the operand.

    Raises:
        Refusal: the operand views no such buffer.
    """
    alloc = alloc_of(view)
    if alloc is None:
        raise Refusal(op, "expected an operand that views a tile in shared memory")
    return alloc


def offsets_of(view: ir.Operation) -> list[ir.Value]:
    """Returns the offsets of a `memref.subview`, at the current insertion point.

    Args:
        view: the op.
    """
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    dynamic = list(view.operands)[1:]
    static = list(ir.DenseI64ArrayAttr(view.attributes["static_offsets"]))
    return [dynamic.pop(0) if offset == unknown else index(offset) for offset in static]


def begins_at_multiple(view: ir.Value, count: int) -> bool:
    """Returns whether the matrix that a tile is a view of begins at a multiple of `count` elements of its buffer; of a
    batch, whether every matrix does. The tile begins at multiples of its rows and columns in the matrix.

    Args:
        view: a buffer, or a view of one.
        count: elements of a vector.
    """
    op = producer(view)
    if op is None or op.name not in (*VIEWS, "memref.transpose", "memref.cast"):
        return True
    if op.name == "memref.subview":
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        strides, _ = ir.MemRefType(op.operands[0].type).get_strides_and_offset()
        offsets, sizes = (ir.DenseI64ArrayAttr(op.attributes[name]) for name in ("static_offsets", "static_sizes"))
        for stride, offset, size in zip(strides, offsets, sizes):
            is_of_tile = offset == unknown and size != 1
            step = stride if offset == unknown else offset * stride
            if not is_of_tile and (stride == unknown or step % count):
                return False
    return begins_at_multiple(op.operands[0], count)


def add_buffers(left: ir.Value, right: ir.Value, destination: ir.Value) -> None:
    """Creates a `linalg.add` of two buffers into a third.

    Args:
        left: a buffer.
        right: a buffer of the same shape.
        destination: a buffer of the same shape, which may be one of the two.
    """
    create_named_op("linalg.add", [left, right], destination)


def unique_symbol(module: ir.Operation, name: str) -> str:
    """Returns `name`, with a number appended where an op of the module has that name already.

    Args:
        module: with the symbols in its body.
        name: the symbol that is wanted.
    """
    block = module.regions[0].blocks[0]
    symbols = {op.attributes["sym_name"].value for op in block.operations if "sym_name" in op.attributes}
    return next(free for free in (name, *(f"{name}_{number}" for number in range(len(symbols)))) if free not in symbols)


def create_global(
    launch: ir.Operation, name: str, type_: ir.MemRefType, initial: int | None = None, *, alignment: int | None = None
) -> str:
    """Creates a `memref.global` in the module of a launch: one buffer for all blocks and launches, or for each block.

    Args:
        launch: the `gpu.launch`, or another op in the module.
        name: of the global, unless the module has an op of that name.
        type_: of the buffer, in the global address space, or in that of a workgroup.
        initial: the value of every element, an integer; None leaves them uninitialized.
        alignment: of the buffer in bytes; None for that of its elements.

    Returns:
        The global's name.
    """
    content: ir.Attribute = ir.UnitAttr.get()
    if initial is not None:
        tensor = ir.RankedTensorType.get(type_.shape, type_.element_type)
        content = ir.DenseElementsAttr.get_splat(tensor, ir.IntegerAttr.get(type_.element_type, initial))
    module = launch
    while module.parent is not None and module.name != "builtin.module":
        module = module.parent
    name = unique_symbol(module, name)
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "type": ir.TypeAttr.get(type_),
        "initial_value": content,
    }
    if alignment is not None:
        attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), alignment)
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), launch.location:
        ir.Operation.create("memref.global", attributes=attributes)
    return name


def strided_metadata(view: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns the base buffer of a view, and the view's offset in it, in elements.

    Args:
        view: a buffer, or a view of one.
    """
    type_ = ir.MemRefType(view.type)
    metadata = ir.Operation.create(
        "memref.extract_strided_metadata",
        results=[
            ir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space),
            *[ir.IndexType.get()] * (1 + 2 * type_.rank),
        ],
        operands=[view],
    )
    return metadata.results[0], metadata.results[1]


def expand_shape(source: ir.Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> ir.Value:
    """Returns a `memref.expand_shape` of a buffer with a static shape and contiguous rows.

    Args:
        source: the buffer.
        shape: of the result.
        groups: for each dimension of the buffer, the dimensions of the result that it is expanded to.
    """
    type_ = ir.MemRefType(source.type)
    strides, offset = type_.get_strides_and_offset()
    assert strides == types.row_major_strides(type_.shape), "expected contiguous rows"
    layout = None if offset == 0 else ir.StridedLayoutAttr.get(offset, types.row_major_strides(shape))
    return ir.Operation.create(
        "memref.expand_shape",
        operands=[source],
        results=[ir.MemRefType.get(shape, type_.element_type, layout=layout, memory_space=type_.memory_space)],
        attributes={
            "static_output_shape": ir.DenseI64ArrayAttr.get(shape),
            "reassociation": types.reassociation(groups),
        },
    ).results[0]


def reshape(source: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Returns a view of a buffer with other extents, at the current insertion point.

    Args:
        source: the buffer, with a static shape and contiguous rows.
        shape: of the result, with as many elements.
    """
    type_ = ir.MemRefType(source.type)
    strides, offset = type_.get_strides_and_offset()
    assert strides == types.row_major_strides(type_.shape), "expected contiguous rows"
    count = math.prod(type_.shape)
    layout = None if offset == 0 else ir.StridedLayoutAttr.get(offset, [1])
    flat = ir.Operation.create(
        "memref.collapse_shape",
        operands=[source],
        results=[ir.MemRefType.get([count], type_.element_type, layout=layout, memory_space=type_.memory_space)],
        attributes={"reassociation": types.reassociation([range(type_.rank)])},
    ).results[0]
    return expand_shape(flat, shape, [range(len(shape))])


def subview(
    source: ir.Value, offsets: Sequence[int | ir.Value], sizes: Sequence[int | ir.Value], *, drop: int = 0
) -> ir.Value:
    """Returns a `memref.subview` with unit strides.

    Args:
        source: the buffer, with static strides.
        offsets: an integer or an index value for each dimension.
        sizes: an extent for each dimension, likewise.
        drop: how many of the outermost dimensions, all of extent 1, the result leaves out.
    """
    type_ = ir.MemRefType(source.type)
    strides, start = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    static = [offset if isinstance(offset, int) else unknown for offset in offsets]
    dynamic = [offset for offset in offsets if not isinstance(offset, int)]
    is_static = start != unknown and not dynamic
    offset = start + sum(o * s for o, s in zip(static, strides)) if is_static else unknown
    extents = [size if isinstance(size, int) else unknown for size in sizes]
    dynamic_sizes = [size for size in sizes if not isinstance(size, int)]
    shape = extents[drop:]
    is_plain = offset == 0 and not dynamic_sizes and strides[drop:] == types.row_major_strides(shape)
    layout = None if is_plain else ir.StridedLayoutAttr.get(offset, strides[drop:])
    result = ir.MemRefType.get(shape, type_.element_type, layout=layout, memory_space=type_.memory_space)
    return ir.Operation.create(
        "memref.subview",
        results=[result],
        operands=[source, *dynamic, *dynamic_sizes],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(dynamic), len(dynamic_sizes), 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get(static),
            "static_sizes": ir.DenseI64ArrayAttr.get(extents),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(sizes)),
        },
    ).results[0]
