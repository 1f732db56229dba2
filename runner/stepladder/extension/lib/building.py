"""What the ops that write IR share: constants, index arithmetic, loops and launches with more to carry."""

from __future__ import annotations

import contextlib
import math

from stepladder.extension.lib.dialect import Refusal, producer
from stepladder.mlir.bindings import affine, arith, fill_builtin_region, gpu, ir, scf
from stepladder.mlir.traverse import attributes_of, walk

WARPGROUP = 128  # threads
GLOBAL = "#gpu.address_space<global>"

# Operand segments of gpu.launch: async dependencies; grid, block and cluster sizes, three each; dynamic shared memory.
GRID, BLOCK, CLUSTER, DYNAMIC_SIZE = 1, 4, 7, 10


def index(value: int):
    """Returns a constant index."""
    return arith.constant(ir.IndexType.get(), value)


def integer(value: int, bits: int):
    """Returns a constant integer of `bits` bits."""
    return arith.constant(ir.IntegerType.get_signless(bits), value)


def boolean(value: bool):
    """Returns a constant i1."""
    return integer(int(value), 1)


def apply(function, *values):
    """Returns `function` of index values as one `affine.apply`: it gets an affine expression for each value."""
    symbols = [ir.AffineExpr.get_symbol(position) for position in range(len(values))]
    return affine.apply(ir.AffineMap.get(0, len(values), [function(*symbols)]), list(values))


def times(value, factor: int):
    """Returns an index value times a constant."""
    return apply(lambda x: x * factor, value)


def equal(left, right):
    """Returns whether two values are equal, as i1."""
    return arith.cmpi(arith.CmpIPredicate.eq, left, right)


def thread_number():
    """Returns the number of a thread in its block, which is one-dimensional."""
    return gpu.thread_id(gpu.Dimension.x)


def warpgroup_number():
    """Returns the number of a thread's warpgroup in its block."""
    return apply(lambda thread: ir.AffineExpr.get_floor_div(thread, WARPGROUP), thread_number())


def uniform_warpgroup_number():
    """Returns the number of a thread's warpgroup in its block, as one value for a warp.

    ptxas does not know that the threads of a warp agree on their number divided by 128. What a branch or a loop around
    `wgmma` depends on must be known to be the same, or the products are serialized.
    """
    i32 = ir.IntegerType.get_signless(32)
    number = arith.index_cast(i32, warpgroup_number())
    shared, _ = gpu.shuffle(number, integer(0, 32), integer(32, 32), gpu.ShuffleMode.IDX)
    return arith.index_cast(ir.IndexType.get(), shared)


def thread_in_warpgroup():
    """Returns the number of a thread in its warpgroup."""
    return apply(lambda thread: ir.AffineExpr.get_mod(thread, WARPGROUP), thread_number())


def block_in_cluster():
    """Returns the number of a block in its cluster, which is a row of blocks."""
    return gpu.cluster_block_id(gpu.Dimension.x)


def if_(condition):
    """Returns the insertion point inside a new `scf.if` without results and without else."""
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        end = scf.yield_([])
    return ir.InsertionPoint(end.operation)


def if_below(number, extent):
    """Returns the insertion point inside a new `scf.if` of a number below an extent, as a context; without an extent
    (None), the insertion point stays."""
    return contextlib.nullcontext() if extent is None else if_(arith.cmpi(arith.CmpIPredicate.ult, number, extent))


def static_value(value) -> int | None:
    """Returns the value of a constant index, or None for what is no constant."""
    source = producer(value)
    if source is None or source.name != "arith.constant":
        return None
    return ir.IntegerAttr(source.attributes["value"]).value


def body_of(loop):
    """Returns the block of an `scf.for`."""
    return loop.regions[0].blocks[0]


def terminator_of(block):
    """Returns the last op of a block."""
    operations = block.operations
    return operations[len(operations) - 1].operation


def loops_around(op) -> list:
    """Returns the `scf.for` ops that an op stands in, the outermost first."""
    found = []
    parent = op.parent
    while parent is not None:
        if parent.name == "scf.for":
            found.insert(0, parent.operation)
        parent = parent.parent
    return found


def with_carried(loop, initial: list, rewriter):
    """Replaces an `scf.for` by one that carries more values; the caller extends its `scf.yield`.

    Returns:
        The new loop, and the block arguments of the new values.
    """
    with ir.InsertionPoint(loop), loop.location:
        wider = ir.Operation.create(
            "scf.for",
            results=[*(result.type for result in loop.results), *(value.type for value in initial)],
            operands=[*loop.operands, *initial],
            attributes=attributes_of(loop),
            regions=1,
        )
    block = body_of(loop)
    block.append_to(wider.regions[0])
    arguments = [block.add_argument(value.type, loop.location) for value in initial]
    for old, new in zip(loop.results, wider.results):
        old.replace_all_uses_with(new)
    rewriter.erase_op(loop)
    return wider, arguments


def extend_yield(loop, values: list) -> None:
    """Appends values to what an `scf.for` yields."""
    old = terminator_of(body_of(loop))
    with ir.InsertionPoint(old), old.location:
        scf.yield_([*old.operands, *values])
    old.erase()


def aligned(type_) -> dict:
    """Returns the attributes of an access to a vector that lies where a multiple of its size does."""
    bytes_ = type_.shape[0] * type_.element_type.width // 8
    return {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), bytes_)}


# Ops that show a buffer, or a part of it, in another shape.
VIEWS = ("memref.subview", "memref.expand_shape")


def linalg_uses(tile) -> list:
    """Returns (op, number of the operand) for the linalg ops that use a tile, wholly or by views of it."""
    views = [tile]
    for view in views:  # which grows
        views += [use.owner.results[0] for use in view.uses if use.owner.name in VIEWS]
    return [
        (use.owner.operation, use.operand_number)
        for view in views
        for use in view.uses
        if use.owner.name.startswith("linalg.")
    ]


def find_launch(payload):
    """Returns the one `gpu.launch` below `payload`.

    Raises:
        Refusal: there is none, or there are several.
    """
    launches = walk(payload, "gpu.launch")
    if len(launches) != 1:
        raise Refusal(payload, f"expected one gpu.launch, found {len(launches)}")
    return launches[0]


def add_buffers(left, right, into):
    """Makes a `linalg.add` of two buffers into a third; by hand, as upstream's builders take long to import."""
    add = ir.Operation.create(
        "linalg.add",
        operands=[left, right, into],
        regions=1,
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1])},
    )
    fill_builtin_region(add)
    return add


def free_symbol(module, name: str) -> str:
    """Returns `name`, or `name` with a number where an op of the module is called so: the payload's names are taken."""
    block = module.regions[0].blocks[0]
    taken = {op.attributes["sym_name"].value for op in block.operations if "sym_name" in op.attributes}
    return next(free for free in (name, *(f"{name}_{number}" for number in range(len(taken)))) if free not in taken)


def make_global(launch, name: str, type_, initial: int | None = None) -> str:
    """Makes a `memref.global` of the module around a launch: memory that there is once for all blocks and all launches.

    Args:
        launch: the `gpu.launch`.
        name: of the global, if the module has none of that name.
        type_: of the buffer, whose memory space is global.
        initial: of every element, integers; None leaves them uninitialized.

    Returns:
        The global's name.
    """
    content = (
        ir.UnitAttr.get()
        if initial is None
        else ir.DenseElementsAttr.get_splat(
            ir.RankedTensorType.get(type_.shape, type_.element_type), ir.IntegerAttr.get(type_.element_type, initial)
        )
    )
    module = launch.parent
    while module.name != "builtin.module":
        module = module.parent
    name = free_symbol(module, name)
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), launch.location:
        ir.Operation.create(
            "memref.global",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(type_),
                "initial_value": content,
            },
        )
    return name


def _segments(launch) -> list[int]:
    return list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))


def launch_sizes(launch, segment: int) -> list[int]:
    """Returns the three extents of a launch's GRID, BLOCK or CLUSTER; (1, 1, 1) for a launch without clusters.

    Raises:
        Refusal: an extent that is not constant.
    """
    segments = _segments(launch)
    if not segments[segment]:
        return [1, 1, 1]
    start = sum(segments[:segment])
    sizes = [static_value(value) for value in list(launch.operands)[start : start + 3]]
    if None in sizes:
        raise Refusal(launch, "the sizes of the launch are not constant")
    return sizes


def set_launch_sizes(launch, segment: int, sizes: list[int]) -> None:
    """Gives a launch other constant extents of its GRID or BLOCK."""
    start = sum(_segments(launch)[:segment])
    with ir.InsertionPoint(launch), launch.location:
        for axis, size in enumerate(sizes):
            launch.operands[start + axis] = index(size)


def relaunch(launch, segment: int, values: list, rewriter):
    """Replaces a launch by one with operands in a segment that it had none in; returns the new one.

    Args:
        launch: the `gpu.launch`.
        segment: CLUSTER or DYNAMIC_SIZE.
        values: the operands, defined outside.
        rewriter: of the transform op.
    """
    segments = _segments(launch)
    operands = list(launch.operands)
    operands[sum(segments[:segment]) : sum(segments[:segment])] = values
    if segment == CLUSTER:
        segments[CLUSTER : CLUSTER + 3] = [1, 1, 1]
    else:
        segments[segment] = 1
    attributes = attributes_of(launch)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
    with ir.InsertionPoint(launch), launch.location:
        new = ir.Operation.create(
            "gpu.launch",
            results=[result.type for result in launch.results],
            operands=operands,
            attributes=attributes,
            regions=1,
        )
    block = launch.regions[0].blocks[0]
    block.append_to(new.regions[0])
    if segment == CLUSTER:  # the numbers and sizes of clusters, as six more arguments
        for _ in range(6):
            block.add_argument(ir.IndexType.get(), launch.location)
    for old, fresh in zip(launch.results, new.results):
        old.replace_all_uses_with(fresh)
    rewriter.erase_op(launch)
    return new


def expand(source, shape: list[int], groups: list[list[int]]):
    """Returns a `memref.expand_shape`: of a buffer of static shape and whole rows, each of whose dimensions becomes a
    group of them."""
    type_ = ir.MemRefType(source.type)
    strides, offset = type_.get_strides_and_offset()
    assert strides == _row_major(type_.shape), "expected whole rows"
    layout = None if offset == 0 else ir.StridedLayoutAttr.get(offset, _row_major(shape))
    i64 = ir.IntegerType.get_signless(64)
    return ir.Operation.create(
        "memref.expand_shape",
        operands=[source],
        results=[ir.MemRefType.get(shape, type_.element_type, layout=layout, memory_space=type_.memory_space)],
        attributes={
            "static_output_shape": ir.DenseI64ArrayAttr.get(shape),
            "reassociation": ir.ArrayAttr.get(
                [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, axis) for axis in group]) for group in groups]
            ),
        },
    ).results[0]


def _row_major(shape: list[int]) -> list[int]:
    """Returns the strides of a buffer without gaps."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def view(source, offsets: list, sizes: list[int], *, drop: int = 0):
    """Returns a `memref.subview` with unit strides and static sizes.

    Args:
        source: the buffer, of static strides.
        offsets: for each dimension, a number or an index value.
        sizes: extents.
        drop: how many of the outermost dimensions, of extent 1, the view is without.
    """
    type_ = ir.MemRefType(source.type)
    strides, start = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    is_static = start != unknown and all(isinstance(offset, int) for offset in offsets)
    offset = start + sum(o * s for o, s in zip(offsets, strides)) if is_static else unknown
    shape = sizes[drop:]
    is_plain = offset == 0 and strides[drop:] == _row_major(shape)
    layout = None if is_plain else ir.StridedLayoutAttr.get(offset, strides[drop:])
    result = ir.MemRefType.get(shape, type_.element_type, layout=layout, memory_space=type_.memory_space)
    static = [offset if isinstance(offset, int) else unknown for offset in offsets]
    dynamic = [offset for offset in offsets if not isinstance(offset, int)]
    return ir.Operation.create(
        "memref.subview",
        results=[result],
        operands=[source, *dynamic],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(dynamic), 0, 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get(static),
            "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(sizes)),
        },
    ).results[0]
