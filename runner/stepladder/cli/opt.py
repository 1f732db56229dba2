"""`stepladder-opt`: runs pipelines over a payload as mlir-opt runs passes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder import __version__
from stepladder.cli import split_input, verify_diagnostics
from stepladder.cli.guard import guarded, imports, run_process
from stepladder.cli.options import (
    Formatter,
    Parser,
    add_output_option,
    add_pipeline_options,
    add_plugin_options,
    flat,
    knob_settings,
    refuse_empty,
)
from stepladder.cli.supervision import supervised
from stepladder.runtime.errors import FAILED, OK, StepladderError
from stepladder.runtime.files import read_text, write_text

if TYPE_CHECKING:
    from stepladder.pipeline.request import Request
    from stepladder.pipeline.run import Run

_EPILOG = """\
exit status: 0 done; 1 a step or a pass failed, or --check-each-step found a step that breaks the IR; 2 the payload, the
pipeline, an option or a file is not acceptable, and nothing was written.

examples:
  stepladder-opt matmul.mlir --pipeline wmma                      # the whole pipeline, IR on standard output
  stepladder-opt matmul.mlir --pipeline wmma --through tile_k
  stepladder-opt matmul.mlir --pipeline wmma --dump-dir dumps     # dumps/00-input.mlir, and NN-STEP.mlir for each step
  stepladder-opt dumps/*-vectorize_copies.mlir --pipeline wmma --from map_to_fragments
  stepladder-opt matmul.mlir --pipeline wmma --without pad_shared_memory --set block_m=256
  stepladder payload matmul --m 256 --n 128 --k 128 | stepladder-opt - --pipeline wmma
  stepladder-opt matmul.mlir --pipeline wmma --check-each-step -o lowered.mlir
  stepladder-opt matmul.mlir --pipeline test/inputs/plugin/occupancy.mlir --plugin test/inputs/plugin/occupancy.py
  stepladder-opt matmul.mlir --pass-pipeline='builtin.module(canonicalize,cse)'

test of a single step: several small inputs in a file, separated by lines of // -----, each in the form that the step
receives, with CHECK lines, or with // expected-error@+1 {{text}} before the line that the step refuses (@unknown for
an error without a line of the input):
  stepladder-opt test/steps/tile_k.mlir --pipeline wmma --step tile_k --split-input-file --verify-diagnostics
"""


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="stepladder-opt",
        formatter_class=Formatter,
        epilog=_EPILOG,
        description="Runs a transform-script pipeline, or a part of it, over MLIR.",
    )
    parser.add_argument("input", metavar="INPUT.mlir", help="the payload; - is standard input")
    add_pipeline_options(parser, required=False)
    parser.add_argument("--target", metavar="SM", help="GPU architecture, such as sm_80 or sm_90a (the knob 'target')")
    parser.add_argument("--through", metavar="STEP", help="stop after this step")
    parser.add_argument(
        "--from", metavar="STEP", dest="start", help="start with this step: the input is a dump of the step before it"
    )
    parser.add_argument(
        "--step",
        metavar="STEP",
        help="run only this step of the pipeline: the input is a dump of the step before it, or IR like it",
    )
    parser.add_argument(
        "--split-input-file",
        action="store_true",
        help="run each part of the input separately; lines of // ----- separate the parts. If one fails, nothing is "
        "written",
    )
    parser.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="compare errors with the // expected-error {{text}} comments of the input; a part that fails as expected "
        "gives no IR",
    )
    parser.add_argument(
        "--dump-dir",
        metavar="DIR",
        help="write the IR after every step to DIR, as NN-STEP.mlir; dumps of the previous run are deleted, unless "
        "they were edited",
    )
    parser.add_argument(
        "--check-each-step",
        action="store_true",
        help="also run the IR after every step on the emulator, for a small problem of the payload's kind, and report "
        "the first step that breaks it",
    )
    parser.add_argument("--pass-pipeline", metavar="TEXT", help="run mlir-opt's pass pipeline (after --pipeline)")
    add_plugin_options(parser)
    add_output_option(parser, "OUT", "write the IR here (default: standard output)")
    parser.add_argument("--version", action="version", version=f"stepladder-opt {__version__}")
    return parser


def _run_pipeline(text: str, name: str, request: Request, dump_dir: str | None) -> Run:
    """Runs a pipeline. Dumps are written as the steps run: a failing step leaves those before it."""
    from stepladder.pipeline.dumps import DumpFolder
    from stepladder.pipeline.run import run_pipeline

    if dump_dir is None:
        return run_pipeline(text, name, request)
    dumps = DumpFolder(dump_dir, kept=name)
    return run_pipeline(
        text,
        name,
        request,
        reproducer_dir=Path(dump_dir),
        begun=lambda input_: dumps.write("input", input_),
        progress=lambda step: dumps.write(step.name, step.text),
    )


def _check_each_step(text: str, name: str, request: Request, run: Run) -> None:
    """Runs a pipeline over a small problem and each step's IR on the emulator; a table goes to standard error. `run` is
    that over the payload, which is not run again where the small problem is its own.

    Raises:
        StepladderError: a step whose IR gives wrong results, or in which the sanitizer finds something; status FAILED.
    """
    import dataclasses

    from stepladder.cli.tables import print_table, verdict
    from stepladder.emulator import matmul
    from stepladder.payload.matmul import matmul_of
    from stepladder.payload.selection import select
    from stepladder.pipeline import library, tile_programs
    from stepladder.pipeline.context import parse_payload
    from stepladder.pipeline.knobs import choose_knobs

    pipeline = library.load(request.pipeline)
    finished: Run | None = run
    problem = None
    program = tile_programs.read_text(text, name, request)
    if program is not None:  # a program of tiles is checked as it is
        problem = program.understood()[1].problem
    elif not pipeline.whole_function:
        whole_problem = matmul_of(select(parse_payload(text, name), request.function)).problem
        problem = matmul.small_problem(whole_problem, choose_knobs(pipeline, request))
        if problem != whole_problem:
            text, request, finished = matmul.payload_of(problem), dataclasses.replace(request, function=None), None
    described = "the function as it is" if problem is None else problem.describe()
    print(f"checking each step on {described}", file=sys.stderr, flush=True)
    rows: list[dict[str, object]] = []

    def checked(report: matmul.StepReport) -> None:
        result = (
            "unchanged"
            if report.is_unchanged
            else f"not run: {report.unknown}"
            if report.passed is None
            else verdict(report.passed)
        )
        rows.append({"step": report.step, "result": result, "s": round(report.seconds, 2)})
        if not report.is_unchanged:
            print(f"  {report.step}: {result}", file=sys.stderr, flush=True)
        if report.passed is False:
            results = report.check.describe() if report.check else "no results"
            if report.step == "input":
                raise StepladderError(
                    f"the payload itself does not compute {described}, which the pipeline takes it for: {results}",
                    location=name,
                    notes=report.notes(),
                )
            raise StepladderError(f"step '{report.step}' breaks the IR: {results}", status=FAILED, notes=report.notes())

    matmul.check_steps(text, name, request, checked, finished=finished)
    print_table(rows, title="Each step on the emulator", file=sys.stderr)


def _check_options(args: argparse.Namespace) -> None:
    """Raises StepladderError for options that need another one, or contradict one."""
    if args.pipeline is None:
        for value, option in (
            (args.through, "--through"),
            (args.start, "--from"),
            (args.step, "--step"),
            (args.without, "--without"),
            (args.settings, "--set"),
            (args.target, "--target"),
            (args.function, "--function"),
            (args.sizes, "--bind"),
            (args.dump_dir, "--dump-dir"),
            (args.check_each_step, "--check-each-step"),
        ):
            if value:
                raise StepladderError(f"{option} requires --pipeline")
    if args.step and (args.start or args.through):
        raise StepladderError(
            f"--step and {'--from' if args.start else '--through'} exclude each other",
            notes=[f"--step {args.step} is short for --from {args.step} --through {args.step}"],
        )
    if args.step in flat(args.without):
        raise StepladderError(f"--step and --without exclude each other for '{args.step}'")
    if args.check_each_step and (args.start or args.step):
        option = "--from" if args.start else "--step"
        raise StepladderError(
            f"--check-each-step runs the pipeline from its first step and cannot be combined with {option}"
        )
    if args.split_input_file and args.dump_dir:
        raise StepladderError("--dump-dir cannot be combined with --split-input-file: it has the dumps of one input")


def _process(text: str, name: str, args: argparse.Namespace) -> str:
    """Runs one payload as the options say, in a context of its own; returns the IR."""
    from stepladder.mlir.text import text_of
    from stepladder.payload import stablehlo
    from stepladder.pipeline.context import bound_text, mlir_context, parse_payload
    from stepladder.pipeline.pass_pipeline import run_pass_pipeline
    from stepladder.pipeline.request import Request

    with mlir_context():
        text = bound_text(stablehlo.lowered(text, name), name, dict(args.sizes), args.function)
        if args.pipeline is not None:
            start, through = (args.step, args.step) if args.step else (args.start, args.through)
            left_out = flat(args.without)
            request = Request(args.pipeline, knob_settings(args), through, start, left_out, function=args.function)
            payload = text
            # First over the payload itself, whose refusal is the better message: no step is at fault.
            run = _run_pipeline(text, name, request, args.dump_dir)
            text = text_of(run.module)
            if args.check_each_step:
                _check_each_step(payload, name, request, run)
        else:
            text = text_of(parse_payload(text, name))
        if args.pass_pipeline is not None:
            text = run_pass_pipeline(text, name, args.pass_pipeline)
    return text


def _process_chunk(text: str, name: str, args: argparse.Namespace) -> tuple[str, list[StepladderError]]:
    """Returns the IR of one payload, nothing where it fails, and what is wrong: with `--verify-diagnostics`, how its
    error differs from the expected one."""
    expected = verify_diagnostics.expected_errors(text, name) if args.verify_diagnostics else []
    output, failure = "", None
    try:
        output = _process(text, name, args)
    except StepladderError as error:
        failure = error
    if args.verify_diagnostics:
        return output, verify_diagnostics.mismatches(expected, failure, name)
    return output, [failure] if failure else []


def _run(args: argparse.Namespace) -> int:
    refuse_empty(args)
    _check_options(args)
    text, name = read_text(args.input)
    with imports():
        from stepladder.extension import plugins
        from stepladder.pipeline import run  # noqa: F401  (imported here, where `imports` takes effect)

    plugins.load_files(args.plugins)
    outputs: list[str] = []
    errors: list[StepladderError] = []
    for chunk in split_input.split(text) if args.split_input_file else [text]:
        output, mismatches = _process_chunk(chunk, name, args)
        outputs.append(output)
        errors += mismatches
    # An invalid option is invalid for every part of the input, and reported once.
    for message in dict.fromkeys(error.render(verbose=args.verbose_errors) for error in errors):
        print(message, file=sys.stderr)
    if errors:
        return max(error.status for error in errors)
    write_text(args.output, split_input.join(outputs))
    return OK


def main(argv: list[str] | None = None) -> int:
    """Entry point of `stepladder-opt`; returns the exit status.

    Args:
        argv: arguments without the command's name; those of the process if None.
    """
    args = _parser().parse_args(argv)
    return guarded(lambda: _run(args), verbose=args.verbose_errors)


if __name__ == "__main__":
    sys.exit(run_process(lambda: supervised(main)))
