"""Times drawn matmuls that are not plain beside the best library call: transposed operands, batches, epilogues and
contractions.

The problems are drawn with a fixed seed. Each is one payload of `linalg.generic` ops, compiled with the default knobs,
and checked before it is timed. Libraries are called through PyTorch: cuBLAS by `matmul` on views of the operands,
`einsum` for contractions, and for epilogues cuBLASLt where PyTorch reaches it, and cuBLAS with PyTorch's elementwise
kernels. The ratio is to the fastest of those calls.

Needs PyTorch on the machine with the GPU, and MLIR and ptxas where kernels are built, there or elsewhere:

    python benchmarks/drawn_forms.py --count 80
    python benchmarks/drawn_forms.py --count 60 --seed 7 --build kernels
    python benchmarks/drawn_forms.py --count 60 --seed 7 --built kernels

Kernels that another version of this repository built are measured in turn with the others, as `before`:

    python benchmarks/drawn_forms.py --count 60 --seed 7 --built kernels --before other/kernels

Those to which a matrix is added, of 1200 problems:

    python benchmarks/drawn_forms.py --count 1200 --epilogues add add_relu

Those of which a kernel transposes an operand:

    python benchmarks/drawn_forms.py --count 1200 --specs mkl,lkn->mn

Batches of matmuls with few rows, as in decoding:

    python benchmarks/drawn_forms.py --count 40 --few-rows

Those after the first 60 problems whose knobs differ between the two:

    python benchmarks/drawn_forms.py --count 260 --seed 7 --skip 60 --changed --built kernels --before other/kernels
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duel
import stepladder
from common import result_parser, run, write_result
from draw import add_draw_options
from form_libraries import libraries
from forms import COUNT, SEED, Form, draw, draw_few_rows
from fused_epilogues import CASES, PIPELINE, TARGET
from stepladder.measure.timing import Contestant, Mode
from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.processes import end_with_pool

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

# Of C, as a share of its largest element: what is stored in f16 is exact to half of this.
LARGEST_DIFFERENCE = 2.0**-10
# Shorter than that of other benchmarks: most of these problems are small.
BURST = Mode(0.01, 0.03)
# In a folder of built kernels: why others cannot be built, by name of the problem.
_REFUSED = "refused.json"


def _tensor(shape: Sequence[int], element: str = "f16") -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def _map(loops: str, results: str) -> str:
    return f"affine_map<({', '.join(loops)}) -> ({', '.join(results)})>"


def _iterators(loops: str, parallel: str) -> str:
    return ", ".join('"parallel"' if letter in parallel else '"reduction"' for letter in loops)


def operand_of(form: Form) -> str:
    """Returns the dimensions of what the epilogue of a problem reads; empty where it reads nothing.

    Args:
        form: the problem.
    """
    if not form.epilogue or CASES[form.epilogue].operand is None:
        return ""
    return "n" if "bias" in form.epilogue else form.dimensions[2]


def payload(form: Form) -> str:
    """Returns the payload of a problem: f16, sums in f32, C in f16.

    Args:
        form: the problem.
    """
    a, b, c = form.dimensions
    loops = "".join(sorted(set(a + b), key=lambda letter: (letter not in c, (c + a).find(letter))))
    types = [_tensor(form.shape(dimensions)) for dimensions in (a, b, c)]
    sums = _tensor(form.shape(c), "f32")
    operand = operand_of(form)
    read_type = _tensor(form.shape(operand)) if operand else ""
    maps = ", ".join(_map(loops, dimensions) for dimensions in (a, b, c))
    ends = ", ".join(_map(c, dimensions) for dimensions in (c, *([operand] if operand else []), c))
    body = CASES[form.epilogue].body if form.epilogue else ""
    rounded = f"%r = arith.truncf {'%y' if form.epilogue else '%s'} : f32 to f16"
    return f"""func.func @form(%A: {types[0]}, %B: {types[1]}{f", %D: {read_type}" if operand else ""}) -> {types[2]} {{
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %cubic = arith.constant 4.471500e-02 : f32
  %root = arith.constant 7.978846e-01 : f32
  %empty = tensor.empty() : {sums}
  %z = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
  %p = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{_iterators(loops, c)}]}}
      ins(%A, %B : {types[0]}, {types[1]}) outs(%z : {sums}) {{
  ^bb0(%x: f16, %w: f16, %t: f32):
    %xe = arith.extf %x : f16 to f32
    %we = arith.extf %w : f16 to f32
    %m = arith.mulf %xe, %we : f32
    %u = arith.addf %t, %m : f32
    linalg.yield %u : f32
  }} -> {sums}
  %o = tensor.empty() : {types[2]}
  %q = linalg.generic {{indexing_maps = [{ends}], iterator_types = [{_iterators(c, c)}]}}
      ins(%p{", %D" if operand else ""} : {sums}{f", {read_type}" if operand else ""}) outs(%o : {types[2]}) {{
  ^bb0(%s: f32{", %d: f16" if operand else ""}, %out: f16):
    {body}
    {rounded}
    linalg.yield %r : f16
  }} -> {types[2]}
  return %q : {types[2]}
}}
"""


def operands_of(form: Form) -> list[torch.Tensor]:
    """Returns A, B, C and what the epilogue reads, of small integers and NaN, on the GPU.

    Args:
        form: the problem.
    """
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(SEED)
    shapes = [form.shape(dimensions) for dimensions in (*form.dimensions, *filter(None, [operand_of(form)]))]
    operands = [torch.randint(-1, 2, shape, device="cuda").half() for shape in shapes]
    operands[2].fill_(math.nan)
    return operands


def difference_of(form: Form, operands: Sequence[torch.Tensor]) -> float:
    """Returns the largest difference of C from PyTorch's result in f32, as a share of the largest element.

    Args:
        form: the problem.
        operands: of `operands_of`, after the kernel has run.
    """
    import torch  # pyright: ignore[reportMissingImports]

    a, b, c, *rest = operands
    torch.backends.cuda.matmul.allow_tf32 = True  # exact for -1, 0 and 1
    expected = torch.einsum(form.spec, a.float(), b.float())
    if form.epilogue:
        expected = CASES[form.epilogue].eager(expected, rest[0].float() if rest else None)
    difference = (c.float() - expected).abs().max() / expected.abs().max()
    return math.inf if difference.isnan() else float(difference)


def build_form(form: Form, path: Path, knobs: Mapping[str, Any] | None = None, *, pipeline: str = PIPELINE) -> str:
    """Builds the bundle of a problem; returns why it cannot be built, or an empty text.

    Args:
        form: the problem.
        path: of the bundle.
        knobs: that are set; None for the default ones.
        pipeline: that compiles it.
    """
    from stepladder.pipeline.any_payload import build_any
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    try:
        with mlir_context():
            request = Request(pipeline, {**(knobs or {}), "target": TARGET}, tuned=knobs is None)
            build_any(payload(form), "form.mlir", request).write(path)
    except StepladderError as error:
        return error.message
    return ""


def build(forms: Sequence[Form], folder: Path) -> None:
    """Builds the bundles of problems, by number, and writes why others cannot be built.

    Args:
        forms: the problems.
        folder: of the bundles and of `_REFUSED`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=end_with_pool) as executor:
        reasons = list(executor.map(build_form, forms, (folder / str(number) for number in range(len(forms)))))
    refused = {form.name: reason for form, reason in zip(forms, reasons) if reason}
    (folder / _REFUSED).write_text(json.dumps(refused, indent=1) + "\n")


def measure(
    device: Device, form: Form, paths: dict[str, Path], rounds: int, mode: Mode = BURST
) -> tuple[dict[str, Any], dict[str, float]]:
    """Checks and times the kernels of a problem.

    Args:
        device: the GPU.
        form: the problem.
        paths: of its bundles, by name.
        rounds: of the measurement.
        mode: length of each run and of the pause before it.

    Returns:
        What the result says of the problem and its library calls, and the speed of each kernel as a ratio to the
        fastest of those.

    Raises:
        StepladderError: the numbers are wrong.
    """
    import torch  # pyright: ignore[reportMissingImports]

    operands = operands_of(form)
    a, b, c, *rest = operands
    stream = torch.cuda.ExternalStream(device.stream, device=c.device)
    calls: dict[str, Callable[[], object]] = {}
    difference = 0.0
    for name, path in paths.items():
        calls[name] = partial(stepladder.load(path), a, b, *rest, out=c, stream=stream)
        c.fill_(math.nan)
        torch.cuda.synchronize()
        with duel.watched(form.name):
            calls[name]()
            device.synchronize()
        difference = max(difference, difference_of(form, operands))
    if difference > LARGEST_DIFFERENCE:
        raise StepladderError(f"{form.name}: wrong: C differs by {difference} of its largest element")
    for operand in (a, b, *rest):
        operand.normal_()
    torch.cuda.synchronize()
    library_calls = libraries(form, operands, stream)
    contestants = [Contestant(name, form.flops, call) for name, call in library_calls.items()]
    candidates = [Contestant(name, form.flops, call) for name, call in calls.items()]
    contest = duel.Duel(device, contestants[0], [*candidates, *contestants[1:]])
    try:
        measured = contest.run(mode, rounds)
    finally:
        contest.free()
    ratios = {name: entry["ratio_spread"]["median"] for name, entry in measured["kernels"].items()}
    own_ratios = {name: ratios.pop(name) for name in paths}
    best = max(1.0, *ratios.values(), 0.0)
    entry = asdict(form) | {
        "baseline": contestants[0].name,
        "baseline_tflops": measured["baseline"]["tflops_spread"]["median"],
        "difference": difference,
        "libraries": ratios,
    }
    return entry, {name: ratio / best for name, ratio in own_ratios.items()}


def microseconds_of(form: Form, entry: dict[str, Any], ratio: float) -> float:
    """Returns the time of a kernel.

    Args:
        form: the problem.
        entry, ratio: of `measure`.
    """
    fastest = entry["baseline_tflops"] * max(1.0, *entry["libraries"].values(), 0.0)
    return form.flops / (ratio * fastest) * 1e-6


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = forms_parser(__doc__, "drawn_forms")
    add_draw_options(parser, COUNT, SEED)
    parser.add_argument(
        "--few-rows", action="store_true", help="batches of matmuls with few rows, instead of all kinds"
    )
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="do not measure the first N of them")
    parser.add_argument("--epilogues", nargs="+", choices=CASES, metavar="NAME", help="of those, only with these")
    parser.add_argument("--specs", nargs="+", metavar="SPEC", help="of those, only these, such as mkl,lkn->mn")
    parser.add_argument("--changed", action="store_true", help="with --before: only where the two have other knobs")
    return parser


def forms_parser(description: str | None, name: str) -> argparse.ArgumentParser:
    """Returns a parser of the options of `run_forms`.

    Args:
        description: of the script.
        name: of its result.
    """
    parser = result_parser(description, name)
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which medians are taken (default: 5)")
    parser.add_argument(
        "--pause",
        type=float,
        default=BURST.pause_seconds,
        help=f"seconds before a run (default: {BURST.pause_seconds})",
    )
    parser.add_argument("--build", type=Path, metavar="FOLDER", help="build the kernels there, and measure nothing")
    parser.add_argument("--built", type=Path, metavar="FOLDER", help="measure the kernels that were built there")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="those of another version, in turn with them")
    parser.set_defaults(skip=0, changed=False)
    return parser


def _knobs_of(bundle: Path) -> list[dict[str, Any]]:
    """Returns the knobs of the kernels of a bundle, or of a function of several."""
    manifests = [json.loads(path.read_text()) for path in sorted(bundle.rglob("manifest.json"))]
    return [manifest["knobs"] for manifest in manifests if "knobs" in manifest]


def run_forms(forms: Sequence[Form], args: argparse.Namespace, head: dict[str, Any]) -> None:
    """Builds or measures problems, as the options say; writes the result after each.

    Args:
        forms: the problems.
        args: of the command line (`forms_parser`).
        head: further entries of the result.
    """
    if args.build:
        build(forms, args.build)
        return
    mode = replace(BURST, pause_seconds=args.pause)
    with tempfile.TemporaryDirectory(prefix="stepladder-") as name:
        folder = args.built or Path(name)
        if not args.built:
            build(forms, folder)
        refused = json.loads((folder / _REFUSED).read_text())
        with Device() as device:
            result = duel.header(device)
            result |= {"pipeline": PIPELINE, "mode": asdict(mode), "rounds": args.rounds, **head}
            result |= {"problems": [], "refused": refused}
            for number, form in enumerate(forms):
                folders = {"own": folder} | ({"before": args.before} if args.before else {})
                paths = {name: folder / str(number) for name, folder in folders.items()}
                is_wanted = number >= args.skip and form.name not in refused
                if is_wanted and not (args.changed and _knobs_of(paths["own"]) == _knobs_of(paths["before"])):
                    entry, ratios = measure(device, form, paths, args.rounds, mode)
                    tflops = ratios["own"] * entry["baseline_tflops"] * max(1.0, *entry["libraries"].values(), 0.0)
                    ratio_before = {"ratio_before": ratios["before"]} if args.before else {}
                    result["problems"].append(entry | {"tflops": tflops, "ratio": ratios["own"]} | ratio_before)
                    print(f"{form.kind} {form.name}: {ratios['own']:.3f}", flush=True)
                    write_result(args.result, result)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures all drawn problems.

    Args:
        arguments: of the command line; those of the process unless told.
    """
    parser = make_parser()
    args = parser.parse_args(arguments)
    if args.changed and not args.before:
        parser.error("--changed needs --before")
    forms = (draw_few_rows if args.few_rows else draw)(args.count, args.seed)
    if args.epilogues:
        forms = [form for form in forms if form.epilogue in args.epilogues]
    if args.specs:
        forms = [form for form in forms if form.spec in args.specs]
    run_forms(forms, args, {"seed": args.seed})


if __name__ == "__main__":
    run(main)
