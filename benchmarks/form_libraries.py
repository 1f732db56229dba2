"""The library calls that compute a drawn matmul of `drawn_forms.py`, through PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fused_epilogues import CASES

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

    from forms import Form


def _arranged(view: torch.Tensor, dimensions: str, order: str) -> torch.Tensor:
    """Returns a view with other orders of dimensions, and an extent of one for a dimension that it lacks."""
    view = view.permute([dimensions.index(letter) for letter in order if letter in dimensions])
    for place, letter in enumerate(order):
        view = view if letter in dimensions else view.unsqueeze(place)
    return view


def libraries(
    form: Form, operands: Sequence[torch.Tensor], stream: torch.cuda.Stream
) -> dict[str, Callable[[], torch.Tensor]]:
    """Returns library calls that compute a problem, by name.

    Args:
        form: the problem.
        operands: A, B, C and what the epilogue reads.
        stream: that calls are enqueued on.
    """
    import torch  # pyright: ignore[reportMissingImports]

    a, b, c, *rest = operands
    d = rest[0] if rest else None
    a_dimensions, b_dimensions, c_dimensions = form.dimensions
    if form.kind == "contraction":
        calls = {"einsum": lambda: torch.einsum(form.spec, a, b)}
    else:
        outer = "b" if "b" in c_dimensions else ""
        left, right = _arranged(a, a_dimensions, f"{outer}mk"), _arranged(b, b_dimensions, f"{outer}kn")
        calls = {"cublas": lambda: torch.matmul(left, right, out=c)}
        if form.epilogue:
            case = CASES[form.epilogue]
            calls = {"eager": lambda: case.eager(torch.mm(left, right), d)}
            if (fused := case.lt) is not None:
                calls["lt"] = lambda: fused(left, right, d)

    def on_stream(call: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        def enqueue() -> torch.Tensor:
            with torch.cuda.stream(stream):
                return call()

        return enqueue

    return {name: on_stream(call) for name, call in calls.items()}
