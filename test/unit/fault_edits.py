"""Edits of IR that plant faults: ops dropped, moved, or given another operand or attribute."""

from __future__ import annotations

from collections.abc import Callable

from stepladder.mlir.bindings import ir
from stepladder.mlir.text import text_of
from stepladder.mlir.traverse import walk
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.reference import Operation

Edit = Callable[[str], str]


def _edit(change: Callable) -> Callable[..., Edit]:
    """Makes an edit of text from one of a module."""

    def of(*args: object, **options: object) -> Edit:
        def edit(text: str) -> str:
            with mlir_context():
                module = parse_payload(text, "base.mlir")
                change(module, *args, **options)
                module.operation.verify()
                return text_of(module)

        return edit

    return of


def _op(module: ir.Module, name: str, number: int) -> ir.Operation:
    return walk(module, name)[number]


@_edit
def drop(module: ir.Module, name: str, number: int = 0, instead: int | None = None) -> None:
    """Drops an op; uses of its result are given that of the op of the same name, number `instead`."""
    op = _op(module, name, number)
    if instead is not None:
        op.results[0].replace_all_uses_with(_op(module, name, instead).results[0])
    op.erase()


@_edit
def move(module: ir.Module, name: str, number: int, *, before: str, at: int = 0) -> None:
    """Moves an op before another one."""
    _op(module, name, number).move_before(_op(module, before, at))


@_edit
def become(module: ir.Module, name: str, number: int, operand: int, value: int) -> None:
    """Gives an op a constant for an operand."""
    op = _op(module, name, number)
    op.operands[operand] = _constant(op, operand, value)


@_edit
def shift(module: ir.Module, name: str, number: int, operand: int, by: int = 1) -> None:
    """Adds a number to an operand, or flips it if it is a bit."""
    op = _op(module, name, number)
    old = op.operands[operand]
    combine = "arith.xori" if old.type == ir.IntegerType.get_signless(1) else "arith.addi"
    op.operands[operand] = ir.Operation.create(
        combine, [old.type], [old, _constant(op, operand, by)], ip=ir.InsertionPoint(op)
    ).results[0]


@_edit
def take(module: ir.Module, name: str, number: int, operand: int, other: str, at: int, theirs: int) -> None:
    """Gives an op an operand of another op."""
    _op(module, name, number).operands[operand] = _op(module, other, at).operands[theirs]


@_edit
def see_through(module: ir.Module, name: str, number: int, operand: int) -> None:
    """Gives an op the first operand of what computes an operand."""
    op = _op(module, name, number)
    op.operands[operand] = op.operands[operand].owner.operands[0]


@_edit
def mark(module: ir.Module, name: str, number: int, attribute: str, value: str) -> None:
    """Gives an op another attribute."""
    _op(module, name, number).attributes[attribute] = ir.Attribute.parse(value)


@_edit
def by_some(module: ir.Module, name: str, number: int, threads: int) -> None:
    """Lets only the first threads of a block come to an op."""
    op = _op(module, name, number)
    thread = _op(module, "gpu.thread_id", 0).results[0]
    with ir.InsertionPoint(op):
        bound = ir.Operation.create(
            "arith.constant", [thread.type], attributes={"value": ir.IntegerAttr.get(thread.type, threads)}
        ).results[0]
        below = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 6)
        is_one = ir.Operation.create(
            "arith.cmpi", [ir.IntegerType.get_signless(1)], [thread, bound], {"predicate": below}
        ).results[0]
        branch = ir.Operation.create("scf.if", [], [is_one], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        end = ir.Operation.create("scf.yield")
    op.move_before(end)


def _constant(op: Operation, operand: int, value: int) -> ir.Value:
    type_ = op.operands[operand].type
    return ir.Operation.create(
        "arith.constant", [type_], attributes={"value": ir.IntegerAttr.get(type_, value)}, ip=ir.InsertionPoint(op)
    ).results[0]


def replace(old: str, new: str) -> Edit:
    """Replaces text wherever it stands."""
    return lambda text: text.replace(old, new)
