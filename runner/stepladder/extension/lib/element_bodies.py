"""Bodies of linalg ops on buffers, computed for one element: loads, casts, and loops over blocks and threads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from stepladder.extension.lib import narrow_floats
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import ir
from stepladder.mlir.rounding import rounds_to_nearest
from stepladder.mlir.traverse import walk

# Distances of lanes whose values are folded, so that each lane of a warp has the result.
LANES = (16, 8, 4, 2, 1)
# Bytes of the vectors that threads load and store, to which the buffers of kernels are aligned.
VECTOR_BYTES = 16
_SMALLEST = 16  # bits of a floating-point type that a thread computes in
_BYTE = 8  # bits
_MOVES = ("arith.constant", "arith.select")


def check_types(generic: ir.Operation) -> None:
    """Refuses arithmetic of fp8, which LLVM does not have; elements may be copied, extended, and rounded to it.
    Refuses roundings other than to nearest too, which LLVM's back end for NVPTX takes for those to nearest.

    Args:
        generic: a `linalg.generic`.

    Raises:
        Refusal: its body has such an op.
    """
    for op in walk(generic):
        if not rounds_to_nearest(op):
            raise Refusal(op, f"'{op.name}' with a rounding mode other than to nearest")
        if not op.name.startswith(("arith.", "math.")) or op.name in _MOVES or _casts_fp8(op):
            continue
        for value in (*op.operands, *op.results):
            if isinstance(value.type, ir.FloatType) and value.type.width < _SMALLEST:
                raise Refusal(
                    op,
                    f"'{op.name}' of {value.type} outside of a matmul; accepted: f16, bf16, f32, f64 and integers, and "
                    "arith.truncf to fp8 of f16, bf16 and f32",
                )


def _casts_fp8(op: ir.Operation) -> bool:
    return narrow_floats.rounds(op) or (op.name == "arith.extf" and narrow_floats.is_fp8(op.operands[0]))


def operand_loops(generic: ir.Operation, map_: ir.AffineMap) -> list[int | None]:
    """Returns the loops along the axes of an operand; None where the coordinate is 0.

    Args:
        generic: the op, for messages.
        map_: the indexing map of the operand.

    Raises:
        Refusal: the map is no projected permutation.
    """
    loops: list[int | None] = []
    for item in map_.results:
        if isinstance(item, ir.AffineDimExpr):
            loops.append(item.position)
        elif isinstance(item, ir.AffineConstantExpr) and item.value == 0:
            loops.append(None)
        else:
            raise Refusal(generic, f"the indexing map {map_}; accepted: projected permutations")
    return loops


def vector_bits(element: ir.Type) -> int:
    """Returns the bits of an element that vectors have; 0 for another one, such as booleans.

    Args:
        element: type of the element.
    """
    is_number = isinstance(element, ir.FloatType | ir.IntegerType)
    return element.width if is_number and element.width >= _BYTE else 0


def widest_vector(buffer: ir.Value, most: int) -> int:
    """Returns how many elements the widest vectors have that the rows of a buffer consist of, at addresses that are
    multiples of their size; 0 for a buffer without vectors.

    Args:
        buffer: of kernels, which is aligned to `VECTOR_BYTES`, or a view of one.
        most: elements of the widest vector, a power of two; the result divides it.
    """
    type_ = ir.MemRefType(buffer.type)
    if not type_.rank or not vector_bits(type_.element_type):
        return 0
    (*strides, innermost), offset = type_.get_strides_and_offset()
    is_known = ir.ShapedType.get_dynamic_stride_or_offset() not in (*strides, offset)
    return math.gcd(most, type_.shape[-1], *strides, offset) if is_known and innermost == 1 else 0


def has_vectors(buffer: ir.Value, width: int) -> bool:
    """Returns whether the rows of a buffer are vectors at addresses that are multiples of their size.

    Args:
        buffer, width: as for `widest_vector`.
    """
    return widest_vector(buffer, width) == width


def load(buffer: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """Returns an element of a buffer.

    Args:
        buffer: of any address space.
        indices: of the element.
    """
    type_ = ir.MemRefType(buffer.type).element_type
    return ir.Operation.create("memref.load", results=[type_], operands=[buffer, *indices]).results[0]


def converted(value: ir.Value | None, type_: ir.Type) -> ir.Value:
    """Returns a floating-point value, or a boolean, in a type that is wider or narrower, or the same.

    Args:
        value: a scalar, not None.
        type_: of the result; f32 or i32 where it is wider.
    """
    assert value is not None
    if value.type == type_:
        return value
    is_wider = isinstance(type_, ir.F32Type) or str(type_) == "i32"
    ways = ("arith.truncf", "arith.extf") if isinstance(type_, ir.FloatType) else ("arith.trunci", "arith.extui")
    name = ways[is_wider]
    return ir.Operation.create(name, results=[type_], operands=[value]).results[0]


def compute_body(body: ir.Block, values: dict[ir.Value, ir.Value], loops: Mapping[int, ir.Value]) -> None:
    """Creates the ops of a body, at the insertion point, but for those that depend on an argument without a value, and
    those with known values.

    Args:
        body: of a `linalg.generic`.
        values: of its arguments, and other known ones; what the ops compute is added.
        loops: indices of the iteration.
    """
    unavailable: set[ir.Value] = {value for value in body.arguments if value not in values}
    available = []
    for item in operations_of(body)[:-1]:
        if any(operand in unavailable for operand in item.operands):
            unavailable.update(item.results)
        elif not len(item.results) or not values.keys() >= set(item.results):
            available.append(item)
    compute_ops(available, values, loops)


def compute_ops(ops: Iterable[ir.Operation], values: dict[ir.Value, ir.Value], loops: Mapping[int, ir.Value]) -> None:
    """Creates ops of a body at the insertion point.

    Args:
        ops: in order.
        values: that they use; what they compute is added.
        loops: indices of the iteration.
    """
    for item in ops:
        if item.name == "linalg.index":
            values[item.results[0]] = loops[ir.IntegerAttr(item.attributes["dim"]).value]
            continue
        copy = item.clone().operation
        for place, operand in enumerate(item.operands):
            copy.operands[place] = values.get(operand, operand)
        values.update(zip(item.results, copy.results))


def create_forall(count: int, kind: str) -> ir.BlockArgument:
    """Creates a parallel loop over blocks or threads, which upstream maps to a launch; returns its index.

    Args:
        count: of iterations.
        kind: `block` or `thread`.
    """
    zero, unit_step = ir.DenseI64ArrayAttr.get([0]), ir.DenseI64ArrayAttr.get([1])
    loop = ir.Operation.create(
        "scf.forall",
        attributes={
            "staticLowerBound": zero,
            "staticUpperBound": ir.DenseI64ArrayAttr.get([count]),
            "staticStep": unit_step,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0, 0]),
            "mapping": ir.ArrayAttr.get([ir.Attribute.parse(f"#gpu.{kind}<x>")]),
        },
        regions=1,
    )
    block = loop.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[ir.Location.current])
    with ir.InsertionPoint(block):
        end = ir.Operation.create("scf.forall.in_parallel", regions=1)
    end.regions[0].blocks.append()
    return block.arguments[0]
