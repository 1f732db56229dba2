"""`tc.outline_in_place`: outlines the ops whose results take the memory of arguments."""

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.donation import mark_donated
from stepladder.extension.lib.multi_kernel.stages import is_elementwise, one_function, outline, with_producers
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import callee_of, producer, symbol_of, walk
from stepladder.payload.arguments import donated


class OutlineInPlace(Tc.Operation, name="outline_in_place"):
    """Moves each elementwise op whose result takes the memory of an argument to a private function, and marks its
    argument alike.

    A result that no elementwise op makes of the argument's elements at the same positions, or whose argument another op
    reads too, gets memory of its own: the argument is not marked any more.

    Operands: a handle to a module with one public function on tensors. Refuses a mark of a result that does not exist,
    and two of one result.
    """

    target: Handle


@transform_op(OutlineInPlace)
def outline_in_place(payload: ir.Operation, op: OutlineInPlace, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    function = one_function(payload)
    aliases = donated(function)
    body = function.regions[0].blocks[0]
    for number, result in aliases.items():
        end = operations_of(body)[-1]
        if not 0 <= result < len(end.operands) or list(aliases.values()).count(result) > 1:
            raise Refusal(function, f"argument {number} is not the only one that gives its memory to result {result}")
        source, argument = producer(end.operands[result]), body.arguments[number]
        if source is not None and source.name == "func.call" and _is_marked(source, argument, payload):
            continue
        if source is None or not is_elementwise(source) or not _is_of_same_elements(source, argument):
            mark_donated(function, number, None)
            continue
        outline(
            with_producers([source], (*TENSOR_VIEWS, "tensor.extract_slice")), source.results, "elementwise", rewriter
        )
        call = producer(operations_of(body)[-1].operands[result])
        assert call is not None  # what the op was replaced by
        name = callee_of(call)
        stage = next(item for item in walk(payload, "func.func") if symbol_of(item) == name)
        mark_donated(stage, list(call.operands).index(argument), 0)


def _is_marked(call: ir.Operation, argument: ir.Value, payload: ir.Operation) -> bool:
    """Returns whether a stage that is called writes its result to the memory of an argument."""
    stage = next(item for item in walk(payload, "func.func") if symbol_of(item) == callee_of(call))
    return argument in list(call.operands) and list(call.operands).index(argument) in donated(stage)


def _is_of_same_elements(op: ir.Operation, argument: ir.Value) -> bool:
    """Returns whether an op reads an argument once, at the elements that it computes, and no other op reads it."""
    if op.name != "linalg.generic" or argument.type != op.results[0].type:
        return False
    maps = indexing_maps(op)
    places = [place for place, operand in enumerate(op.operands) if operand == argument]
    is_one = len(places) == len(list(argument.uses)) == 1
    return is_one and maps[places[0]] == maps[-1] == _identity(maps[-1])


def _identity(map_: ir.AffineMap) -> ir.AffineMap:
    return ir.AffineMap.get_identity(map_.n_dims)
