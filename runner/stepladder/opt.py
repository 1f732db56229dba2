"""`stepladder-opt`: runs pipelines over a payload the way mlir-opt runs passes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stepladder import __version__
from stepladder.errors import OK, StepladderError
from stepladder.files import read_text, write_folder, write_text
from stepladder.guard import guarded
from stepladder.options import Formatter, add_pipeline_options, flat

_EPILOG = """\
examples:
  stepladder-opt matmul.mlir --pipeline wmma                      the whole pipeline, IR on standard output
  stepladder-opt matmul.mlir --pipeline wmma --through tile_reduction
  stepladder-opt matmul.mlir --pipeline wmma --dump-dir steps     steps/00-input.mlir, steps/01-..., one a step
  stepladder-opt steps/09-vectorize_copies.mlir --pipeline wmma --from map_to_fragments
  stepladder-opt matmul.mlir --pipeline wmma --without pad_shared_memory --set block_m=256
  stepladder payload matmul --m 512 --n 512 --k 512 | stepladder-opt - --pipeline wmma
  stepladder-opt matmul.mlir --pass-pipeline='builtin.module(canonicalize,cse)'
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stepladder-opt", formatter_class=Formatter, epilog=_EPILOG,
        description="Runs a transform-script pipeline, or a part of it, over MLIR.")
    parser.add_argument("input", metavar="INPUT.mlir", help="the payload; - is standard input")
    add_pipeline_options(parser, required=False)
    parser.add_argument("--through", metavar="STEP", help="stop after this step")
    parser.add_argument("--from", metavar="STEP", dest="start",
                        help="begin with this step: the input is a dump of the step before it")
    parser.add_argument("--dump-dir", metavar="DIR", help="leave the IR after every step here, as NN-step.mlir")
    parser.add_argument("--pass-pipeline", metavar="TEXT", help="run mlir-opt's pass pipeline (after --pipeline)")
    parser.add_argument("-o", metavar="OUT", dest="output", help="write the IR here; standard output unless told")
    parser.add_argument("--version", action="version", version=f"stepladder-opt {__version__}")
    return parser


def _run_pipeline(text: str, name: str, request, dump_dir: str | None) -> str:
    """Runs a pipeline; returns the IR. Dumps are written as the steps run: a failing step leaves those before it."""
    from stepladder import engine

    if dump_dir is None:
        return engine.text_of(engine.run(text, name, request).module)
    written = 0

    def dump(step_name: str, dumped: str) -> None:
        nonlocal written
        write_folder(dump_dir, {engine.dump_name(written, step_name): dumped})
        written += 1

    run = engine.run(text, name, request, reproducer_dir=Path(dump_dir), begun=lambda input_: dump("input", input_),
                     progress=lambda step: dump(step.name, step.text))
    return engine.text_of(run.module)


def _run(args: argparse.Namespace) -> int:
    if args.pipeline is None:
        for value, option in ((args.through, "--through"), (args.start, "--from"), (args.without, "--without"),
                              (args.settings, "--set"), (args.dump_dir, "--dump-dir")):
            if value:
                raise StepladderError(f"{option} is about the steps of a pipeline; name one with --pipeline")
    text, name = read_text(args.input)
    from stepladder import engine

    with engine.mlir_context():
        if args.pipeline is not None:
            request = engine.Request(args.pipeline, dict(args.settings), args.through, args.start, flat(args.without))
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
