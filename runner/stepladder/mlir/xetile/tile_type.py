"""Types and attributes of `xetile`, read from MLIR."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.mlir.bindings import ir
from stepladder.mlir.printed import memory_space
from stepladder.mlir.xetile.wg_map import WgMap, Wrong

_FIELDS = ("wg", "order", "memory_space")
_ROW_MAJOR, _COLUMN_MAJOR = (1, 0), (0, 1)


@dataclass(frozen=True)
class TileType:
    """A `!xetile.tile`.

    Attributes:
        shape: of its vector, of one dimension or of two.
        element: type of an element.
        wg: how the work-group's subgroups share it; None at subgroup level.
        order: (1, 0) for row-major, (0, 1) for column-major.
        space: "global" or "shared".
        scatter: whether each element has an offset of its own.
    """

    shape: tuple[int, ...]
    element: ir.Type
    wg: WgMap | None = None
    order: tuple[int, int] = _ROW_MAJOR
    space: str = "global"
    scatter: bool = False

    @property
    def vector(self) -> ir.VectorType:
        """The type of its content."""
        return ir.VectorType.get(list(self.shape), self.element)

    @property
    def is_transposed(self) -> bool:
        """Whether its order is column-major."""
        return self.order == _COLUMN_MAJOR


def is_tile(type_: ir.Type) -> bool:
    """Whether a type is a `!xetile.tile`.

    Args:
        type_: of a value.
    """
    return str(type_).startswith("!xetile.tile<")


def numbers(attribute: ir.Attribute, name: str, count: int | None = None) -> tuple[int, ...]:
    """Returns the integers of an array attribute.

    Args:
        attribute: of any kind.
        name: its name, for the message.
        count: how many there must be; None for any.

    Raises:
        Wrong: it is none of so many integers.
    """
    example = "[8, 4]" if count == 2 else "[1]"
    if not isinstance(attribute, ir.ArrayAttr) or not all(isinstance(element, ir.IntegerAttr) for element in attribute):
        raise Wrong(f"{name} = {attribute} is not a list of integers, such as {example}")
    values = tuple(ir.IntegerAttr(element).value for element in attribute)
    if count is not None and len(values) != count:
        raise Wrong(f"{name} has {len(values)} entries, expected {count}, such as {example}")
    return values


def _fields(attribute: ir.Attribute, accepted: tuple[str, ...], label: str) -> dict[str, ir.Attribute]:
    dictionary = ir.DictAttr(ir.DynamicAttr(attribute).params[0])
    fields = {entry.name: entry.attr for entry in (dictionary[number] for number in range(len(dictionary)))}
    unknown = [name for name in fields if name not in accepted]
    if unknown:
        raise Wrong(f"{label} has no parameter '{unknown[0]}': its parameters are {', '.join(accepted)}")
    return fields


def read_wg_map(attribute: ir.Attribute) -> WgMap:
    """Returns a `#xetile.wg_map` as an object.

    Args:
        attribute: of any kind.

    Raises:
        Wrong: it is none, or one without two positive integers for each parameter.
    """
    if not str(attribute).startswith("#xetile.wg_map<"):
        raise Wrong(
            f"{attribute} is not a map; expected an attribute such as "
            f"#xetile.wg_map<{{sg_layout = [8, 4], sg_data = [32, 64]}}>"
        )
    names = ("sg_layout", "sg_data")
    fields = _fields(attribute, names, "wg_map")
    pairs = []
    for name in names:
        if name not in fields:
            raise Wrong(f"wg_map has no {name}: sg_layout and sg_data are both needed")
        pair = numbers(fields[name], name, 2)
        if min(pair) < 1:
            raise Wrong(f"{name} = {list(pair)} has a number below 1")
        pairs.append((pair[0], pair[1]))
    return WgMap(*pairs)


def read_tile(type_: ir.Type) -> TileType:
    """Returns a `!xetile.tile` as an object.

    Args:
        type_: a tile, by `is_tile`.

    Raises:
        Wrong: what the dialect does not allow, and what would be right.
    """
    if not is_tile(type_):
        raise Wrong(f"{type_} is not a tile; expected a type such as !xetile.tile<vector<8x16xf16>, unit>")
    block, kind = ir.DynamicType(type_).params
    vector = ir.VectorType(ir.TypeAttr(block).value)
    scatter = str(kind).startswith("#xetile.scatter")
    if vector.scalable:
        raise Wrong("a tile has static sizes, and its vector is scalable")
    shape = tuple(vector.shape)
    if len(shape) != 2 and not (scatter and len(shape) == 1):
        raise Wrong(f"a tile is two-dimensional (a scatter tile may have one dimension), and {vector} has {len(shape)}")
    if not isinstance(vector.element_type, (ir.IntegerType, ir.FloatType)):
        raise Wrong(f"elements of a tile are integers or floating-point numbers, not {vector.element_type}")
    if scatter:
        return TileType(shape, vector.element_type, scatter=True)
    if not str(kind).startswith("#xetile.tile_attr"):
        return TileType(shape, vector.element_type)
    fields = _fields(kind, _FIELDS, "tile_attr")
    wg = read_wg_map(fields["wg"]) if "wg" in fields else None
    if wg is not None:
        wg.check_shape(shape)
    order = numbers(fields["order"], "order", 2) if "order" in fields else _ROW_MAJOR
    if order not in (_ROW_MAJOR, _COLUMN_MAJOR):
        raise Wrong(f"order = {list(order)}; expected [1, 0] (row-major) or [0, 1] (column-major)")
    return TileType(shape, vector.element_type, wg, (order[0], order[1]), memory_space(fields.get("memory_space")))


def map_attribute(op: ir.Operation, name: str = "wg_map") -> WgMap | None:
    """Returns a map among the attributes of an op; None where it has none of the name.

    Args:
        op: whose attributes are read.
        name: of the attribute.

    Raises:
        Wrong: the attribute is no map.
    """
    return read_wg_map(op.attributes[name]) if name in op.attributes else None


def size_attribute(op: ir.Operation, name: str) -> int | None:
    """Returns `reduction_size` or `broadcast_size`, an integer or a list of one; None where the op has none.

    Args:
        op: which may have the attribute.
        name: `reduction_size` or `broadcast_size`.

    Raises:
        Wrong: it is none of these, or not positive.
    """
    if name not in op.attributes:
        return None
    attribute = op.attributes[name]
    size = ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else numbers(attribute, name, 1)[0]
    if size < 1:
        raise Wrong(f"{name} = {size} is not positive")
    return size


def segments(op: ir.Operation) -> list[list[ir.Value]]:
    """Returns the operands of an `init_tile`: base, offsets, shape, strides.

    Args:
        op: the `init_tile`.

    Raises:
        Wrong: `operandSegmentSizes` does not fit.
    """
    name = "operandSegmentSizes"
    attribute = op.attributes.get(name)
    sizes = list(attribute) if isinstance(attribute, ir.DenseI32ArrayAttr) else []
    if len(sizes) != 4 or sum(sizes) != len(op.operands) or sizes[0] != 1:
        raise Wrong(
            "operandSegmentSizes = array<i32: 1, offsets, shape, strides> must count the base and the "
            f"{len(op.operands) - 1} other operands"
        )
    rest, parts = list(op.operands), []
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    return parts
