"""`stepladder demo`: compiles a matmul of BERT-large from linalg to tensor-core kernels, step by step."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.cli.options import Formatter, add_output_option
from stepladder.runtime.errors import FAILED, NOT_EXECUTED, OK, StepladderError, cause, printable

if TYPE_CHECKING:
    from stepladder.pipeline.build import Build

_DEFAULT = "intermediate"

_EPILOG = """\
The problem is a layer of BERT-large at sequence length 384 and batch size 8 (M = 3072). The first table lists the
steps of the pipeline `wmma`. The second one is its ablation: the pipeline without its optimizations, and with one more
of them in each variant; on sm_90a the kernel of the pipeline `wgmma` comes last. With a GPU, the results of the last
kernel are checked and the variants are timed beside cuBLAS. Without a GPU, the kernels are built for sm_80 (or
--target), and the emulator runs the IR of each variant on a small problem of the same kind and counts its memory
traffic.

exit status: 0, also without a GPU; 1 wrong results; 2 an option is not acceptable.

examples:
  stepladder demo
  stepladder demo --layer attention_projection --target sm_90a -o bert.bundle    # keep the bundle
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "demo",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="compile and check a matmul of BERT-large, step by step",
        description="Compiles a matmul of BERT-large from linalg to tensor-core kernels, step by step.",
    )
    parser.add_argument(
        "--layer",
        default=_DEFAULT,
        metavar="NAME",
        help=f"attention_projection, intermediate or output (default: {_DEFAULT})",
    )
    parser.add_argument(
        "--target",
        metavar="SM",
        help="GPU architecture to build for (default: that of the GPU of this machine, else sm_80)",
    )
    add_output_option(parser, "BUNDLE", "keep the bundle here")


def _payload(layer: str) -> Path:
    from stepladder.runtime.resources import payloads_dir

    folder = payloads_dir() / "bert_large"
    path = folder / f"{layer}.mlir"
    if not path.is_file():
        layers = ", ".join(sorted(file.stem for file in folder.glob("*.mlir")))
        raise StepladderError(f"unknown layer '{layer}'", notes=[f"layers of BERT-large: {layers}"])
    return path


def _gpu_target() -> tuple[str | None, str]:
    """Returns the target of the GPU at hand and its name; None and the reason where there is none."""
    from stepladder.runtime import targets
    from stepladder.runtime.device import Device

    try:
        with Device() as device:
            major, minor = device.capability
            name = device.name
    except StepladderError as error:
        if error.status != NOT_EXECUTED:
            raise
        return None, cause(error)
    for target in (f"sm_{major}{minor}a", f"sm_{major}{minor}"):
        if target in targets.TARGETS:
            return target, name
    return None, f"{name} has compute capability {major}.{minor}, which no target of the pipeline is for"


def _variants(target: str) -> dict:
    """Returns what to build for each variant of the ablation, by title."""
    from stepladder.pipeline import ablation
    from stepladder.pipeline.request import Request

    variants = {
        title: Request(ablation.WMMA.pipeline, {"target": target}, without=without)
        for title, without in ablation.WMMA.variants.items()
    }
    if target == "sm_90a":
        variants["Hopper: warp-specialized, persistent wgmma"] = Request(
            ablation.WGMMA.pipeline, {"target": target}, tuned=True
        )
    return variants


def _build_variants(text: str, name: str, variants: dict, folder: Path) -> list[dict[str, object]]:
    """Builds every variant below `folder`; returns a row of a table for each."""
    from stepladder.pipeline import build
    from stepladder.pipeline.context import mlir_context

    rows = []
    for number, (title, request) in enumerate(variants.items()):
        with mlir_context():
            built = build.build(text, name, request)
            built.write(folder / f"{number}")
        manifest = built.manifest
        rows.append(
            {
                "kernel": title,
                "registers": manifest.registers,
                "shared bytes": manifest.static_shared_memory + manifest.dynamic_shared_memory,
            }
        )
    return rows


def _time_variants(rows: list[dict[str, object]], folder: Path) -> None:
    """Times the variants on the GPU; adds the speed to their rows."""
    from stepladder.measure.bench import bench_bundles
    from stepladder.runtime.bundle import read_bundle

    result = bench_bundles([read_bundle(folder / f"{number}") for number in range(len(rows))])
    summary = result["modes"]["burst"]
    for number, row in enumerate(rows):
        row["TFLOP/s"] = f"{summary['kernels'][str(number)]['tflops_spread']['median']:.1f}"
        row["of cuBLAS"] = f"{summary['ratios'][str(number)]['cublas']['spread']['median']:.3f}"


def _emulate_variants(text: str, name: str, variants: dict) -> bool:
    """Runs every variant's IR on the emulator and prints what that gave; returns whether all results are right."""
    from stepladder.cli.tables import print_table, verdict
    from stepladder.emulator.matmul import check_small
    from stepladder.pipeline.context import mlir_context

    rows: list[dict[str, object]] = []
    for title, request in variants.items():
        print(f"  {title}", file=sys.stderr, flush=True)
        with mlir_context():
            problem, report = check_small(text, name, request)
        counters = report.counters
        assert counters is not None and report.check is not None  # of every step that the emulator runs
        rows.append(
            {
                "kernel": title,
                "problem": f"{problem.m}x{problem.n}x{problem.k}",
                "results": verdict(report.check.passed),
                "findings": len(report.findings),
                "global bytes": counters.total("bytes", "global"),
                "shared wavefronts": counters.total("wavefronts", "shared"),
                "bank conflicts": counters.total("conflicts", "shared"),
            }
        )
    print_table(rows, title="The same kernels on the emulator, for a small problem")
    return all(row["results"] == "PASS" and not row["findings"] for row in rows)


def _check(folder: Path) -> bool:
    from stepladder.cli.gpu_checks import check_kernel
    from stepladder.runtime.bundle import read_bundle

    reports, _ = check_kernel(read_bundle(folder), 0)
    for report in reports:
        print(report.describe())
    return all(report.passed for report in reports)


def _print_steps(built: Build) -> None:
    """Prints a table of the steps that ran."""
    from stepladder.cli.tables import print_table

    summaries = {step.name: step.summary() for step in built.run.pipeline.steps}
    print_table(
        [
            {
                "step": step.name,
                "ms": round(step.seconds * 1e3, 1),
                "ops": step.operations,
                "IR lines": step.text.count("\n"),
                "what it does": summaries[step.name],
            }
            for step in built.run.steps
        ],
        title="The pipeline, step by step",
    )


def _print_launch(built: Build) -> None:
    """Prints the launch and the resources of the kernel."""
    manifest = built.manifest
    shared = manifest.static_shared_memory + manifest.dynamic_shared_memory
    print(
        f"{manifest.kernel_name}: grid {'x'.join(map(str, manifest.grid))}, block "
        f"{'x'.join(map(str, manifest.block))}, {manifest.registers} registers per thread, "
        f"{sum(manifest.spills.values())} bytes spilled, {shared} bytes of shared memory per block"
    )


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.
    """
    from stepladder.cli.tables import print_table, verdict
    from stepladder.pipeline import ablation, build
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request
    from stepladder.pipeline.run import StepResult
    from stepladder.runtime import targets
    from stepladder.runtime.bundle import check_output
    from stepladder.runtime.files import temporary_folder

    path = _payload(args.layer)
    if args.output:
        check_output(args.output)
    gpu_target, gpu = _gpu_target()
    target = targets.find(args.target).name if args.target else gpu_target or "sm_80"
    text = path.read_text()
    print(f"BERT-large, {args.layer}, for {target}: {text.splitlines()[0].lstrip('/ ')}\n")

    def progress(step: StepResult) -> None:
        print(f"  {step.name}", file=sys.stderr, flush=True)

    with mlir_context():
        built = build.build(text, str(path), Request(ablation.WMMA.pipeline, {"target": target}), progress=progress)
        if args.output:
            built.write(args.output)
        _print_steps(built)
    _print_launch(built)
    if args.output:
        print(f"kept in {printable(args.output)}, with the IR after every step in {printable(args.output)}/ir")
    print()

    with temporary_folder() as folder:
        variants = _variants(target)
        rows = _build_variants(text, str(path), variants, folder)
        runs = gpu_target is not None and target == gpu_target
        right = _check(folder / f"{len(rows) - 1}") if runs else True
        if runs and right:
            _time_variants(rows, folder)
    print_table(rows, title="Ablation: one more optimization in each variant" + (f", on {gpu}" if runs else ""))
    if not runs:
        reason = gpu if gpu_target is None else f"the GPU at hand is {gpu}, and the kernels are for {target}"
        right = _emulate_variants(text, str(path), variants)
        print(f"No kernel was launched, and speed was not measured: {reason}.")
        print(
            "Take a bundle to a machine with a GPU: stepladder demo -o bert.bundle; there: stepladder run bert.bundle"
        )
    print(f"result: {verdict(right)}")
    return OK if right else FAILED
