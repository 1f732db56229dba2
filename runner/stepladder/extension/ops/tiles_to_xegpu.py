"""`tc.tiles_to_xegpu`: writes the tiles of subgroups as descriptors and 2D block operations of XeGPU."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import splat_of, zero_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.index_ranges import divisor_of
from stepladder.extension.lib.translation import Translation
from stepladder.extension.lib.xetile.lane_updates import (
    Scratch,
    columns_at,
    is_by_element,
    load_column,
    make_scratch,
    update_elements,
)
from stepladder.extension.lib.xetile.scatter_tiles import Scattered, offsets_type, scattered_base
from stepladder.extension.lib.xetile.shared_matrices import allocate_attributions, check_within, describe
from stepladder.extension.lib.xetile.tile_padding import padded, padding_of
from stepladder.extension.lib.xetile.tiles import uses_of
from stepladder.extension.lib.xetile.xegpu_layouts import (
    COLUMNS,
    becomes_operand,
    check_product,
    instruction,
    reaches,
    transposed_words,
    turns,
    undistributed,
)
from stepladder.extension.lib.xetile.xegpu_matrices import described, matrix_of
from stepladder.extension.lib.xetile.xegpu_vectors import broadcasted, check_scalars, computed_by_column, reduced
from stepladder.mlir.bindings import arith, ir, memref, vector
from stepladder.mlir.printed import ATOMIC_KINDS
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.mlir.types import byte_width
from stepladder.mlir.xetile.tile_type import TileType, is_tile, read_tile, segments


class TilesToXegpu(Tc.Operation, name="tiles_to_xegpu"):
    """Replaces tiles of subgroups by descriptors of XeGPU, and their offsets by indices that loops carry.

    A column-major tile becomes the block of the row-major matrix, transposed in registers. Elements beyond the matrix
    are zero by the hardware's bounds; another padding replaces them by a mask. Tiles with fewer columns than a
    block, atomic updates and scatter tiles are accessed by element. Shared local memory has descriptors of its own.

    Operands: a handle to any op; the launches below are rewritten.
    Refuses: tiles of work-groups; bases whose shape or strides are not constants, or whose rows are not those of a 2D
        block operation (at least 64 bytes, a pitch that is a multiple of 16); scatter tiles of one dimension, or of a
        memref without a static size; constants that are no splats; tiles of shared local memory that may not be within
        it; atomic updates of other types; products and reductions that blocks of an instruction do not divide; 16-bit
        elements that are transposed from an odd offset; transposes of other vectors than loaded ones.
    """

    target: Handle


_DYNAMIC = ir.ShapedType.get_dynamic_size()  # represents an offset that is an operand
# Cache hints of the levels 1 to 3, by locality.
_HINTS = (
    ("uncached", "uncached", "uncached"),
    ("uncached", "uncached", "cached"),
    ("uncached", "cached", "cached"),
    ("cached", "cached", "cached"),
)
# Atomic updates by the type of their elements.
_ATOMIC = {"f32": ("addf", "assign"), "i32": ("addi", "maxs", "mins", "maxu", "minu", "andi", "ori", "assign")}


@transform_op(TilesToXegpu)
def tiles_to_xegpu(payload: ir.Operation, op: TilesToXegpu, rewriter: Rewriter) -> None:
    """Writes the tiles of the launches below `payload` as descriptors; see the op."""
    for launch in walk(payload, "gpu.launch"):
        if any(inner.name.startswith("xetile.") for inner in walk(launch)):
            allocate_attributions(launch)
            _Conversion(launch).run(rewriter)


@dataclass(frozen=True)
class _Described:
    """The description of a tile, except its offsets.

    Attributes:
        type: of the tile.
        sizes: rows and columns of its matrix.
        descriptor: of the matrix; None where lanes access its elements only.
        matrix: a memref, for accesses by element; None for shared local memory.
        step: divides all offsets along the contiguous dimension.
    """

    type: TileType
    sizes: tuple[int, ...]
    descriptor: ir.Value | None
    matrix: ir.Value | None = None
    step: int = 1


def _xegpu(name: str, operands: list[ir.Value], results: list[ir.Type], attributes: dict) -> ir.Operation:
    return ir.Operation.create(f"xegpu.{name}", results=results, operands=operands, attributes=attributes).operation


class _Conversion(Translation):
    """Converts one launch: two indices, row and column, replace a tile."""

    def __init__(self, launch: ir.Operation) -> None:
        super().__init__(launch)
        self.described: dict[ir.Value, _Described] = {}
        self.scratch: dict[ir.Type, Scratch] = {}

    def carry(self, op: ir.Operation, like: ir.Value, value: ir.Value) -> None:
        """Notes the descriptor of a carried tile, which is the same in all iterations."""
        if like in self.values and len(self.standing(like)) != len(self.standing(value)):
            raise undistributed(op, f"{op.name} carries {like.type}", f"a multiple of {COLUMNS} columns")
        if is_tile(like.type):
            if like in self.described and self.described[like] != self.described[value]:
                raise Refusal(
                    op, f"{op.name} makes a tile one of another xetile.init_tile: a carried tile keeps its own"
                )
            self.described[like] = self.described[value]

    def types_of(self, like: ir.Value) -> list[ir.Type]:
        """Returns the types of the replacements of a carried value."""
        if not is_tile(like.type):
            return [like.type]
        tile = read_tile(like.type)
        return [offsets_type(tile)] if tile.scatter else [ir.IndexType.get()] * 2

    def operation(self, op: ir.Operation) -> bool:
        """Creates what an op of `xetile` becomes."""
        dialect, _, name = op.name.partition(".")
        if any(map(_is_table, op.operands)):
            raise undistributed(op, f"{op.name} of a constant that is not a splat", "splat constants")
        if dialect in ("arith", "math"):
            return self._by_column(op)
        if dialect != "xetile":
            return False
        convert = getattr(self, f"_{name}") if name in _FORMS else None
        if convert is None or "wg_map" in op.attributes:
            form = "of work-groups" if convert is not None else "of this kind"
            raise Refusal(
                op, f"{op.name} {form} cannot be lowered to XeGPU here; accepted on subgroups: {', '.join(_FORMS)}"
            )
        convert(op)
        return True

    def _by_column(self, op: ir.Operation) -> bool:
        """Creates an elementwise op for each column of its vectors, if columns replace them."""
        operands = [self.standing(operand) for operand in op.operands]
        if max(map(len, operands), default=1) == 1:
            return False
        self.values[op.results[0]] = computed_by_column(op, operands)
        return True

    def standing(self, value: ir.Value) -> list[ir.Value]:
        """Returns the replacement of a value: itself, another value, or its columns."""
        return self.values.get(value, [value])

    def whole(self, op: ir.Operation, value: ir.Value) -> ir.Value:
        """Returns the vector that replaces an operand; refuses one that columns replace."""
        columns = len(self.standing(value))
        if columns > 1:
            raise undistributed(op, f"{op.name} of {columns} columns", f"a multiple of {COLUMNS}")
        return self.one(value)

    def _init_tile(self, op: ir.Operation) -> None:
        tile = read_tile(op.results[0].type)
        (base,), offsets, sizes, strides = segments(op)
        if tile.wg is not None:
            raise Refusal(op, "only a tile of a subgroup can be lowered to XeGPU")
        if tile.scatter:
            source = scattered_base(op, tile, self.one(base))
            self.described[op.results[0]] = _Described(tile, tuple(ir.MemRefType(source.type).shape), None, source)
            self.values[op.results[0]] = [self.whole(op, offsets[0])]
            return
        places = [self.one(offset) for offset in offsets]
        self.values[op.results[0]] = places[-2:]
        source = self.one(base)
        if tile.space != "global":
            sizes_of = tuple(ir.MemRefType(base.type).shape)
            self.described[op.results[0]] = _Described(tile, sizes_of, describe(op, source, tile))
            return
        accesses, moves = uses_of(op.results[0])
        by_element = {is_by_element(access) for access in accesses}
        axis = -2 if tile.is_transposed else -1
        along = [offsets[axis], *(move.operands[axis] for move in moves)]
        step = math.gcd(*map(divisor_of, along))
        matrix = matrix_of(op, source, places[:-2], sizes, strides)
        if True in by_element and matrix.is_address:
            raise Refusal(op, "the base is an address: lanes access elements of a memref")
        descriptor = described(op, tile, matrix) if by_element != {True} else None
        self.described[op.results[0]] = _Described(tile, matrix.sizes, descriptor, matrix.source, step)

    def _update_tile_offset(self, op: ir.Operation) -> None:
        tile = op.operands[0]
        self.described[op.results[0]] = self.described[tile]
        deltas = [self.one(delta) for delta in list(op.operands)[1:]]
        self.values[op.results[0]] = [arith.addi(place, delta) for place, delta in zip(self.values[tile], deltas)]

    def _at(self, tile: ir.Value) -> tuple[list[ir.Value], dict[str, ir.Attribute]]:
        """Returns the operands of an access to a tile (descriptor, offsets) and the attribute of dynamic offsets."""
        places = self.values[tile]
        tile_view = self.described[tile]
        assert tile_view.descriptor is not None  # of every tile with such an access
        if tile_view.type.is_transposed:
            places = places[::-1]
        return [tile_view.descriptor, *places], {"const_offsets": ir.DenseI64ArrayAttr.get([_DYNAMIC] * 2)}

    def _load_tile(self, op: ir.Operation) -> None:
        tile_view = self.described[op.operands[0]]
        tile = tile_view.type
        if is_by_element(op):
            assert tile_view.matrix is not None  # of every tile with such an access
            check_scalars(op, tile.element)
            places, padding = self.values[op.operands[0]], padding_of(op, tile.element)
            self.values[op.results[0]] = [
                load_column(tile_view.matrix, at, tile_view.sizes, tile.shape[0], padding)
                for at in columns_at(places, tile.shape[1])
            ]
            return
        if tile.space != "global":
            self._load_shared(op, tile_view)
            return
        if byte_width(tile.element) == 1 and not becomes_operand(op.results[0], 0, 1):
            raise Refusal(op, f"elements of {tile.element} are loaded as operands of products only")
        operands, attributes = self._at(op.operands[0])
        shape = list(tile.shape)[::-1] if tile.is_transposed else list(tile.shape)
        # A load that the hardware transposes has blocks of its own, which MLIR chooses.
        is_turned = tile.is_transposed or reaches(op.results[0], "xetile.transpose")
        if reaches(op.results[0], "xetile.reduction") and not is_turned:
            attributes["layout"] = instruction(op, shape)
        elif is_turned and byte_width(tile.element) == 2:
            if tile_view.step % 2:
                raise Refusal(
                    op,
                    f"elements of {tile.element} are transposed in pairs: the offset along the "
                    "contiguous dimension must be even, by sums and products of constants, ids and loop variables",
                )
            if not becomes_operand(op.results[0], 1):
                attributes["layout"] = transposed_words(op, shape)
        block = _xegpu("load_nd", operands, [ir.VectorType.get(shape, tile.element)], attributes).results[0]
        if tile.is_transposed:
            block = vector.transpose(tile.vector, block, [1, 0])
        padding = padding_of(op, tile.element)
        if padding is not None:
            is_b = becomes_operand(op.results[0], 1)
            if is_b and reaches(op.results[0], "xetile.transpose"):
                raise undistributed(op, "padding of a load whose xetile.transpose is B", "a tile of order [0, 1]")
            block = padded(block, tile_view.sizes, self.values[op.operands[0]], padding, is_b=is_b)
        self.values[op.results[0]] = [block]

    def _within(self, op: ir.Operation, tile: ir.Value) -> tuple[list[ir.Value], dict[str, ir.Attribute]]:
        """Returns the operands of an access to shared local memory, which must be within it, and their attributes."""
        tile_view = self.described[tile]
        check_within(op, tile_view.type, tile_view.sizes, self.values[tile], self.launch)
        assert tile_view.descriptor is not None  # of shared local memory
        dynamic = ir.DenseI64ArrayAttr.get([_DYNAMIC] * 2)
        return [tile_view.descriptor, *self.values[tile]], {"const_offsets": dynamic}

    def _load_shared(self, op: ir.Operation, tile_view: _Described) -> None:
        operands, attributes = self._within(op, op.operands[0])
        result = op.results[0]
        is_b = any(user.name == "xetile.tile_mma" and user.operands[1] == result for user in users_of(result))
        shape = tile_view.type.shape
        attributes["layout"] = instruction(op, shape, COLUMNS) if is_b else instruction(op, shape)
        self.values[result] = [_xegpu("load_matrix", operands, [tile_view.type.vector], attributes).results[0]]

    def _store_tile(self, op: ir.Operation) -> None:
        tile = self.described[op.operands[1]].type
        if is_by_element(op):
            self._update(op, memref.store)
            return
        value = self.whole(op, op.operands[0])
        if tile.space != "global":
            operands, attributes = self._within(op, op.operands[1])
            attributes["layout"] = instruction(op, tile.shape)
            _xegpu("store_matrix", [value, *operands], [], attributes)
            return
        if tile.is_transposed:
            value = vector.transpose(ir.VectorType.get(list(tile.shape)[::-1], tile.element), value, [1, 0])
        operands, attributes = self._at(op.operands[1])
        _xegpu("store_nd", [value, *operands], [], attributes)

    def _update(self, op: ir.Operation, action: Callable[[ir.Value, ir.Value, list[ir.Value]], ir.Value]) -> None:
        """Lets lanes update the elements of a tile."""
        values, tile_view = self.standing(op.operands[0]), self.described[op.operands[1]]
        element, matrix = tile_view.type.element, tile_view.matrix
        assert matrix is not None  # of every tile with such an access
        check_scalars(op, element)
        if len(values) != tile_view.type.shape[1] and ir.VectorType(values[0].type).shape[1] % COLUMNS:
            raise undistributed(
                op,
                f"{op.name} of {tile_view.type.vector}",
                f"a multiple of {COLUMNS} columns, loaded columns, reductions along rows",
            )
        if element not in self.scratch:
            self.scratch[element] = make_scratch(self.launch, element)
        places = self.values[op.operands[1]]
        old = update_elements(
            op, self.scratch[element], values, places, tile_view.sizes, lambda number, at: action(number, matrix, at)
        )
        if op.results:
            self.values[op.results[0]] = old

    def _atomic_rmw(self, op: ir.Operation) -> None:
        tile, kind = self.described[op.operands[1]].type, _atomic_kind(op)
        if tile.space != "global":
            raise undistributed(op, "an update of shared local memory", "updates of global memory")
        if kind not in _ATOMIC.get(str(tile.element), ()):
            accepted_kinds = "; ".join(f"{', '.join(names)} of {type_}" for type_, names in _ATOMIC.items())
            raise undistributed(op, f"xetile.atomic_rmw by {kind} of {tile.element}", f"{accepted_kinds}")
        self._update(op, lambda number, base, at: memref.atomic_rmw(ATOMIC_KINDS.index(kind), number, base, at))

    def _scattered(self, op: ir.Operation, tile: ir.Value, mask: ir.Value) -> Scattered:
        tile_view = self.described[tile]
        assert tile_view.matrix is not None  # of every scatter tile
        return Scattered(tile_view.type, tile_view.matrix, self.one(tile), self.whole(op, mask))

    def _load_gather(self, op: ir.Operation) -> None:
        access = self._scattered(op, op.operands[0], op.operands[1])
        self.values[op.results[0]] = [access.load(padding_of(op, access.tile.element))]

    def _store_scatter(self, op: ir.Operation) -> None:
        value, mask, tile = op.operands
        self._scattered(op, tile, mask).store(self.whole(op, value))

    def _prefetch_tile(self, op: ir.Operation) -> None:
        if self.described[op.operands[0]].type.space != "global":
            raise Refusal(
                op,
                "a prefetch of shared local memory cannot be lowered to XeGPU; accepted: prefetches of global memory",
            )
        if is_by_element(op):  # no block of the cache's lines; it is a hint
            return
        operands, attributes = self._at(op.operands[0])
        hints = _HINTS[ir.IntegerAttr(op.attributes["locality"]).value]
        for level, hint in enumerate(hints, 1):
            attributes[f"l{level}_hint"] = ir.Attribute.parse(f"#xegpu.cache_hint<{hint}>")
        _xegpu("prefetch_nd", operands, [], attributes)

    def _tile_mma(self, op: ir.Operation) -> None:
        operands = [self.whole(op, operand) for operand in op.operands]
        type_ = ir.VectorType(op.results[0].type)
        check_product(op, ir.VectorType(operands[0].type), type_)
        if len(operands) < 3:
            operands.append(arith.constant(type_, zero_of(type_)))
        self.values[op.results[0]] = [_xegpu("dpas", operands, [type_], {}).results[0]]

    def _transpose(self, op: ir.Operation) -> None:
        if 1 in ir.VectorType(op.results[0].type).shape:
            raise undistributed(op, f"{op.name} of one row or one column", "several rows and columns")
        if not turns(op.operands[0]):
            raise undistributed(
                op,
                f"{op.name} of this vector",
                "a vector loaded from global memory without other uses (a store to a tile of order [0, 1] "
                "transposes any vector)",
            )
        result = vector.transpose(op.results[0].type, self.whole(op, op.operands[0]), [1, 0])
        self.values[op.results[0]] = [result]

    def _broadcast(self, op: ir.Operation) -> None:
        self.values[op.results[0]] = broadcasted(op, self.standing(op.operands[0]))

    def _reduction(self, op: ir.Operation) -> None:
        self.values[op.results[0]] = reduced(op, self.whole(op, op.operands[0]))


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
    "load_gather",
    "store_scatter",
)


def _atomic_kind(op: ir.Operation) -> str:
    """Returns the kind of an atomic update by its name."""
    kind = op.attributes["kind"]
    return kind.value if isinstance(kind, ir.StringAttr) else ATOMIC_KINDS[ir.IntegerAttr(kind).value]


def _is_table(value: ir.Value) -> bool:
    """Returns whether a vector is a constant that is no splat."""
    source = producer(value)
    is_constant = source is not None and source.name == "arith.constant"
    return is_constant and isinstance(value.type, ir.VectorType) and splat_of(value) is None
