"""memref: allocations, views, and accesses to single elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.core.control_flow import inline
from stepladder.emulator.core.fibers import Fiber, Unsupported
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import executes, lowers, shared
from stepladder.emulator.core.types import Buffer, Type, Vector, decode
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.hardware.warps import alike
from stepladder.emulator.memory import alignment, initialized, memory, pointers
from stepladder.emulator.memory.memory import contiguous
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import FAILED, StepladderError

_DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()
# Of shared memory that states none, in bytes: what the widest swizzle of TMA needs, and `pack_shared_memory` has.
_ALIGNMENT = 1024


def _sizes(type_: Type, dynamic: Sequence[Value]) -> list[Value]:
    """Returns the sizes of a memref, those that differ between threads as arrays (T,)."""
    remaining = [size if isinstance(size, np.ndarray) and size.ndim else int(size) for size in dynamic]
    return [remaining.pop(0) if size is None else size for size in type_.shape]


@executes("memref.alloc", "memref.alloca")
def alloc(fiber: Fiber, op: Instruction, *sizes: Value) -> Value:
    """New memory: a block's where it is shared, a thread's own in a kernel, else everybody's."""
    type_ = op.result_types[0]
    group = fiber.group
    shape = _sizes(type_, sizes)
    own = [extent[fiber.lanes] if isinstance(extent, np.ndarray) else extent for extent in shape]
    smallest = min((int(np.min(extent)) for extent in own), default=0)
    if smallest < 0:
        group.sanitizer.report("out-of-bounds", f"asks for a dimension of {smallest} elements", op)
        shape, own = ([np.maximum(0, extent) for extent in extents] for extents in (shape, own))
    size = (type_.extent if type_.is_static else math.prod(int(np.max(extent)) for extent in own)) * type_.element.bytes
    start = 0
    if not group.is_host and type_.space == "shared":
        place, start = group.shared, group.layout[op.number]
    elif group.is_host:
        place = group.machine.heap.allocate(size)
        initialized.begin(place)
    else:
        # One allocation for each op: in a loop it is the same again, as a thread's registers and stack are.
        if op.number not in group.private or group.private[op.number].size < size:
            group.private[op.number] = group.own_memory(size)
        place = group.private[op.number]
    view = contiguous(place, type_.element, shape, start)
    return view.view(type_.offset, shape, type_.strides) if type_.is_static else view


@shared("memref.alloc")
@shared("memref.alloca")
def _alloc_shared(op: Instruction) -> tuple[int | None, int, object] | None:
    type_ = op.result_types[0]
    if type_.space != "shared":
        return None
    return type_.extent * type_.element.bytes, op.attributes.get("alignment", _ALIGNMENT), None


@executes("memref.realloc")
def realloc(fiber: Fiber, op: Instruction, view: MemRef, *sizes: Value) -> Value:
    """New memory of another size, with what the old one had; that is freed."""
    new_view = alloc(fiber, op, *sizes)
    places = np.arange(min(int(fiber.first(view.sizes[0])), int(new_view.sizes[0])))
    memory.write(fiber, op, new_view, [places], memory.read(fiber, op, view, [places], places.shape), places.shape)
    dealloc(fiber, op, view)
    return new_view


@executes("memref.dealloc")
def dealloc(fiber: Fiber, op: Instruction, view: MemRef) -> None:
    """Frees memory of the host; that of a kernel is freed when its threads end."""
    if fiber.group.is_host:
        fiber.group.machine.free(op, view.memory)


@lowers("memref.global")
def lower_global(builder: Builder, op: ir.Operation) -> None:
    """Records `memref.global` for `memref.get_global`."""
    attributes = decode_attributes(op)
    attributes["type"] = decode(ir.TypeAttr(op.attributes["type"]).value)
    builder.globals[attributes["sym_name"]] = attributes


@lowers("memref.get_global")
def lower_get_global(builder: Builder, op: ir.Operation) -> None:
    """`memref.get_global`: the instruction has the global of the symbol."""
    symbol = decode_attributes(op)["name"]
    builder.emit(
        op.name, get_global, (), builder.defined(op.results), {"name": symbol, "global": builder.globals[symbol]}
    )


def get_global(fiber: Fiber, op: Instruction) -> Value:
    """A global: a block's own where it is shared."""
    group = fiber.group
    type_ = op.result_types[0]
    symbol = op.attributes["name"]
    if type_.space == "shared" and not group.is_host:
        return contiguous(group.shared, type_.element, type_.shape, group.layout[symbol])
    globals_ = group.machine.globals
    if symbol not in globals_:
        view = contiguous(
            group.machine.heap.allocate(type_.count * type_.element.bytes, f"@{symbol}"), type_.element, type_.shape
        )
        view.memory.is_array = not op.attributes["global"].get("constant")
        initial = op.attributes["global"].get("initial_value")
        if isinstance(initial, np.ndarray):
            view.memory.typed(type_.element.dtype)[: initial.size] = initial.reshape(-1)
        globals_[symbol] = view
    return globals_[symbol]


@shared("memref.get_global")
def _global_shared(op: Instruction) -> tuple[int | None, int, object] | None:
    type_ = op.result_types[0]
    if type_.space != "shared":
        return None
    # A global of no bytes represents what the launch gives.
    size = type_.count * type_.element.bytes or None
    return size, op.attributes["global"].get("alignment", _ALIGNMENT), op.attributes["name"]


@executes("memref.load")
def load(fiber: Fiber, op: Instruction, view: MemRef, *indices: Value) -> Value:
    """One element; in the body of a structured op, one for each iteration."""
    if op.cache.get("in_loops"):
        return _gathered(fiber, op, view, indices)
    alignment.check_element(fiber, op, view, indices, op.attributes.get("alignment", 0))
    value = memory.read(fiber, op, view, indices)
    type_ = op.result_types[0]
    if isinstance(type_, Vector):
        value = np.ascontiguousarray(value)
        return value[..., None].view(type_.element.dtype).reshape(*value.shape, *type_.shape)
    if isinstance(type_, Buffer):
        return _one_view(fiber, op, value)
    return value


def _gathered(fiber: Fiber, op: Instruction, view: MemRef, indices: Sequence[Value]) -> Value:
    """Returns elements of a buffer for concurrent iterations, whose indices are arrays."""
    shape = tuple(view.sizes)
    content = memory.read(fiber, op, view, np.ix_(*(np.arange(size) for size in shape)), shape)
    if content.ndim > len(shape):
        raise Unsupported(op, "of a buffer that differs between threads, in the body of a structured op")
    for axis, (place, size) in enumerate(zip(indices, shape)):
        if np.any((np.asarray(place) < 0) | (np.asarray(place) >= size)):
            raise StepladderError(
                f"{op.name} goes beyond the {size} elements of dimension {axis}", location=op.location, status=FAILED
            )
    return content[tuple(indices)]


def _one_view(fiber: Fiber, op: Instruction, number: Value) -> values.MemRef:
    """Returns the memref that memory holds as an integer."""
    views = fiber.group.machine.views
    own = number if values.is_uniform(number) else fiber.agreed(number)
    if isinstance(own, np.ndarray):
        raise Unsupported(op, "of memrefs that differ between threads")
    if not 0 <= own < len(views):
        raise Unsupported(op, "of a memref that nothing has been stored to")
    return views[own]


@executes("memref.store")
def store(fiber: Fiber, op: Instruction, value: Value, view: MemRef, *indices: Value) -> None:
    """One element."""
    alignment.check_element(fiber, op, view, indices, op.attributes.get("alignment", 0))
    type_ = op.operand_types[0]
    if isinstance(type_, Vector):
        value = np.ascontiguousarray(value, type_.element.dtype)
        front = value.shape[: value.ndim - type_.rank]
        value = value.reshape(*front, -1).view(view.element.dtype)[..., 0]
    elif isinstance(type_, Buffer):
        fiber.group.machine.views.append(value)
        value = len(fiber.group.machine.views) - 1
    memory.write(fiber, op, view, indices, value)


def _mixed(op: Instruction, name: str, dynamic: list) -> list:
    """Returns integers that are partly static, the others taken from the front of `dynamic`."""
    return [dynamic.pop(0) if number == _DYNAMIC else number for number in op.attributes[f"static_{name}"]]


def _dot(numbers: Sequence[Value], strides: Sequence[Value]) -> Value:
    total = 0
    for number, stride in zip(numbers, strides):
        total = total + number * stride
    return total


@executes("memref.subview")
def subview(fiber: Fiber, op: Instruction, view: MemRef, *dynamic: Value) -> MemRef:
    """A part of a view."""
    remaining = list(dynamic)
    offsets, sizes, steps = (_mixed(op, name, remaining) for name in ("offsets", "sizes", "strides"))
    _check_part(fiber, op, view, offsets, sizes, steps)
    strides = [stride * step for stride, step in zip(view.strides, steps)]
    axes = _kept(op, sizes, strides)
    return view.view(
        view.offset + _dot(offsets, view.strides), [sizes[axis] for axis in axes], [strides[axis] for axis in axes]
    )


def _check_part(
    fiber: Fiber,
    op: Instruction,
    view: MemRef,
    offsets: Sequence[Value],
    sizes: Sequence[Value],
    steps: Sequence[Value],
) -> None:
    for axis, (offset, size, step) in enumerate(zip(offsets, sizes, steps)):
        last = offset + (size - 1) * step
        is_uniform = type(offset) is int and type(last) is int and type(view.sizes[axis]) is int
        if is_uniform and (size <= 0 or (offset >= 0 and last < view.sizes[axis])):
            continue
        wrong = (np.asarray(size) > 0) & ((np.asarray(offset) < 0) | (np.asarray(last) >= view.sizes[axis]))
        if wrong.ndim:
            wrong = wrong[fiber.lanes]
        if np.count_nonzero(wrong):
            fiber.group.sanitizer.report(
                "out-of-bounds",
                f"the part of dimension {axis} reaches from "
                f"{fiber.first(offset)} to {fiber.first(last)}, and the view has "
                f"{fiber.first(view.sizes[axis])}",
                op,
            )


def _kept(op: Instruction, sizes: Sequence[Value], strides: Sequence[Value]) -> list[int]:
    """Returns the dimensions that a rank-reduced result keeps: those of its type, in order."""
    if "kept" not in op.cache:
        type_ = op.result_types[0]
        missing = len(sizes) - type_.rank
        axes = list(range(len(sizes)))
        for axis in range(len(sizes)):
            if missing and isinstance(sizes[axis], int) and sizes[axis] == 1:
                other_axes = [other for other in axes if other != axis]
                place = len([other for other in other_axes if other < axis])
                expected_size = type_.shape[place] if place < type_.rank else None
                stride = type_.strides[place] if place < type_.rank else None
                following = strides[axis] if isinstance(strides[axis], int) else None
                # A dimension of one remains where the type has it, with its own stride.
                if (
                    expected_size == 1
                    and stride is not None
                    and stride == following
                    and _fits([sizes[other] for other in axes[place + 1 :]], type_.shape[place + 1 :], missing)
                ):
                    continue
                axes = other_axes
                missing -= 1
        op.cache["kept"] = axes
    return op.cache["kept"]


def _fits(sizes: Sequence[Value], shape: Sequence[int], missing: int) -> bool:
    """Whether sizes can be a shape when `missing` dimensions of one are dropped."""
    unit_sizes = sum(1 for size in sizes if isinstance(size, int) and size == 1)
    return len(sizes) - missing == len(shape) and unit_sizes >= missing


@executes("memref.view")
def view_(fiber: Fiber, op: Instruction, view: MemRef, shift: Value, *sizes: Value) -> Value:
    """Bytes as elements of a type."""
    type_ = op.result_types[0]
    shape = _sizes(type_, sizes)
    if values.is_uniform(shift):
        return contiguous(view.memory, type_.element, shape, view.start + view.offset + int(shift))
    whole_view = contiguous(view.memory, type_.element, shape, view.start + view.offset)
    first = pointers.in_elements(fiber, op, shift, type_.element)
    return whole_view.view(first, whole_view.sizes, whole_view.strides)


@executes("memref.assume_alignment")
def assume_alignment(fiber: Fiber, op: Instruction, view: MemRef) -> Value:
    """The same view; the op states the alignment of its first element."""
    alignment.check_element(fiber, op, view, [], op.attributes["alignment"])
    return view


@executes("memref.cast", "memref.memory_space_cast")
def cast(fiber: Fiber, op: Instruction, view: MemRef) -> Value:
    """The same view under another type."""
    return view


@executes("memref.reinterpret_cast")
def reinterpret_cast(fiber: Fiber, op: Instruction, view: MemRef, *dynamic: Value) -> MemRef:
    """Another view from the first element of the memory that a view is of."""
    remaining = list(dynamic)
    (offset,), sizes, strides = (_mixed(op, name, remaining) for name in ("offsets", "sizes", "strides"))
    return view.view(offset, sizes, strides)


@executes("memref.extract_strided_metadata")
def extract_strided_metadata(fiber: Fiber, op: Instruction, view: MemRef) -> tuple[Value, ...]:
    """The memory that a view is of, its offset, sizes and strides."""
    return view.view(0, (), ()), view.offset, *view.sizes, *view.strides


@executes("memref.extract_aligned_pointer_as_index")
def extract_aligned_pointer_as_index(fiber: Fiber, op: Instruction, view: MemRef) -> Value:
    """The address from where a view's offset counts."""
    return view.memory.address + view.start


@executes("memref.dim")
def dim(fiber: Fiber, op: Instruction, view: MemRef, axis: Value) -> Value:
    """The size of a dimension."""
    number = int(fiber.first(axis))
    if not 0 <= number < view.rank:
        fiber.group.sanitizer.report("out-of-bounds", f"asks for dimension {number} of {view.rank}", op)
        return 0
    return view.sizes[number]


@executes("memref.rank")
def rank(fiber: Fiber, op: Instruction, view: MemRef) -> Value:
    """The number of dimensions."""
    return view.rank


@executes("memref.transpose")
def transpose(fiber: Fiber, op: Instruction, view: MemRef) -> MemRef:
    """The same elements with dimensions in another order."""
    order = [ir.AffineDimExpr(expression).position for expression in op.attributes["permutation"].results]
    return view.view(view.offset, [view.sizes[axis] for axis in order], [view.strides[axis] for axis in order])


@executes("memref.collapse_shape")
def collapse_shape(fiber: Fiber, op: Instruction, view: MemRef) -> MemRef:
    """The same elements with dimensions joined."""
    groups = op.attributes["reassociation"]
    return view.view(
        view.offset,
        [math.prod(view.sizes[axis] for axis in group) for group in groups],
        [view.strides[_innermost(view, group)] for group in groups],
    )


def _innermost(view: MemRef, group: Sequence[int]) -> int:
    wide = [axis for axis in group if view.sizes[axis] != 1]
    return wide[-1] if wide else group[-1]


@executes("memref.expand_shape")
def expand_shape(fiber: Fiber, op: Instruction, view: MemRef, *dynamic: Value) -> MemRef:
    """The same elements with dimensions cut."""
    remaining = list(dynamic)
    unknown = ir.ShapedType.get_dynamic_size()
    sizes = [remaining.pop(0) if size == unknown else size for size in op.attributes["static_output_shape"]]
    # All dimensions of an expanded scalar are 1.
    groups = op.attributes["reassociation"] if len(view.strides) else [range(len(sizes))]
    strides: list = []
    for group, stride in zip(groups, view.strides or [1]):
        strides += [stride * math.prod(sizes[axis] for axis in group if axis > outer) for outer in group]
    return view.view(view.offset, sizes, strides)


@executes("memref.copy", "memref.tensor_store")
def copy(fiber: Fiber, op: Instruction, source: Value, target: Value) -> None:
    """Sets all elements of a view, by every active thread."""
    for part in alike(fiber, source.sizes):
        shape = tuple(int(part.first(size)) for size in source.sizes)
        grid = np.ix_(*(np.arange(size) for size in shape))
        memory.write(part, op, target, grid, memory.read(part, op, source, grid, shape), shape)


@executes("memref.reshape")
def reshape(fiber: Fiber, op: Instruction, view: MemRef, shape: Value) -> MemRef:
    """The same elements, which are contiguous, in a shape that another memref contains."""
    count = int(fiber.first(shape.sizes[0]))
    sizes = [int(size) for size in np.ravel(memory.read(fiber, op, shape, [np.arange(count)], (count,)))[:count]]
    return view.view(view.offset, sizes, [math.prod(sizes[axis + 1 :]) for axis in range(count)])


@lowers("memref.alloca_scope")
def lower_alloca_scope(builder: Builder, op: ir.Operation) -> None:
    """`memref.alloca_scope`: its region, inline."""
    inline(builder, op.regions[0], builder.defined(op.results))


@executes("memref.prefetch")
def prefetch(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Nothing: there is no cache."""
