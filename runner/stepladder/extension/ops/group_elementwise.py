"""`tc.group_elementwise`: groups independent elementwise ops of a function, which become one launch."""

import itertools
from collections.abc import Sequence

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.stages import (
    ASSEMBLED,
    group_of,
    is_elementwise,
    is_private,
    is_structured,
    one_function,
    set_group,
)
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import callee_of, producer, symbol_of, walk


class GroupElementwise(Tc.Operation, name="group_elementwise"):
    """Moves calls of elementwise ops that do not depend on each other next to each other, and marks their functions.

    Calls of a group follow each other without a call of another kind between them. The marks number the groups, behind
    those that there are.

    Operands: a handle to a module with one public function, after its ops have become calls. Attributes: at_most, calls
    of a group; the others are in further groups.
    """

    target: Handle
    at_most: ir.IntegerAttr


@transform_op(GroupElementwise)
def group_elementwise(payload: ir.Operation, op: GroupElementwise, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    stages = {symbol_of(function): function for function in walk(payload, "func.func") if is_private(function)}
    kinds = {name for name, function in stages.items() if _is_elementwise(function)}
    used_numbers = [number for function in stages.values() if (number := group_of(function)) is not None]
    numbers = itertools.count(max(used_numbers, default=-1) + 1)
    body = operations_of(one_function(payload).regions[0].blocks[0])
    for is_run, run in itertools.groupby(body, lambda item: callee_of(item) in kinds):
        calls = list(run)
        if not is_run or len(calls) < 2:
            continue
        levels = _levels(calls)
        end = body[body.index(calls[-1]) + 1]
        calls.sort(key=levels.__getitem__)
        for call in calls:
            call.move_before(end)
        for _, alike in itertools.groupby(calls, key=levels.__getitem__):
            members = list(alike)
            parts = [members[start : start + op.at_most.value] for start in range(0, len(members), op.at_most.value)]
            for part in parts:
                if len(part) > 1:
                    number = next(numbers)
                    for call in part:
                        set_group(stages[callee_of(call)], number)


def _is_elementwise(function: ir.Operation) -> bool:
    """Returns whether a stage is one elementwise op, and none that kernels before it may do without."""
    if ASSEMBLED in function.attributes:
        return False
    ops = [item for item in operations_of(function.regions[0].blocks[0]) if is_structured(item)]
    return len(ops) == 1 and is_elementwise(ops[0])


def _levels(calls: Sequence[ir.Operation]) -> dict[ir.Operation, int]:
    """Returns how many of some calls are before each on the longest path to it."""
    levels: dict[ir.Operation, int] = {}
    for call in calls:
        sources = [source for value in call.operands if (source := producer(value)) in levels and source is not None]
        levels[call] = max((levels[source] + 1 for source in sources), default=0)
    return levels
