"""nvvm: barriers, fences, groups of what runs on its own, products by descriptors, and PTX in text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stepladder.emulator.core.machine import Blocked, Unsupported
from stepladder.emulator.core.program import decode_attributes
from stepladder.emulator.core.registry import executes, lowers
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import lanes
from stepladder.emulator.dialects import nvgpu
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.dialects.nvgpu import of_lane
from stepladder.emulator.hardware import (
    asynchronous,
    fragments,
    synchronization,
    tma,
    warpgroups,
)
from stepladder.emulator.hardware.asynchronous import Sums
from stepladder.emulator.hardware.shared_memory_layouts import MatrixDescriptor
from stepladder.emulator.hardware.warpgroups import ROWS, Operand
from stepladder.emulator.memory import memory, pointers
from stepladder.emulator.memory.memory import RANK_SHIFT, contiguous
from stepladder.emulator.memory.sanitizer import WARP
from stepladder.runtime.errors import StepladderError

_MBARRIER_BYTES = 8
_REGISTER_COUNTS = range(24, 257, 8)  # of a thread, that setmaxnreg takes
_BYTE = Scalar("i8", np.dtype(np.int8), 8)
_B16 = Scalar("i16", np.dtype(np.int16), 16)
_INT = Scalar("i32", np.dtype(np.int32), 32)


def _keyword(attribute: str) -> str:
    """Returns what an attribute of nvvm says: `#nvvm.mma_layout<row>` is "row"."""
    return re.search(r"(\w[\w.]*)>$", attribute).group(1)


# Barriers and fences.


@executes("nvvm.barrier")
def barrier(fiber, op, *operands) -> None:
    """Threads of the block meet at a barrier of a number."""
    number, threads = nvgpu.segments(op, operands) if "operandSegmentSizes" in op.attributes else ((), ())
    synchronization.meet(fiber, op, number[0] if number else 0, threads[0] if threads else None)


@executes("nvvm.barrier.arrive")
def barrier_arrive(fiber, op, *operands) -> None:
    """Arrives at a barrier, and goes on."""
    number, threads = operands if len(operands) == 2 else (0, operands[0])
    synchronization.arrive(fiber, op, number, threads)


@executes("nvvm.cluster.arrive", "nvvm.cluster.arrive.relaxed")
def cluster_arrive(fiber, op) -> None:
    """Arrives at the cluster's barrier."""
    synchronization.arrive_at_cluster(fiber, op)


@executes("nvvm.cluster.wait")
def cluster_wait(fiber, op) -> None:
    """Waits for the cluster."""
    synchronization.wait_for_cluster(fiber, op)


@executes("nvvm.bar.warp.sync")
def warp_sync(fiber, op, mask) -> None:
    """Nothing: the threads of a warp run in step."""


@executes("nvvm.fence.proxy")
def fence_proxy(fiber, op) -> None:
    """Makes what threads wrote visible to the async proxy."""
    if "async" in op.attributes["kind"]:
        _fence_async(fiber, op)


@executes("nvvm.fence.mbarrier.init")
def fence_mbarrier_init(fiber, op) -> None:
    """Makes initialized mbarriers visible to the async proxy."""
    synchronization.fence_initialization(fiber)


@executes("nvvm.fence.sc.cluster", "nvvm.griddepcontrol", "nvvm.prefetch")
def nothing(fiber, op, *operands) -> None:
    """Nothing: launches follow each other, and there are no caches."""


@executes("nvvm.setmaxregister")
def setmaxregister(fiber, op) -> None:
    """Nothing, but that the hardware must take the number."""
    count, counts = op.attributes["regCount"], _REGISTER_COUNTS
    if count not in counts:
        fiber.group.sanitizer.report(
            "descriptor",
            f"{count} registers a thread: setmaxnreg takes multiples of "
            f"{counts.step} from {counts.start} to {counts[-1]}",
            op,
        )
    asynchronous.warpgroups(fiber, op)


# Groups of what runs on its own.


@executes("nvvm.cp.async.shared.global")
def cp_async_shared_global(fiber, op, target, source, *size) -> None:
    """Begins to copy bytes from global to shared memory; beyond `size` of them come zeros."""
    count = op.attributes["size"]
    if size and (lanes(size[0], fiber.count)[fiber.lanes] > count).any():
        fiber.group.sanitizer.report("out-of-bounds", f"is told to read more than the {count} bytes that it writes", op)
    valid = np.broadcast_to(
        np.arange(count) < (lanes(size[0], fiber.count)[:, None] if size else count), (fiber.count, count)
    )
    for part, array, start in pointers.parts(fiber, op, source):
        accesses = []
        for allocation, first, touched in ((array, start, valid), (fiber.group.window, target, None)):
            view, places = pointers.elements(allocation, lanes(first, fiber.count), _BYTE, np.arange(count), 1)
            accesses.append(memory.locate(part, op, view, [places], (count,), touched))
            nvgpu.check_alignment(part, op, accesses[-1], count)
        if fiber.group.counters is not None:
            for access, kind in zip(accesses, ("load", "store")):
                fiber.group.counters.access(part, op, access, kind)
        asynchronous.copy(part, op, *accesses)


@executes("nvvm.cp.async.commit.group")
def cp_async_commit_group(fiber, op) -> None:
    """Makes a group of copies."""
    asynchronous.commit_copies(fiber)


@executes("nvvm.cp.async.wait.group")
def cp_async_wait_group(fiber, op) -> None:
    """Waits for all groups of copies but the latest."""
    asynchronous.wait_for_copies(fiber, op.attributes["n"])


@executes("nvvm.cp.async.wait.all")
def cp_async_wait_all(fiber, op) -> None:
    """Waits for all copies."""
    asynchronous.wait_for_copies(fiber, None)


@executes("nvvm.cp.async.bulk.commit.group")
def cp_async_bulk_commit_group(fiber, op) -> None:
    """Makes a group of stores by TMA."""
    asynchronous.commit_bulk(fiber)


@executes("nvvm.cp.async.bulk.wait_group")
def cp_async_bulk_wait_group(fiber, op) -> None:
    """Waits for all groups of stores by TMA but the latest: until they have read their source, or are done."""
    asynchronous.wait_for_bulk(fiber, op.attributes["group"], read="read" in op.attributes)


# mbarriers and TMA.


@executes("nvvm.mbarrier.init", "nvvm.mbarrier.init.shared")
def mbarrier_init(fiber, op, address, count, *predicate) -> None:
    """Initializes an mbarrier that `count` arrive at."""
    fiber = nvgpu.where(fiber, predicate)
    if fiber is not None:
        pointers.check_alignment(fiber, op, address, _MBARRIER_BYTES)
        _check_in_shared(fiber, op, address)
        synchronization.initialize(fiber, op, address, count)


def _check_in_shared(fiber, op, address) -> None:
    """Reports an mbarrier that is outside of shared memory."""
    size = fiber.group.window.size
    own = lanes(address, fiber.count)[fiber.lanes]
    wrong = (own < 0) | (own + _MBARRIER_BYTES > size)
    if wrong.any():
        fiber.group.sanitizer.report(
            "out-of-bounds", f"an mbarrier at byte {int(own[wrong][0]):#x} of shared memory, and a block has {size}", op
        )


@executes("nvvm.mbarrier.arrive", "nvvm.mbarrier.arrive.shared")
def mbarrier_arrive(fiber, op, address, *count):
    """Arrives, `count` times where that is said; the token is the phase."""
    token = nvgpu.phases(fiber, op, address)
    synchronization.arrive_at(fiber, op, address, arrivals=int(fiber.first(count[0])) if count else 1)
    return token if op.results else None


@executes("nvvm.mbarrier.arrive.expect_tx", "nvvm.mbarrier.arrive.expect_tx.shared")
def mbarrier_arrive_expect_tx(fiber, op, address, count, *predicate):
    """Arrives, and announces bytes."""
    token = nvgpu.phases(fiber, op, address) if op.results else None
    active = nvgpu.where(fiber, predicate)
    if active is not None:
        synchronization.arrive_at(active, op, address, expected=count)
    return token


@executes("nvvm.mbarrier.test.wait", "nvvm.mbarrier.test.wait.shared")
def mbarrier_test_wait(fiber, op, address, token):
    """Whether the phase of a token has ended: it is waited for, since IR that asks asks again until it has."""
    synchronization.wait_at(fiber, op, address, lanes(token, fiber.count) % 2)
    return True


@executes("nvvm.mbarrier.try_wait.parity", "nvvm.mbarrier.try_wait.parity.shared")
def mbarrier_try_wait_parity(fiber, op, address, parity, ticks) -> None:
    """Waits for the end of the phase with a parity."""
    synchronization.wait_at(fiber, op, address, parity)


@executes("nvvm.cp.async.bulk.tensor.shared.cluster.global")
def tensor_load(fiber, op, *operands) -> None:
    """Lets each thread begin to load a box to its block, or to the blocks of a mask."""
    (address,), (descriptor,), coordinates, (barrier,), offsets, multicast, _, predicate = nvgpu.segments(op, operands)
    _only_tiles(op, offsets)
    nvgpu.load_boxes(fiber, op, _descriptor(op, descriptor), coordinates, address, barrier, multicast, predicate)


@executes("nvvm.cp.async.bulk.tensor.global.shared.cta")
def tensor_store(fiber, op, *operands) -> None:
    """Lets each thread begin to store a box."""
    (descriptor,), (address,), coordinates, _, predicate = nvgpu.segments(op, operands)
    _only_tiles(op, ())
    nvgpu.store_boxes(fiber, op, _descriptor(op, descriptor), coordinates, address, predicate)


def _only_tiles(op, offsets) -> None:
    if offsets or _keyword(op.attributes["mode"]) != "tile":
        raise Unsupported(op, f"of {op.attributes['mode']}")


def _descriptor(op, value) -> tma.Descriptor:
    if not isinstance(value, tma.Descriptor):
        raise Unsupported(op, "of a descriptor that no nvgpu.tma.create.descriptor has made")
    return value


@executes("nvvm.wgmma.fence.aligned")
def wgmma_fence(fiber, op) -> None:
    """Orders registers before products."""
    warpgroups.fence(asynchronous.warpgroups(fiber, op))


@executes("nvvm.wgmma.commit.group.sync.aligned")
def wgmma_commit(fiber, op) -> None:
    """Makes a group of products."""
    for warpgroup in asynchronous.warpgroups(fiber, op):
        warpgroup.commit()


@executes("nvvm.wgmma.wait.group.sync.aligned")
def wgmma_wait(fiber, op) -> None:
    """Waits for all groups of products but the latest."""
    for warpgroup in asynchronous.warpgroups(fiber, op):
        warpgroup.wait(op.attributes["group"])


# Products.


@executes("nvvm.wgmma.mma_async")
def wgmma_mma_async(fiber, op, sums, a, b):
    """Begins a product of operands in shared memory."""
    attributes = op.attributes
    rows, columns, k = map(int, re.findall(r"= (\d+)", attributes["shape"]))
    types = [_keyword(attributes[f"type{name}"]) for name in "ABD"]
    form = Product(
        rows,
        columns,
        k,
        types[0],
        types[1],
        types[2],
        (_keyword(attributes["layoutA"]) == "row", _keyword(attributes["layoutB"]) == "col"),
        tuple(_keyword(attributes[f"scale{name}"]) == "neg" for name in "AB"),
        _keyword(attributes["scaleD"]) == "one",
        "satfinite" in str(attributes.get("satfinite", "")),
    )
    check_product(op, form)
    return multiply(fiber, op, form, sums, a, b)


@dataclass(frozen=True)
class Product:
    """What a wgmma multiplies.

    Attributes:
        rows, columns, k: of the instruction.
        a, b, sums: element types, by PTX's names.
        along_k: of A and B, whether neighbours in memory are neighbours along k; `negated`: whether they are negated.
        keeps: whether the product is added to the sums; else it replaces them.
    """

    rows: int
    columns: int
    k: int
    a: str
    b: str
    sums: str
    along_k: tuple[bool, bool]
    negated: tuple[bool, bool]
    keeps: bool
    saturates: bool


def check_product(op, form: Product) -> None:
    """Raises where there are no such types or no such shape."""
    if (
        form.rows != ROWS
        or form.a not in warpgroups.TYPES
        or form.b not in warpgroups.TYPES
        or form.k * np.dtype(warpgroups.TYPES[form.a]).itemsize != warpgroups.STEP_BYTES
    ):
        raise Unsupported(op, f"of {form.rows}x{form.columns}x{form.k} and {form.a} by {form.b}")


def multiply(fiber, op, form: Product, sums: Sums, a, b) -> Sums:
    """Begins products of the active warpgroups, of operands in shared memory with the descriptors `a` and `b`."""
    result = Sums(sums.array.copy(), sums.products)
    # Two neighbouring sums of 16 bits are in one register.
    held = result.array.view(np.float16) if form.sums == "f16" else result.array
    for warpgroup in asynchronous.warpgroups(fiber, op):
        operands = [
            Operand(MatrixDescriptor.decode(_agreed(op, warpgroup, value)), type_, along, negative)
            for value, type_, along, negative in zip((a, b), (form.a, form.b), form.along_k, form.negated)
        ]
        warpgroups.multiply(
            warpgroup,
            op,
            fiber,
            result,
            held[warpgroup.lanes],
            form.columns,
            *operands,
            keeps=form.keeps,
            saturates=form.saturates,
        )
    return result


def _agreed(op, warpgroup, value) -> int:
    """Returns a matrix descriptor; a finding where the threads of a warpgroup have different ones."""
    if not isinstance(value, np.ndarray):
        return int(value)
    own = value[warpgroup.lanes]
    if (own != own[0]).any():
        warpgroup.group.sanitizer.report(
            "descriptor", "the threads of a warpgroup have different matrix descriptors", op
        )
    return int(own[0])


# Matrices of a warp.


def _window(fiber):
    """Returns shared memory as elements of 16 bits."""
    window = fiber.group.window
    return contiguous(window, _B16, (window.size // _B16.bytes,))


@executes("nvvm.ldmatrix")
def ldmatrix(fiber, op, pointer):
    """Loads one, two or four 8 x 8 matrices of 16 bits: thread 8 j + r gives the address of row r of matrix j."""
    _only_16_bits(op)
    held = nvgpu.load_matrices(
        fiber,
        op,
        _window(fiber),
        [pointer // _B16.bytes],
        op.attributes["num"],
        transposed=_keyword(op.attributes["layout"]) == "col",
    )
    registers = np.ascontiguousarray(held).view(np.int32)[..., 0]
    return Sums(registers) if op.attributes["num"] > 1 else registers[:, 0]


def _only_16_bits(op) -> None:
    if "b16" not in op.attributes["eltType"]:
        raise Unsupported(op, f"of {op.attributes['eltType']}")


@executes("nvvm.stmatrix")
def stmatrix(fiber, op, pointer, *registers) -> None:
    """Stores one, two or four 8 x 8 matrices of 16 bits: thread 8 j + r gives the address of row r of matrix j."""
    _only_16_bits(op)
    group = fiber.group
    count = len(registers)
    threads = nvgpu.warps_of(fiber, op)
    held = np.stack([lanes(register, fiber.count)[threads] for register in registers], axis=1).astype(np.int32)
    fragment = fragments.matrix(transposed=_keyword(op.attributes["layout"]) == "col")
    matrices = fragment.join(held[..., None].view(np.int16))
    rows = np.zeros((fiber.count, fragments.MATRIX_ROWS), np.int16)
    rows[threads[:, : count * fragments.MATRIX_ROWS]] = matrices.reshape(len(threads), -1, fragments.MATRIX_ROWS)
    gives = group.thread_of_lane % WARP < count * fragments.MATRIX_ROWS
    address = lanes(pointer, fiber.count)
    wrong = gives[fiber.lanes] & (address[fiber.lanes] % fragments.ROW_BYTES != 0)
    if wrong.any():
        group.sanitizer.misaligned(fiber, op, int(address[fiber.lanes][wrong][0]), fragments.ROW_BYTES)
    columns = np.arange(fragments.MATRIX_ROWS)
    memory.write(
        fiber,
        op,
        _window(fiber),
        [address[:, None] // _B16.bytes + columns],
        rows,
        (fragments.MATRIX_ROWS,),
        np.broadcast_to(gives[:, None], rows.shape),
    )


@executes("nvvm.mma.sync")
def mma_sync(fiber, op, *operands):
    """A product of a warp, of fragments in registers."""
    rows, columns, k = map(int, re.findall(r"= (\d+)", op.attributes["shape"]))
    kinds = [
        _keyword(op.attributes[name]) if name in op.attributes else None
        for name in ("multiplicandAPtxType", "multiplicandBPtxType")
    ]
    a, b, c = (_registers_of(fiber, part, kind) for part, kind in zip(nvgpu.segments(op, operands), (*kinds, None)))
    if kinds[0] not in (None, *warpgroups.TYPES) or a.dtype != b.dtype:
        raise Unsupported(op, f"of {kinds[0]} by {kinds[1]}")
    sums = nvgpu.multiply_in_warps(
        fiber,
        op,
        a,
        b,
        c.reshape(fiber.count, -1, 2),
        (rows, columns, k),
        tf32=kinds[0] == "tf32",
        saturates="satfinite" in op.attributes.get("intOverflowBehavior", ""),
    )
    if c.shape[2] == 2:  # two sums of 16 bits are a vector
        return Struct(tuple(sums[:, pair] for pair in range(sums.shape[1])))
    return Sums(sums.reshape(fiber.count, -1))


def _registers_of(fiber, registers, kind: str | None) -> np.ndarray:
    """Returns registers as elements (T, registers, elements of one); integers of 32 bits may stand for a type."""
    rank = 1 if np.ndim(registers[0]) and np.shape(registers[0])[-1] == 2 and kind is None else 0
    held = np.stack([lanes(np.asarray(register), fiber.count, rank) for register in registers], axis=1)
    if held.ndim == 2:
        held = held[..., None]
    return np.ascontiguousarray(held).view(warpgroups.TYPES[kind]) if kind in warpgroups.TYPES else held


# Threads among each other, and numbers.


@executes("nvvm.shfl.sync")
def shfl_sync(fiber, op, members, value, offset, limits):
    """The value of another thread of the warp; with whether there is one, where that is asked for.

    Source: PTX ISA, shfl.sync.
    """
    thread = fiber.group.thread_of_lane % WARP
    left_out = (lanes(members, fiber.count) >> thread & 1)[fiber.lanes] == 0
    if left_out.any():
        fiber.group.sanitizer.report(
            "divergent-barrier",
            f"{fiber.group.thread_name(fiber.lanes[left_out.argmax()])} comes to it, and is not among its members",
            op,
        )
    segment = (limits >> 8) & 31
    first = thread & segment
    last = first | (limits & 31 & ~segment)
    mode = re.search(r"(bfly|up|down|idx)", op.attributes["kind"]).group(1)
    other = {
        "bfly": thread ^ offset,
        "up": thread - offset,
        "down": thread + offset,
        "idx": first | (offset & ~segment),
    }[mode]
    valid = other >= last if mode == "up" else other <= last
    source = np.arange(fiber.count) - thread + np.where(valid, other, thread)
    found = lanes(value, fiber.count)[np.clip(source, 0, fiber.count - 1)]
    return Struct((found, valid)) if "return_value_and_is_valid" in op.attributes else found


@executes("nvvm.elect.sync")
def elect_sync(fiber, op, *mask):
    """Whether the thread is the first active one of its warp."""
    elected = np.zeros(fiber.count, bool)
    elected[fiber.representatives().lanes] = True
    return elected


def _axis_of(numbers):
    return {axis: lambda group, number=number: numbers(group)[number] for number, axis in enumerate("xyz")}


def _in_cluster(group) -> tuple:
    return tuple(number % size for number, size in zip(group.block_id, group.cluster_dims))


_SPECIAL = {
    "laneid": lambda group: group.thread_of_lane % WARP,
    "warpid": lambda group: group.thread_of_lane // WARP,
    "warpsize": lambda group: WARP,
    "cluster.ctarank": lambda group: group.block_of_lane,
    "cluster.nctarank": lambda group: group.blocks,
    **{
        f"{name}.{axis}": get
        for name, numbers in {
            "tid": lambda group: group.thread_id,
            "ntid": lambda group: group.block_dims,
            "ctaid": lambda group: group.block_id,
            "nctaid": lambda group: group.grid_dims,
            "cluster.ctaid": _in_cluster,
            "cluster.nctaid": lambda group: group.cluster_dims,
            "clusterid": lambda group: tuple(
                int(first) // size for first, size in zip(group.block_ids[0], group.cluster_dims)
            ),
        }.items()
        for axis, get in _axis_of(numbers).items()
    },
}


def _special_register(fiber, op):
    """The value of a special register."""
    value = _SPECIAL[op.name.removeprefix("nvvm.read.ptx.sreg.")](fiber.group)
    if "range" in op.attributes:
        _check_range(fiber, op, value)
    return value.astype(op.result_types[0].dtype) if isinstance(value, np.ndarray) else value


def _check_range(fiber, op, value) -> None:
    """Reports a number that is not in the range that LLVM is told that it is in."""
    if "range" not in op.cache:
        op.cache["range"] = [int(number) for number in re.findall(r"-?\d+", op.attributes["range"].split(",", 1)[1])]
    low, high = op.cache["range"]
    least, most = (int(value.min()), int(value.max())) if isinstance(value, np.ndarray) else (int(value), int(value))
    if least < low or most >= high:
        fiber.group.sanitizer.report(
            "out-of-bounds", f"is from {least} to {most}, and is said to be from {low} to {high - 1}", op
        )


executes(*(f"nvvm.read.ptx.sreg.{name}" for name in _SPECIAL))(_special_register)


# PTX in text.


@executes("nvvm.mapa")
def _map_address(fiber, op, address, rank):
    """The address of another block's shared memory: 0 above stands for the thread's own block."""
    return address % (1 << RANK_SHIFT) + ((rank + 1) << RANK_SHIFT)


def _arrive_in_cluster(fiber, op, address) -> None:
    """Arrives at another block's mbarrier."""
    block = (address >> RANK_SHIFT) - 1
    block = np.where(block < 0, fiber.group.block_of_lane, block)
    if fiber.group.sanitizer.enabled:
        synchronization.note_remote(fiber, op, block, "arrives at an mbarrier")
    synchronization.arrive_at(fiber, op, address % (1 << RANK_SHIFT), block=block)


def _fence_async(fiber, op) -> None:
    """Makes what threads wrote visible to the async proxy."""
    fiber.group.sanitizer.fence_proxy(fiber.warps)
    synchronization.fence_initialization(fiber)


def _add_box(fiber, op, descriptor, *operands) -> None:
    """Lets each thread begin to add a box to a tensor."""
    *coordinates, address = operands
    nvgpu.store_boxes(fiber, op, descriptor, coordinates, address, add=True)


def _number_at(fiber, op, address: int):
    """Returns global memory as 32-bit integers, and which of them an address is; a finding where it is none."""
    allocation = fiber.group.machine.heap.find(address)
    if allocation is None or address % _INT.bytes or address + _INT.bytes > allocation.address + allocation.size:
        fiber.group.sanitizer.report("out-of-bounds", f"there is no number in global memory at {address:#x}", op)
        return None, 0
    return allocation.typed(_INT.dtype), (address - allocation.address) // _INT.bytes


def _acquire(fiber, op, address, is_there: Callable[[int, int], bool], wanted: Callable[[int], str]) -> None:
    """Waits until a number at an address is as it should be, and knows then what those knew who wrote it.

    Args:
        is_there: tells from a lane and the number that stands there whether its wait is over.
        wanted: says what a lane waits for.
    """
    ready = np.zeros(fiber.count, bool)
    missing = ""
    for lane in fiber.lanes:
        place = of_lane(address, lane)
        numbers, index = _number_at(fiber, op, place)
        ready[lane] = numbers is None or is_there(lane, int(numbers[index]))
        if not ready[lane]:
            missing = f"the number at {place:#x} to be {wanted(lane)}, where {numbers[index]} stands"
    if not ready[fiber.lanes].all():
        raise Blocked(missing, ready if ready.any() else None)
    group = fiber.group
    for lane in fiber.lanes:
        warp = group.warp_of_lane[lane]
        for known in group.machine.published.get(of_lane(address, lane), ()):
            group.sanitizer.acquire([warp], known.get(group.number))
            group.sanitizer.learn(warp, {owner: clocks for owner, clocks in known.items() if owner != group.number})


def _publish(fiber, lane: int, address: int) -> None:
    """Notes, besides what is noted at an address, what a lane knows that releases a number there."""
    group = fiber.group
    if group.sanitizer.enabled:
        clocks = group.sanitizer.release([group.warp_of_lane[lane]])
        group.machine.published.setdefault(address, []).append(group.sanitizer.known | {group.number: clocks})


def _acquire_number(fiber, op, address, number) -> None:
    """Waits until another number stands at an address."""
    _acquire(
        fiber, op, address, lambda lane, now: now == of_lane(number, lane), lambda lane: f"{of_lane(number, lane)}"
    )


def _acquire_half(fiber, op, address, before, half) -> None:
    """Waits until a number at an address is in the other half than it was before: below `half`, or not."""

    def was_below(lane: int) -> bool:
        return of_lane(before, lane) < of_lane(half, lane)

    _acquire(
        fiber,
        op,
        address,
        lambda lane, now: (now < of_lane(half, lane)) != was_below(lane),
        lambda lane: f"{of_lane(half, lane)} or more" if was_below(lane) else f"less than {of_lane(half, lane)}",
    )


def _release_number(fiber, op, address, number) -> None:
    """Writes a number, for those who acquire it to know what the writer knows."""
    for lane in fiber.lanes:
        place = of_lane(address, lane)
        numbers, index = _number_at(fiber, op, place)
        if numbers is None:
            continue
        numbers[index] = of_lane(number, lane)
        fiber.group.machine.published.pop(place, None)
        _publish(fiber, lane, place)


def _count_up(fiber, op, address, last):
    """Adds one to a number, or begins again behind the last; who acquires it knows what all knew who did so. Returns
    what it was."""
    before = np.zeros(fiber.count, op.result_types[0].dtype)
    for lane in fiber.lanes:
        place = of_lane(address, lane)
        numbers, index = _number_at(fiber, op, place)
        if numbers is None:
            continue
        before[lane] = numbers[index]
        numbers[index] = 0 if numbers[index] >= of_lane(last, lane) else numbers[index] + 1
        _publish(fiber, lane, place)
    return before


# Texts, with what stands for operands left as it is, and what they do.
_TEXTS = [
    (re.compile(pattern), function)
    for pattern, function in (
        (r"mapa\.shared::cluster\.u32 \{\$w0\}, \{\$r0\}, \{\$r1\};", _map_address),
        (r"mbarrier\.arrive\.shared::cluster\.b64 _, \[\{\$r0\}\];", _arrive_in_cluster),
        (r"fence\.proxy\.async;", _fence_async),
        (
            (
                r"cp\.reduce\.async\.bulk\.tensor\.\dd\.global\.shared::cta\.add\.tile\.bulk_group "
                r"\[\{\$r0\}, \{\{\$r1\}(, \{\$r\d\})*\}\], \[\{\$r\d\}\];"
            ),
            _add_box,
        ),
        (
            (
                r"\{\.reg \.pred p; \.reg \.b32 now; WAIT: ld\.acquire\.gpu\.global\.b32 now, \[\{\$r0\}\]; "
                r"setp\.ne\.b32 p, now, \{\$r1\}; @p bra WAIT;\}"
            ),
            _acquire_number,
        ),
        (r"st\.release\.gpu\.global\.b32 \[\{\$r0\}\], \{\$r1\};", _release_number),
        (r"atom\.release\.gpu\.global\.inc\.u32 \{\$w0\}, \[\{\$r0\}\], \{\$r1\};", _count_up),
        (
            (
                r"\{\.reg \.pred p, q; \.reg \.b32 now; setp\.ge\.u32 q, \{\$r1\}, \{\$r2\}; WAIT: "
                r"ld\.acquire\.gpu\.global\.b32 now, \[\{\$r0\}\]; setp\.ge\.xor\.u32 p, now, \{\$r2\}, q; @!p bra WAIT;\}"
            ),
            _acquire_half,
        ),
        # The loop that MLIR makes of nvvm.mbarrier.try_wait.parity.
        (
            (
                r"\{ \.reg \.pred P1; LAB_WAIT: mbarrier\.try_wait\.parity\.shared\.b64 P1, \[\{\$r0\}\], \{\$r1\}, \{\$r2\}; "
                r"@P1 bra\.uni DONE; bra\.uni LAB_WAIT; DONE: \}"
            ),
            mbarrier_try_wait_parity,
        ),
    )
]


def run_text(text: str):
    """Returns what runs PTX, with {$r0}, {$r1}, ... for what is read and {$w0}, ... for what is written; or None."""
    text = " ".join(text.split())
    return next((function for pattern, function in _TEXTS if pattern.fullmatch(text)), None)


@lowers("nvvm.inline_ptx")
def lower_inline_ptx(builder, op) -> None:
    """PTX in text, of the forms that steps write."""
    attributes = decode_attributes(op)
    run = run_text(attributes["ptxCode"])
    if run is None or any(attributes["operandSegmentSizes"][1:]):
        raise StepladderError(
            f"the emulator does not know the PTX of {op.name}: {attributes['ptxCode']}", location=builder.location
        )
    builder.emit(op.name, run, builder.used(op.operands), builder.defined(op.results), attributes)
