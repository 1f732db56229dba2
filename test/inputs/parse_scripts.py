"""Parses every transform script in a stock mlir-opt: parse_scripts.py MLIR_OPT TRANSFORMS WORK.

Steps and pipelines of upstream ops are parsed as they are. Pipelines of which a step has ops of the tc dialect get the
declarations that the runner supplies, in a copy in the folder WORK, and must not parse without them.
"""

import subprocess
import sys
from pathlib import Path

from stepladder.pipeline import scripts
from stepladder.pipeline.context import mlir_context


def parses(script: Path) -> subprocess.CompletedProcess:
    """Parses and verifies one script."""
    options = ["--allow-unregistered-dialect"] if '"tc.' in script.read_text() else []
    return subprocess.run([mlir_opt, *options, str(script)], capture_output=True, text=True)


mlir_opt, transforms, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
work.mkdir(parents=True, exist_ok=True)
alone, completed = [], []
with mlir_context():
    for script in sorted(transforms.rglob("*.mlir")):
        text, copy = scripts.declared(script), work / script.name
        copy.write_text(text)
        if text == script.read_text():
            alone.append(script.stem)
        else:
            completed.append(script.stem)
            if parses(script).returncode == 0:
                sys.exit(f"{script} parses without the declarations that the runner supplies")
            script = copy
        done = parses(script)
        if done.returncode:
            sys.exit(f"{script}: {done.stderr[:500]}")
print(f"{len(alone)} scripts parse as they are, {len(completed)} with declarations: {', '.join(completed)}")
