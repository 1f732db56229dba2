"""The compute ceiling of `mma.sync`: the rate of the tensor cores when all operands are in registers.

It bounds every kernel that uses `mma.sync` (the WMMA and mma.sync pipelines) on the same GPU at the same power.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from stepladder.runtime.device import Device
from stepladder.runtime.errors import StepladderError

KERNEL_NAME = "mma_sync_ceiling"

# Independent accumulators a warp: enough to cover the latency of one instruction with 4 warps a multiprocessor.
ACCUMULATORS = 16

# mma.sync instructions in the loop's body: one per accumulator with A, then one with -A.
BODY = 2 * ACCUMULATORS

WARPS = (4, 8, 16)
# Iterations of a launch at the fewest warps: about 2 ms on an H200.
BODIES = 16384

PAUSE_SECONDS = 0.1
TIMED_LAUNCHES = 5


@dataclass(frozen=True)
class Instruction:
    """A form of `mma.sync` on 16 x K x 8 elements, with operands of 4 (A) and 2 (B) registers of 32 bits.

    Attributes:
        k: depth of the product.
        operand: PTX's name of the type of A and B.
        sum: PTX's name of the type of C and D.
        registers: registers of an accumulator.
        register_type: their PTX type.
        keep: mask of the random bits of an operand; the other bits are those of `fixed`. Together they give normal
            values of magnitudes in [0.5, 2), or odd bytes.
        fixed: bits that are set.
        negate: bits whose inversion negates an operand.
    """

    k: int
    operand: str
    sum: str
    registers: int
    register_type: str
    keep: int
    fixed: int
    negate: int

    @property
    def flops(self) -> int:
        """Arithmetic operations of one instruction."""
        return 2 * 16 * 8 * self.k

    @property
    def name(self) -> str:
        """The instruction in PTX."""
        return f"mma.sync.aligned.m16n8k{self.k}.row.col.{self.sum}.{self.operand}.{self.operand}.{self.sum}"


# By compute type and accumulator type. Of floating-point numbers, the sign, the lowest bit of the exponent and the
# significand are random; of tf32, those of its significand's bits that count. The negative of an odd byte x is
# ~x + 1 = ~x | 1: all bits but the lowest change.
INSTRUCTIONS = {
    ("f16", "f32"): Instruction(16, "f16", "f32", 4, ".f32", 0x87FF87FF, 0x38003800, 0x80008000),
    ("f16", "f16"): Instruction(16, "f16", "f16", 2, ".b32", 0x87FF87FF, 0x38003800, 0x80008000),
    ("bf16", "f32"): Instruction(16, "bf16", "f32", 4, ".f32", 0x80FF80FF, 0x3F003F00, 0x80008000),
    ("tf32", "f32"): Instruction(8, "tf32", "f32", 4, ".f32", 0x80FFE000, 0x3F000000, 0x80000000),
    ("i8", "i32"): Instruction(32, "s8", "s32", 4, ".b32", 0xFFFFFFFF, 0x01010101, 0xFEFEFEFE),
}


def find_instruction(compute_type: str, acc_type: str) -> Instruction:
    """Finds the form of `mma.sync` for element types.

    Args:
        compute_type: type of the products: MLIR's name, or `tf32`.
        acc_type: MLIR's name of the accumulator's type.

    Returns:
        The form: its types, registers and depth.

    Raises:
        StepladderError: there is no such form; the message lists those that exist.
    """
    if (compute_type, acc_type) not in INSTRUCTIONS:
        listing = ", ".join(f"{products} with {accumulator} accumulation" for products, accumulator in INSTRUCTIONS)
        raise StepladderError(
            f"there is no mma.sync of {compute_type} products with {acc_type} accumulation, and so no "
            f"ceiling; there is one of {listing}"
        )
    return INSTRUCTIONS[compute_type, acc_type]


@dataclass(frozen=True)
class Ceiling:
    """A measured ceiling.

    Attributes:
        tflops: the highest rate, in 10^12 operations a second.
        warps: warps a multiprocessor at that rate.
        tflops_by_warps: rate by the number of warps.
        flops: arithmetic operations in one launch of `enqueue`.
        enqueue: enqueues the fastest variant once, to time it beside other kernels.
    """

    tflops: float
    warps: int
    tflops_by_warps: dict[int, float]
    flops: int
    enqueue: Callable[[], None]


def ceiling_ptx(acc_type: str, compute_type: str) -> str:
    """Returns the PTX of a kernel that executes `mma.sync` on operands in registers in a loop.

    The kernel's parameters are the address of 4 bytes for a result that is never written, and the number of iterations
    (both 64 bits). A and B hold random bit patterns of normal floating-point values or integers of either sign, which
    differ between threads: data of little entropy would draw less power and run faster than any real product. Each
    iteration adds AB and subtracts it again, so that accumulators neither overflow nor converge.

    Args:
        acc_type: type of the accumulator.
        compute_type: type of the products.

    Raises:
        StepladderError: as `find_instruction`.
    """
    instruction = find_instruction(compute_type, acc_type)
    registers = ACCUMULATORS * instruction.registers
    lines = [
        ".version 7.0",
        ".target sm_80",
        ".address_size 64",
        "",
        f".visible .entry {KERNEL_NAME}(.param .u64 result, .param .u64 iterations)",
        "{",
        "  .reg .pred %p<2>;",
        "  .reg .b32 %r<4>, %a<4>, %m<4>, %b<2>;",
        "  .reg .b64 %x<2>;",
        f"  .reg {instruction.register_type} %d<{registers}>;",
        "  mov.u32 %r0, %tid.x;",
    ]
    for part in range(4):
        lines += _random_register(instruction, f"a{part}", 1013904223 * (part + 1) % 2**32)
        lines.append(f"  xor.b32 %m{part}, %a{part}, {instruction.negate:#010x};")
    for part in range(2):
        lines += _random_register(instruction, f"b{part}", 1664525 * (part + 7) % 2**32)
    start = {"f32": "cvt.rn.f32.u32 %d{}, %r0;", "s32": "mov.b32 %d{}, %r0;", "f16": "mov.b32 %d{}, %a0;"}
    lines += [f"  {start[instruction.sum].format(index)}" for index in range(registers)]
    lines += ["  ld.param.u64 %x0, [iterations];", "loop:"]
    lines += [_mma(instruction, index, a) for a in ("a", "m") for index in range(ACCUMULATORS)]
    lines += ["  sub.u64 %x0, %x0, 1;", "  setp.ne.u64 %p0, %x0, 0;", "  @%p0 bra loop;", "  mov.b32 %r1, 0;"]
    # The results are used under a condition that is false, or the assembler would remove their computation.
    for index in range(registers):
        lines += [f"  mov.b32 %r2, %d{index};", "  xor.b32 %r1, %r1, %r2;", "  mad.lo.u32 %r1, %r1, 31, 7;"]
    lines += [
        "  setp.eq.u32 %p1, %r1, 0x12345;",
        "  ld.param.u64 %x1, [result];",
        "  cvta.to.global.u64 %x1, %x1;",
        "  @%p1 st.global.u32 [%x1], %r1;",
        "  ret;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _mma(instruction: Instruction, index: int, a: str) -> str:
    """Returns the `mma.sync` of an accumulator, with A in the registers `a0` to `a3`, or those of another name."""
    accumulator = _registers("d", index * instruction.registers, instruction.registers)
    return f"  {instruction.name} {accumulator}, {_registers(a, 0, 4)}, {_registers('b', 0, 2)}, {accumulator};"


def _registers(name: str, first: int, count: int) -> str:
    """Returns a vector of registers, as PTX writes it."""
    return "{" + ", ".join(f"%{name}{first + part}" for part in range(count)) + "}"


def _random_register(instruction: Instruction, name: str, salt: int) -> list[str]:
    """Returns the lines that fill a register with a hash of the thread's index, masked to a valid operand."""
    return [
        f"  mad.lo.u32 %r1, %r0, 2654435761, {salt};",
        "  shr.u32 %r2, %r1, 15;",
        "  xor.b32 %r1, %r1, %r2;",
        "  mul.lo.u32 %r1, %r1, 2246822519;",
        "  shr.u32 %r2, %r1, 13;",
        "  xor.b32 %r1, %r1, %r2;",
        f"  and.b32 %r1, %r1, {instruction.keep:#010x};",
        f"  or.b32 %{name}, %r1, {instruction.fixed:#010x};",
    ]


def measure_ceiling(device: Device, acc_type: str, compute_type: str) -> Ceiling:
    """Measures the ceiling of `mma.sync` in short bursts.

    Args:
        device: the GPU.
        acc_type: type of the accumulator.
        compute_type: type of the products.

    Returns:
        The highest rate, and the rates by the number of warps.

    Raises:
        StepladderError: there is no such instruction.
        CudaError: the GPU is older than sm_80, which has none of these instructions.
    """
    kernel = device.load_ptx(ceiling_ptx(acc_type, compute_type), KERNEL_NAME)
    result = device.allocate(4)
    multiprocessors = device.multiprocessors
    # The work is the same at every number of warps: fewer warps execute more iterations.
    flops = find_instruction(compute_type, acc_type).flops * BODY * BODIES * min(WARPS) * multiprocessors
    launchers = {
        warps: kernel.launcher((multiprocessors, 1, 1), (32 * warps, 1, 1), (result, BODIES * min(WARPS) // warps))
        for warps in WARPS
    }
    rates = {warps: flops / _best_ms(device, enqueue) / 1e9 for warps, enqueue in launchers.items()}
    best = max(rates, key=rates.__getitem__)
    return Ceiling(rates[best], best, rates, flops, launchers[best])


def _best_ms(device: Device, enqueue: Callable[[], None]) -> float:
    """Returns the milliseconds of the fastest of a few launches after a pause."""
    enqueue()
    device.synchronize()
    time.sleep(PAUSE_SECONDS)
    events = []
    for _ in range(TIMED_LAUNCHES):
        start = device.record_event()
        enqueue()
        events.append((start, device.record_event()))
    device.synchronize()
    return min(device.elapsed_ms(*pair) for pair in events)
