"""Layouts of XeGPU, which divide a vector into blocks of an instruction."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import splat_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, users_of
from stepladder.mlir.types import byte_width
from stepladder.mlir.xetile.tile_type import read_tile

ROWS, COLUMNS = 8, 16  # of the block that an instruction computes
_DEPTH = 32  # bytes of k


def undistributed(op: ir.Operation, subject: str, accepted: str) -> Refusal:
    """Returns the refusal of an op or a value that has no layout over the lanes of a subgroup.

    Args:
        op: where the message is.
        subject: what cannot be distributed, for the message.
        accepted: in its place.
    """
    return Refusal(op, f"{subject} cannot be distributed to lanes; accepted: {accepted}")


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
        raise undistributed(op, f"{op.name} of {columns} columns", f"a multiple of {COLUMNS}")
    return ir.Attribute.parse(f"#xegpu.layout<inst_data = [{math.gcd(height, rows)}, {COLUMNS}]>")


def transposed_words(op: ir.Operation, shape: Sequence[int]) -> ir.Attribute:
    """Returns the layout of a block of 16-bit elements that is transposed as words: one row of 16 each lane.

    Args:
        op: which the message names.
        shape: rows and columns of the block in memory.

    Raises:
        Refusal: rows that are not one for each lane.
    """
    if shape[0] % COLUMNS:
        raise Refusal(op, f"{op.name} transposes {shape[0]} rows of 16-bit elements; accepted: a multiple of {COLUMNS}")
    return ir.Attribute.parse(f"#xegpu.layout<inst_data = [{COLUMNS}, {min(shape[1], COLUMNS)}]>")


def check_product(op: ir.Operation, a: ir.VectorType, result: ir.VectorType) -> None:
    """Refuses a product that is not one of instructions, of which each multiplies 32 bytes of k.

    Args:
        op: which the message names.
        a: the type of A.
        result: the type of the product.

    Raises:
        Refusal: a number of rows, of columns or along k that instructions do not divide.
    """
    instruction(op, result.shape)
    depth = _DEPTH // byte_width(a.element_type)
    if a.shape[1] % depth:
        raise Refusal(
            op, f"{op.name} of {a.element_type} over {a.shape[1]} elements of k; accepted: a multiple of {depth}"
        )
    if a.shape[0] % 2:
        raise undistributed(op, f"{op.name} of {a.shape[0]} rows", "an even number of rows")


def reaches(value: ir.Value, *names: str) -> bool:
    """Returns whether one of some ops takes a vector, or elementwise results of it, in the same block or others.

    Products and loops, which give vectors of their own, are not followed.

    Args:
        value: the vector.
        names: of the ops, with their dialect.
    """
    users = users_of(value)
    elementwise = [user for user in users if user.name.partition(".")[0] in ("arith", "math")]
    return any(user.name in names for user in users) or any(
        reaches(result, *names) for user in elementwise for result in user.results
    )


def becomes_operand(value: ir.Value, *places: int) -> bool:
    """Returns whether a product takes a vector, its transpose, or elementwise results of these.

    Args:
        value: the vector.
        places: 0 for A of the product, 1 for B.
    """
    users = users_of(value)
    products = [user for user in users if user.name == "xetile.tile_mma"]
    others = [
        user for user in users if user.name == "xetile.transpose" or user.name.partition(".")[0] in ("arith", "math")
    ]
    if any(value in [user.operands[place] for place in places] for user in products):
        return True
    return any(becomes_operand(user.results[0], *places) for user in others)


def turns(value: ir.Value) -> bool:
    """Returns whether lanes can hold the transpose of a vector: what is loaded from global memory for that only.

    A load, a transpose and an elementwise op of such vectors have either layout. A product, a reduction, a broadcast
    and a vector with another use have one.

    Args:
        value: a vector, whose transpose is used.
    """
    if splat_of(value) is not None:
        return True
    op = producer(value)
    users = users_of(value)
    if op is None or any(user != users[0] for user in users):
        return False
    if op.name == "xetile.load_tile":
        return read_tile(op.operands[0].type).space == "global"
    operands = [operand for operand in op.operands if isinstance(operand.type, ir.VectorType)]
    is_open = op.name == "xetile.transpose" or op.name.partition(".")[0] in ("arith", "math")
    return is_open and all(map(turns, operands))
