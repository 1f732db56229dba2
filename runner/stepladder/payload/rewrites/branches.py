"""Branches of a function on tensors by scalars of the caller: both are computed, and results are selected.

Kernels are launched whatever the values are, and the host reads none between launches. A branch on tensors changes
nothing but its results, so that the function may compute those of all branches; the branches of `torch.cond` and of
JAX's `cond` are taken so too, and those in the body of a linalg op for each element. An op that may fault, or has no
defined result, where its branch is not taken is refused.
"""

from __future__ import annotations

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.refusal import refuse

_IF, _SWITCH = "scf.if", "scf.index_switch"
# Dialects whose ops on tensors and scalars have results alone, and the loops around them.
_PURE = ("arith.", "linalg.", "math.", "tensor.", "scf.for", "scf.yield", _IF, _SWITCH)
_DIVISIONS = ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
_PARTS = ("tensor.extract_slice", "tensor.insert_slice")
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_ACCEPTED = (
    "both branches are executed, since launches do not depend on values of arguments; accepted: linalg ops, "
    "arithmetic and views of tensors, without integer divisions by non-constants, and without accesses at computed "
    "indices"
)
_ACCEPTED_IN_BODIES = (
    "each thread executes both branches; accepted: arithmetic, without integer divisions by non-constants, and "
    "without accesses at computed indices"
)


def select(function: ir.Operation) -> None:
    """Replaces each `scf.if` and `scf.index_switch` with results by the ops of its branches and choices of results.

    Args:
        function: a function of one block; it is changed where there are such ops at its top level, or in bodies of
            linalg ops.

    Raises:
        StepladderError: an op in a branch that must not be computed where the branch is not taken.
    """
    if len(function.regions[0].blocks) != 1:
        return
    branches = walk(function, _IF, _SWITCH)
    # Those in bodies of ops in a branch first.
    for op in reversed([item for item in branches if item.parent == function or _is_in_body(item)]):
        if len(op.results) and not _has_buffers(op):
            for inner in walk(op):
                check(inner, op)
            # The innermost ones first: what they choose is part of a branch around them.
            for branch in reversed(walk(op, _IF, _SWITCH)):
                _replace(branch)


def _is_in_body(branch: ir.Operation) -> bool:
    """Returns whether a branch is decided for each element, in the body of a linalg op."""
    return branch.parent is not None and branch.parent.name.startswith("linalg.")


def _has_buffers(op: ir.Operation) -> bool:
    values = (value for inner in walk(op) for value in (*inner.operands, *inner.results))
    return any(isinstance(value.type, ir.MemRefType) for value in values)


def _is_constant(value: ir.Value) -> bool:
    source = producer(value)
    return source is not None and source.name == "arith.constant"


def check(op: ir.Operation, branch: ir.Operation) -> None:
    """Checks that an op may be computed where the branch that it is in is not taken.

    Args:
        op: in the branch, at any depth.
        branch: the `scf.if` or `scf.index_switch`.

    Raises:
        StepladderError: an op that may fault then, or has effects beside its results.
    """
    reason = None
    if not op.name.startswith(_PURE):
        reason = f"'{op.name}'"
    elif op.name.removeprefix("arith.") in _DIVISIONS and not _is_constant(op.operands[1]):
        reason = f"{op.name} by a non-constant"
    elif _has_computed_places(op):
        reason = f"{op.name} at computed indices"
    if reason is not None:
        raise refuse(
            op,
            f"{reason} inside '{branch.name}' with a non-constant condition",
            _ACCEPTED_IN_BODIES if _is_in_body(branch) else _ACCEPTED,
        )


def _has_computed_places(op: ir.Operation) -> bool:
    if op.name in _PARTS:
        return _DYNAMIC in list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))
    is_extract = op.name == "tensor.extract"
    return op.name == "tensor.gather" or (is_extract and not all(map(_is_place, list(op.operands)[1:])))


def _is_place(value: ir.Value) -> bool:
    """Returns whether an index is within an op's loops."""
    source = producer(value)
    return _is_constant(value) or (source is not None and source.name == "linalg.index")


def _replace(op: ir.Operation) -> None:
    """Moves the ops of all branches before an op, and chooses its results."""
    results_of_regions: list[list[ir.Value]] = []
    for region in op.regions:
        *ops, end = [item.operation for item in region.blocks[0].operations]
        clones = clone_ops(ops, {}, ir.InsertionPoint(op))
        results_of_regions.append([clones.get(value, value) for value in end.operands])
    with ir.InsertionPoint(op), op.location:
        if op.name == _IF:
            then_values, else_values = results_of_regions
            values = [_chosen(op.operands[0], left, right) for left, right in zip(then_values, else_values)]
        else:
            values, *case_values = results_of_regions  # of the default, and of each case
            for number, case in zip(ir.DenseI64ArrayAttr(op.attributes["cases"]), case_values):
                constant = arith.constant(ir.IndexType.get(), number)
                is_case = arith.cmpi(arith.CmpIPredicate.eq, op.operands[0], constant)
                values = [_chosen(is_case, left, right) for left, right in zip(case, values)]
    for result, value in zip(op.results, values):
        result.replace_all_uses_with(value)
    op.erase()


def _chosen(condition: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    return left if left == right else arith.select(condition, left, right)
