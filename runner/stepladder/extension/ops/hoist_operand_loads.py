"""`tc.hoist_operand_loads`: loads the operands of an epilogue while the last MMAs run."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepladder.extension.lib import memory, tma_pipeline
from stepladder.extension.lib.arithmetic import constant_value, zero_of
from stepladder.extension.lib.control_flow import body_of, operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import find_launch
from stepladder.extension.lib.memory import VIEWS
from stepladder.extension.lib.schedule import comes_before, move_with_operands
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, scf
from stepladder.mlir.traverse import attributes_of, defining_op, producer, users_of


class HoistOperandLoads(Tc.Operation, name="hoist_operand_loads"):
    """Moves the loads of an epilogue's operands before the wait for the last MMA, as far as there are registers.

    Moved are loads of arguments that the launch only loads from, after the main loop, in their order, until no register
    is left. A load in an `scf.if`, as at the edges of C, moves into another one of the same condition, which results in
    what it loads, or zeros; nested conditions are combined. Loads of one address are merged, if the condition of the
    later one implies that of the first. A load whose address or condition depends on other ops than arithmetic and
    views stays, as does one in a loop. Without a wait after the main loop, nothing moves.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: registers, 32-bit registers of a thread for what is loaded; 0 or less leaves all loads where they are.
    Refuses: a launch without a warpgroup MMA, or with several.
    """

    target: Handle
    registers: ir.IntegerAttr


_LOADS = ("vector.load", "memref.load")
_WAIT = "nvvm.wgmma.wait.group.sync.aligned"
_REGISTER = 4  # bytes
_PURE = ("arith.", "affine.", *VIEWS)
_UNDEFINED_FOR_ZERO = ("arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv")

# What a value is: the value itself, or the ops without effects that make it, with what their operands are.
Expression = ir.Value | tuple[object, ...]


@dataclass(frozen=True)
class _Load:
    """A load after the main loop.

    Attributes:
        op: the load.
        conditions: of the `scf.if` ops around it, from the outermost on.
    """

    op: ir.Operation
    conditions: tuple[ir.Value, ...]

    @functools.cached_property
    def place(self) -> tuple[Expression, ...]:
        """What it loads: the buffer, the indices and the type."""
        return (*map(_expression, self.op.operands), (self.op.results[0].type,))

    def is_implied_by(self, conditions: Sequence[ir.Value]) -> bool:
        """Returns whether the load is executed wherever ops under other conditions are."""
        return all(any(_implies(other, own) for other in conditions) for own in self.conditions)


def _expression(value: ir.Value) -> Expression:
    """Returns what a value is, equal for values that ops of the same kind make of the same values."""
    source = producer(value)
    if source is None or not source.name.startswith(_PURE):
        return value
    attributes = tuple((name, attribute) for name, attribute in sorted(attributes_of(source).items()))
    return (source.name, attributes, value.type, *map(_expression, source.operands))


def _implies(condition: ir.Value, other: ir.Value) -> bool:
    """Returns whether another condition is known to hold where a condition holds: it is the same, or it is that a value
    is greater than a smaller constant."""
    if _expression(condition) == _expression(other):
        return True
    comparisons = [producer(condition), producer(other)]
    above = [op for op in comparisons if op is not None and op.name == "arith.cmpi" and _is_greater(op)]
    if len(above) < len(comparisons) or _expression(above[0].operands[0]) != _expression(above[1].operands[0]):
        return False
    limits = [constant_value(op.operands[1]) for op in above]
    return limits[0] is not None and limits[1] is not None and limits[0] >= limits[1] >= 0


def _is_greater(comparison: ir.Operation) -> bool:
    """Returns whether an `arith.cmpi` holds for unsigned values that are greater than another."""
    return ir.IntegerAttr(comparison.attributes["predicate"]).value == int(arith.CmpIPredicate.ugt)


def _is_only_loaded(view: ir.Value) -> bool:
    """Returns whether a value views an argument that is used by loads only."""
    buffer = memory.viewed(view)
    if producer(buffer) is not None:
        return False
    views = [buffer]
    for view in views:  # grows in the loop
        users = users_of(view)
        if not all(user.name in (*VIEWS, *_LOADS) for user in users):
            return False
        views += [user.results[0] for user in users if user.name in VIEWS]
    return True


def _can_be_known(value: ir.Value, anchor: ir.Operation) -> bool:
    """Returns whether a value is known before `anchor`, or made by ops that may be executed there: of arithmetic, and
    views."""
    if isinstance(value.owner, ir.Block):
        return comes_before(value.owner.owner.operation, anchor)
    source = defining_op(value)
    if comes_before(source, anchor):
        return True
    is_pure = source.name.startswith(_PURE) and not source.name.startswith(_UNDEFINED_FOR_ZERO)
    return is_pure and all(_can_be_known(operand, anchor) for operand in source.operands)


def _loads_in(block: ir.Block, conditions: tuple[ir.Value, ...] = ()) -> Iterator[_Load]:
    """Yields the loads in a block, and in `scf.if` ops without results and else regions in it."""
    for op in operations_of(block):
        if op.name in _LOADS:
            yield _Load(op, conditions)
        elif op.name == "scf.if" and not list(op.results) and not list(op.regions[1].blocks):
            yield from _loads_in(body_of(op), (*conditions, op.operands[0]))


def _registers(type_: ir.Type) -> int:
    """Returns how many registers a loaded value takes."""
    if not isinstance(type_, ir.VectorType):
        return 1
    vector = ir.VectorType(type_)
    return -(-vector.shape[0] * types.byte_width(vector.element_type) // _REGISTER)


def _select(anchor: ir.Operation, registers: int, rewriter: Rewriter) -> list[_Load]:
    """Returns the loads that move before `anchor`, after others of the same addresses are replaced by them.

    Args:
        anchor: the wait for the last MMA.
        registers: that the loads may take.
        rewriter: that replaces loads.
    """
    selected: list[_Load] = []
    for load in list(_loads_in(anchor.block)):
        values = (*load.op.operands, *load.conditions)
        if comes_before(load.op, anchor) or not _is_only_loaded(load.op.operands[0]):
            continue
        if not all(_can_be_known(value, anchor) for value in values):
            continue
        same = (first for first in selected if first.place == load.place and first.is_implied_by(load.conditions))
        if first := next(same, None):
            rewriter.replace_op(load.op, [first.op.results[0]])
            continue
        registers -= _registers(load.op.results[0].type)
        if registers < 0:
            break
        for op in filter(None, map(producer, values)):
            if not comes_before(op, anchor):
                move_with_operands(op, anchor)
        selected.append(load)
    return selected


def _create_conditional(loads: Sequence[_Load], anchor: ir.Operation, rewriter: Rewriter) -> None:
    """Moves loads of the same conditions into an `scf.if` before `anchor`.

    Args:
        loads: one or more, with conditions.
        anchor: the wait for the last MMA.
        rewriter: that replaces what the loads result in.
    """
    types_ = [load.op.results[0].type for load in loads]
    with ir.InsertionPoint(anchor), loads[0].op.location:
        branch = scf.IfOp(functools.reduce(arith.andi, loads[0].conditions), types_, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            copies = [load.op.clone() for load in loads]
            scf.yield_([copy.results[0] for copy in copies])
        with ir.InsertionPoint(branch.else_block):
            scf.yield_([arith.constant(type_, zero_of(type_)) for type_ in types_])
    for load, value in zip(loads, branch.results):
        rewriter.replace_op(load.op, [value])


@transform_op(HoistOperandLoads)
def hoist_operand_loads(payload: ir.Operation, op: HoistOperandLoads, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    loop = tma_pipeline.main_loop(find_launch(payload))
    after = [] if loop is None else tma_pipeline.ops_after(loop)
    anchor = next((later for later in after if later.name == _WAIT), None)
    if anchor is None:
        return
    selected = _select(anchor, op.registers.value, rewriter)
    conditional: dict[tuple[Expression, ...], list[_Load]] = {}
    for load in selected:
        if load.conditions:
            conditional.setdefault(tuple(map(_expression, load.conditions)), []).append(load)
        else:
            load.op.move_before(anchor)
    for loads in conditional.values():
        _create_conditional(loads, anchor, rewriter)
