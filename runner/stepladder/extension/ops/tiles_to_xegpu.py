"""`tc.tiles_to_xegpu`: writes the tiles of subgroups as descriptors and 2D block operations of XeGPU."""

from collections.abc import Callable
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant_value, zero_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.lane_updates import Scratch, make_scratch, update_elements
from stepladder.extension.lib.shared_matrices import allocate_attributions, check_within, describe
from stepladder.extension.lib.tile_padding import padded
from stepladder.extension.lib.translation import Translation
from stepladder.extension.lib.xegpu_layouts import COLUMNS, instruction, reaches
from stepladder.mlir.bindings import arith, ir, memref, vector
from stepladder.mlir.printed import ATOMIC_KINDS, keyword
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.mlir.types import byte_width, strides_of
from stepladder.mlir.xetile.tile_type import TileType, is_tile, read_tile, segments


class TilesToXegpu(Tc.Operation, name="tiles_to_xegpu"):
    """Replaces tiles of subgroups by descriptors of XeGPU, and their offsets by indices that loops carry.

    A column-major tile becomes the block of the row-major matrix, transposed in registers. Elements beyond the matrix
    are zero by the hardware's bounds; another padding takes their place by a mask. Shared local memory has
    descriptors of its own.

    Operands: a handle to any op; the launches below are rewritten.
    Refuses: tiles of work-groups; bases that are neither static memrefs of two dimensions in global memory nor
        addresses with a constant shape and constant strides, or whose rows are not those of a 2D block operation (at
        least 64 bytes, a pitch that is a multiple of 16); scatter tiles; tiles of shared local memory that may not be
        within it; atomic updates of other types or whose results are used; loads of columns; partial reductions and
        broadcasts.
    """

    target: Handle


_DYNAMIC = -(2**63)  # stands for an offset that is an operand
# Cache hints of the levels 1 to 3, by locality.
_HINTS = (
    ("uncached", "uncached", "uncached"),
    ("uncached", "uncached", "cached"),
    ("uncached", "cached", "cached"),
    ("cached", "cached", "cached"),
)
_PITCH, _WIDTH, _LEAST_PITCH = 16, 4, 64  # bytes
# Atomic updates, by name: the type of their elements.
_ATOMIC = {"addf": "f32", "addi": "i32"}
_NEUTRAL = {
    "add": 0.0,
    "mul": 1.0,
    "maximumf": float("-inf"),
    "maxnumf": float("-inf"),
    "minimumf": float("inf"),
    "minnumf": float("inf"),
}


@transform_op(TilesToXegpu)
def tiles_to_xegpu(payload: ir.Operation, op: TilesToXegpu, rewriter: Rewriter) -> None:
    """Writes the tiles of the launches below `payload` as descriptors; see the op."""
    for launch in walk(payload, "gpu.launch"):
        if any(inner.name.startswith("xetile.") for inner in walk(launch)):
            allocate_attributions(launch)
            _Conversion(launch).run(rewriter)


@dataclass(frozen=True)
class _Described:
    """What a tile is beside its offsets.

    Attributes:
        descriptor: of its matrix; the matrix itself, if lanes access its elements.
        type: of the tile.
        sizes: of the matrix.
        by_element: whether lanes access its elements.
    """

    descriptor: ir.Value
    type: TileType
    sizes: tuple[int, ...]
    by_element: bool = False


def _xegpu(name: str, operands: list[ir.Value], results: list[ir.Type], attributes: dict) -> ir.Operation:
    return ir.Operation.create(f"xegpu.{name}", results=results, operands=operands, attributes=attributes).operation


class _Conversion(Translation):
    """Converts one launch: two indices, row and column, stand for a tile."""

    def __init__(self, launch: ir.Operation) -> None:
        super().__init__(launch)
        self.described: dict[ir.Value, _Described] = {}
        self.scratch: dict[ir.Type, Scratch] = {}

    def carry(self, op: ir.Operation, like: ir.Value, value: ir.Value) -> None:
        """Notes the descriptor of a carried tile, which is the same in all iterations."""
        if is_tile(like.type):
            if like in self.described and self.described[like] != self.described[value]:
                raise Refusal(
                    op, f"{op.name} makes a tile one of another xetile.init_tile: a carried tile keeps its own"
                )
            self.described[like] = self.described[value]

    def types_of(self, like: ir.Value) -> list[ir.Type]:
        """Returns the types of what stands for a carried value."""
        return [ir.IndexType.get()] * 2 if is_tile(like.type) else [like.type]

    def operation(self, op: ir.Operation) -> bool:
        """Creates what an op of `xetile` becomes."""
        dialect, _, name = op.name.partition(".")
        if dialect != "xetile":
            return False
        convert = getattr(self, f"_{name}") if name in _FORMS else None
        if convert is None or "wg_map" in op.attributes:
            what = "of work-groups" if convert is not None else "of this kind"
            raise Refusal(op, f"{op.name} {what} has no XeGPU form here: {', '.join(_FORMS)} of subgroups have one")
        convert(op)
        return True

    def _init_tile(self, op: ir.Operation) -> None:
        tile = read_tile(op.results[0].type)
        (base,), offsets, sizes, strides = segments(op)
        if tile.wg is not None or tile.scatter:
            raise Refusal(op, "only a block tile of a subgroup has an XeGPU descriptor here")
        places = [self.one(offset) for offset in offsets]
        source, shape = self.one(base), list(tile.shape)
        if tile.space != "global":
            sizes_of = tuple(ir.MemRefType(base.type).shape)
            self.described[op.results[0]] = _Described(describe(op, source, tile), tile, sizes_of)
            self.values[op.results[0]] = places
            return
        if _is_of_lanes(tile, op.results[0]):
            self.described[op.results[0]] = _Described(source, tile, _sizes_of_lanes(op, base.type), by_element=True)
            self.values[op.results[0]] = places
            return
        numbers: list[list[int]] = []
        if isinstance(base.type, ir.MemRefType):
            if base.type.rank != 2 or not base.type.has_static_shape:
                raise Refusal(
                    op, f"the base is {base.type}: an XeGPU descriptor is made of a static memref of two dimensions"
                )
            _check_rows(op, tile, base.type)
            source = _row_major(source) if tile.is_transposed else source
            sizes_of = tuple(base.type.shape)
        else:
            numbers = [_constants(op, part) for part in (sizes, strides)]
            sizes_of = tuple(numbers[0])
            if tile.is_transposed:
                numbers = [part[::-1] for part in numbers]
            pitch, width = numbers[1][0], numbers[0][1]
            _check_bytes(op, "the matrix", *(number * byte_width(tile.element) for number in (pitch, width)))
        if tile.is_transposed:
            shape = shape[::-1]
        described = ir.Type.parse(f"!xegpu.tensor_desc<{'x'.join(map(str, shape))}x{tile.element}>")
        attributes: dict[str, ir.Attribute] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])}
        for name, part in zip(("const_shape", "const_strides"), numbers):
            attributes[name] = ir.DenseI64ArrayAttr.get(part)
        descriptor = _xegpu("create_nd_tdesc", [source], [described], attributes).results[0]
        self.described[op.results[0]] = _Described(descriptor, tile, sizes_of[::-1] if tile.is_transposed else sizes_of)
        self.values[op.results[0]] = places

    def _update_tile_offset(self, op: ir.Operation) -> None:
        tile = op.operands[0]
        self.described[op.results[0]] = self.described[tile]
        deltas = [self.one(delta) for delta in list(op.operands)[1:]]
        self.values[op.results[0]] = [arith.addi(place, delta) for place, delta in zip(self.values[tile], deltas)]

    def _at(self, tile: ir.Value) -> tuple[list[ir.Value], dict[str, ir.Attribute]]:
        """Returns the operands of an access to a tile (descriptor, offsets) and the attribute of dynamic offsets."""
        places = self.values[tile]
        if self.described[tile].type.is_transposed:
            places = places[::-1]
        return [self.described[tile].descriptor, *places], {"const_offsets": ir.DenseI64ArrayAttr.get([_DYNAMIC] * 2)}

    def _load_tile(self, op: ir.Operation) -> None:
        described = self.described[op.operands[0]]
        tile = described.type
        if described.by_element:
            raise Refusal(
                op, f"a tile of {tile.shape[1]} columns is stored and updated atomically: load one of 16 or a multiple"
            )
        if tile.space != "global":
            self._load_shared(op, described)
            return
        operands, attributes = self._at(op.operands[0])
        shape = list(tile.shape)[::-1] if tile.is_transposed else list(tile.shape)
        # A load that the hardware transposes has blocks of its own, which MLIR chooses.
        is_turned = tile.is_transposed or reaches(op.results[0], "xetile.transpose")
        if reaches(op.results[0], "xetile.reduction") and not is_turned:
            attributes["layout"] = instruction(op, shape)
        loaded = _xegpu("load_nd", operands, [ir.VectorType.get(shape, tile.element)], attributes).results[0]
        if "padding" in op.attributes and op.attributes["padding"].value != 0:
            loaded = padded(loaded, described.sizes, operands[1:], op.attributes["padding"])
        self.values[op.results[0]] = [vector.transpose(tile.vector, loaded, [1, 0]) if tile.is_transposed else loaded]

    def _within(self, op: ir.Operation, tile: ir.Value) -> tuple[list[ir.Value], dict[str, ir.Attribute]]:
        """Returns the operands of an access to shared local memory, which must be within it, and their attributes."""
        described = self.described[tile]
        check_within(op, described.type, described.sizes, self.values[tile], self.launch)
        dynamic = ir.DenseI64ArrayAttr.get([_DYNAMIC] * 2)
        return [described.descriptor, *self.values[tile]], {"const_offsets": dynamic}

    def _load_shared(self, op: ir.Operation, described: _Described) -> None:
        operands, attributes = self._within(op, op.operands[0])
        result = op.results[0]
        is_b = any(user.name == "xetile.tile_mma" and user.operands[1] == result for user in users_of(result))
        shape = described.type.shape
        attributes["layout"] = instruction(op, shape, COLUMNS) if is_b else instruction(op, shape)
        self.values[result] = [_xegpu("load_matrix", operands, [described.type.vector], attributes).results[0]]

    def _store_tile(self, op: ir.Operation) -> None:
        value, tile = self.one(op.operands[0]), self.described[op.operands[1]].type
        if tile.space != "global":
            operands, attributes = self._within(op, op.operands[1])
            attributes["layout"] = instruction(op, tile.shape)
            _xegpu("store_matrix", [value, *operands], [], attributes)
            return
        if self.described[op.operands[1]].by_element:
            self._update(op, lambda number, base, at: memref.store(number, base, at))
            return
        if tile.is_transposed:
            value = vector.transpose(ir.VectorType.get(list(tile.shape)[::-1], tile.element), value, [1, 0])
        operands, attributes = self._at(op.operands[1])
        _xegpu("store_nd", [value, *operands], [], attributes)

    def _update(self, op: ir.Operation, action: Callable[[ir.Value, ir.Value, list[ir.Value]], object]) -> None:
        """Lets lanes update the elements of a tile."""
        described = self.described[op.operands[1]]
        element = described.type.element
        if element not in self.scratch:
            self.scratch[element] = make_scratch(self.launch, element)
        update_elements(
            op,
            self.scratch[element],
            self.one(op.operands[0]),
            self.values[op.operands[1]],
            described.sizes,
            lambda number, at: action(number, described.descriptor, at),
        )

    def _atomic_rmw(self, op: ir.Operation) -> None:
        tile, kind = self.described[op.operands[1]].type, _atomic_kind(op)
        if tile.space != "global" or list(op.results[0].uses):
            what = "of shared local memory" if tile.space != "global" else "whose old numbers are used"
            raise Refusal(op, f"an update {what} has no form in lanes: one of global memory, without uses, has")
        if _ATOMIC.get(kind) != str(tile.element):
            accepted = ", ".join(f"{name} of {type_}" for name, type_ in _ATOMIC.items())
            raise Refusal(op, f"xetile.atomic_rmw by {kind} of {tile.element} has no form in lanes: {accepted} has one")
        self._update(op, lambda number, base, at: memref.atomic_rmw(ATOMIC_KINDS.index(kind), number, base, at))

    def _prefetch_tile(self, op: ir.Operation) -> None:
        if self.described[op.operands[0]].type.space != "global":
            raise Refusal(op, "a prefetch of shared local memory has no XeGPU form: one of global memory has")
        operands, attributes = self._at(op.operands[0])
        hints = _HINTS[ir.IntegerAttr(op.attributes["locality"]).value]
        for level, hint in enumerate(hints, 1):
            attributes[f"l{level}_hint"] = ir.Attribute.parse(f"#xegpu.cache_hint<{hint}>")
        _xegpu("prefetch_nd", operands, [], attributes)

    def _tile_mma(self, op: ir.Operation) -> None:
        operands = [self.one(operand) for operand in op.operands]
        type_ = ir.VectorType(op.results[0].type)
        if len(operands) < 3:
            operands.append(arith.constant(type_, zero_of(type_)))
        self.values[op.results[0]] = [_xegpu("dpas", operands, [type_], {}).results[0]]

    def _transpose(self, op: ir.Operation) -> None:
        made = vector.transpose(op.results[0].type, self.one(op.operands[0]), [1, 0])
        self.values[op.results[0]] = [made]

    def _broadcast(self, op: ir.Operation) -> None:
        if "broadcast_size" in op.attributes:
            raise Refusal(op, "a broadcast with broadcast_size has no XeGPU form here")
        self.values[op.results[0]] = [vector.broadcast(op.results[0].type, self.one(op.operands[0]))]

    def _reduction(self, op: ir.Operation) -> None:
        kind = keyword(op.attributes["kind"])
        source, result = ir.VectorType(op.operands[0].type), ir.VectorType(op.results[0].type)
        if (
            "reduction_size" in op.attributes
            or kind not in _NEUTRAL
            or not isinstance(source.element_type, ir.FloatType)
        ):
            raise Refusal(op, f"only a reduction of a whole dimension by {', '.join(_NEUTRAL)} has an XeGPU form here")
        axis = ir.IntegerAttr(op.attributes["dims"][0]).value
        flat = ir.VectorType.get([source.shape[1 - axis]], source.element_type)
        first = ir.DenseElementsAttr.get_splat(flat, ir.FloatAttr.get(source.element_type, _NEUTRAL[kind]))
        # MLIR reduces rows of one instruction; without this, loads and elementwise ops would be of one row, too.
        given = _xegpu(
            "convert_layout",
            [self.one(op.operands[0])],
            [source],
            {"input_layout": instruction(op, source.shape), "target_layout": instruction(op, [1, source.shape[1]])},
        ).results[0]
        reduced = vector.multi_reduction(op.attributes["kind"], given, arith.constant(flat, first), [axis])
        self.values[op.results[0]] = [vector.shape_cast(result, reduced)]


_FORMS = (
    "init_tile",
    "update_tile_offset",
    "load_tile",
    "store_tile",
    "prefetch_tile",
    "atomic_rmw",
    "tile_mma",
    "transpose",
    "broadcast",
    "reduction",
)


def _is_of_lanes(tile: TileType, value: ir.Value) -> bool:
    """Returns whether lanes access a tile by element: it is a column, or all of its uses are atomic updates."""
    if tile.shape[1] == 1:
        return True
    users = users_of(value)
    return bool(users) and all(
        user.name == "xetile.atomic_rmw"
        or (user.name == "xetile.update_tile_offset" and _is_of_lanes(tile, user.results[0]))
        for user in users
    )


def _sizes_of_lanes(op: ir.Operation, base: ir.Type) -> tuple[int, ...]:
    """Returns the size of a matrix that lanes access by element."""
    if not isinstance(base, ir.MemRefType) or base.rank != 2 or not base.has_static_shape:
        raise Refusal(op, f"the base is {base}: lanes access elements of a static memref of two dimensions")
    return tuple(base.shape)


def _atomic_kind(op: ir.Operation) -> str:
    """Returns the kind of an atomic update by its name."""
    kind = op.attributes["kind"]
    return kind.value if isinstance(kind, ir.StringAttr) else ATOMIC_KINDS[ir.IntegerAttr(kind).value]


def _row_major(view: ir.Value) -> ir.Value:
    """Returns the row-major matrix of a column-major view."""
    source = producer(view)
    if source is not None and source.name == "memref.transpose":
        return source.operands[0]
    type_ = ir.MemRefType(view.type)
    rows, columns = type_.shape
    _, pitch = strides_of(type_) or (1, rows)
    layout = ir.StridedLayoutAttr.get(0, [pitch or rows, 1])
    turned = ir.MemRefType.get([columns, rows], type_.element_type, layout=layout, memory_space=type_.memory_space)
    permutation = ir.AffineMapAttr.get(ir.AffineMap.get_permutation([1, 0]))
    return ir.Operation.create(
        "memref.transpose", results=[turned], operands=[view], attributes={"permutation": permutation}
    ).results[0]


def _check_rows(op: ir.Operation, tile: TileType, base: ir.MemRefType) -> None:
    """Refuses a matrix whose rows no 2D block operation can access."""
    strides = strides_of(base)
    pitch = strides[1 if tile.is_transposed else 0] if strides else None
    if pitch is None:
        raise Refusal(op, f"the pitch of {base} is not static")
    width = base.shape[0 if tile.is_transposed else 1]
    _check_bytes(op, str(base), *(number * byte_width(base.element_type) for number in (pitch, width)))


def _constants(op: ir.Operation, values: list[ir.Value]) -> list[int]:
    """Returns the sizes or the strides of the matrix at an address."""
    found = [number for value in values if (number := constant_value(value)) is not None]
    if len(found) != len(values):
        raise Refusal(op, "the base is an address: its shape and its strides must be constants")
    return found


def _check_bytes(op: ir.Operation, what: str, pitch: int, width: int) -> None:
    """Refuses rows that no 2D block operation can access: their distance and their length, in bytes."""
    if pitch % _PITCH or pitch < _LEAST_PITCH:
        raise Refusal(
            op,
            f"the rows of {what} are {pitch} bytes apart, and 2D block operations need at least {_LEAST_PITCH}, a "
            f"multiple of {_PITCH}",
        )
    if width % _WIDTH or width < _LEAST_PITCH:
        raise Refusal(
            op,
            f"the rows of {what} have {width} bytes, and 2D block operations need at least {_LEAST_PITCH}, a multiple "
            f"of {_WIDTH}",
        )
