"""Results that are reductions, as they are between their separation and the epilogue.

The consumer of the product writes what is reduced to a workspace like C. After it the host calls a function, in which
a `linalg.map` sets the result to what it begins with, and a `linalg.reduce` folds the rows or columns of the workspace
into it. It is a function of its own because `convert-vector-to-gpu` fails at scalar arithmetic beside the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib import memory
from stepladder.extension.lib.arithmetic import constant
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.extension.lib.functions import create_private_function
from stepladder.extension.lib.workspaces import WORKSPACE, create_workspace
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.neutral_elements import NEUTRAL_FLOATS
from stepladder.mlir.traverse import callee_of, defining_op, users_of, walk

_MAP, _REDUCE = "linalg.map", "linalg.reduce"
# The attribute of the call.
REDUCES = "reduces"
# The loops of the consumer of the product.
ROW, COLUMN = 0, 1


@dataclass(frozen=True)
class ReducedResult:
    """A reduction of what the consumer of a product writes to a workspace.

    Attributes:
        output: number of the consumer's output that is reduced.
        axis: the loop that is folded: `ROW` for the rows of a column, `COLUMN` for the columns of a row.
        workspace: the `memref.alloc` of the workspace.
        call: of the function that reduces the workspace.
        function: that function.
    """

    output: int
    axis: int
    workspace: ir.Operation
    call: ir.Operation
    function: ir.Operation

    @property
    def result(self) -> ir.Value:
        """The buffer of the result."""
        return self.call.operands[1]

    def _inner(self, name: str) -> list[ir.Operation]:
        """Returns the ops in the body of one of the function's linalg ops."""
        (op,) = [op for op in operations_of(self.function.regions[0].blocks[0]) if op.name == name]
        return operations_of(op.regions[0].blocks[0])

    @property
    def _fold(self) -> str:
        """Name of the op that folds values."""
        return next(op.name for op in self._inner(_REDUCE) if op.name in _NEUTRAL)

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and columns of what is reduced."""
        rows, columns = ir.MemRefType(self.workspace.results[0].type).shape
        return rows, columns

    @property
    def type(self) -> ir.Type:
        """Element type in which values are folded: the result's, or f32 where that has 16 bits."""
        return ir.MemRefType(self.workspace.results[0].type).element_type

    def initial(self) -> ir.Value:
        """Returns what the result begins with, at the current insertion point."""
        end = self._inner(_MAP)[0]
        source = end if end.name == "arith.constant" else defining_op(end.operands[0])
        value = source.attributes["value"]
        if isinstance(self.type, ir.FloatType):
            value = ir.FloatAttr.get(self.type, ir.FloatAttr(value).value)
        return _constant(value, self.type)

    def rounded(self, value: ir.Value) -> ir.Value:
        """Returns what is folded as the result holds it, at the current insertion point.

        Args:
            value: of the type in which values are folded.
        """
        type_ = ir.MemRefType(self.result.type).element_type
        return value if type_ == self.type else arith.truncf(type_, value)

    def folded(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Returns two values folded, at the current insertion point.

        Args:
            left: the result so far, or a value; or a vector of several.
            right: a value of the same type.
        """
        return ir.Operation.create(self._fold, results=[left.type], operands=[left, right]).results[0]

    def neutral(self) -> ir.Value:
        """Returns the neutral element of the fold, at the current insertion point."""
        return constant(self.type, _NEUTRAL[self._fold])

    def erase(self, rewriter: Rewriter) -> None:
        """Erases the workspace and what reduces it, after the epilogue has replaced it.

        Args:
            rewriter: that erases ops.
        """
        rewriter.erase_op(self.call)
        rewriter.erase_op(self.function)
        _erase_views(self.workspace.results[0], rewriter)
        rewriter.erase_op(self.workspace)


_LARGEST, _SMALLEST = 2**31 - 1, -(2**31)
_NEUTRAL = {f"arith.{name}": value for name, value in NEUTRAL_FLOATS.items()} | {
    "arith.addi": 0,
    "arith.maxsi": _SMALLEST,
    "arith.minsi": _LARGEST,
}


def _constant(value: ir.Attribute, type_: ir.Type) -> ir.Value:
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": value}).results[0]


def _erase_views(buffer: ir.Value, rewriter: Rewriter) -> None:
    """Erases the views of a buffer that nothing uses."""
    for view in users_of(buffer):
        if view.name in memory.VIEWS:
            _erase_views(view.results[0], rewriter)
            rewriter.erase_op(view)


def find_reduced(outputs: Sequence[ir.Value]) -> list[ReducedResult]:
    """Returns the reductions of the outputs of a product's consumer.

    Args:
        outputs: the buffers that the consumer writes.
    """
    reduced_results: list[ReducedResult] = []
    for number, output in enumerate(outputs):
        workspace = memory.alloc_of(output)
        if workspace is None or WORKSPACE not in workspace.attributes:
            continue
        for call in users_of(workspace.results[0]):
            if call.name == "func.call" and REDUCES in call.attributes:
                function = _callee(call)
                (reduce,) = [op for op in operations_of(function.regions[0].blocks[0]) if op.name == _REDUCE]
                (axis,) = ir.DenseI64ArrayAttr(reduce.attributes["dimensions"])
                reduced_results.append(ReducedResult(number, axis, workspace, call, function))
    return reduced_results


def _callee(call: ir.Operation) -> ir.Operation:
    """Returns the function that is called."""
    module = call
    while module.parent is not None and module.name != "builtin.module":
        module = module.parent
    name = callee_of(call)
    functions = [op for op in walk(module, "func.func") if ir.StringAttr(op.attributes["sym_name"]).value == name]
    if len(functions) != 1:
        raise Refusal(call, f"expected one function @{name}")
    return functions[0]


def create_reduction(
    module: ir.Operation, workspace: ir.Value, result: ir.Value, axis: int, fold: str, initial: ir.Attribute
) -> None:
    """Creates the reduction of a workspace: the call at the current insertion point, the function in the module.

    Args:
        module: to which the function is added.
        workspace: a matrix, of the type in which values are folded.
        result: the buffer of the result.
        axis: the loop that is folded.
        fold: name of the op that folds a value into the result so far.
        initial: what the result begins with.
    """
    type_ = ir.MemRefType(result.type).element_type
    wide = ir.MemRefType(workspace.type).element_type
    name = memory.unique_symbol(module, "reduction")
    call = ir.Operation.create(
        "func.call",
        operands=[workspace, result],
        attributes={"callee": ir.FlatSymbolRefAttr.get(name), REDUCES: ir.UnitAttr.get()},
    )
    types = [workspace.type, result.type]
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), call.location:
        body = create_private_function(name, types, [], call.location).regions[0].blocks[0]
    with ir.InsertionPoint(body), call.location:
        begin = ir.Operation.create(_MAP, operands=[body.arguments[1]], regions=1)
        block = begin.regions[0].blocks.append(type_, arg_locs=[begin.location])
        with ir.InsertionPoint(block):
            ir.Operation.create("linalg.yield", operands=[_constant(initial, type_)])
        reduce = ir.Operation.create(
            _REDUCE,
            operands=list(body.arguments),
            attributes={"dimensions": ir.DenseI64ArrayAttr.get([axis])},
            regions=1,
        )
        block = reduce.regions[0].blocks.append(wide, type_, arg_locs=[reduce.location] * 2)
        with ir.InsertionPoint(block):
            value, so_far = block.arguments
            wide_so_far = so_far if type_ == wide else arith.extf(wide, so_far)
            total = ir.Operation.create(fold, results=[wide], operands=[value, wide_so_far]).results[0]
            ir.Operation.create("linalg.yield", operands=[total if type_ == wide else arith.truncf(type_, total)])
        ir.Operation.create("func.return")


def workspace_like(extents: Sequence[int], element_type: ir.Type) -> ir.Value:
    """Returns a new workspace for what is reduced, at the current insertion point.

    Args:
        extents: of what is reduced.
        element_type: of what is reduced.
    """
    return create_workspace(ir.MemRefType.get(list(extents), element_type))
