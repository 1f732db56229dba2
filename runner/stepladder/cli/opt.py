"""`stepladder-opt`: runs pipelines over a payload the way mlir-opt runs passes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stepladder import __version__
from stepladder.cli.guard import guarded
from stepladder.cli.options import Formatter, add_pipeline_options, flat
from stepladder.runtime.errors import FAILED, OK, StepladderError
from stepladder.runtime.files import read_text, write_folder, write_text

_EPILOG = """\
examples:
  stepladder-opt matmul.mlir --pipeline wmma                      the whole pipeline, IR on standard output
  stepladder-opt matmul.mlir --pipeline wmma --through tile_k
  stepladder-opt matmul.mlir --pipeline wmma --dump-dir steps     steps/00-input.mlir, steps/01-..., one a step
  stepladder-opt steps/09-vectorize_copies.mlir --pipeline wmma --from map_to_fragments
  stepladder-opt matmul.mlir --pipeline wmma --without pad_shared_memory --set block_m=256
  stepladder payload matmul --m 512 --n 512 --k 512 | stepladder-opt - --pipeline wmma
  stepladder-opt matmul.mlir --pipeline mma_sync --check-each-step -o lowered.mlir
  stepladder-opt matmul.mlir --pass-pipeline='builtin.module(canonicalize,cse)'
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stepladder-opt",
        formatter_class=Formatter,
        epilog=_EPILOG,
        description="Runs a transform-script pipeline, or a part of it, over MLIR.",
    )
    parser.add_argument("input", metavar="INPUT.mlir", help="the payload; - is standard input")
    add_pipeline_options(parser, required=False)
    parser.add_argument("--through", metavar="STEP", help="stop after this step")
    parser.add_argument(
        "--from", metavar="STEP", dest="start", help="begin with this step: the input is a dump of the step before it"
    )
    parser.add_argument("--dump-dir", metavar="DIR", help="leave the IR after every step here, as NN-step.mlir")
    parser.add_argument(
        "--check-each-step",
        action="store_true",
        help="first run the IR after every step on the CPU, for a small problem of the payload's kind, "
        "and name the first step that breaks it",
    )
    parser.add_argument("--pass-pipeline", metavar="TEXT", help="run mlir-opt's pass pipeline (after --pipeline)")
    parser.add_argument("-o", metavar="OUT", dest="output", help="write the IR here; standard output unless told")
    parser.add_argument("--version", action="version", version=f"stepladder-opt {__version__}")
    return parser


def _run_pipeline(text: str, name: str, request, dump_dir: str | None) -> str:
    """Runs a pipeline; returns the IR. Dumps are written as the steps run: a failing step leaves those before it."""
    from stepladder.pipeline import engine

    if dump_dir is None:
        return engine.text_of(engine.run(text, name, request).module)
    written = 0

    def dump(step_name: str, dumped: str) -> None:
        nonlocal written
        write_folder(dump_dir, {engine.dump_name(written, step_name): dumped})
        written += 1

    run = engine.run(
        text,
        name,
        request,
        reproducer_dir=Path(dump_dir),
        begun=lambda input_: dump("input", input_),
        progress=lambda step: dump(step.name, step.text),
    )
    return engine.text_of(run.module)


def _check_each_step(text: str, name: str, request) -> None:
    """Runs a pipeline over a small problem and each step's IR on the emulator; a table goes to standard error.

    Raises:
        StepladderError: a step whose IR gives wrong numbers, or in which the sanitizer finds something; status FAILED.
    """
    import dataclasses

    from stepladder.cli.tables import print_table
    from stepladder.emulator import matmul
    from stepladder.payload.problem import find_problem
    from stepladder.pipeline import build, engine, library

    if request.start:
        raise StepladderError("--check-each-step needs the pipeline from its beginning, without --from")
    found = find_problem(engine.parse_payload(text, name))
    small = matmul.small_problem(found, engine.choose_knobs(library.load(request.pipeline), request))
    problem = build.problem_of(small)
    print(f"checking each step on {problem.describe()}", file=sys.stderr, flush=True)
    is_small = small == found
    rows: list[dict[str, object]] = []

    def checked(report: matmul.StepReport) -> None:
        result = (
            "as before"
            if report.is_unchanged
            else f"not run: {report.unknown}"
            if report.passed is None
            else "right"
            if report.passed
            else "WRONG"
        )
        rows.append({"step": report.step, "result": result, "s": round(report.seconds, 2)})
        if not report.is_unchanged:
            print(f"  {report.step}: {result}", file=sys.stderr, flush=True)
        if report.passed is False:
            raise StepladderError(
                f"step '{report.step}' breaks the IR: {report.check.describe()}", status=FAILED, notes=report.notes()
            )

    matmul.check_steps(
        text if is_small else matmul.payload_of(small),
        name,
        dataclasses.replace(request, tuned=False),
        problem,
        found.roles if is_small else matmul.ROLES,
        checked,
    )
    print_table(rows, title="Each step on the emulator", file=sys.stderr)


def _run(args: argparse.Namespace) -> int:
    if args.pipeline is None:
        for value, option in (
            (args.through, "--through"),
            (args.start, "--from"),
            (args.without, "--without"),
            (args.settings, "--set"),
            (args.dump_dir, "--dump-dir"),
            (args.check_each_step, "--check-each-step"),
        ):
            if value:
                raise StepladderError(f"{option} is about the steps of a pipeline; name one with --pipeline")
    text, name = read_text(args.input)
    from stepladder.pipeline import engine

    with engine.mlir_context():
        if args.pipeline is not None:
            request = engine.Request(args.pipeline, dict(args.settings), args.through, args.start, flat(args.without))
            if args.check_each_step:
                _check_each_step(text, name, request)
            text = _run_pipeline(text, name, request, args.dump_dir)
        else:
            text = engine.text_of(engine.parse_payload(text, name))
        if args.pass_pipeline is not None:
            text = engine.run_pass_pipeline(text, name, args.pass_pipeline)
    write_text(args.output, text)
    return OK


def main(argv: list[str] | None = None) -> int:
    """Entry point of `stepladder-opt`; returns the exit status."""
    args = _parser().parse_args(argv)
    return guarded(lambda: _run(args))


if __name__ == "__main__":
    sys.exit(main())
