"""Branches by a table: `brx.idx` made into comparisons and branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepladder.emulator.ptx import syntax

_BRANCH = ("brx", "idx")


def lowered(body: Sequence[syntax.Item]) -> list[syntax.Item]:
    """Returns the statements of a block, of which those that branch by a table compare the index with each case.

    An index beyond the table, for which PTX defines nothing, is reported, and leads to the last label.

    Args:
        body: of the block; a table has a label before it.
    """
    tables = {
        item.name: behind.labels
        for item, behind in zip(body, body[1:])
        if isinstance(item, syntax.Label) and isinstance(behind, syntax.BranchTargets)
    }
    items: list[syntax.Item] = []
    for number, item in enumerate(body):
        if isinstance(item, syntax.BranchTargets) or (isinstance(item, syntax.Label) and item.name in tables):
            continue
        if isinstance(item, syntax.Statement) and item.opcode[:2] == _BRANCH and _table(item) in tables:
            items += _compared(item, tables[_table(item)], number)
        else:
            items.append(item)
    return items


def _table(branch: syntax.Statement) -> str:
    """Returns the name of the table of a branch, its last operand."""
    return str(branch.operands[-1]) if branch.operands else ""


def _compared(branch: syntax.Statement, labels: Sequence[syntax.Operand], number: int) -> Iterator[syntax.Item]:
    """Yields what a branch does; `number` distinguishes it from others of its block."""

    def statement(opcode: str, *operands: syntax.Operand, guard: syntax.Guard | None = None) -> syntax.Statement:
        return syntax.Statement(tuple(opcode.split(".")), operands, guard, branch.line, branch.column)

    predicate, behind = syntax.Name(f"%is_target_{number}"), f"$behind_{number}"
    yield syntax.Registers("pred", ((predicate.text, 0),))
    if branch.guard is not None:
        around = syntax.Guard(branch.guard.name, not branch.guard.negated)
        yield statement("bra", syntax.Name(behind), guard=around)
    yield statement("brx.idx", syntax.Number(len(labels)), branch.operands[0])
    for place, label in enumerate(labels[:-1]):
        yield statement("setp.eq.u32", predicate, branch.operands[0], syntax.Number(place))
        yield statement("bra", label, guard=syntax.Guard(predicate))
    yield statement("bra", labels[-1])
    if branch.guard is not None:
        yield syntax.Label(behind)
