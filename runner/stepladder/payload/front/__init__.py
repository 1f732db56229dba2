"""The front: brings a payload as users and front ends write it to the matmul that pipelines start from.

`recognize` follows the payload's function (`trace`), reduces its contraction to m, n and k (`plan`) and writes the
matmul in its normal form (`rewrite`).
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, walk
from stepladder.payload.front.plan import make_plan
from stepladder.payload.front.rewrite import rewrite
from stepladder.payload.front.trace import Trace

_VIEWS = (
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.cast",
    "tensor.extract_slice",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.cast",
    "memref.subview",
    "memref.reinterpret_cast",
    "memref.transpose",
    "linalg.transpose",
    "linalg.broadcast",
    "linalg.copy",
)


def is_for_front(root: ir.Operation) -> bool:
    """Returns whether the front's refusal of a payload explains more than that of the rule: for linalg ops without a
    `linalg.matmul`, and for views around one and sums that start from a constant tensor, which the rule knows none of.

    Args:
        root: a module, or a function of it.
    """
    has_structured = any(op.name.startswith("linalg.") for op in walk(root))
    matmuls = walk(root, "linalg.matmul", "linalg.batch_matmul")
    is_nested = any(matmul.parent is not None and matmul.parent.name.startswith("scf.") for matmul in matmuls)
    starts = [] if is_nested else [producer(matmul.operands[2]) for matmul in matmuls]
    starts_from_constant = any(start is not None and start.name == "arith.constant" for start in starts)
    return (has_structured and not matmuls) or starts_from_constant or bool(walk(root, *_VIEWS))


def recognize(function: ir.Operation) -> None:
    """Rewrites a function to one `linalg.matmul` or `linalg.batch_matmul` on buffers that are views of its arguments.

    Args:
        function: a `func.func` with a body.

    Raises:
        StepladderError: something that is not, or not only, one contraction; the function is as it was.
    """
    trace = Trace(function)
    trace.follow()
    rewrite(function, make_plan(trace))
