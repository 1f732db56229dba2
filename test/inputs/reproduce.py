"""Runs the command in the first line of a reproducer: reproduce.py REPRODUCER."""

import shlex
import subprocess
import sys
from pathlib import Path

command = shlex.split(Path(sys.argv[1]).read_text().splitlines()[0].removeprefix("//"))
assert command[0] == "stepladder-opt", command
done = subprocess.run([sys.executable, "-m", "stepladder.cli.opt", *command[1:]], capture_output=True, text=True)
print(f"exit status {done.returncode}\n{done.stderr}")
