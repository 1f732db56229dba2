"""`tc.group_matmuls`: groups independent matmuls of a function, which become one launch."""

from collections.abc import Sequence

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.stages import as_payload, is_private, kind_of, one_function, set_group
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import callee_of, producer, symbol_of, walk
from stepladder.payload.matmul import find_matmul
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem

# Common properties of the matmuls of one kernel: types and layouts.
_Kind = tuple[str, ...]


class GroupMatmuls(Tc.Operation, name="group_matmuls"):
    """Moves calls of matmuls that do not depend on each other next to each other, and marks their functions.

    Matmuls of a group have the same number of matmuls before them on the longest way from an argument, so that groups
    do not wait for each other in turn, and the same element types and layouts; their sizes may differ. Batches and
    pairs of products are in no group. The marks number the groups.

    Operands: a handle to a module with one public function, after its matmuls and other ops have become calls.
    Attributes: at_most, matmuls of a group; the others are in further groups.
    """

    target: Handle
    at_most: ir.IntegerAttr


@transform_op(GroupMatmuls)
def group_matmuls(payload: ir.Operation, op: GroupMatmuls, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    stages = {symbol_of(function): function for function in walk(payload, "func.func") if is_private(function)}
    kinds = {name: kind for name, function in stages.items() if (kind := _kind(function)) is not None}
    *ops, end = operations_of(one_function(payload).regions[0].blocks[0])
    levels = _levels(ops, kinds)
    groups: dict[tuple[int, _Kind], list[str]] = {}
    for call in ops:
        if (name := callee_of(call)) in kinds:
            groups.setdefault((levels[call], kinds[name]), []).append(name)
    parts = [
        names[start : start + op.at_most.value]
        for names in groups.values()
        for start in range(0, len(names), op.at_most.value)
    ]
    for number, names in enumerate(part for part in parts if len(part) > 1):
        for name in names:
            set_group(stages[name], number)
    order = {name: place for place, name in enumerate(name for part in parts for name in part)}
    for item in sorted(ops, key=lambda item: (levels[item], order.get(callee_of(item), -1))):
        item.move_before(end)


def _levels(ops: Sequence[ir.Operation], kinds: dict[str, _Kind]) -> dict[ir.Operation, int]:
    """Returns how many matmuls are before each op on the longest path to it."""
    levels: dict[ir.Operation, int] = {}
    for op in ops:
        sources = [source for value in op.operands if (source := producer(value)) in levels and source is not None]
        levels[op] = max((levels[source] + (callee_of(source) in kinds) for source in sources), default=0)
    return levels


def _kind(function: ir.Operation) -> _Kind | None:
    """Returns what other matmuls of a group have as well; None for a function that is no matmul, or is in no group."""
    if kind_of(function) != "matmul":  # A contraction without matrix units is an elementwise stage.
        return None
    try:
        problem = find_matmul(as_payload(function)).problem
    except StepladderError:
        return None
    if problem.batch is not None or problem.second_b is not None or problem.is_prepared:
        return None
    return _types(problem)


def _types(problem: Problem) -> _Kind:
    types = (problem.a_type, problem.b_type, problem.acc_type, problem.c_type)
    return (*types, problem.a_layout, problem.b_layout)
