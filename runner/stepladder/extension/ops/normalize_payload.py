"""`tc.normalize_payload`: converts a matmul function to the form that pipelines start from."""

import contextlib

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.normal_form import normalize
from stepladder.extension.lib.pair_form import recognize
from stepladder.extension.lib.workspaces import insert_producers
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload import matmul, pairs
from stepladder.payload.producers import Producer
from stepladder.runtime.errors import StepladderError


class NormalizePayload(Tc.Operation, name="normalize_payload"):
    """Converts a matmul function to memref arguments and linalg ops on tensors.

    The op accepts a function on memrefs, whose `linalg.matmul` writes C in place; a function on tensors with results,
    which are written to the argument that the accumulator is initialized from, or to new last arguments if there is
    none; and the normal form: `bufferization.to_tensor` of memref arguments, ops on tensors, and
    `bufferization.materialize_in_destination`. Arguments of the normal form may be tensors too, which become buffers.

    Elementwise ops that compute A or B (`payload.producers`) are separated first, and write their results to
    workspaces, which the matmul reads. The front (`payload.front`) then rewrites a contraction to one `linalg.matmul`
    on views of the arguments: indexing maps, reshapes and transposes become layouts or an exchange of A and B, and
    extensions of A and B become those of the matmul. It rewrites both products of a pair (`payload.pairs`). A function
    that the front refuses is only normalized; every command refuses it before the first step.

    Operands: a handle to the module, which has one function.
    Refuses: several functions; linalg ops on buffers that are not arguments; a function on tensors that returns
        something other than tensors computed from the product, or an argument beside another tensor.
    """

    target: Handle


@transform_op(NormalizePayload)
def normalize_payload(payload: ir.Operation, op: NormalizePayload, rewriter: Rewriter) -> None:
    """Normalizes the one function below `payload`; see the op."""
    functions = walk(payload, "func.func")
    if len(functions) != 1 or not functions[0].regions[0].blocks:
        raise Refusal(payload, f"expected one function with a body, found {len(functions)}")
    producers: list[Producer] = []
    with contextlib.suppress(StepladderError):  # every command refuses such a payload before the first step
        producers = matmul.separate_producers(payload, 2 if pairs.divisions(payload) else 1)
        recognize(payload, rewriter)
    normalize(functions[0], rewriter)
    insert_producers(functions[0], producers)
