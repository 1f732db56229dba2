"""`tc.normalize_payload`: converts a matmul function to the form that pipelines start from."""

import contextlib

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.normal_form import normalize
from stepladder.extension.lib.pair_form import recognize
from stepladder.extension.lib.workspaces import insert_producers
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload import matmul, pairs
from stepladder.payload.facts import MATMULS
from stepladder.payload.producers import Producer
from stepladder.runtime.errors import StepladderError


class NormalizePayload(Tc.Operation, name="normalize_payload"):
    """Converts a matmul function to memref arguments and linalg ops on tensors.

    The op accepts a function on memrefs, whose `linalg.matmul` writes C in place; a function on tensors with results,
    which are written to the argument that the accumulator is initialized from, or to new last arguments if there is
    none; and the normal form: `bufferization.to_tensor` of memref arguments, ops on tensors, and
    `bufferization.materialize_in_destination`. Arguments of the normal form may be tensors too, which become buffers.

    Elementwise ops that make A or B (`payload.producers`) are separated first, so that what is left is recognized
    (`tc.recognize_matmul`) and normalized as any other matmul. They write their results to workspaces, which it reads.

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
        divisions = pairs.divisions(payload)
        producers = matmul.separate_producers(payload, 2 if divisions else 1)
        if producers or len(walk(payload, *MATMULS)) < 2:  # not a pair that `tc.recognize_matmul` has written
            recognize(payload, rewriter)
    normalize(functions[0], rewriter)
    insert_producers(functions[0], producers)
