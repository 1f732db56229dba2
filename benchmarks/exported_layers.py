"""Measures layers of transformers as torch-mlir exports them, beside PyTorch in eager mode and compiled.

    python benchmarks/exported_layers.py --compile FOLDER
    python benchmarks/exported_layers.py --bundles FOLDER --json docs/results/exported_layers.json

--compile exports with PyTorch and torch-mlir and writes the bundles, which needs no GPU; --bundles measures them, which
needs no compiler. Weights are arguments. Contestants run in turn, in CUDA graphs; every number is the median of the
rounds. The numbers are compared with PyTorch's in f64 first, by a tolerance that the types and sizes give.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

import stepladder
from common import run
from stepladder.verify.function_tolerance import norm_tolerance
from torch_rounds import bundles_parser, compile_to, graphs_in_turn, main_of_bundles


class Case(NamedTuple):
    """A layer: its kind, sequences, tokens of each, elements of a token, heads, heads of keys, elements between the
    matmuls of its MLP, their type, and tokens before these, whose keys and values are arguments."""

    name: str
    kind: str
    batch: int
    tokens: int
    width: int
    heads: int
    groups: int
    hidden: int
    element: str
    cached: int = 0


CASES = (
    Case("BERT-large", "encoder", 8, 384, 1024, 16, 16, 4096, "f16"),
    Case("ViT-B/16", "encoder", 16, 197, 768, 12, 12, 3072, "f16"),
    Case("Llama-3-8B", "decoder", 1, 2048, 4096, 32, 8, 14336, "bf16"),
    Case("Llama-3-8B", "decoder", 1, 512, 4096, 32, 8, 14336, "bf16"),
    Case("Llama-3-8B", "decoder", 1, 1, 4096, 32, 8, 14336, "bf16", 2047),
    Case("Llama-3-8B", "decoder", 8, 1, 4096, 32, 8, 14336, "bf16", 2047),
    Case("Llama-3-8B", "decoder", 32, 1, 4096, 32, 8, 14336, "bf16", 1023),
)


def _layer(torch: Any, case: Case) -> Any:  # noqa: ANN401
    """Returns a layer as a module."""
    nn, functional = torch.nn, torch.nn.functional

    class Encoder(nn.Module):
        """A layer of attention and an MLP, each normalized after it is added to what it reads."""

        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(case.width, case.heads, batch_first=True)
            self.up, self.down = nn.Linear(case.width, case.hidden), nn.Linear(case.hidden, case.width)
            self.norm1, self.norm2 = nn.LayerNorm(case.width), nn.LayerNorm(case.width)

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
            return self.norm2(x + self.down(functional.gelu(self.up(x))))

    class Decoder(nn.Module):
        """A layer of causal attention with rotary embeddings and a gated MLP, each of which reads normalized values."""

        def __init__(self) -> None:
            super().__init__()
            size = case.width // case.heads
            self.size = size
            self.q = nn.Linear(case.width, case.width, bias=False)
            self.k = nn.Linear(case.width, case.groups * size, bias=False)
            self.v = nn.Linear(case.width, case.groups * size, bias=False)
            self.o = nn.Linear(case.width, case.width, bias=False)
            self.gate = nn.Linear(case.width, case.hidden, bias=False)
            self.up = nn.Linear(case.width, case.hidden, bias=False)
            self.down = nn.Linear(case.hidden, case.width, bias=False)
            self.norm1, self.norm2 = nn.RMSNorm(case.width), nn.RMSNorm(case.width)
            positions = torch.arange(case.cached, case.cached + case.tokens)
            angles = torch.outer(positions, 10000 ** -(torch.arange(0, size, 2) / size)).repeat(1, 2)
            self.cos, self.sin = nn.Parameter(angles.cos()), nn.Parameter(angles.sin())

        def heads(self, x: Any) -> Any:  # noqa: ANN401
            return x.view(case.batch, case.tokens, -1, self.size).transpose(1, 2)

        def turned(self, x: Any) -> Any:  # noqa: ANN401
            half = self.size // 2
            return x * self.cos + torch.cat([-x[..., half:], x[..., :half]], -1) * self.sin

        def forward(self, x: Any, *cache: Any) -> Any:  # noqa: ANN401
            y = self.norm1(x)
            q, k, v = self.turned(self.heads(self.q(y))), self.turned(self.heads(self.k(y))), self.heads(self.v(y))
            k, v = (torch.cat([before, new], 2) for before, new in zip(cache, (k, v))) if cache else (k, v)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=not cache, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).reshape(x.shape))
            y = self.norm2(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    torch.manual_seed(0)
    return (Encoder if case.kind == "encoder" else Decoder)().eval()


def _inputs(torch: Any, case: Case, device: str) -> tuple[Any, list[Any]]:  # noqa: ANN401
    """Returns a function of the input, keys and values before it, and the weights of a layer, and these."""
    layer = _layer(torch, case)
    names = [name for name, _ in layer.named_parameters()]
    dtype = torch.bfloat16 if case.element == "bf16" else torch.float16

    class Whole(torch.nn.Module):
        def forward(self, *values: Any) -> Any:  # noqa: ANN401
            return torch.func.functional_call(layer, dict(zip(names, values[count:])), values[:count])

    shapes = [(case.batch, case.tokens, case.width)]
    if case.cached:
        shapes += 2 * [(case.batch, case.groups, case.cached, case.width // case.heads)]
    count = len(shapes)
    values = [*map(torch.randn, shapes), *(value.detach() for value in layer.parameters())]
    return Whole(), [value.to(dtype).to(device) for value in values]


def compile_all(folder: Path) -> None:
    """Exports and compiles each case.

    Args:
        folder: that the bundles are written to.
    """
    import torch  # pyright: ignore[reportMissingImports]
    from torch_mlir import fx  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

    for case in CASES:
        module, inputs = _inputs(torch, case, "cpu")
        text = str(fx.export_and_import(module, *inputs, output_type="linalg-on-tensors", func_name="layer"))
        compile_to(_path(folder, case), text)


def _path(folder: Path, case: Case) -> Path:
    return folder / f"{case.kind}_{'_'.join(map(str, case[2:]))}.bundle"


def measure(folder: Path, case: Case) -> dict[str, Any]:
    """Returns the times of a case.

    Args:
        folder: of the bundles.
        case: which.
    """
    import torch  # pyright: ignore[reportMissingImports]

    function: Any = stepladder.load(str(_path(folder, case)))
    module, tensors = _inputs(torch, case, "cuda")
    with torch.no_grad():
        expected = module(*(tensor.double() for tensor in tensors))
        compiled = torch.compile(module, mode="max-autotune-no-cudagraphs")
        out = torch.empty_like(tensors[0])
        out.fill_(float("nan"))
        function(*tensors, out=out)
        error = float((out.double() - expected).norm() / expected.norm())
        tolerance = norm_tolerance(function.bundle)
        calls: dict[str, Callable[[], Any]] = {
            "stepladder": lambda: function(*tensors, out=out),
            "eager": lambda: module(*tensors),
            "compiled": lambda: compiled(*tensors),
        }
        errors = {name: float((call().double() - expected).norm() / expected.norm()) for name, call in calls.items()}
        times = graphs_in_turn(torch, calls)
    print({name: round(median(samples), 1) for name, samples in times.items()}, errors, file=sys.stderr, flush=True)
    return {
        **case._asdict(),
        "launches": [launch.stage for launch in function.manifest.launches],
        "error": error,
        "errors": errors,
        "tolerance": tolerance,
        "passed": error <= tolerance,
        "us": times,
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return bundles_parser(__doc__)


def main() -> int:
    """Runs the command line; returns the exit status."""
    return main_of_bundles(make_parser(), compile_all, CASES, measure, ("name", "tokens", "passed"))


if __name__ == "__main__":
    run(main)
