"""A program of the project, or Python, as documented commands find it on PATH: stand_in_project.py PROGRAM ARGUMENT...

STAND_IN_SERVER is the socket of a server of the project's commands, which runs it. STAND_IN_LOG is a file that the
needs of commands are appended to, and STAND_IN_PLACE says where the command stands. Imports little, as
`command_client` does: most commands take less time than that would. Of a script that measures, which Python runs, the
server parses the command line.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "inputs"))
import command_client

NOT_EXECUTED = 3  # exit status of the project's commands where no GPU fits


def need(what: str) -> None:
    """Records what the command needs beside the project: one of `stand_ins.NEEDS`."""
    with open(os.environ["STAND_IN_LOG"], "a") as file:
        file.write(f"{os.environ['STAND_IN_PLACE']}\t{what}\n")


def main(program: str, arguments: list[str]) -> int:
    """Returns the exit status of a program; where it finds no GPU that fits, 0, and the need is recorded."""
    if program.startswith("python"):
        if not arguments or not arguments[0].endswith(".py"):
            others = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_ins.py")
            os.execv(sys.executable, [sys.executable, others, program, *arguments])
        need("measurement")
        program = "parse"
    status = command_client.run(os.environ["STAND_IN_SERVER"], program, arguments)
    if status == NOT_EXECUTED:
        need("gpu")
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
