"""Parses the command line of a script that measures, and runs nothing: SCRIPT ARGUMENT..."""

import importlib
import os
import sys


def main() -> int:
    """Returns 0 where the parser of the script that `sys.argv` names takes the arguments; else argparse exits."""
    folder, name = os.path.split(os.path.abspath(sys.argv[1]))
    sys.path.insert(0, folder)
    script = importlib.import_module(name.removesuffix(".py"))
    sys.argv = sys.argv[1:]
    script.make_parser().parse_args()
    return 0
