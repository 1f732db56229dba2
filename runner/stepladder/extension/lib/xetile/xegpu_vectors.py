"""Reductions and broadcasts of a subgroup's vectors, in forms that MLIR divides into blocks and distributes to lanes.

A vector with fewer columns than a block, such as the sums of rows, is represented by its columns: vectors of one
column, of which each lane has all elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import splat_of, zero_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.xetile.xegpu_layouts import COLUMNS, instruction
from stepladder.mlir.bindings import arith, ir, vector
from stepladder.mlir.neutral_elements import NEUTRAL_FLOATS
from stepladder.mlir.printed import keyword
from stepladder.mlir.traverse import attributes_of
from stepladder.mlir.types import bit_width
from stepladder.mlir.xetile.tile_type import size_attribute

_NEUTRAL_FLOATS = {**NEUTRAL_FLOATS, "add": NEUTRAL_FLOATS["addf"], "mul": 1.0}
_ZERO_BITS, _ALL_BITS = ("add", "maxui", "or", "xor"), ("minui", "and")


def check_scalars(op: ir.Operation, element: ir.Type) -> None:
    """Refuses elements that lanes neither access nor exchange by themselves.

    Args:
        op: which the message names.
        element: type of the elements.

    Raises:
        Refusal: bf16, for which SPIR-V has no type, and types of other widths than 16 and 32 bits.
    """
    if isinstance(element, ir.BF16Type) or bit_width(element) not in (16, 32):
        raise Refusal(
            op, f"{op.name} of {element} cannot be distributed to lanes; accepted: integers of 16 and 32 bits, f16, f32"
        )


def column_type(type_: ir.Type) -> ir.VectorType:
    """Returns the type of a column of a vector.

    Args:
        type_: a vector of two dimensions.
    """
    vector_type = ir.VectorType(type_)
    return ir.VectorType.get([vector_type.shape[0], 1], vector_type.element_type)


def computed_by_column(op: ir.Operation, operands: Sequence[Sequence[ir.Value]]) -> list[ir.Value]:
    """Returns the columns of the result of an elementwise op.

    Args:
        op: of the dialect `arith` or `math`.
        operands: the replacement of each operand: its columns, a scalar, or a constant vector.

    Raises:
        Refusal: an operand that is neither replaced by columns nor a splat constant.
    """
    type_, columns = column_type(op.results[0].type), max(map(len, operands))
    columns_of_operands = [_in_columns(op, values, columns) for values in operands]
    return [
        ir.Operation.create(
            op.name,
            results=[type_],
            operands=[operand_columns[number] for operand_columns in columns_of_operands],
            attributes=attributes_of(op),
        ).results[0]
        for number in range(columns)
    ]


def _in_columns(op: ir.Operation, values: Sequence[ir.Value], columns: int) -> list[ir.Value]:
    if len(values) == columns:
        return list(values)
    if not isinstance(values[0].type, ir.VectorType):
        return [values[0]] * columns
    splat = splat_of(values[0])
    if splat is None:
        raise Refusal(op, f"{op.name} of {values[0].type} cannot be distributed to lanes; accepted: splat constants")
    type_ = column_type(values[0].type)
    return [arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, splat))] * columns


def reduced(op: ir.Operation, source: ir.Value) -> list[ir.Value]:
    """Returns the replacement of a vector reduced along a dimension.

    Args:
        op: the `xetile.reduction`.
        source: the vector that is reduced.

    Raises:
        Refusal: a vector or groups of which no multiple of 16 columns is reduced, or a result of 16 columns or more;
            elements that lanes do not exchange.
    """
    type_, axis = ir.VectorType(source.type), ir.IntegerAttr(op.attributes["dims"][0]).value
    check_scalars(op, type_.element_type)
    size = size_attribute(op, "reduction_size") or type_.shape[axis]
    groups = type_.shape[axis] // size
    shape = list(type_.shape)
    shape[axis] = size
    if axis == 1 and groups >= COLUMNS:
        raise Refusal(
            op,
            f"a reduction to {groups} columns cannot be distributed to lanes; accepted: fewer than {COLUMNS} columns",
        )
    parts = []
    for group in range(groups):
        place = [0, 0]
        place[axis] = group * size
        parts.append(_reduced_group(op, source if groups == 1 else _slice(source, place, shape), axis))
    return parts if axis == 1 else [_stacked(parts, axis)]


def _reduced_group(op: ir.Operation, source: ir.Value, axis: int) -> ir.Value:
    type_ = ir.VectorType(source.type)
    flat = ir.VectorType.get([type_.shape[1 - axis]], type_.element_type)
    first = ir.DenseElementsAttr.get_splat(flat, _neutral(keyword(op.attributes["kind"]), type_.element_type))
    # MLIR reduces rows of one instruction; without this, loads and elementwise ops would be of one row, too.
    groups = ir.Operation.create(
        "xegpu.convert_layout",
        results=[type_],
        operands=[source],
        attributes={
            "input_layout": instruction(op, type_.shape),
            "target_layout": instruction(op, [1, type_.shape[1]]),
        },
    ).results[0]
    result = vector.multi_reduction(op.attributes["kind"], groups, arith.constant(flat, first), [axis])
    shape = [1, type_.shape[1]] if axis == 0 else [type_.shape[0], 1]
    return vector.shape_cast(ir.VectorType.get(shape, type_.element_type), result)


def _neutral(kind: str, element: ir.Type) -> ir.Attribute:
    """Returns the neutral element of a reduction."""
    if isinstance(element, ir.FloatType):
        return ir.FloatAttr.get(element, _NEUTRAL_FLOATS[kind])
    sign = 1 << (ir.IntegerType(element).width - 1)
    signed = {"mul": 1, "minsi": sign - 1, "maxsi": -sign}
    return ir.IntegerAttr.get(element, 0 if kind in _ZERO_BITS else -1 if kind in _ALL_BITS else signed[kind])


def broadcasted(op: ir.Operation, sources: Sequence[ir.Value]) -> list[ir.Value]:
    """Returns the replacement of a vector that is stretched along a dimension.

    Args:
        op: the `xetile.broadcast`.
        sources: the replacement of its operand: a vector or its columns.

    Raises:
        Refusal: a number of columns that has no form in lanes.
    """
    result, axis = ir.VectorType(op.results[0].type), ir.IntegerAttr(op.attributes["dims"][0]).value
    size = size_attribute(op, "broadcast_size") or result.shape[axis]
    if axis == 0:
        return [_repeated_rows(source, size) for source in sources]
    if len(sources) != ir.VectorType(op.operands[0].type).shape[1]:
        raise Refusal(
            op,
            f"{op.name} of {op.operands[0].type} cannot be distributed to lanes; accepted: a loaded or reduced column",
        )
    instruction(op, [result.shape[0], size])  # refuses other numbers of columns
    part = ir.VectorType.get([result.shape[0], size], result.element_type)
    return [_stacked([vector.broadcast(part, source) for source in sources], axis)]


def _repeated_rows(source: ir.Value, size: int) -> ir.Value:
    """Returns a vector in which each row of another one is `size` rows."""
    rows, columns = ir.VectorType(source.type).shape
    part = ir.VectorType.get([size, columns], ir.VectorType(source.type).element_type)
    rows_of_source = [source] if rows == 1 else [_slice(source, [row, 0], [1, columns]) for row in range(rows)]
    return _stacked([vector.broadcast(part, row) for row in rows_of_source], 0)


def _slice(value: ir.Value, offsets: Sequence[int], sizes: Sequence[int]) -> ir.Value:
    type_ = ir.VectorType.get(list(sizes), ir.VectorType(value.type).element_type)
    return vector.extract_strided_slice(type_, value, list(offsets), list(sizes), [1] * len(sizes))


def _stacked(parts: Sequence[ir.Value], axis: int) -> ir.Value:
    """Returns vectors of one type side by side along a dimension."""
    if len(parts) == 1:
        return parts[0]
    type_ = ir.VectorType(parts[0].type)
    shape = list(type_.shape)
    shape[axis] *= len(parts)
    result_type = ir.VectorType.get(shape, type_.element_type)
    result = arith.constant(result_type, zero_of(result_type))
    for number, part in enumerate(parts):
        place = [0, 0]
        place[axis] = number * type_.shape[axis]
        result = vector.insert_strided_slice(part, result, place, [1, 1])
    return result
