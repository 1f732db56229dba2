"""Lists the main loop of a Hopper kernel in SASS, for docs/hopper.md.

Needs NVIDIA's disassembler and no GPU:

    python benchmarks/listing.py docs/results/hopper_listing.json
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import new_parser, origin, run, write_result
from hopper_cases import ABLATION, ABLATION_KNOBS, ABLATION_TYPES, TYPES
from hopper_jobs import job
from measure import build_jobs
from stepladder.pipeline.codegen.toolchain import find_tool, tool_versions

_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")
_BRANCH = re.compile(r"\bBRA `\((\.L_x_\d+)\)")


def main_loop(listing: str) -> list[str]:
    """Returns the instructions of the loop that contains the wgmma instructions, from its label to the branch back.

    Args:
        listing: the output of nvdisasm.

    Raises:
        SystemExit: there is no such loop.
    """
    lines = listing.splitlines()
    products = [number for number, line in enumerate(lines) if "HGMMA" in line]
    labels = {line.rstrip(":"): number for number, line in enumerate(lines) if re.match(r"\.L_x_\d+:", line)}
    for number in range(products[-1], len(lines)):
        branch = _BRANCH.search(lines[number])
        if branch and labels[branch[1]] < products[0]:
            body = lines[labels[branch[1]] : number + 1]
            return [match[1] for line in body if (match := _INSTRUCTION.match(line))]
    raise SystemExit("found no loop around the wgmma instructions")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("result", type=Path, metavar="RESULT.json", help="file to write")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Builds the ablation's kernel with clusters and a TMA store epilogue, and writes its main loop.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    from stepladder.runtime.bundle import read_bundle

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "kernel")
        build_jobs([job(place, ABLATION, TYPES[ABLATION_TYPES], ABLATION_KNOBS)], 1)
        manifest = read_bundle(place).manifest
        process = subprocess.run(
            [find_tool("nvdisasm"), "-c", str(place / "kernel.cubin")],
            capture_output=True,
            text=True,
            check=True,
        )
    write_result(
        args.result,
        {
            **origin(),
            "tools": tool_versions(),
            "problem": manifest.problem.describe(),
            "knobs": manifest.knobs,
            "main_loop": main_loop(process.stdout),
        },
    )


if __name__ == "__main__":
    run(main)
