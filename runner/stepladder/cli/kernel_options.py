"""Options of `stepladder emulate` for single kernels: the launch and the arguments."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from stepladder.cli.emulation_output import load_array
from stepladder.cli.options import positive
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    import numpy as np

LAUNCH = ("grid", "block", "cluster", "dynamic_shared")
KERNEL = ("kernel", *LAUNCH, "arguments")
_ARGUMENT = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")  # a box in brackets has commas
_FILE = re.compile(r"(?P<path>.+\.npy)(?P<box>\[.*\])?")
_TYPES = {"f2": "f16", "f4": "f32", "f8": "f64", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "b1": "i1"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of single kernels.

    Args:
        parser: of `stepladder emulate`.
    """
    group = parser.add_argument_group("single kernels (gpu.func, llvm.func, PTX)")
    group.add_argument(
        "--bundle",
        metavar="BUNDLE",
        help="PTX: take launch and reference from this bundle (default: the bundle that contains the PTX)",
    )
    group.add_argument("--kernel", metavar="NAME", help="the kernel (default: the bundle's, or the only one)")
    group.add_argument("--grid", type=_extents, metavar="X,Y,Z", help="grid size in blocks")
    group.add_argument("--block", type=_extents, metavar="X,Y,Z", help="block size in threads")
    group.add_argument("--cluster", type=_extents, metavar="X,Y,Z", help="cluster size in blocks (default: 1)")
    group.add_argument(
        "--dynamic-shared", type=_bytes, metavar="N", help="bytes of dynamic shared memory per block (default: 0)"
    )
    group.add_argument(
        "--arguments",
        type=_arguments,
        metavar="A,B,...",
        help="arguments of the kernel, in order: see below (default: random arrays, if all parameters are memrefs of "
        "static shape)",
    )


def _extents(text: str) -> tuple[int, int, int]:
    sizes = [positive(part) for part in text.split(",")]
    if len(sizes) > 3:
        raise argparse.ArgumentTypeError(f"'{text}' has more than three sizes")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _bytes(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number of bytes, got '{text}'")
    return int(text)


def _arguments(text: str) -> list[str]:
    return [part.strip() for part in _ARGUMENT.findall(text)]


def given(args: argparse.Namespace) -> list[str]:
    """Returns the options of kernels that are given, as they are written.

    Args:
        args: of `stepladder emulate`.
    """
    return [f"--{name.replace('_', '-')}" for name in KERNEL if getattr(args, name) is not None]


def read_files(texts: list[str]) -> tuple[list[str], dict[int, np.ndarray]]:
    """Returns arguments as `ptx.arguments.from_texts` takes them, and the arrays of those that are files.

    Args:
        texts: of `--arguments`; one that ends with `.npy`, or has a box after that, is a file.

    Raises:
        StepladderError: a file that is no array, or one of another type than NumPy's own.
    """
    arguments, arrays = [], {}
    for number, text in enumerate(texts):
        file = _FILE.fullmatch(text)
        if file is None:
            arguments.append(text)
            continue
        array = load_array(file["path"])
        type_ = _TYPES.get(array.dtype.str[1:])
        if type_ is None:
            raise StepladderError(
                f"input '{file['path']}' is of {array.dtype}: give its shape and type here, such as 64x64xbf16, and "
                "the file by --inputs"
            )
        if not array.shape:
            arguments.append(f"{array.item()}:{type_}")
            continue
        arguments.append("x".join(map(str, array.shape)) + f"x{type_}{file['box'] or ''}")
        arrays[number] = array
    return arguments, arrays
