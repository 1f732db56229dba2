"""Runs the command in the first line of a reproducer: reproduce.py REPRODUCER."""

import shlex
import subprocess
import sys

command = shlex.split(open(sys.argv[1]).readline().removeprefix("//"))
assert command[0] == "stepladder-opt", command
done = subprocess.run([sys.executable, "-m", "stepladder.cli.opt", *command[1:]], capture_output=True, text=True)
print(f"exit status {done.returncode}\n{done.stderr}")
