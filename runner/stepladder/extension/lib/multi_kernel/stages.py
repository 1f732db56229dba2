"""Stages: groups of ops of a function on tensors that become one kernel each, as private functions that it calls."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.extension.lib.functions import create_private_function
from stepladder.extension.lib.multi_kernel.argument_parts import LAYOUT, SLICE, part_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import indexing_maps, loops_of
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import producer, symbol_of, walk

# Ops that a stage has copies of: what they make takes no memory.
STARTS = ("arith.constant", "tensor.empty", "linalg.fill")


def is_private(function: ir.Operation) -> bool:
    """Returns whether a function is called by others of its module alone: a stage.

    Args:
        function: a `func.func`.
    """
    attributes = function.attributes
    return "sym_visibility" in attributes and ir.StringAttr(attributes["sym_visibility"]).value == "private"


# The number of the group of matmuls that a stage belongs to: those of one group are one launch.
_GROUP = "group"
# The bytes that its arguments begin at in its result, of a stage that puts them there.
ASSEMBLED = "assembles"
# The extents of its arguments along the axes of its result, where some of them are columns of it.
EXTENTS = "extents"


def kind_named(name: str) -> str:
    """Returns what the kernel of a stage computes, by the name that `outline` gave it: the word before its index.

    Args:
        name: such as `layers_matmul_3`.
    """
    return name.rpartition("_")[0].rpartition("_")[2]


def kind_of(function: ir.Operation) -> str:
    """Returns what the kernel of a stage computes; see `kind_named`.

    Args:
        function: the stage, a `func.func`.
    """
    return kind_named(symbol_of(function))


def group_of(function: ir.Operation) -> int | None:
    """Returns the number of the group that a stage belongs to; None without one.

    Args:
        function: the stage, a `func.func`.
    """
    return ir.IntegerAttr(function.attributes[_GROUP]).value if _GROUP in function.attributes else None


def set_group(function: ir.Operation, number: int) -> None:
    """Has a stage belong to a group.

    Args:
        function: the stage, a `func.func`.
        number: of the group.
    """
    function.attributes[_GROUP] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def as_payload(function: ir.Operation, *, keeps_marks: bool = False) -> ir.Module:
    """Returns a stage as a payload of its own: a module with a copy of its function, which is public.

    Args:
        function: the stage, a `func.func`.
        keeps_marks: whether the copy keeps the attributes of its arguments, but for the layouts of parts: a kernel is
            launched on the address of a part.
    """
    with function.location:
        alone = ir.Module.create()
    copy = function.clone()
    alone.body.append(copy)
    for name in ("sym_visibility", _GROUP, ASSEMBLED, EXTENTS, *(() if keeps_marks else ("arg_attrs",))):
        if name in copy.attributes:
            del copy.attributes[name]
    if "arg_attrs" in copy.attributes:
        marks = [ir.DictAttr(item) for item in ir.ArrayAttr(copy.attributes["arg_attrs"])]
        kept_marks = [{entry.name: entry.attr for entry in mark if entry.name != LAYOUT} for mark in marks]
        copy.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(mark, alone.context) for mark in kept_marks])
    return alone


def one_function(payload: ir.Operation) -> ir.Operation:
    """Returns the one function of a module that is called from outside, of one block.

    Args:
        payload: the module.

    Raises:
        Refusal: there is none, or several, or it has several blocks.
    """
    functions = [op for op in walk(payload, "func.func") if not is_private(op)]
    if len(functions) != 1 or len(functions[0].regions[0].blocks) != 1:
        raise Refusal(payload, f"expected one public function of one block, found {len(functions)} public functions")
    return functions[0]


def is_structured(op: ir.Operation) -> bool:
    """Returns whether an op is a linalg op that computes tensors, and no fill.

    Args:
        op: any op.
    """
    return op.name.startswith("linalg.") and len(op.results) > 0 and op.name not in STARTS and op.name != "linalg.index"


def is_elementwise(op: ir.Operation) -> bool:
    """Returns whether a linalg op has one result, and an element of it for each iteration.

    Args:
        op: any op.
    """
    if not is_structured(op) or len(op.results) != 1:
        return False
    maps = indexing_maps(op)
    return len(loops_of(maps[-1])) == maps[-1].n_dims


def is_extension(op: ir.Operation) -> bool:
    """Returns whether an op is a `linalg.generic` that extends each element of one tensor.

    Args:
        op: any op.
    """
    if op.name != "linalg.generic" or len(op.operands) != 2 or not is_in_order(op):
        return False
    read, written = indexing_maps(op)
    return read == written and set(inner_ops(op)) <= {"arith.extf", "arith.extsi", "arith.extui", "linalg.yield"}


def is_in_order(op: ir.Operation) -> bool:
    """Returns whether an op is a `linalg.generic` that computes each element of its results once, in the order of its
    loops.

    Args:
        op: any op.
    """
    if op.name != "linalg.generic" or not len(op.results):
        return False
    maps = indexing_maps(op)
    return all(map_ == ir.AffineMap.get_identity(map_.n_dims) for map_ in maps[len(maps) - len(op.results) :])


def inner_ops(op: ir.Operation) -> list[str]:
    """Returns the names of the ops in the body of an op.

    Args:
        op: with regions, whose nested ops are counted too.
    """
    return [inner.name for inner in walk(op) if inner != op]


def _captured(ops: Sequence[ir.Operation]) -> list[ir.Value]:
    """Returns the values from outside that ops use, each once."""
    inside: set[ir.Value] = set()
    for inner in (inner for op in ops for inner in walk(op)):
        inside.update(inner.results)
        inside.update(argument for region in inner.regions for block in region.blocks for argument in block.arguments)
    operands = (operand for op in ops for inner in walk(op) for operand in inner.operands)
    return [value for value in dict.fromkeys(operands) if value not in inside]


def with_producers(ops: Iterable[ir.Operation], names: Sequence[str]) -> list[ir.Operation]:
    """Returns ops and those that their operands come from, as far as they have one of the names, in order.

    Args:
        ops: of one block.
        names: of the ops that are followed, but for parts of arguments, which kernels are launched on; views of what
            takes no memory are followed too.
    """
    group = list(dict.fromkeys(ops))
    for op in group:  # grows in the loop
        for source in (producer(value) for value in _captured([op])):
            if source is None or source in group:
                continue
            if source.name == SLICE and part_of(source.results[0]):
                continue
            if source.name in names or (source.name in TENSOR_VIEWS and is_start(source)):
                group.append(source)
    return in_order(group)


def is_start(op: ir.Operation) -> bool:
    """Returns whether an op makes what takes no memory, or another shape of it.

    Args:
        op: any op.
    """
    while op.name in TENSOR_VIEWS:
        source = producer(op.operands[0])
        if source is None:
            return False
        op = source
    return op.name in STARTS


def in_order(ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Returns ops of one block in the order of the block.

    Args:
        ops: of one block, one at least.
    """
    return sorted(ops, key=functools.cmp_to_key(lambda op, other: -1 if op.is_before_in_block(other) else 1))


def _starts_where_used(ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Returns ops in their order, but what takes no memory right before the first op that uses it.

    Where the function has such an op depends on which others of it share its result; stages that compute the same, such
    as those of the iterations of a loop, are one kernel if their texts are equal.

    Args:
        ops: in the order of their block.
    """
    starts = {op for op in ops if is_start(op)}
    ordered: dict[ir.Operation, None] = {}

    def add(op: ir.Operation) -> None:
        for value in _captured([op]):
            source = producer(value)
            if source in starts and source is not None:
                add(source)
        ordered[op] = None

    for op in ops:
        if op not in starts:
            add(op)
    return [*ordered, *(op for op in ops if op not in ordered)]


def write_stage(
    block: ir.Block, name: str, ops: Sequence[ir.Operation], results: Sequence[ir.Value]
) -> tuple[ir.Operation, list[ir.Value]]:
    """Appends a private function with copies of ops to the block of a module.

    Args:
        block: of the module.
        name: of the function.
        ops: of one block; copies of constants, empty tensors and fills that they use come with them.
        results: values of the ops that the function returns.

    Returns:
        The function, and the values that it is called with.
    """
    ops = _starts_where_used(with_producers(ops, STARTS))
    inputs = _captured(ops)
    types = [value.type for value in inputs]
    location = ops[-1].location
    with ir.InsertionPoint(block), location:
        function = create_private_function(name, types, [value.type for value in results], location)
    body = function.regions[0].blocks[0]
    copies = clone_ops(ops, dict(zip(inputs, body.arguments)), ir.InsertionPoint(body))
    with ir.InsertionPoint(body), location:
        ir.Operation.create("func.return", operands=[copies[value] for value in results])
    return function, inputs


def outline(ops: Sequence[ir.Operation], results: Sequence[ir.Value], kind: str, rewriter: Rewriter) -> ir.Operation:
    """Replaces ops by a call of a private function that has them.

    Its arguments are marked as read-only, so that bufferization gives a stage that would change one a buffer of its
    own.

    Args:
        ops: of the body of a function in a module.
        results: values of the ops that are used outside; those of the others are not.
        kind: of the stage; the function's name has the name of the caller before it, and a number after it.
        rewriter: of the transform op.

    Returns:
        The function.
    """
    ops = in_order(ops)
    last = ops[-1]
    caller = last.parent
    assert caller is not None and caller.parent is not None  # a function in a module
    module = caller.parent.operation
    symbols = {symbol_of(op) for op in operations_of(module.regions[0].blocks[0]) if op.name == "func.func"}
    prefix = f"{ir.StringAttr(caller.attributes['sym_name']).value}_{kind}"
    name = next(f"{prefix}_{number}" for number in range(len(symbols) + 1) if f"{prefix}_{number}" not in symbols)
    function, inputs = write_stage(module.regions[0].blocks[0], name, ops, results)
    read_only = ir.DictAttr.get({"bufferization.writable": ir.BoolAttr.get(False)})
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([read_only] * len(inputs))
    with ir.InsertionPoint(last), last.location:
        call = ir.Operation.create(
            "func.call",
            results=[value.type for value in results],
            operands=inputs,
            attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
        )
    for value, result in zip(results, call.results):
        value.replace_all_uses_with(result)
    for op in reversed(ops):
        if not any(list(result.uses) for result in op.results):
            rewriter.erase_op(op)
    return function
