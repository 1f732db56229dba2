"""Goes on from every dump of a run and compares the ends: from_every_step.py DUMPS PIPELINE [KNOB=VALUE...]."""

import sys
from pathlib import Path

from stepladder.pipeline import engine

dumps, pipeline, *settings = sys.argv[1:]
files = sorted(Path(dumps).glob("*.mlir"))
steps = [file.stem.partition("-")[2] for file in files]
for file, following in zip(files[1:], steps[2:]):
    with engine.mlir_context():
        request = engine.Request(pipeline, dict(setting.split("=") for setting in settings), start=following)
        run = engine.run(file.read_text(), str(file), request)
        if engine.text_of(run.module) != files[-1].read_text():
            sys.exit(f"from {following}, the end differs")
print(f"continued from {len(files) - 2} dumps")
