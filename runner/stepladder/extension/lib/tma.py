"""TMA: op names, limits, and descriptors created on the host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import apply, constant_value, index
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.workspaces import is_matrix_of_workspace, is_workspace
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, memref, nvgpu, nvvm
from stepladder.mlir.ssa_names import name_of
from stepladder.mlir.traverse import origin, producer
from stepladder.mlir.windows import CAST

LOAD = "nvgpu.tma.async.load"
STORE = "nvgpu.tma.async.store"
WAIT = "nvgpu.mbarrier.try_wait.parity"
ARRIVE = "nvgpu.mbarrier.arrive"
EXPECT = "nvgpu.mbarrier.arrive.expect_tx"

SWIZZLES = (128, 64, 32)  # bytes, the widest first
SWIZZLE_UNIT = 16  # bytes, which a swizzle permutes within a row
WAVEFRONT = 128  # bytes, one in each bank of shared memory: rows within them have one permutation
BOX_LIMIT = 256  # elements per dimension
PITCH_ALIGNMENT = 16  # bytes
# Bytes. No other parameter of a kernel has this alignment.
DESCRIPTOR_ALIGNMENT = 64
# Time limit of one try_wait, after which the wait is repeated.
TRY_WAIT_TICKS = 10000000
# The policy of L2 that `createpolicy.fractional.L2::evict_first` makes for all data, as a cache hint.
# Source: CUTLASS, cute::TMA::CacheHintSm90::EVICT_FIRST.
EVICT_FIRST = 0x12F0000000000000
# The multicast mask in the operands of a load, which segments divide.
_MULTICAST_SEGMENT = 5


def row_swizzle(row_bytes: int) -> int | None:
    """Returns the widest swizzle, in bytes, that divides the rows of a tile, or None.

    Args:
        row_bytes: of a row of the tile.
    """
    return next((swizzle for swizzle in SWIZZLES if row_bytes % swizzle == 0), None)


def permutation(row: ir.Value, swizzle: int) -> ir.Value:
    """Returns what the units of a row of a box are XORed with, at the current insertion point.

    Args:
        row: of the box, an index.
        swizzle: bytes of a row.
    """
    rows, units = WAVEFRONT // swizzle, swizzle // SWIZZLE_UNIT
    return apply(lambda x: ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(x, rows), units), row)


def whole_boxes(row_bytes: int) -> int:
    """Returns the bytes of the boxes for a row of a tile, where boxes may exceed the tile.

    TMA takes about as long for a row of 32 bytes as for one of 64: boxes of 32 bytes are for rows of up to 32 bytes.

    Args:
        row_bytes: of a row of the tile.
    """
    box = SWIZZLES[-1] if row_bytes <= SWIZZLES[-1] else SWIZZLES[-2]
    return -(-row_bytes // box) * box


def create_descriptor(buffer: ir.Value, type_: ir.Type, rows: int, columns: int) -> ir.Value:
    """Returns the TMA descriptor of a buffer, created at the current insertion point, on the host.

    It is named after the buffer, such as `%A_map`, and so is the kernel's argument.

    Args:
        buffer: the matrix in global memory, or the matrices of a batch.
        type_: of the descriptor.
        rows, columns: of a box.
    """
    memref_type = ir.MemRefType(buffer.type)
    unranked_buffer = memref.cast(ir.UnrankedMemRefType.get(memref_type.element_type, None), buffer)
    sizes = box_sizes(memref_type.rank, rows, columns)
    return nvgpu.tma_create_descriptor(type_, unranked_buffer, sizes, loc=location_of_descriptor(buffer))


def location_of_descriptor(buffer: ir.Value) -> ir.Location:
    """Returns the current location, with the name of a buffer's descriptor if the buffer has a name.

    Args:
        buffer: the matrix in global memory.
    """
    name, location = name_of(buffer), ir.Location.current
    return location if name is None else ir.Location.name(f"{name}_map", childLoc=location)


@contextlib.contextmanager
def before_descriptor(create: ir.Operation) -> Iterator[None]:
    """Returns a context that creates ops before a descriptor, without its name.

    Args:
        create: the `nvgpu.tma.create.descriptor`.
    """
    function = create.parent
    assert function is not None
    with ir.InsertionPoint(create), function.location:
        yield


def box_sizes(rank: int, rows: int, columns: int) -> list[ir.Value]:
    """Returns the extents of a box of one matrix in a tensor of a rank, at the current insertion point.

    Args:
        rank: of the tensor, 2 or more.
        rows: of the box.
        columns: of the box.
    """
    return [index(size) for size in (*[1] * (rank - 2), rows, columns)]


def change_expected(expect: ir.Operation, change: Callable[[int], int]) -> None:
    """Changes the bytes that an op makes an mbarrier expect.

    Args:
        expect: an op named EXPECT, with a constant.
        change: returns the bytes that it is to expect, of those that it does.
    """
    byte_count = constant_value(expect.operands[1])
    assert byte_count is not None, "tc.load_by_tma creates constant byte counts"
    with ir.InsertionPoint(expect), expect.location:
        expect.operands[1] = index(change(byte_count))


def fence_async_proxy() -> None:
    """Orders a thread's accesses to shared memory before those of TMA and `wgmma`, at the insertion point."""
    nvvm.fence_proxy(
        ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"), space=ir.Attribute.parse("#nvvm.shared_space<cta>")
    )


def is_multicast(load: ir.Operation) -> bool:
    """Returns whether a load writes the shared memory of several blocks of a cluster.

    Args:
        load: an `nvgpu.tma.async.load`.
    """
    return ir.DenseI32ArrayAttr(load.attributes["operandSegmentSizes"])[_MULTICAST_SEGMENT] > 0


def check_buffer(copy: ir.Operation, buffer: ir.Value, matrix: str) -> None:
    """Checks that TMA can address a matrix in global memory.

    Args:
        copy: the op that reads or writes the matrix.
        buffer: the matrix, or the matrices of a batch.
        matrix: its name in the message, such as "A".

    Raises:
        Refusal: the row pitch is not a multiple of 16 bytes.
    """
    type_ = ir.MemRefType(buffer.type)
    width = types.byte_width(type_.element_type)
    (*outer, _), offset = type_.get_strides_and_offset()
    columns = outer[-1]
    pitch = columns * width
    if any(place * width % PITCH_ALIGNMENT for place in (offset, *outer[:-1])):
        raise Refusal(
            copy,
            f"{matrix} begins {offset} elements after the start of its buffer, with strides of "
            f"{', '.join(map(str, outer))}; TMA requires multiples of {PITCH_ALIGNMENT} bytes",
        )
    if pitch % PITCH_ALIGNMENT:
        raise Refusal(
            copy,
            f"rows of {matrix} are {columns} x {type_.element_type}, {pitch} bytes; TMA requires multiples of "
            f"{PITCH_ALIGNMENT} bytes: make its rows a multiple of {PITCH_ALIGNMENT // width} elements",
        )


@dataclass(frozen=True)
class GlobalTile:
    """A view of a matrix in global memory: the matrix, and the row and column at which the view begins.

    A batch is a buffer of its matrices, and `outer` the index of the view's matrix; it is empty for one matrix.
    """

    buffer: ir.Value
    row: ir.Value
    column: ir.Value
    outer: tuple[ir.Value, ...] = ()

    @property
    def rank(self) -> int:
        """Of the buffer."""
        return 2 + len(self.outer)

    def coordinates(self, column: ir.Value, row: ir.Value) -> list[ir.Value]:
        """Returns the coordinates of a box in the view's matrix, the innermost first.

        Args:
            column: of the box's first element, an index.
            row: of the box's first element, an index.
        """
        return [column, row, *reversed(self.outer)]


def global_tile(copy: ir.Operation, value: ir.Value) -> GlobalTile:
    """Returns the matrix and the origin of a view, with the origin computed at the current insertion point.

    Views of a batch that drop its dimension view one matrix.

    Args:
        copy: the op that reads or writes the view.
        value: the view.

    Raises:
        Refusal: it is not a view of a function argument, or of a matrix made of one, with unit strides, or drops an
            inner dimension.
    """
    origins: list[int | ir.Value] = [0, 0]
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    view = producer(value)
    while view is not None and not _is_matrix(view):
        if view.name != "memref.subview" or any(
            stride != 1 for stride in ir.DenseI64ArrayAttr(view.attributes["static_strides"])
        ):
            raise Refusal(copy, "expected a view of an argument of the function")
        dropped_axes = ir.MemRefType(view.operands[0].type).rank - len(origins)
        if _strides(view.operands[0])[dropped_axes:] != _strides(value):
            raise Refusal(copy, "expected a view that drops only the outermost dimension")
        origins = [*[0] * dropped_axes, *origins]
        dynamic = list(view.operands)[1:]
        for axis, offset in enumerate(ir.DenseI64ArrayAttr(view.attributes["static_offsets"])):
            origins[axis] = _add(origins[axis], dynamic.pop(0) if offset == unknown else offset)
        value = view.operands[0]
        view = producer(value)
    *outer, row, column = (index(origin) if isinstance(origin, int) else origin for origin in origins)
    return GlobalTile(value, row, column, tuple(outer))


def _strides(view: ir.Value) -> list[int]:
    return ir.MemRefType(view.type).get_strides_and_offset()[0]


def _is_matrix(view: ir.Operation) -> bool:
    """Returns whether an op makes a matrix of a function argument, all of it or a window, as `payload.front` does, or
    of a workspace.
    """
    source = producer(origin(view.results[0], ("memref.collapse_shape", "memref.expand_shape", CAST)))
    return source is None or is_workspace(source.results[0]) or is_matrix_of_workspace(view)


def _add(left: int | ir.Value, right: int | ir.Value) -> int | ir.Value:
    """Returns the sum of two offsets, each an integer or an index value."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    values = [term for term in (left, right) if not isinstance(term, int)]
    number = sum(term for term in (left, right) if isinstance(term, int))
    if len(values) == 1 and number == 0:
        return values[0]
    total = arith.addi(*values) if len(values) == 2 else values[0]
    return arith.addi(total, index(number)) if number else total
