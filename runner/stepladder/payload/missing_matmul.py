"""Refusals of payloads without a linalg matmul: the op that may be meant, and the accepted forms."""

from __future__ import annotations

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.runtime.errors import StepladderError

_TILES = "a XeTile program is compiled with --pipeline xetile_wgmma, xetile_mma_sync or xetile"
_WRITTEN = "write one with: stepladder payload matmul --m M --n N --k K"
_NESTS = (
    "accepted: loops over elements from 0 to constants by 1 (scf.for, or affine.for, which becomes one), with loads "
    "and stores at their counters, or linalg.matmul or linalg.generic in their place"
)
# By the beginning of an op's name: what is compiled instead. The first one that a payload has is named.
_OTHERS = {
    "vector.contract": "accepted: linalg.matmul, linalg.contract or linalg.generic of tensors or buffers, as before a "
    "vectorization, which the pipelines do themselves",
    "vector.": "accepted: linalg ops of tensors or buffers, as before a vectorization, which the pipelines do "
    "themselves",
    "torch.": "accepted: linalg ops, of torch-mlir's pipeline torch-backend-to-linalg-on-tensors-backend-pipeline; "
    "stepladder.compile takes a torch.nn.Module",
    "gpu.launch": "accepted: linalg ops, of which the pipelines make the launch; stepladder emulate runs kernels",
    "scf.for": _NESTS,
    "scf.parallel": _NESTS,
}


def no_matmul(module: ir.Module | ir.Operation | ir.OpView) -> StepladderError:
    """Returns the refusal of a payload without a matmul of linalg, at the op that most looks like one.

    Args:
        module: the payload.
    """
    linalg = [op.name for op in walk(module) if op.name.startswith("linalg.")]
    names = [name for name in dict.fromkeys(linalg) if name not in ("linalg.yield", "linalg.fill")]
    tiles = any(op.name == "xetile.tile_mma" for op in walk(module))
    for beginning, accepted in _OTHERS.items():
        other_op = next((op for op in walk(module) if op.name.startswith(beginning)), None)
        if other_op is not None and not names and not tiles:
            return StepladderError(
                f"no linalg.matmul in the payload, but '{other_op.name}'",
                location=diagnostics.location_text(other_op.location),
                notes=[accepted],
            )
    unsupported = [refusal for op in walk(module, "func.func") if (refusal := _of_signature(op)) is not None]
    if unsupported and not tiles:
        return unsupported[0]
    return StepladderError(
        "no linalg.matmul in the payload",
        notes=[f"found {', '.join(names)}" if names else "found no linalg op at all", _TILES if tiles else _WRITTEN],
    )


def _of_signature(function: ir.Operation) -> StepladderError | None:
    """Returns why no kernels are made of a function, whatever its ops are; None where they may be."""
    if not len(function.regions[0].blocks):
        return None
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    others = [item for item in type_.results if not isinstance(item, (ir.RankedTensorType, ir.MemRefType))]
    what, accepted = "", "tensors and buffers"
    if len(function.regions[0].blocks) > 1:
        what, accepted = "has branches between blocks", "straight-line code, scf.for and scf.if"
    elif others:
        what = f"returns {others[0]}"
    elif not type_.results and not any(isinstance(item, ir.MemRefType) for item in type_.inputs):
        what, accepted = (
            "returns nothing, and has no buffers to write",
            "results that are tensors, arguments that are buffers",
        )
    if not what:
        return None
    name = ir.StringAttr(function.attributes["sym_name"]).value
    return StepladderError(
        f"no linalg.matmul in the payload: function @{name} {what}",
        location=diagnostics.location_text(function.location),
        notes=[f"accepted: {accepted}"],
    )
