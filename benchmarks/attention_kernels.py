"""Measures attentions as one kernel, beside kernels of their products and softmax, and PyTorch's.

    python benchmarks/attention_kernels.py --compile FOLDER
    python benchmarks/attention_kernels.py --bundles FOLDER --json docs/results/attention_kernels.json

--compile writes the bundles, which needs no GPU, and --bundles measures them, which needs no compiler. Attentions of
bf16, whose queries share keys and values in groups of heads, with a causal mask and without, in CUDA graphs;
contestants run in turn, and every number is the median of the rounds. PyTorch's is `scaled_dot_product_attention` in
eager mode. The numbers are compared with PyTorch's in f64 first, by a tolerance that the types and sizes give.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from attention_functions import Attention
from common import run
from model_functions import Model
from torch_rounds import bundles_parser, compile_to, main_of_bundles, ways_beside

WAYS = {"one kernel": True, "kernels": False}


class Case(NamedTuple):
    """An attention: heads of keys, heads of queries for each, queries, keys, elements of a head, and whether a causal
    mask hides later keys."""

    groups: int
    heads: int
    queries: int
    keys: int
    depth: int
    is_causal: bool


CASES = (
    Case(8, 4, 2048, 2048, 128, True),
    Case(8, 4, 2048, 2048, 128, False),
    Case(8, 4, 4096, 4096, 128, True),
    Case(4, 1, 2048, 2048, 128, True),
    Case(4, 1, 1024, 1024, 128, False),
    Case(8, 4, 128, 4096, 128, False),
    Case(1, 1, 128, 8192, 128, False),
    Case(16, 1, 2048, 2048, 64, True),
    Case(16, 1, 512, 512, 64, False),
    Case(8, 4, 256, 256, 64, True),
    Case(16, 1, 1500, 1500, 64, False),
    Case(12, 1, 197, 197, 64, False),
    Case(8, 4, 1000, 1000, 128, True),
)


def text_of(case: Case) -> str:
    """Returns an attention as linalg on tensors of bf16.

    Args:
        case: which.
    """
    model = Model("attention", 0, 0, case.groups * case.heads * case.depth, case.groups * case.depth, case.depth)
    writer = Attention(model, case.queries)
    rows, keys = (case.queries, case.groups, case.heads, case.depth), (case.keys, case.groups, case.depth)
    q, k, v = writer.argument(*rows), writer.argument(*keys), writer.argument(*keys)
    return writer.attention(q, k, v, (rows, keys), is_causal=case.is_causal)


def compile_all(folder: Path) -> None:
    """Compiles each case both ways.

    Args:
        folder: that the bundles are written to.
    """
    for case in CASES:
        for way, attention in WAYS.items():
            compile_to(_path(folder, case, way), text_of(case), attention=attention)


def _path(folder: Path, case: Case, way: str) -> Path:
    return folder / f"{'_'.join(map(str, map(int, case)))}_{way.replace(' ', '_')}.bundle"


def measure(folder: Path, case: Case) -> dict[str, Any]:
    """Returns the times of a case.

    Args:
        folder: of the bundles.
        case: which.
    """
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    functions: dict[str, Any] = {way: stepladder.load(str(_path(folder, case, way))) for way in WAYS}
    first = functions["kernels"]
    tensors = [torch.randn(item.shape, device="cuda").bfloat16() for item in first.inputs]

    def eager(q: Any, k: Any, v: Any) -> Any:  # noqa: ANN401
        heads = [item.reshape(item.shape[0], -1, case.depth).swapaxes(0, 1)[None] for item in (q, k, v)]
        y = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=case.is_causal, enable_gqa=True)
        return y[0].swapaxes(0, 1).reshape(q.shape)

    return {**case._asdict(), **ways_beside(torch, functions, tensors, eager)}


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return bundles_parser(__doc__)


def main() -> int:
    """Runs the command line; returns the exit status."""
    return main_of_bundles(make_parser(), compile_all, CASES, measure, ("groups", "queries", "keys", "depth", "passed"))


if __name__ == "__main__":
    run(main)
