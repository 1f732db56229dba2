"""`tc.outline_elementwise`: gives each linalg op that is left in a function a function of its own."""

import itertools
from collections.abc import Iterable

from stepladder.extension.lib.arithmetic import constant, splat_of
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.argument_parts import LAYOUT, SLICE, layout_of_part, part_of
from stepladder.extension.lib.multi_kernel.stages import (
    ASSEMBLED,
    STARTS,
    is_structured,
    kind_of,
    one_function,
    outline,
    with_producers,
)
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import create_generic, create_named_op
from stepladder.mlir.reshapes import TENSOR_VIEWS, groups_of
from stepladder.mlir.traverse import callee_of, origin, producer, symbol_of, walk
from stepladder.mlir.types import row_major_strides
from stepladder.payload.arguments import donated
from stepladder.payload.rewrites import unit_axes

# Kinds of stages that load vectors which the extents of their operands are multiples of.
_OF_ELEMENTS = ("elementwise", "rows")
_RANDOM = "linalg.fill_rng_2d"
_IN_FUNCTION = (*STARTS, *TENSOR_VIEWS, "func.call", "func.return")


class OutlineElementwise(Tc.Operation, name="outline_elementwise"):
    """Moves each linalg op that is left in a function on tensors to a private function, with the views of its operands.

    A value that is returned and that no linalg op makes, in this shape or another one, such as a fill or an argument,
    is copied, and so is one that is returned twice, or returned and a part of what `assemble_parts` outlined, and a
    slice that a matmul reads: the operands of its kernel are whole buffers, or parts of an argument whose elements
    follow each other from a multiple of 16 bytes on, such as one layer's weights of all. Other kernels read parts that
    begin where a whole number of vectors of their size does. Kernels are launched on the addresses of parts, and
    arguments of their functions get the attribute `bufferization.buffer_layout`. A fill that a matmul reads is made by
    a kernel. Results of one op that start from one fill get one each, so that they are buffers of their own. A linalg
    op that nothing reads is erased: fusion leaves the assertions of one, which the ops that it is fused with have too.

    Operands: a handle to a module with one public function. Refuses ops that are neither linalg ops nor views,
    pseudo-random numbers, tensors without elements, and results that are not tensors.
    """

    target: Handle


@transform_op(OutlineElementwise)
def outline_elementwise(payload: ir.Operation, op: OutlineElementwise, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    unit_axes.expand_unfused(one_function(payload))
    body = one_function(payload).regions[0].blocks[0]
    _copy_results(operations_of(body)[-1], payload)
    _copy_collapsed_slices(body)
    _copy_slices(body, payload)
    _make_fills(body)
    for item in filter(is_structured, operations_of(body)):
        _copy_constants(item)
    for item in operations_of(body):
        if item.name == _RANDOM:
            raise Refusal(item, f"'{_RANDOM}' makes pseudo-random numbers, which no kernel does; accepted: an argument")
        if is_structured(item):
            _separate_starts(item)
            results = [result for result in item.results if list(result.uses)]
            ops = with_producers([item], (*TENSOR_VIEWS, SLICE))
            if results:
                _check_extents(item)
                outline(ops, results, "elementwise", rewriter)
    for item in reversed(operations_of(body)):
        is_dead = not any(list(result.uses) for result in item.results)
        if is_dead and (item.name in (*TENSOR_VIEWS, SLICE) or item.name.startswith("linalg.")):
            rewriter.erase_op(item)
        elif item.name not in _IN_FUNCTION and not (item.name == SLICE and part_of(item.results[0])):
            raise Refusal(
                item, f"'{item.name}' between matmuls; accepted: linalg ops on tensors, reshapes, slices and constants"
            )
    _place_parts(body, walk(payload, "func.func"))


def _check_extents(op: ir.Operation) -> None:
    """Refuses ops on tensors without elements."""
    for operand in op.operands:
        is_static = isinstance(operand.type, ir.RankedTensorType) and operand.type.has_static_shape
        if is_static and 0 in operand.type.shape:
            raise Refusal(
                op, f"'{op.name}' of '{operand.type}', which has no elements; accepted: extents of at least 1"
            )


def _copy_constants(op: ir.Operation) -> None:
    """Has an op that reads a constant tensor of one number, such as a sum of it, read what a kernel writes."""
    for place, value in enumerate(list(op.operands)[: len(op.operands) - len(op.results)]):
        source = producer(value)
        if source is not None and source.name == "arith.constant" and splat_of(value) is not None:
            op.operands[place] = _copied(value, op)


def _separate_starts(op: ir.Operation) -> None:
    """Gives each result of an op a fill of its own, where several results start from one."""
    first = len(op.operands) - len(op.results)
    outputs = list(op.operands)[first:]
    for place, value in enumerate(outputs):
        fill = producer(value)
        if value in outputs[:place] and fill is not None and fill.name == "linalg.fill":
            with ir.InsertionPoint(op), fill.location:
                empty = ir.Operation.create("tensor.empty", results=[value.type]).results[0]
                op.operands[first + place] = create_named_op("linalg.fill", [fill.operands[0]], empty).results[0]


def _copy_results(end: ir.Operation, payload: ir.Operation) -> None:
    """Has a function return results of calls and of linalg ops alone: other values are copied, and parts of what a
    stage assembles, whose kernels write them there."""
    stages = [symbol_of(item) for item in walk(payload, "func.func") if ASSEMBLED in item.attributes]
    calls = [item for item in walk(payload, "func.call") if callee_of(item) in stages]
    parts = {origin(value, TENSOR_VIEWS) for call in calls for value in call.operands}
    in_place = donated(one_function(payload)).values()
    returned_values: set[ir.Value] = set()
    for place, value in enumerate(end.operands):
        if not isinstance(value.type, ir.RankedTensorType):
            raise Refusal(end, f"the function returns a value of type {value.type}; accepted: tensors")
        root = value if place in in_place else origin(value, TENSOR_VIEWS)
        source = producer(root)
        is_made = source is not None and (source.name == "func.call" or is_structured(source))
        if is_made and root not in parts | returned_values:
            returned_values.add(root)
            continue
        end.operands[place] = _empty(value, end) if 0 in value.type.shape else _copied(value, end)


def _empty(value: ir.Value, user: ir.Operation) -> ir.Value:
    """Returns an empty tensor of a value's type, made before an op."""
    with ir.InsertionPoint(user), user.location:
        return ir.Operation.create("tensor.empty", results=[value.type]).results[0]


def _copy_slices(body: ir.Block, payload: ir.Operation) -> None:
    """Has calls take copies of slices, and of views of slices, but for parts of arguments."""
    stages = {symbol_of(function): function for function in walk(payload, "func.func")}
    for call in (item for item in operations_of(body) if item.name == "func.call"):
        for place, value in enumerate(call.operands):
            source = producer(origin(value, TENSOR_VIEWS))
            stage = stages[callee_of(call)]
            if source is not None and source.name == SLICE and not _part(value, stage):
                call.operands[place] = _copied(value, call)


def _place_parts(body: ir.Block, functions: Iterable[ir.Operation]) -> None:
    """Has calls take parts of arguments where they are: the arguments of stages, each of which is called once, get the
    layout that parts have, so that bufferization makes views of them. What makes the parts moves to the beginning."""
    stages = {symbol_of(function): function for function in functions}
    moved_ops: set[ir.Operation] = set()
    for call in (item for item in operations_of(body) if item.name == "func.call"):
        stage = stages[callee_of(call)]
        chains = {place: chain for place, value in enumerate(call.operands) if (chain := _part(value, stage))}
        if not chains:
            continue
        argument_attributes = stage.attributes.get(
            "arg_attrs", ir.ArrayAttr.get([ir.DictAttr.get({})] * len(call.operands))
        )
        marks = [ir.DictAttr(mark) for mark in ir.ArrayAttr(argument_attributes)]
        for place, chain in chains.items():
            moved_ops.update(chain)
            layout = layout_of_part(ir.RankedTensorType(call.operands[place].type))
            marks[place] = ir.DictAttr.get({**{mark.name: mark.attr for mark in marks[place]}, LAYOUT: layout})
        stage.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)
    first = next(item for item in operations_of(body) if item not in moved_ops)
    for op in (item for item in operations_of(body) if item in moved_ops):
        op.move_before(first)


def _part(value: ir.Value, stage: ir.Operation) -> list[ir.Operation]:
    """Returns the ops that make a part of an argument that a stage takes where it is; none of another value."""
    return part_of(value, is_multiplied=kind_of(stage) not in _OF_ELEMENTS)


def _make_fills(body: ir.Block) -> None:
    """Has calls take splat tensors that a kernel makes, and not the fill of a buffer."""
    for call in (item for item in operations_of(body) if item.name == "func.call"):
        for value in list(call.operands):
            source = producer(value)
            if source is not None and source.name == "linalg.fill":
                copy = _copied(value, source)
                for use in [use for use in value.uses if use.owner.operation.name == "func.call"]:
                    use.owner.operation.operands[use.operand_number] = copy


def _copy_collapsed_slices(body: ir.Block) -> None:
    """Copies slices of which a view collapses dimensions that are apart in memory: a kernel reads no such view."""
    for view in (item for item in operations_of(body) if item.name == "tensor.collapse_shape"):
        source = producer(view.operands[0])
        if source is None or source.name != SLICE:
            continue
        shape, strides = _layout(source)
        for group in groups_of(view):
            axes = [axis for axis in group if shape[axis] > 1]
            if any(strides[outer] != shape[inner] * strides[inner] for outer, inner in itertools.pairwise(axes)):
                view.operands[0] = _copied(view.operands[0], view)
                break


def _layout(part: ir.Operation) -> tuple[list[int], list[int]]:
    """Returns the extents of a slice of a row-major tensor, and its strides in elements."""
    steps = row_major_strides(ir.RankedTensorType(part.operands[0].type).shape)
    sizes = [int(size) for size in part.attributes["static_sizes"]]
    strides = [int(stride) * step for stride, step in zip(part.attributes["static_strides"], steps)]
    shape, strides_of_part = list(ir.RankedTensorType(part.results[0].type).shape), []
    for size, stride in zip(sizes, strides):  # dimensions of one element may be left out
        if len(strides_of_part) < len(shape) and size == shape[len(strides_of_part)]:
            strides_of_part.append(stride)
    return shape, strides_of_part


def _copied(value: ir.Value, user: ir.Operation) -> ir.Value:
    """Returns a copy of a tensor, made before an op; of a splat, which no kernel alone reads, an op that writes
    it."""
    empty = _empty(value, user)
    with ir.InsertionPoint(user), user.location:
        number = _number(value)
        if number is None:
            return create_named_op("linalg.copy", [value], empty).results[0]
        identity = ir.AffineMap.get_identity(ir.RankedTensorType(value.type).rank)
        generic, body = create_generic([], [empty], [identity])
        with ir.InsertionPoint(body):
            ir.Operation.create("linalg.yield", operands=[number])
        return generic.results[0]


def _number(value: ir.Value) -> ir.Value | None:
    """Returns the scalar that all elements of a tensor are, of a fill or a constant; None for other tensors."""
    source = producer(value)
    if source is not None and source.name == "linalg.fill":
        return source.operands[0]
    number = splat_of(value)
    return None if number is None else constant(ir.RankedTensorType(value.type).element_type, number.value)
