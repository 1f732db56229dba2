"""`stepladder payload`: writes a matmul, or a batch of matmuls, in linalg."""

from __future__ import annotations

import argparse

from stepladder.cli.options import Formatter, add_output_option, positive
from stepladder.runtime.errors import OK, StepladderError
from stepladder.runtime.files import write_text

_TYPES = ("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "i8", "i32")
# By the type of A and B, the default type of the accumulators; f32 of others.
_SUM_TYPES = {"i8": "i32", "i32": "i32", "f64": "f64"}

_EPILOG = """\
exit status: 0 written; 2 sizes or types that are not acceptable, or a file that cannot be written.

examples:
  stepladder payload matmul --m 8192 --n 8192 --k 8192 -o matmul.mlir
  stepladder payload matmul --m 1024 --n 1024 --k 1024 --acc-type f16      # C of f16 too
  stepladder payload matmul --m 1024 --n 1024 --k 1024 --a-type i8         # B of i8, accumulators and C of i32
  stepladder payload matmul --m 1024 --n 1024 --k 1024 --a-type f8E4M3FN   # B of f8E4M3FN, accumulators and C of f32
  stepladder payload matmul --m 1024 --n 1024 --k 1024 --c-type f16 --no-accumulate   # f32 accumulators, C of f16
  stepladder payload matmul --m 512 --n 512 --k 512 --b-layout column   # B as the row-major buffer of B^T
  stepladder payload matmul --m 3072 --n 1024 --k 4096 --no-accumulate   # C = AB instead of C = AB + C
  stepladder payload batch_matmul --batch 16 --m 1024 --n 1024 --k 1024   # 16 matmuls, A[16, 1024, 1024] and so on
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the command's parser.

    Args:
        subparsers: of `stepladder`.
    """
    parser = subparsers.add_parser(
        "payload",
        formatter_class=Formatter,
        epilog=_EPILOG,
        help="write a matmul in linalg",
        description="Writes a matmul in linalg, or a batch of matmuls: C = AB + C, row-major by default.",
    )
    parser.add_argument(
        "kind", metavar="{matmul,batch_matmul}", choices=["matmul", "batch_matmul"], help="linalg op to write"
    )
    parser.add_argument(
        "--batch",
        type=positive,
        metavar="BATCH",
        help="number of matmuls of a batch_matmul, the first extent of A, B and C",
    )
    parser.add_argument(
        "--broadcast",
        choices=("a", "b", "ab"),
        default="",
        help="operands of a batch_matmul that are one matrix, which all matmuls read",
    )
    for name, help_ in (("m", "rows of A and C"), ("n", "columns of B and C"), ("k", "columns of A and rows of B")):
        parser.add_argument(f"--{name}", type=positive, required=True, metavar=name.upper(), help=help_)
    parser.add_argument("--a-type", choices=_TYPES, default="f16", help="element type of A (default: f16)")
    parser.add_argument("--b-type", choices=_TYPES, help="element type of B (default: that of A)")
    parser.add_argument(
        "--acc-type",
        choices=_TYPES,
        help="element type of the accumulators (default: f32; i32 for integers, f64 for f64)",
    )
    parser.add_argument("--c-type", choices=_TYPES, help="element type of C (default: that of the accumulators)")
    for name in ("a", "b"):
        parser.add_argument(
            f"--{name}-layout",
            choices=("row", "column"),
            default="row",
            help=f"layout of {name.upper()} in memory, row-major (the default) or column-major",
        )
    parser.add_argument(
        "--accumulate", action=argparse.BooleanOptionalAction, default=True, help="C = AB + C (the default), or C = AB"
    )
    add_output_option(parser, "FILE", "file to write (default: standard output)")


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status.

    Args:
        args: of the command line.

    Raises:
        StepladderError: types that do not go together, or the file cannot be written.
    """
    from stepladder.payload.writing import matmul_text

    b_type = args.b_type or args.a_type
    if args.a_type != b_type:
        raise StepladderError(
            f"--a-type {args.a_type} and --b-type {b_type}: this command writes matmuls with A and B of one type"
        )
    acc_type = args.acc_type or _SUM_TYPES.get(args.a_type, "f32")
    if (args.kind == "batch_matmul") != (args.batch is not None):
        raise StepladderError(
            "batch_matmul requires --batch, the number of matmuls"
            if args.batch is None
            else "--batch requires batch_matmul; matmul writes a single matmul"
        )
    if args.broadcast and args.batch is None:
        raise StepladderError("--broadcast requires batch_matmul; matmul writes a single matmul")
    write_text(
        args.output,
        matmul_text(
            args.m,
            args.n,
            args.k,
            a_type=args.a_type,
            b_type=b_type,
            acc_type=acc_type,
            c_type=args.c_type or acc_type,
            accumulate=args.accumulate,
            a_layout=args.a_layout,
            b_layout=args.b_layout,
            batch=args.batch,
            broadcast=args.broadcast,
        ),
    )
    return OK
