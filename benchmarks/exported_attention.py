"""Measures `scaled_dot_product_attention` as torch-mlir exports it: one kernel, also with weights that are rounded,
several kernels, and PyTorch's.

    python benchmarks/exported_attention.py --compile FOLDER
    python benchmarks/exported_attention.py --bundles FOLDER --json docs/results/exported_attention.json

--compile exports with PyTorch and torch-mlir and writes the bundles, which needs no GPU; --bundles measures them, which
needs no compiler. The exported IR computes scores, weights and sums in f32, where PyTorch's kernels round weights.
Contestants run in turn, in CUDA graphs; every number is the median of the rounds. The numbers are compared with
PyTorch's in f64 first, by a tolerance that the types and sizes give.
"""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from common import run
from torch_rounds import bundles_parser, compile_to, main_of_bundles, ways_beside

WAYS: dict[str, dict[str, Any]] = {
    "one kernel": {"attention": True},
    "rounded weights": {"attention": True, "attention_weights": "rounded"},
    "kernels": {"attention": False},
}


class Case(NamedTuple):
    """An attention: sequences, heads of queries, heads of keys, queries, keys, elements of a head, their type, and a
    mask: causal, added, or none."""

    batch: int
    heads: int
    groups: int
    queries: int
    keys: int
    depth: int
    element: str
    mask: str


CASES = (
    Case(1, 32, 8, 2048, 2048, 128, "bf16", "causal"),
    Case(1, 32, 8, 2048, 2048, 128, "f16", "causal"),
    Case(1, 32, 32, 2048, 2048, 128, "f16", ""),
    Case(1, 32, 32, 2048, 2048, 128, "bf16", ""),
    Case(1, 32, 8, 512, 512, 128, "bf16", "added"),
    Case(8, 16, 16, 512, 512, 64, "f16", ""),
    Case(8, 16, 16, 512, 512, 64, "bf16", ""),
    Case(8, 16, 16, 512, 512, 64, "f16", "added"),
    Case(16, 12, 12, 197, 197, 64, "f16", ""),
    Case(32, 12, 12, 128, 128, 64, "f16", "added"),
    Case(1, 16, 16, 128, 128, 64, "f16", ""),
    Case(2, 16, 16, 4096, 77, 64, "f16", ""),
    Case(1, 8, 8, 128, 8192, 64, "f16", ""),
    Case(1, 2, 2, 128, 8192, 128, "bf16", ""),
    Case(1, 32, 8, 1, 2048, 128, "bf16", ""),
    Case(1, 32, 8, 1, 8192, 128, "bf16", ""),
    Case(1, 32, 8, 1, 32768, 128, "bf16", ""),
    Case(8, 32, 8, 1, 2048, 128, "bf16", "added"),
    Case(32, 32, 8, 1, 1024, 128, "bf16", ""),
    Case(1, 32, 32, 1, 2048, 128, "f16", ""),
    Case(16, 32, 32, 1, 1024, 128, "bf16", ""),
    Case(4, 16, 16, 1, 3000, 64, "f16", ""),
    Case(1, 32, 8, 4, 4096, 128, "bf16", ""),
)


def compile_all(folder: Path) -> None:
    """Exports and compiles each case both ways.

    Args:
        folder: that the bundles are written to.
    """
    for case in CASES:
        text = exported(case)
        for way, knobs in WAYS.items():
            compile_to(_path(folder, case, way), text, **knobs)


def exported(case: Case) -> str:
    """Returns an attention as torch-mlir writes it, in linalg on tensors.

    Args:
        case: which.
    """
    import torch  # pyright: ignore[reportMissingImports]
    from torch_mlir import fx  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

    class Attention(torch.nn.Module):
        def forward(self, q: Any, k: Any, v: Any, *mask: Any) -> Any:  # noqa: ANN401
            return _attention(q, k, v, *mask, case=case)

    inputs = _inputs(torch, case, "cpu")
    return str(fx.export_and_import(Attention(), *inputs, output_type="linalg-on-tensors", func_name="attention"))


def _attention(q: Any, k: Any, v: Any, mask: Any = None, *, case: Case) -> Any:  # noqa: ANN401
    import torch  # pyright: ignore[reportMissingImports]

    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, mask, is_causal=case.mask == "causal", enable_gqa=case.heads > case.groups
    )


def _inputs(torch: Any, case: Case, device: str) -> list[Any]:  # noqa: ANN401
    """Returns queries, keys and values, and a mask that is added, of heads that lie one after the other."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if case.element == "bf16" else torch.float16
    keys = (case.batch, case.groups, case.keys, case.depth)
    shapes = [(case.batch, case.heads, case.queries, case.depth), keys, keys]
    if case.mask == "added":
        shapes.append((case.batch, 1, case.queries, case.keys))
    return [torch.randn(shape, device=device).to(dtype) for shape in shapes]


def _path(folder: Path, case: Case, way: str) -> Path:
    return folder / f"{'_'.join(map(str, case))}_{way.replace(' ', '_')}.bundle"


def measure(folder: Path, case: Case) -> dict[str, Any]:
    """Returns the times of a case.

    Args:
        folder: of the bundles.
        case: which.
    """
    import torch  # pyright: ignore[reportMissingImports]

    functions: dict[str, Any] = {way: stepladder.load(str(_path(folder, case, way))) for way in WAYS}
    tensors = _inputs(torch, case, "cuda")
    eager = functools.partial(_attention, case=case)
    return {
        **case._asdict(),
        "launches": {way: len(function.manifest.launches) for way, function in functions.items()},
        **ways_beside(torch, functions, tensors, eager, rates_eager=True),
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return bundles_parser(__doc__)


def main() -> int:
    """Runs the command line; returns the exit status."""
    shown = ("batch", "heads", "queries", "keys", "depth", "element", "mask", "passed")
    return main_of_bundles(make_parser(), compile_all, CASES, measure, shown)


if __name__ == "__main__":
    run(main)
