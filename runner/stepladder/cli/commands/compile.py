"""`stepladder compile`: from a payload to a bundle that runs on a GPU."""

from __future__ import annotations

import argparse
import sys

from stepladder.cli.options import Formatter, add_pipeline_options, flat
from stepladder.runtime.errors import OK

_EPILOG = """\
examples:
  stepladder compile matmul.mlir --pipeline wmma --target sm_80 -o matmul.bundle
  stepladder compile matmul.mlir --pipeline wmma --target sm_90a --set block_m=256 --set block_k=64 -o big.bundle
  stepladder compile matmul.mlir --pipeline wmma --without pad_shared_memory -o unpadded.bundle
"""


def add_parser(subparsers) -> None:
    """Adds the command's parser."""
    parser = subparsers.add_parser(
        "compile",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="compile a payload to a bundle: cubin, PTX, manifest, IR after each step",
        description="Compiles a payload to a bundle: cubin, PTX, manifest, and the IR after every step. Needs no GPU.",
    )
    parser.add_argument("input", metavar="INPUT.mlir", help="the payload; - is standard input")
    add_pipeline_options(parser, required=True)
    parser.add_argument("--target", metavar="SM", help="GPU architecture, such as sm_80 or sm_90a (the knob 'target')")
    parser.add_argument(
        "--script-defaults",
        action="store_true",
        help="knobs not set keep the defaults of the script, also where better ones were measured for "
        "problems like this one",
    )
    parser.add_argument("--no-cache", action="store_true", help="make the machine code anew")
    parser.add_argument("-o", metavar="BUNDLE", dest="output", required=True, help="the folder to write")


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from stepladder.pipeline import build, engine
    from stepladder.runtime import targets
    from stepladder.runtime.files import read_text

    settings = dict(args.settings)
    if args.target is not None:
        settings["target"] = targets.find(args.target).name
    text, name = read_text(args.input)
    request = engine.Request(args.pipeline, settings, without=flat(args.without), tuned=not args.script_defaults)
    with engine.mlir_context():
        built = build.build(text, name, request, use_cache=not args.no_cache)
        built.write(args.output)
    manifest = built.manifest
    knobs = ", ".join(f"{name} = {value}" for name, value in manifest.knobs.items())
    shared = manifest.static_shared_memory + manifest.dynamic_shared_memory
    print(
        f"{args.output}: {manifest.kernel_name} for {manifest.target}, grid {'x'.join(map(str, manifest.grid))}, "
        f"block {'x'.join(map(str, manifest.block))}, {manifest.registers} registers, {shared} bytes of shared "
        f"memory\n{knobs}"
    )
    spilled = manifest.spills["stores"] + manifest.spills["loads"]
    if spilled:
        print(
            f"warning: the kernel spills {spilled} bytes a thread: a smaller warp tile would keep its accumulators "
            "in registers",
            file=sys.stderr,
        )
    return OK
