"""Runs a command that must refuse: expect_refusal.py STATUS COMMAND...

Wants the exit status STATUS, nothing on standard output, and on standard error one message that a person can read: one
line with `error:`, a few notes, no traceback. Prints the message for FileCheck.
"""

import subprocess
import sys

MAX_LINES = 8
MAX_CHARACTERS = 2500


def main() -> None:
    """Runs the command of the arguments; exits with a message where it does not refuse as it must."""
    wanted, command = int(sys.argv[1]), sys.argv[2:]
    done = subprocess.run(command, stdin=sys.stdin, capture_output=True, text=True)
    print(done.stderr, end="")
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    wrong = [
        what
        for what, holds in {
            f"exit status {done.returncode}, expected {wanted}": done.returncode != wanted,
            f"{len(errors)} errors instead of one": len(errors) != 1,
            "a traceback": "Traceback" in done.stderr,
            "a message that is too long": len(done.stderr) > MAX_CHARACTERS or done.stderr.count("\n") > MAX_LINES,
            "something on standard output": bool(done.stdout),
        }.items()
        if holds
    ]
    if wrong:
        sys.exit(f"expect_refusal.py: {'; '.join(wrong)}\nstandard output: {done.stdout[:500]}")


if __name__ == "__main__":
    main()
