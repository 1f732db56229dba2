"""Goes on from every dump of a run and compares the ends: from_every_step.py DUMPS PIPELINE [KNOB=VALUE...]."""

import sys
from pathlib import Path

from stepladder.mlir.text import text_of
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline

dumps, pipeline, *settings = sys.argv[1:]
files = sorted(Path(dumps).glob("*.mlir"))
steps = [file.stem.partition("-")[2] for file in files]
for file, following in zip(files[1:], steps[2:]):
    with mlir_context():
        request = Request(pipeline, dict(setting.split("=") for setting in settings), start=following)
        run = run_pipeline(file.read_text(), str(file), request)
        if text_of(run.module) != files[-1].read_text():
            sys.exit(f"from {following}, the end differs")
print(f"continued from {len(files) - 2} dumps")
