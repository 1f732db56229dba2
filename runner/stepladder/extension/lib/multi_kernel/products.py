"""Matmuls of a function on tensors, and the ops around them that their kernels can compute."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.multi_kernel.argument_parts import SLICE, offset_within, part_of
from stepladder.extension.lib.multi_kernel.stages import (
    STARTS,
    inner_ops,
    is_elementwise,
    is_start,
    is_structured,
    loops_of,
    with_producers,
)
from stepladder.extension.lib.multi_kernel.trials import is_accepted, refusal_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.linalg_ops import axis_loops, indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.reshapes import groups_of as reshape_groups
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.mlir.types import element_of, is_fp8
from stepladder.payload.front.bodies import factors, structured
from stepladder.payload.producers import PREPARED

# Named ops that multiply and add.
_PRODUCTS = ("linalg.matmul", "linalg.batch_matmul", "linalg.contract", "linalg.mmt4d", "linalg.batch_mmt4d")
_VECTORS = ("linalg.matvec", "linalg.vecmat", "linalg.batch_matvec", "linalg.batch_vecmat")
_WIDER = ("arith.extf", "arith.extsi")


class Groups(NamedTuple):
    """The loops of a contraction: of its batch, of the rows and columns of the result, and of the sums."""

    batch: frozenset[int]
    m: frozenset[int]
    n: frozenset[int]
    k: frozenset[int]


def is_product(op: ir.Operation) -> bool:
    """Returns whether an op is a matmul, by its name or its body, and by the loops of its operands.

    The loops of A and B that are summed over are common to them, and each has a loop of the result that the other does
    not have. No loop belongs to one operand alone, such as one along which the result repeats the product.

    Args:
        op: a payload op.
    """
    return _multiplies(op, all)


def is_contraction(op: ir.Operation) -> bool:
    """Returns whether an op is a matmul, or one whose A or B is a vector, or a batch of those.

    Args:
        op: a payload op.
    """
    return _multiplies(op, any)


def _multiplies(op: ir.Operation, has_own_loops: Callable[[Iterable[object]], bool]) -> bool:
    """Returns whether an op sums products, and both operands, or any, have loops of the result that the other has not;
    those of named ops may be left out."""
    if op.name in _PRODUCTS or op.name in _VECTORS:
        return _shares_loops(op)
    if not is_structured(op) or len(op.operands) != 3 or len(op.results) != 1:
        return False
    names = inner_ops(op)
    adds_floats = "arith.mulf" in names and "arith.addf" in names
    if not adds_floats and not ("arith.muli" in names and "arith.addi" in names):
        return False
    groups, sizes = groups_of(op), sizes_of(op)
    # Sums of one product each are elementwise, except in ops named otherwise.
    is_sum = any(sizes[loop] > 1 for loop in groups.k)
    if not (is_sum and has_own_loops((groups.m, groups.n)) and _shares_loops(op)):
        return False
    # Zero points of integers become ops of their own later; products that wrap before they are extended stay.
    return factors(structured(op)) is not None if adds_floats else _multiplies_wide(op)


def _multiplies_wide(op: ir.Operation) -> bool:
    """Returns whether a contraction of integers multiplies in the type of its sums."""
    sums = element_of(op.results[0].type)
    return all(inner.results[0].type == sums for inner in walk(op, "arith.muli"))


def _shares_loops(op: ir.Operation) -> bool:
    """Returns whether each loop of more than one iteration runs along two operands."""
    a, b, c = ({*loops_of(map_)} for map_ in (*indexing_maps(op)[:2], indexing_maps(op)[-1]))
    shared_loops = a & b | b & c | a & c
    return all(size == 1 or loop in shared_loops for loop, size in sizes_of(op).items())


def groups_of(product: ir.Operation) -> Groups:
    """Returns the loops of a contraction of two operands.

    Args:
        product: a linalg op on tensors with two inputs and one output.
    """
    a, b, c = (frozenset(loops_of(map_)) for map_ in indexing_maps(product))
    return Groups(a & b & c, (a - b) & c, (b - a) & c, (a & b) - c)


def is_without_units(product: ir.Operation) -> bool:
    """Returns whether no matrix unit computes a contraction: one of 64-bit integers, or a batch of products in each of
    which m, n or k is 1.

    The products of one A and B are a batch too where the result has m on both sides of n, or n on both sides of m.

    Args:
        product: a contraction of two operands on tensors.
    """
    if any(str(ir.ShapedType(operand.type).element_type) == "i64" for operand in list(product.operands)[:2]):
        return True
    groups = groups_of(product)
    sizes = sizes_of(product)
    order = [loop in groups.m for loop in loops_of(indexing_maps(product)[2]) if sizes[loop] > 1]
    is_batch = bool(groups.batch) or sum(before != after for before, after in itertools.pairwise(order)) > 1
    return is_batch and any(math.prod(sizes[loop] for loop in loops) == 1 for loops in groups[1:])


def sizes_of(op: ir.Operation) -> dict[int, int]:
    """Returns how often each loop of a linalg op on tensors or buffers of static shapes runs.

    Args:
        op: with an indexing map for each operand.
    """
    sizes: dict[int, int] = {}
    for operand, map_ in zip(op.operands, indexing_maps(op)):
        for size, axis in zip(ir.ShapedType(operand.type).shape, map_.results):
            if isinstance(axis, ir.AffineDimExpr):
                sizes[axis.position] = size
    return sizes


def layout_sources(op: ir.Operation, values: Sequence[ir.Value], *, columns: bool = False) -> list[ir.Operation]:
    """Returns the views, transposes, broadcasts and casts to wider types in the block of `op` that values come from.

    Args:
        op: the one that takes the values.
        values: to follow; operands of `op`.
        columns: whether slices that kernels read as parts of their operands are views too, such as columns.
    """
    layout_ops: list[ir.Operation] = []
    pending = list(values)
    while pending:
        source = producer(pending.pop())
        if source is None or source.block != op.block or source in layout_ops:
            continue
        if is_layout(source) or (columns and _is_windowed(source)):
            layout_ops.append(source)
            pending.append(source.operands[0])
    return layout_ops


def _is_windowed(op: ir.Operation) -> bool:
    """Returns whether an op takes a part of a tensor at a static place that a kernel reads as a part of its operand:
    elements that are apart in memory, or of a tensor that another kernel computes, and that one op reads: those of
    several are copied once, for pairs too. On other parts, those of arguments, a kernel is launched."""
    if op.name != SLICE:
        return False
    source_type = ir.RankedTensorType(op.operands[0].type)
    offsets, sizes, steps = numbers_of(op)
    is_static = source_type.has_static_shape and ir.ShapedType.get_dynamic_size() not in (*offsets, *sizes)
    if not is_static or set(steps) != {1}:
        return False
    if offset_within(op, source_type) is None:
        return True
    return not part_of(op.results[0], is_multiplied=True) and _is_read_once(op)


def _is_read_once(op: ir.Operation) -> bool:
    """Returns whether one op reads what an op makes, maybe through views of it."""
    users = users_of(op.results[0])
    while len(users) == 1 and users[0].name in TENSOR_VIEWS:
        users = users_of(users[0].results[0])
    return len(users) == 1


def is_layout(op: ir.Operation) -> bool:
    """Returns whether an op gives the elements of its first operand another shape, other axes, or a wider type.

    Args:
        op: any op of the function.
    """
    if op.name in TENSOR_VIEWS or op.name in ("linalg.transpose", "linalg.broadcast", "linalg.copy"):
        return True
    is_copy = is_elementwise(op) and len(op.operands) == 2
    return is_copy and set(inner_ops(op)) <= {*_WIDER, "linalg.yield"}


def axes_read(op: ir.Operation) -> list[int | None] | None:
    """Returns the axis of its operand that an op reads along each axis of its result, None for copies; None for an op
    that does more than to transpose and to repeat.

    Args:
        op: any op.
    """
    if op.name == "linalg.transpose":
        return list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
    if op.name == "tensor.expand_shape":  # by axes of one element, along which another op repeats
        shape = ir.RankedTensorType(op.results[0].type).shape
        longer = [[axis for axis in group if shape[axis] > 1] for group in reshape_groups(op)]
        if any(len(group) != 1 for group in longer):
            return None
        return [next((at for at, group in enumerate(longer) if axis in group), None) for axis in range(len(shape))]
    if op.name != "linalg.broadcast" and (op.name != "linalg.generic" or not _copies(op)):
        return None
    read, written = indexing_maps(op)
    if written != ir.AffineMap.get_identity(written.n_dims):
        return None
    loops = axis_loops(read)
    return [loops.index(loop) if loop in loops else None for loop in range(written.n_dims)]


def _copies(op: ir.Operation) -> bool:
    """Returns whether a linalg op yields its one operand."""
    block = op.regions[0].blocks[0]
    (end, *others) = operations_of(block)
    return len(op.operands) == 2 and len(op.results) == 1 and not others and end.operands[0] == block.arguments[0]


def dequantizing_ops(value: ir.Value) -> list[ir.Operation]:
    """Returns the ops that make an operand of a matmul from narrower values of the function's arguments, or of parts
    of them, such as those that dequantize weights; none where they are of another kind, or something else reads what
    one makes. What other kernels make is read too, where an argument is larger, as slices of scales are.

    Args:
        value: A or B.
    """
    ops: list[ir.Operation] = []
    arguments: set[ir.Value] = set()
    made: set[ir.Value] = set()
    pending = [value]
    while pending:
        source = producer(operand := pending.pop())
        if source is None or part_of(operand, is_multiplied=True):
            arguments.add(operand)
        elif not is_start(source) and source not in ops:
            if is_layout(source) or is_elementwise(source):
                ops.append(source)
                pending += list(source.operands)
            else:
                made.add(operand)
    sizes, made_sizes = (
        [_bits(operand) for operand in operands if isinstance(operand.type, ir.RankedTensorType)]
        for operands in (arguments, made)
    )
    largest = max(sizes, default=0)
    is_narrower = max(made_sizes, default=-1) < largest < _bits(value)
    is_read_once = all(user in ops for op in ops for user in users_of(op.results[0]) if op.results[0] != value)
    makes = any(not is_layout(op) for op in ops)
    return ops if makes and is_narrower and is_read_once and len(list(value.uses)) == 1 else []


def _bits(value: ir.Value) -> int:
    """Returns the bits of all elements of a tensor."""
    type_ = ir.RankedTensorType(value.type)
    return math.prod(type_.shape) * bits_of_name(str(type_.element_type))


def widens_operand(op: ir.Operation) -> bool:
    """Returns whether an op casts to a wider type, only for A or B of later matmuls, whose kernels widen them.

    Args:
        op: any op of the function.
    """
    if not is_elementwise(op) or not is_layout(op) or not set(inner_ops(op)) & set(_WIDER):
        return False
    pending, readers = [op], []
    while pending:
        for user in users_of(pending.pop().results[0]):
            (pending if is_layout(user) else readers).append(user)
    return all(is_product(user) and not is_without_units(user) for user in readers)


def smallest(product: ir.Operation, *, columns: bool = True) -> tuple[list[ir.Operation], ir.Value]:
    """Returns the ops of a kernel that computes a matmul, with the layouts of its operands, and its result.

    Args:
        product: a contraction of two operands on tensors.
        columns: as for `is_accepted`.

    Raises:
        Refusal: no kernel computes the matmul.
    """
    a, b, *outputs = product.operands
    refused: list[ir.Operation] = []
    attempts = [(values, False) for values in ([a, b, *outputs], [b, *outputs], [a, *outputs], outputs, [])]
    if columns and any(map(_is_windowed, layout_sources(product, [a, b], columns=True))):
        attempts = [(values, True) for values, _ in attempts[:3]] + attempts
    for values, slices in attempts:
        ops = with_producers([product, *layout_sources(product, values, columns=slices)], STARTS)
        accepted = is_accepted(ops, product.results[0], columns=columns)
        if accepted and _are_multiplied(product, ops):
            return ops, product.results[0]
        if not accepted and not refused:
            refused = ops
    if refused:
        raise Refusal(product, refusal_of(refused, *product.results, columns=columns))
    raise Refusal(product, f"a product of {_origin(a, ops)} and {_origin(b, ops)}; accepted: operands of one type")


def _origin(value: ir.Value, ops: Sequence[ir.Operation], *, extends_fp8: bool = False) -> ir.Type:
    """Returns the element type that an operand has before the casts and views of a group.

    Args:
        value: the operand.
        ops: the group.
        extends_fp8: whether casts of fp8 are left out: kernels extend it to the type of the other operand.
    """
    source = producer(value)
    while source is not None and source in ops and is_layout(source) and PREPARED not in source.attributes:
        source_element = element_of(source.operands[0].type)
        if extends_fp8 and is_fp8(source_element) and source_element != element_of(value.type):
            break
        value = source.operands[0]
        source = producer(value)
    return element_of(value.type)


def _are_multiplied(product: ir.Operation, ops: Sequence[ir.Operation]) -> bool:
    """Returns whether a kernel of a group multiplies the operands of a product: of one type, that of the sums if these
    are of f64, of both kinds of fp8, or fp8 that the group extends to the type of the other. Otherwise a cast to a
    wider type stays an op of its own."""
    a, b, *outputs = product.operands
    types = [_origin(value, ops) for value in (a, b)]
    if isinstance(element_of(outputs[0].type), ir.F64Type):
        return types == [element_of(outputs[0].type)] * 2
    if types[0] == types[1] or all(is_fp8(type_) for type_ in types):
        return True
    return _origin(a, ops, extends_fp8=True) == _origin(b, ops, extends_fp8=True)
