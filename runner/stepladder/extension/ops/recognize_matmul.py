"""`tc.recognize_matmul`: converts a contraction, as users and front ends write it, to one `linalg.matmul`."""

import contextlib

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.pair_form import recognize
from stepladder.mlir.bindings import ir
from stepladder.payload import matmul, pairs
from stepladder.runtime.errors import StepladderError


class RecognizeMatmul(Tc.Operation, name="recognize_matmul"):
    """Replaces the body of a function that computes one contraction by one `linalg.matmul` on views of its arguments.

    Indexing maps, reshapes and transposes become layouts, or an exchange of A and B; extensions of A and B become
    those of the matmul. Of a pair of products of one A (`payload.pairs`), each is recognized so, and the function gets
    the normal form of both. Any other function stays as it is: one that is a `linalg.matmul` as pipelines take it, one
    whose A or B other ops make, which `tc.normalize_payload` separates first, and what `payload.front` refuses, which
    every command does before the first step.

    Operands: a handle to the module.
    """

    target: Handle


@transform_op(RecognizeMatmul)
def recognize_matmul(payload: ir.Operation, op: RecognizeMatmul, rewriter: Rewriter) -> None:
    """Recognizes the matmul of the one function below `payload`; see the op."""
    with contextlib.suppress(StepladderError):
        contractions = 2 if pairs.divisions(payload) else 1
        if not matmul.separate_producers(payload.clone(), contractions):
            recognize(payload, rewriter)
