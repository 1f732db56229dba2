"""Goes on from the dumps of a run: from_every_step.py DUMPS PIPELINE [KNOB=VALUE...].

Each step runs on the dump before it and gives the next dump; from every fourth dump the pipeline runs to its end.
"""

import sys
from pathlib import Path

from stepladder.mlir.text import text_of
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline

dumps, pipeline, *settings = sys.argv[1:]
files = sorted(Path(dumps).glob("*.mlir"))
steps = [file.stem.partition("-")[2] for file in files]
for number, (file, following, result) in enumerate(zip(files[1:], steps[2:], files[2:])):
    to_the_end = number % 4 == 0
    with mlir_context():
        knobs = dict(setting.split("=") for setting in settings)
        request = Request(pipeline, knobs, start=following, through=None if to_the_end else following)
        run = run_pipeline(file.read_text(), str(file), request)
        if text_of(run.module) != (files[-1] if to_the_end else result).read_text():
            sys.exit(f"from {following}, the {'end' if to_the_end else 'next dump'} differs")
print(f"continued from {len(files) - 2} dumps")
