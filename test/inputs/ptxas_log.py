"""Assembles a bundle's PTX again and prints what ptxas says, warnings included: ptxas_log.py BUNDLE."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from stepladder.pipeline.codegen.toolchain import find_tool

bundle = Path(sys.argv[1])
target = json.loads((bundle / "manifest.json").read_text())["target"]
with tempfile.TemporaryDirectory() as folder:
    sys.exit(
        subprocess.run(
            [
                find_tool("ptxas"),
                "-v",
                f"-arch={target}",
                str(bundle / "kernel.ptx"),
                "-o",
                str(Path(folder, "kernel.cubin")),
            ],
            stderr=subprocess.STDOUT,
        ).returncode
    )
