"""Rules of the `xetile` operations on vectors: shapes, element types, and the derivation of `wg_map`."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.printed import keyword
from stepladder.mlir.xetile.derive import map_of
from stepladder.mlir.xetile.tile_type import map_attribute, numbers, read_wg_map, size_attribute
from stepladder.mlir.xetile.wg_map import WgMap, Wrong

_EITHER = ("add", "mul")
REDUCTIONS = {
    True: (*_EITHER, "minnumf", "maxnumf", "minimumf", "maximumf"),  # of floating-point numbers
    False: (*_EITHER, "minsi", "minui", "maxsi", "maxui", "and", "or", "xor"),
}


def _vector(value: ir.Value, role: str) -> ir.VectorType:
    type_ = value.type
    if not isinstance(type_, ir.VectorType) or type_.rank != 2 or type_.scalable:
        raise Wrong(f"{role} is {type_}; expected a vector of two static dimensions")
    return type_


def _result_map(op: ir.Operation, derived: WgMap | None) -> WgMap | None:
    """Returns the map of an op's result, checked against its shape.

    Args:
        derived: the map that the result would have by those of the operands, None if they have none.
    """
    wg_map = map_attribute(op)
    if wg_map is None and derived is not None:
        raise Wrong(f"its operands are distributed to subgroups, and it has no wg_map: wg_map = {derived} is derived")
    if wg_map is not None:
        wg_map.check_shape(ir.VectorType(op.results[0].type).shape)
    return wg_map


def _check_operand(op: ir.Operation, number: int, name: str, derived: WgMap, attribute: str = "") -> None:
    """Checks the map of an operand, its own and that of an attribute, against the derived one."""
    stated_map = map_attribute(op, attribute) if attribute else None
    if stated_map is not None and stated_map != derived:
        raise Wrong(f"{attribute} is {stated_map}, and the map derived from wg_map is {derived}")
    wg_map = map_of(op.operands[number])
    if wg_map is not None and wg_map != derived:
        raise Wrong(
            f"{name} is distributed by {wg_map}, and the map derived from wg_map is {derived}: xetile.convert_layout "
            "gives it that"
        )
    derived.check_shape(_vector(op.operands[number], name).shape)


def tile_mma(op: ir.Operation) -> None:
    """The product of two vectors, added to a third one.

    Args:
        op: `xetile.tile_mma`.

    Raises:
        Wrong: shapes, element types or maps that do not match; the message names what is accepted.
    """
    names = ("A", "B", "C")
    vectors = [_vector(value, name) for value, name in zip(op.operands, names)]
    a, b = vectors[:2]
    d = _vector(op.results[0], "the result")
    (m, k), (k_b, n) = a.shape, b.shape
    if k != k_b:
        raise Wrong(f"A is {m} x {k} and B is {k_b} x {n}: the columns of A must match the rows of B")
    if list(d.shape) != [m, n]:
        raise Wrong(f"A is {m} x {k} and B is {k} x {n}: the result is {m} x {n}, not {d.shape[0]} x {d.shape[1]}")
    if len(vectors) > 2 and vectors[2] != d:
        raise Wrong(f"C is {vectors[2]}, and the result is {d}: they must have the same type")
    if a.element_type != b.element_type:
        raise Wrong(f"A has elements of {a.element_type} and B of {b.element_type}: they must have the same type")
    _check_sums(a.element_type, d.element_type)
    maps = [map_of(value) for value in list(op.operands)[:2]]
    wg_map = WgMap(maps[0].sg_layout, (maps[0].sg_data[0], maps[1].sg_data[1])) if maps[0] and maps[1] else None
    wg = _result_map(op, wg_map)
    if wg is None:
        return
    _check_operand(op, 0, "A", WgMap(wg.sg_layout, (wg.sg_data[0], k)), "wg_map_a")
    _check_operand(op, 1, "B", WgMap(wg.sg_layout, (k, wg.sg_data[1])), "wg_map_b")
    if len(vectors) > 2:
        _check_operand(op, 2, "C", wg)


def _check_sums(operand: ir.Type, sums: ir.Type) -> None:
    if isinstance(operand, ir.FloatType):
        if not isinstance(sums, ir.FloatType) or sums.width < operand.width:
            raise Wrong(
                f"products of {operand} must be accumulated in a floating-point type at least as wide, not in {sums}"
            )
    elif not isinstance(operand, ir.IntegerType) or not isinstance(sums, ir.IntegerType) or sums.width != 32:
        raise Wrong(f"products of {operand} must be accumulated in i32, not in {sums}")


def _check_elements(source: ir.VectorType, result: ir.VectorType) -> None:
    if source.element_type != result.element_type:
        raise Wrong(f"the result has elements of {result.element_type}, and the source of {source.element_type}")


def transpose(op: ir.Operation) -> None:
    """A vector with its dimensions exchanged.

    Args:
        op: `xetile.transpose`.

    Raises:
        Wrong: a permutation, shapes, element types or maps that do not match; the message names what is accepted.
    """
    source, result = _vector(op.operands[0], "the source"), _vector(op.results[0], "the result")
    permutation = numbers(op.attributes["permutation"], "permutation") if "permutation" in op.attributes else ()
    if permutation != (1, 0):
        raise Wrong(f"permutation = {list(permutation)}; expected [1, 0]")
    _check_elements(source, result)
    rows, columns = source.shape
    if list(result.shape) != [columns, rows]:
        raise Wrong(f"the source is {rows} x {columns}: the result is {columns} x {rows}, not {_size(result)}")
    source_map = map_of(op.operands[0])
    wg = _result_map(op, source_map.transposed if source_map else None)
    if wg is None:
        return
    for stated_map, role in (
        (map_attribute(op, "wg_map_source"), "wg_map_source"),
        (source_map, "the map of the source"),
    ):
        # In registers, where each subgroup owns the transposed block already; else through shared local memory.
        if (
            stated_map is not None
            and stated_map != wg.transposed
            and not wg.owns_alike(stated_map, result.shape, transposed=True)
        ):
            raise Wrong(
                f"{role} is {stated_map}, and the map derived from wg_map is {wg.transposed}: another one is right "
                "only if each subgroup owns the transpose of what it owns of the source"
            )


def _size(type_: ir.VectorType) -> str:
    return " x ".join(map(str, type_.shape))


def _dimension(op: ir.Operation) -> int:
    dims = numbers(op.attributes["dims"], "dims") if "dims" in op.attributes else ()
    if len(dims) != 1 or dims[0] not in (0, 1):
        raise Wrong(f"dims = {list(dims)}; expected [0] or [1]")
    return dims[0]


def _replaced(pair: tuple[int, int], axis: int, number: int) -> tuple[int, int]:
    return (number, pair[1]) if axis == 0 else (pair[0], number)


def reduction(op: ir.Operation) -> None:
    """A vector reduced along a dimension, all of it or in groups of `reduction_size` elements.

    Args:
        op: `xetile.reduction`.

    Raises:
        Wrong: a kind, a dimension, shapes or maps that do not match; the message names what is accepted.
    """
    source, result = _vector(op.operands[0], "the source"), _vector(op.results[0], "the result")
    axis = _dimension(op)
    _check_elements(source, result)
    text = str(op.attributes["kind"]) if "kind" in op.attributes else ""
    supported_kinds = REDUCTIONS[isinstance(source.element_type, ir.FloatType)]
    if not text.startswith("#vector.kind<") or keyword(text) not in supported_kinds:
        raise Wrong(
            f"kind = {text or 'none'} is not supported for elements of {source.element_type}; accepted: "
            f"#vector.kind<...> of {', '.join(supported_kinds)}"
        )
    size = size_attribute(op, "reduction_size")
    length = source.shape[axis]
    if size is not None and length % size:
        raise Wrong(f"reduction_size = {size} does not divide the {length} elements of dimension {axis}")
    expected_shape = list(_replaced((source.shape[0], source.shape[1]), axis, length // (size or length)))
    if list(result.shape) != expected_shape:
        raise Wrong(f"the result is {_size(result)}, expected {expected_shape[0]} x {expected_shape[1]}")
    source_map = map_of(op.operands[0])
    if source_map is not None and source_map.sg_data[axis] % (size or length):
        requirement = f"a multiple of reduction_size = {size}" if size else f"the {length} elements that are reduced"
        raise Wrong(
            f"the source is distributed by {source_map}: sg_data[{axis}] must be {requirement}, since a subgroup "
            "reduces what it owns; xetile.convert_layout gives the source such a map"
        )
    result_map = (
        WgMap(source_map.sg_layout, _replaced(source_map.sg_data, axis, source_map.sg_data[axis] // (size or length)))
        if source_map
        else None
    )
    wg = _result_map(op, result_map)
    if wg is not None:
        source_size = wg.sg_data[axis] * size if size else length
        _check_operand(
            op, 0, "the source", WgMap(wg.sg_layout, _replaced(wg.sg_data, axis, source_size)), "wg_map_source"
        )


def broadcast(op: ir.Operation) -> None:
    """A vector stretched along a dimension: each element fills a block of `broadcast_size`, or the whole dimension.

    Args:
        op: `xetile.broadcast`.

    Raises:
        Wrong: a dimension, shapes, element types or maps that do not match; the message names what is accepted.
    """
    source, result = _vector(op.operands[0], "the source"), _vector(op.results[0], "the result")
    axis = _dimension(op)
    _check_elements(source, result)
    size = size_attribute(op, "broadcast_size")
    if size is None and source.shape[axis] != 1:
        raise Wrong(
            f"dimension {axis} of the source has {source.shape[axis]} elements: it has 1, or broadcast_size says how "
            "many each of them fills"
        )
    expected_size = source.shape[axis] * size if size else result.shape[axis]
    if result.shape[axis] != expected_size or result.shape[1 - axis] != source.shape[1 - axis]:
        right = list(_replaced((source.shape[0], source.shape[1]), axis, expected_size))
        raise Wrong(f"the result is {_size(result)}, expected {right[0]} x {right[1]}")
    source_map = map_of(op.operands[0])
    repeats = size or result.shape[axis]
    wg = _result_map(
        op, WgMap(source_map.sg_layout, _replaced(source_map.sg_data, axis, repeats)) if source_map else None
    )
    if wg is None:
        return
    if size and wg.sg_data[axis] % size:
        raise Wrong(f"sg_data[{axis}] = {wg.sg_data[axis]} of wg_map is not a multiple of broadcast_size = {size}")
    own = wg.sg_data[axis] // size if size else 1
    _check_operand(op, 0, "the source", WgMap(wg.sg_layout, _replaced(wg.sg_data, axis, own)), "wg_map_source")


def convert_layout(op: ir.Operation) -> None:
    """A vector distributed by another map.

    Args:
        op: `xetile.convert_layout`.

    Raises:
        Wrong: types that differ, or maps that are missing or do not match; the message names what is accepted.
    """
    source, result = _vector(op.operands[0], "the source"), _vector(op.results[0], "the result")
    if source != result:
        raise Wrong(f"the source is {source}, and the result {result}: only the map changes")
    if "wg_map" not in op.attributes:
        raise Wrong("it has no wg_map, which is the map of its result")
    wg = read_wg_map(op.attributes["wg_map"])
    wg.check_shape(result.shape)
    source_map, stated_map = map_of(op.operands[0]), map_attribute(op, "wg_map_source")
    if source_map is not None and stated_map is not None and source_map != stated_map:
        raise Wrong(
            f"the source is distributed by {source_map}, and wg_map_source is {stated_map}: they must be the same"
        )
    before = source_map or stated_map
    if before is None:
        raise Wrong("the map of the source is not known: set wg_map_source")
    before.check_shape(source.shape)
    if before.subgroups != wg.subgroups:
        raise Wrong(
            f"the source is distributed to {before.subgroups} subgroups, and wg_map to {wg.subgroups}: both must be "
            "of the same work-group"
        )
