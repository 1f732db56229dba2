"""Layouts of XeGPU that say how a vector is divided into blocks of an instruction."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import users_of

ROWS, COLUMNS = 8, 16  # of the block that an instruction computes


def instruction(op: ir.Operation, shape: Sequence[int], rows: int = ROWS) -> ir.Attribute:
    """Returns the layout of a vector that is divided into blocks of up to `rows` x 16 elements.

    Args:
        op: which the message names.
        shape: rows and columns of the vector.
        rows: the most rows of a block.

    Raises:
        Refusal: blocks of 16 columns do not divide it.
    """
    height, columns = shape
    if columns % COLUMNS:
        raise Refusal(op, f"{op.name} of {columns} columns has no form in lanes: a multiple of {COLUMNS} has one")
    return ir.Attribute.parse(f"#xegpu.layout<inst_data = [{math.gcd(height, rows)}, {COLUMNS}]>")


def reaches(value: ir.Value, name: str) -> bool:
    """Returns whether an op called `name` takes a vector, or elementwise results of it, in the same block or others.

    Products and loops, which give vectors of their own, are not followed.

    Args:
        value: the vector.
        name: of the op, with its dialect.
    """
    return any(
        user.name == name
        or (user.name.partition(".")[0] in ("arith", "math") and any(reaches(result, name) for result in user.results))
        for user in users_of(value)
    )
