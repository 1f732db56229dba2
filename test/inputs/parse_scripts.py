"""Parses every transform script in a stock mlir-opt: parse_scripts.py MLIR_OPT TRANSFORMS."""

import subprocess
import sys
from pathlib import Path

mlir_opt, transforms = sys.argv[1], Path(sys.argv[2])
scripts = sorted(transforms.rglob("*.mlir"))
for script in scripts:
    options = ["--allow-unregistered-dialect"] if script.parent.name == "tc" else []
    done = subprocess.run([mlir_opt, *options, str(script)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{script}: {done.stderr[:500]}")
print(f"{len(scripts)} scripts parse")
