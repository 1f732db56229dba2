"""`tc.normalize_payload`: converts a matmul function to the form that pipelines start from."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.normal_form import normalize
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk


class NormalizePayload(Tc.Operation, name="normalize_payload"):
    """Converts a matmul function to memref arguments and linalg ops on tensors.

    The op accepts a function on memrefs, whose `linalg.matmul` writes C in place; a function on tensors with results,
    which are written to the argument that the accumulator is initialized from, or to new last arguments if there is
    none; and the normal form: `bufferization.to_tensor` of memref arguments, ops on tensors, and
    `bufferization.materialize_in_destination`. Arguments of the normal form may be tensors too, which become buffers.

    Operands: a handle to the module, which has one function.
    Refuses: several functions; linalg ops on buffers that are not arguments; a function on tensors that does not return
        one tensor.
    """

    target: Handle


@transform_op(NormalizePayload)
def normalize_payload(payload: ir.Operation, op: NormalizePayload, rewriter: Rewriter) -> None:
    """Normalizes the one function below `payload`; see the op."""
    functions = walk(payload, "func.func")
    if len(functions) != 1 or not functions[0].regions[0].blocks:
        raise Refusal(payload, f"expected one function with a body, found {len(functions)}")
    normalize(functions[0], rewriter)
