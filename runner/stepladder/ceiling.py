"""The card's own ceiling for `mma.sync`: how fast its tensor cores multiply when all operands stay in registers.

No kernel that uses `mma.sync` (the WMMA and mma.sync pipelines) can be faster than this on the same card at the same
power, so a kernel's share of it says how much is left to gain.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from stepladder.launch import Device

KERNEL_NAME = "mma_sync_ceiling"

# Independent accumulators a warp: enough to cover the latency of one instruction with 4 warps a multiprocessor.
ACCUMULATORS = 16

# mma.sync instructions in the loop's body: one per accumulator with A, then one with -A.
BODY = 2 * ACCUMULATORS

WARPS = (4, 8, 16)
MMA_FLOPS = 2 * 16 * 8 * 16
# Iterations of a launch at the fewest warps: about 2 ms on an H200.
BODIES = 16384

PAUSE_SECONDS = 0.1
TIMED_LAUNCHES = 5


@dataclass(frozen=True)
class Ceiling:
    """The ceiling as measured.

    Attributes:
        tflops: best rate.
        warps: warps a multiprocessor that gave it.
        tflops_by_warps: rate at every number of warps tried.
        flops: floating-point operations in one launch of `enqueue`.
        enqueue: enqueues the best variant once, to measure it beside other kernels.
    """

    tflops: float
    warps: int
    tflops_by_warps: dict[int, float]
    flops: int
    enqueue: Callable[[], None]


def ceiling_ptx(acc_type: str) -> str:
    """Returns PTX of a kernel that does nothing but `mma.sync.m16n8k16` on f16 operands in registers.

    The kernel's parameters are the address of 4 bytes for a result that is never written, and the number of iterations
    (both 64 bits). A and B hold random bit patterns of normal numbers of either sign, different in every thread: data
    of little entropy would draw less power and run faster than any real product. Each iteration adds AB and takes it
    away again, so that accumulators neither overflow nor settle.

    Args:
        acc_type: `f32` or `f16`.
    """
    registers = {"f32": 4, "f16": 2}[acc_type]
    kind = {"f32": ".f32", "f16": ".b32"}[acc_type]

    def accumulator(index: int) -> str:
        return "{" + ", ".join(f"%d{index * registers + part}" for part in range(registers)) + "}"

    def mma(index: int, a: str) -> str:
        operand = "{" + ", ".join(f"%{a}{part}" for part in range(4)) + "}"
        return (f"  mma.sync.aligned.m16n8k16.row.col.{acc_type}.f16.f16.{acc_type} "
                f"{accumulator(index)}, {operand}, {{%b0, %b1}}, {accumulator(index)};")

    def random_halves(name: str, salt: int) -> list[str]:
        # A hash of the thread; then sign, lowest exponent bit and significand are kept: magnitudes are in [0.5, 2).
        return [f"  mad.lo.u32 %r1, %r0, 2654435761, {salt};", "  shr.u32 %r2, %r1, 15;", "  xor.b32 %r1, %r1, %r2;",
                "  mul.lo.u32 %r1, %r1, 2246822519;", "  shr.u32 %r2, %r1, 13;", "  xor.b32 %r1, %r1, %r2;",
                "  and.b32 %r1, %r1, 0x87ff87ff;", f"  or.b32 %{name}, %r1, 0x38003800;"]

    lines = [
        ".version 7.0", ".target sm_80", ".address_size 64", "",
        f".visible .entry {KERNEL_NAME}(.param .u64 result, .param .u64 iterations)", "{",
        "  .reg .pred %p<2>;", "  .reg .b32 %r<4>, %a<4>, %m<4>, %b<2>;", "  .reg .b64 %x<2>;",
        f"  .reg {kind} %d<{ACCUMULATORS * registers}>;",
        "  mov.u32 %r0, %tid.x;",
    ]
    for part in range(4):
        lines += random_halves(f"a{part}", 1013904223 * (part + 1) % 2**32)
        lines.append(f"  xor.b32 %m{part}, %a{part}, 0x80008000;")
    for part in range(2):
        lines += random_halves(f"b{part}", 1664525 * (part + 7) % 2**32)
    for index in range(ACCUMULATORS * registers):
        start = "cvt.rn.f32.u32 %d{}, %r0;" if acc_type == "f32" else "mov.b32 %d{}, %a0;"
        lines.append(f"  {start.format(index)}")
    lines += ["  ld.param.u64 %x0, [iterations];", "loop:"]
    lines += [mma(index, "a") for index in range(ACCUMULATORS)]
    lines += [mma(index, "m") for index in range(ACCUMULATORS)]
    lines += ["  sub.u64 %x0, %x0, 1;", "  setp.ne.u64 %p0, %x0, 0;", "  @%p0 bra loop;", "  mov.b32 %r1, 0;"]
    # The results are used under a condition that does not come true, or the assembler would drop their computation.
    for index in range(ACCUMULATORS * registers):
        lines += [f"  mov.b32 %r2, %d{index};", "  xor.b32 %r1, %r1, %r2;", "  mad.lo.u32 %r1, %r1, 31, 7;"]
    lines += ["  setp.eq.u32 %p1, %r1, 0x12345;", "  ld.param.u64 %x1, [result];", "  cvta.to.global.u64 %x1, %x1;",
              "  @%p1 st.global.u32 [%x1], %r1;", "  ret;", "}", ""]
    return "\n".join(lines)


def measure_ceiling(device: Device, acc_type: str, sleep: Callable[[float], None] = time.sleep) -> Ceiling:
    """Measures the ceiling of f16 products with `acc_type` (`f32` or `f16`) sums, in short bursts.

    Raises:
        StepladderError: the card is older than sm_80, which has no such instruction.
    """
    kernel = device.load_ptx(ceiling_ptx(acc_type), KERNEL_NAME)
    result = device.allocate(4)
    multiprocessors = device.multiprocessors
    # The same work at every number of warps: fewer warps make more iterations.
    flops = MMA_FLOPS * BODY * BODIES * min(WARPS) * multiprocessors
    launchers = {warps: kernel.launcher((multiprocessors, 1, 1), (32 * warps, 1, 1),
                                        (result.address, BODIES * min(WARPS) // warps)) for warps in WARPS}
    rates = {warps: flops / _best_ms(device, enqueue, sleep) / 1e9 for warps, enqueue in launchers.items()}
    best = max(rates, key=rates.__getitem__)
    return Ceiling(rates[best], best, rates, flops, launchers[best])


def _best_ms(device: Device, enqueue: Callable[[], None], sleep: Callable[[float], None]) -> float:
    """The fastest of a few launches after a pause, in milliseconds a launch."""
    enqueue()
    device.synchronize()
    sleep(PAUSE_SECONDS)
    events = []
    for _ in range(TIMED_LAUNCHES):
        start = device.record_event()
        enqueue()
        events.append((start, device.record_event()))
    device.synchronize()
    return min(device.elapsed_ms(*pair) for pair in events)
