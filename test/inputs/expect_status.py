"""Runs a command and wants a certain exit status: expect_status.py STATUS COMMAND..."""

import subprocess
import sys

status = subprocess.run(sys.argv[2:]).returncode
if status != int(sys.argv[1]):
    sys.exit(f"exit status {status}, expected {sys.argv[1]}")
