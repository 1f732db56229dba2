"""`stepladder report`: the IR after every step, checks of results, counters and speed on one page."""

from __future__ import annotations

import argparse
import shlex
import sys
from datetime import datetime, timezone
from pathlib import Path
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
from stepladder.runtime.errors import FAILED, OK, StepladderError, printable
from stepladder.runtime.files import STANDARD

if TYPE_CHECKING:
    from stepladder.pipeline.request import Request

_EPILOG = """\
The page is one file of HTML without scripts. A section for each payload and each bundle shows the problem, the
pipeline, the knobs and their sources, the tools and the resources of the kernel; each step with the IR after it and the
difference to the previous step; the first choices of the cost model with their predicted times, term by term; the
checks of results, and counters. A function with several kernels has a section for each kernel as well. Long constants
are left out of the IR.

A folder is a bundle; anything else is a payload, which is compiled as by `stepladder compile` without writing a bundle.
--pipeline, --target, --set and so on apply to payloads.

--emulate small runs the IR after each step on the emulator if the matmuls take at most 2^25 arithmetic operations
(256 x 256 x 256): results must be those of the payload, and the sanitizer must find nothing. After a minute for a
kernel, the remaining steps are not run. --emulate always has no such limits.

On a machine with a GPU that the kernel is for, the kernel is also checked as by `stepladder run`, and timed beside
cuBLAS as by `stepladder bench`. Without one, the page says that nothing was measured.

exit status: 0 the page is written; 1 it is written, and results are wrong or the emulator found something, or a step
failed and nothing is written; 2 a payload, a bundle, an option or a file is not acceptable, and nothing is written.

examples:
  stepladder payload matmul --m 64 --n 32 --k 64 | stepladder report - --target sm_90a -o small.html
  stepladder report matmul.bundle unpadded.bundle --emulate never -o bundles.html
  stepladder report matmul.mlir --pipeline wmma --target sm_80 --set stages=3 --emulate never -o matmul.html
  stepladder report test/inputs/functions/gated_mlp.mlir --target sm_90a --emulate never --no-gpu -o - > mlp.html
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "report",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="IR after every step, checks, counters and speed on one page",
        description="Writes a page of HTML with the IR after every step of payloads or bundles, checks of results, "
        "counters, predicted times and speed. Needs no GPU.",
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="PAYLOAD|BUNDLE", help="a payload, - for standard input, or a bundle's folder"
    )
    add_pipeline_options(parser, required=False, default="auto")
    parser.add_argument("--target", metavar="SM", help="GPU architecture of payloads, such as sm_80, sm_90a or bmg")
    add_model_options(parser)
    parser.add_argument(
        "--emulate",
        choices=["never", "small", "always"],
        default="small",
        help="which steps run on the emulator: none, those of small problems, or all (default: small)",
    )
    parser.add_argument("--no-gpu", action="store_true", help="launch no kernel, also where there is a GPU")
    add_plugin_options(parser)
    add_output_option(parser, "FILE.html", "the page; - is standard output", required=True)


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.

    Raises:
        StepladderError: an input that is not acceptable or does not compile, or a page that cannot be written.
    """
    from stepladder.cli.report_inputs import Reported, compile_payload, read_bundle_folder
    from stepladder.cli.report_page import page
    from stepladder.cli.report_sections import section_of
    from stepladder.runtime.files import check_writable, read_text, write_text

    check_writable(args.output)
    settings = knob_settings(args)
    payloads = [path for path in args.inputs if not Path(path).is_dir()]
    if payloads.count(STANDARD) > 1:
        raise StepladderError("standard input is given twice, and can be read once")
    if not payloads:
        _refuse_options(args)
    # Bundles first, and files that cannot be read: they are refused before anything is compiled.
    by_input: dict[str, list[Reported]] = {
        path: read_bundle_folder(path) for path in args.inputs if path not in payloads
    }
    for path in payloads:
        if path != STANDARD:
            read_text(path)
    if payloads or args.plugins:  # a bundle's IR may have ops of a plug-in
        with imports():
            from stepladder.extension import plugins

        plugins.load_files(args.plugins)
    if payloads:
        request = _request(args, settings)
        for path in dict.fromkeys(payloads):
            name = "<stdin>" if path == STANDARD else path
            print(f"{name}: compiling", file=sys.stderr, flush=True)
            from_target = "target" if args.target is not None else None
            try:
                by_input[path] = compile_payload(path, request, dict(args.sizes), from_target)
            except StepladderError as error:
                error.location = error.location or name
                raise
    sections = [
        section_of(reported, emulate=args.emulate, launches=not args.no_gpu)
        for path in dict.fromkeys(args.inputs)
        for reported in by_input[path]
    ]
    command = shlex.join(["stepladder", *sys.argv[1:]])
    provenance = f"{datetime.now(timezone.utc).isoformat(timespec='seconds')}: {command}"
    write_text(args.output, page(sections, provenance))
    failed = [section.name for section in sections if section.verdict == "FAIL"]
    steps = sum(len(section.steps) for section in sections)
    summary = f"{printable(args.output)}: {len(sections)} section{'s' * (len(sections) != 1)}, {steps} dumps of IR"
    print(summary, file=sys.stderr if args.output == STANDARD else sys.stdout)
    for name in failed:
        print(f"wrong: {name}", file=sys.stderr)
    return FAILED if failed else OK


def _request(args: argparse.Namespace, settings: dict[str, str]) -> Request:
    """Returns what to compile payloads with, as `stepladder compile`."""
    from stepladder.pipeline.request import Request

    return Request(
        args.pipeline,
        settings,
        without=flat(args.without),
        tuned=True,
        database=database_to_read(args),
        gpu=args.gpu,
        function=args.function,
        constant_weights=True,
    )


def _refuse_options(args: argparse.Namespace) -> None:
    """Refuses options of payloads where all inputs are bundles. Raises StepladderError."""
    options = {
        "--target": args.target,
        "--set": args.settings,
        "--without": args.without,
        "--function": args.function,
        "--bind": args.sizes,
        "--pipeline": args.pipeline != "auto",
        "--gpu": args.gpu,
        "--database": args.database,
    }
    for option, value in options.items():
        if value:
            raise StepladderError(f"{option} applies to payloads, and '{args.inputs[0]}' is a folder, that of a bundle")
