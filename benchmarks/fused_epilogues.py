"""Measures elementwise ops fused into the epilogue beside what libraries do, on a GPU.

Each case is C = f(AB) in f16 with f32 accumulators, for square problems; docs/results/fused_epilogues.json has the
results. The contestants of a case, timed in turn in one process:

  cublas     the matmul alone, by cuBLAS: the baseline between any two others
  plain      the matmul alone, by our kernel with its own default knobs
  fused      our kernel with the elementwise ops in its epilogue
  lt         cuBLASLt with the same epilogue, where PyTorch reaches it: bias + ReLU, bias + GELU, add matrix
  eager      cuBLAS and PyTorch's elementwise kernels, one by one
  compiled   cuBLAS and what torch.compile makes of the elementwise ops, where it works

Needs PyTorch on the machine with the GPU, and MLIR and ptxas where kernels are built, there or elsewhere:

    python benchmarks/fused_epilogues.py --sizes 2048 4096 8192 --rounds 11
    python benchmarks/fused_epilogues.py --sizes 2048 4096 8192 --build kernels
    python benchmarks/fused_epilogues.py --sizes 2048 4096 8192 --built kernels
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import duel
from common import measurement_parser, run, write_result
from stepladder.measure.baselines import cublas
from stepladder.measure.bench import prepare_data
from stepladder.measure.timing import MODES, Contestant
from stepladder.runtime.bundle import Bundle, read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.verify.check import check_exact

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

PIPELINE, TARGET = "wgmma", "sm_90a"
SIZES = (2048, 4096, 8192)
SEED = 0
_PLAIN = "plain"  # the matmul alone

_BIAS = ("%D: tensor<{n}xf16>", "tensor<{n}xf16>", "j")
_MATRIX = ("%D: tensor<{m}x{n}xf16>", "tensor<{m}x{n}xf16>", "i, j")
_ADD = "%e = arith.extf %d : f16 to f32\n    %x = arith.addf %s, %e : f32"
_RELU = "%y = arith.maximumf {x}, %zero : f32"
_GELU = """%a = arith.mulf %x, %x : f32
    %b = arith.mulf %a, %x : f32
    %c = arith.mulf %b, %cubic : f32
    %f = arith.addf %x, %c : f32
    %g = arith.mulf %f, %root : f32
    %h = math.tanh %g : f32
    %i = arith.addf %h, %one : f32
    %j = arith.mulf %x, %half : f32
    %y = arith.mulf %j, %i : f32"""


@dataclass(frozen=True)
class Case:
    """An epilogue.

    Attributes:
        operand: the argument that it reads: its declaration, its type, and the results of its map; None for none.
        body: of the elementwise op, from the sum %s and the operand %d to %y.
        eager: the same in PyTorch, of the product and the operand.
        lt: one call of PyTorch that cuBLASLt computes, of A, B and the operand; None where there is none.
    """

    operand: tuple[str, str, str] | None
    body: str
    eager: Callable[[Any, Any], Any]
    lt: Callable[[Any, Any, Any], Any] | None


def _torch() -> ModuleType:
    import torch  # pyright: ignore[reportMissingImports]

    return torch


def _activated(gelu: bool) -> Callable[[Any, Any, Any], Any]:
    return lambda a, b, d: _torch()._addmm_activation(d, a, b, use_gelu=gelu)


def _gelu(x: torch.Tensor) -> torch.Tensor:
    return _torch().nn.functional.gelu(x, approximate="tanh")


CASES = {
    "relu": Case(None, _RELU.format(x="%s"), lambda p, d: p.relu(), None),
    "bias_relu": Case(_BIAS, f"{_ADD}\n    {_RELU.format(x='%x')}", lambda p, d: (p + d).relu(), _activated(False)),
    "bias_gelu": Case(_BIAS, f"{_ADD}\n    {_GELU}", lambda p, d: _gelu(p + d), _activated(True)),
    "add": Case(_MATRIX, _ADD.replace("%x =", "%y ="), lambda p, d: p + d, lambda a, b, d: _torch().addmm(d, a, b)),
    "add_relu": Case(_MATRIX, f"{_ADD}\n    {_RELU.format(x='%x')}", lambda p, d: (p + d).relu(), None),
}


def payload(case: Case | None, size: int) -> str:
    """Returns the payload of a case in f16, for a square problem.

    Args:
        case: the epilogue; None for the matmul alone.
        size: M = N = K.
    """
    shape = {"m": size, "n": size, "k": size}
    body, operand = (case.body, case.operand) if case else ("", None)
    declared, type_, loops = (part.format(**shape) for part in operand) if operand else ("", "", "")
    identity = "affine_map<(i, j) -> (i, j)>"
    maps = ", ".join([identity, *([f"affine_map<(i, j) -> ({loops})>"] if operand else []), identity])
    inputs = f"%p{', %D' if operand else ''} : tensor<{size}x{size}xf32>{', ' + type_ if operand else ''}"
    rounded = "%r = arith.truncf %y : f32 to f16" if case else "%r = arith.truncf %s : f32 to f16"
    matrix = f"tensor<{size}x{size}xf16>"
    return f"""func.func @matmul(%A: {matrix}, %B: {matrix}{", " + declared if operand else ""}) -> {matrix} {{
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %cubic = arith.constant 4.471500e-02 : f32
  %root = arith.constant 7.978846e-01 : f32
  %empty = tensor.empty() : tensor<{size}x{size}xf32>
  %z = linalg.fill ins(%zero : f32) outs(%empty : tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32>
  %p = linalg.matmul ins(%A, %B : {matrix}, {matrix}) outs(%z : tensor<{size}x{size}xf32>)
      -> tensor<{size}x{size}xf32>
  %o = tensor.empty() : {matrix}
  %q = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({inputs}) outs(%o : {matrix}) {{
  ^bb0(%s: f32{", %d: f16" if operand else ""}, %out: f16):
    {body}
    {rounded}
    linalg.yield %r : f16
  }} -> {matrix}
  return %q : {matrix}
}}
"""


def build_bundle(text: str, path: Path, knobs: dict[str, int | str]) -> Bundle:
    """Compiles a payload and returns its bundle.

    Args:
        text: the payload.
        path: of the bundle.
        knobs: that are set; the others are those that `stepladder compile` takes by default.
    """
    from stepladder.pipeline.build import build
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    with mlir_context():
        build(text, "payload.mlir", Request(PIPELINE, {"target": TARGET, **knobs}, tuned=True)).write(path)
    return read_bundle(path)


class _Views:
    """PyTorch views of the operands of a problem.

    Args:
        buffers: the operands.
    """

    def __init__(self, buffers: MatmulBuffers) -> None:
        torch = _torch()
        problem = buffers.problem
        self.torch = torch
        self.place = torch.device("cuda", buffers.device.ordinal)
        self.stream = torch.cuda.ExternalStream(buffers.device.stream, device=self.place)
        self.a, self.b, self.c = (
            torch.as_tensor(buffer, device=self.place).view(torch.float16).view(problem.operand(role).shape)
            for role, buffer in zip("abc", (buffers.a, buffers.b, buffers.c))
        )
        self.further = [
            torch.as_tensor(buffer, device=self.place).view(torch.float16).view(operand.shape)
            for buffer, operand in zip(buffers.further, problem.epilogue_operands)
        ]

    @property
    def operand(self) -> torch.Tensor | None:
        """The operand of the epilogue, or None."""
        return self.further[0] if self.further else None


def libraries(case: Case, views: _Views, compiles: bool) -> dict[str, Callable[[], Any]]:
    """Returns the implementations of a case in PyTorch, by the names of the contestants.

    Args:
        case: the epilogue.
        views: PyTorch tensors of the operands.
        compiles: whether torch.compile is one of them.
    """
    torch = views.torch
    a, b, d = views.a, views.b, views.operand

    def on_stream(function: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        def enqueue() -> torch.Tensor:
            with torch.cuda.stream(views.stream):
                return function()

        return enqueue

    calls = {"eager": on_stream(lambda: case.eager(torch.mm(a, b), d))}
    lt = case.lt
    if lt is not None:
        calls["lt"] = on_stream(lambda: lt(a, b, d))
    if not compiles:
        return calls
    try:
        compiled = torch.compile(lambda x, y, z: case.eager(torch.mm(x, y), z))
        calls["compiled"] = on_stream(lambda: compiled(a, b, d))
        calls["compiled"]()
        torch.cuda.synchronize()
    except Exception as error:  # torch.compile fails in many ways, where Triton or a C compiler is missing
        print(f"no torch.compile: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
        calls.pop("compiled", None)
    return calls


def differences(views: _Views, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Returns the largest difference of each library from the kernel's C, relative to the largest element.

    Args:
        views: PyTorch tensors of the operands; C holds the result of the kernel.
        calls: as `libraries` returns it.
    """
    views.torch.cuda.synchronize()
    kernel_c = views.c.float()
    scale = float(kernel_c.abs().max())
    errors = {}
    for name, enqueue in calls.items():
        library_c = enqueue()
        views.torch.cuda.synchronize()
        errors[name] = float((library_c.float() - kernel_c).abs().max()) / scale
    return errors


def build(names: Sequence[str], sizes: Sequence[int], folder: Path) -> None:
    """Builds the kernels of cases, and those of the matmuls alone.

    Args:
        names: of the cases.
        sizes: of the square problems.
        folder: of the bundles.
    """
    for size in sizes:
        build_bundle(payload(None, size), folder / _folder(_PLAIN, size), {})
        for name in names:
            build_bundle(payload(CASES[name], size), folder / _folder(name, size), {})


def _folder(name: str, size: int) -> str:
    return f"{name}_{size}"


def measure(
    device: Device, name: str, size: int, mode: str, rounds: int, folder: Path, compiles: bool
) -> dict[str, Any]:
    """Checks and measures a case at a size.

    Args:
        device: the GPU.
        name: of the case.
        size: M = N = K.
        mode: "burst" or "sustained".
        rounds: of the measurement.
        folder: of the bundles, which `build` wrote.
        compiles: whether torch.compile is a contestant.

    Returns:
        The entry of the result.

    Raises:
        StepladderError: the fused kernel computes wrong numbers.
    """
    case = CASES[name]
    fused = read_bundle(folder / _folder(name, size))
    plain = read_bundle(folder / _folder(_PLAIN, size))
    with MatmulBuffers(device, fused.manifest.problem) as buffers:
        launches = {
            "fused": buffers.launcher(device.load(fused), fused),
            "plain": buffers.launcher(device.load(plain), plain),
        }
        report = check_exact(
            fused.manifest.problem, fused.expected(), DeviceExecutor(buffers, launches["fused"]), SEED, device.ordinal
        )
        if not report.passed:
            raise StepladderError(f"the fused kernel of {name} at {size} is wrong: {report.describe()}")
        prepare_data(buffers)
        views = _Views(buffers)
        calls = libraries(case, views, compiles)
        launches["fused"]()
        device.synchronize()
        agree = differences(views, calls)
        flops = fused.manifest.problem.flops
        library = cublas(buffers)
        contest = duel.Duel(
            device,
            Contestant("cublas", flops, library.enqueue),
            [Contestant(key, flops, enqueue) for key, enqueue in {**launches, **calls}.items()],
        )
        try:
            measured = contest.run(MODES[mode], rounds)
        finally:
            contest.free()
    kernels = measured["kernels"]
    for key in duel.by_ratio(measured):
        print(f"{name} {size}: {key} {kernels[key]['ratio_spread']}", flush=True)
    return {
        "case": name,
        "size": size,
        "provider": library.provider,
        "fused": duel.describe(fused),
        "plain": duel.describe(plain),
        "differences": agree,
        "measured": measured,
    }


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = measurement_parser(__doc__, SIZES, "fused_epilogues", 11)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES), help="epilogues")
    parser.add_argument("--build", type=Path, metavar="FOLDER", help="build the kernels there, and measure nothing")
    parser.add_argument("--built", type=Path, metavar="FOLDER", help="measure the kernels that were built there")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures all cases at all sizes; writes the result after each.

    Args:
        arguments: of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(arguments)
    if args.build:
        build(args.cases, args.sizes, args.build)
        return
    with tempfile.TemporaryDirectory(prefix="stepladder-") as temporary, Device() as device:
        folder = args.built or Path(temporary)
        if not args.built:
            build(args.cases, args.sizes, folder)
        result = duel.header(device)
        result |= {"pipeline": PIPELINE, "mode": args.mode, "rounds": args.rounds, "problems": []}
        for size in args.sizes:
            for name in args.cases:
                entry = measure(device, name, size, args.mode, args.rounds, folder, not args.no_compile)
                result["problems"].append(entry)
                write_result(args.out, result)


if __name__ == "__main__":
    run(main)
