"""Launches that begin early, and blocks that wait for blocks that have not begun."""

import numpy as np
import pytest

import llvm_kernels
import ptx_kernels
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.core.launched import Launch
from stepladder.emulator.ptx.arguments import from_texts
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse
from stepladder.pipeline.context import mlir_context, parse_payload

WAIT, LOAD, STORE = "griddepcontrol.wait;", "ld.global.b64 %d1, [%x];", "st.global.b64 [%y], 1;"
ONE_WARP = "  setp.lt.u32 %p1, %t, 32;\n  @%p1 griddepcontrol.wait;\n"


@pytest.mark.parametrize(
    "body, says",
    [
        (f"  {LOAD}\n  {WAIT}", "reads byte 0x0 of X before griddepcontrol.wait: the launch before may still write it"),
        (f"  {STORE}\n  {WAIT}", "writes byte 0x0 of Y before griddepcontrol.wait: the launch before may still read"),
        (ONE_WARP + f"  {LOAD}", "reads byte 0x100 of X before griddepcontrol.wait"),
    ],
)
def test_what_a_dependent_launch_touches_too_early(body: str, says: str) -> None:
    _, outcome = ptx_kernels.run(ptx_kernels.kernel(body))
    (finding,) = outcome.findings
    assert finding.kind == "race" and says in finding.message
    assert finding.location.startswith("k.ptx:")


@pytest.mark.parametrize(
    "body",
    [
        f"  griddepcontrol.launch_dependents;\n  {WAIT}\n  {LOAD}\n  {STORE}",
        ONE_WARP + f"  bar.sync 0;\n  {LOAD}",
        f"  griddepcontrol.launch_dependents;\n  {LOAD}",
        f"  {LOAD}\n  {STORE}",
    ],
)
def test_what_a_launch_may_touch(body: str) -> None:
    ptx_kernels.run_clean(body)


@pytest.mark.parametrize("dependent, found", [(True, {"race"}), (False, set())])
def test_a_dependent_launch_that_waits_for_nothing(dependent: bool, found: set[str]) -> None:
    kernel = Kernel(parse(ptx_kernels.kernel(f"  {LOAD}"), "k.ptx"), None, "k.ptx")
    launch = Launch((1, 1, 1), (ptx_kernels.THREADS, 1, 1), dependent=dependent)
    bound = kernel.bound(from_texts(["64xi64", "64xi64"]), launch)
    assert ptx_kernels.kinds(bound.run(bound.random_inputs(0))) == found


@pytest.mark.parametrize("early, found", [(True, {"race"}), (False, set())])
def test_the_llvm_dialect(early: bool, found: set[str]) -> None:
    load, wait = "%v = llvm.load %x : !llvm.ptr -> i32", "nvvm.griddepcontrol wait"
    body = "\n      ".join([load, wait] if early else [wait, load])
    text = llvm_kernels.kernel(f"{body}\n      llvm.return", element="i32")
    _, outcome = llvm_kernels.run(text, np.arange(64, dtype=np.int32))
    assert llvm_kernels.kinds(outcome) == found


@pytest.mark.parametrize("early, found", [((0,), set()), ((), {"race"}), ((1,), {"race"})])
def test_what_the_launch_before_does_not_write(early: tuple[int, ...], found: set[str]) -> None:
    """An argument that the manifest names may be read before the wait; another one may not."""
    kernel = Kernel(parse(ptx_kernels.kernel(f"  {LOAD}\n  {WAIT}\n  {STORE}"), "k.ptx"), None, "k.ptx")
    launch = Launch((1, 1, 1), (ptx_kernels.THREADS, 1, 1), early=early)
    bound = kernel.bound(from_texts(["64xi64", "64xi64"]), launch)
    assert ptx_kernels.kinds(bound.run(bound.random_inputs(0))) == found


TRIGGER = "griddepcontrol.launch_dependents;"


@pytest.mark.parametrize(
    "body, states, found",
    [
        (f"  {TRIGGER}\n  {WAIT}", True, {"race"}),
        (f"  {TRIGGER}\n  {WAIT}", False, set()),
        (f"  {WAIT}\n  {TRIGGER}", True, set()),
        (f"{ONE_WARP}  {TRIGGER}", True, {"race"}),
        (f"{ONE_WARP}  bar.sync 0;\n  {TRIGGER}", True, set()),
        # Without a trigger, a block lets it begin when all of its threads have exited.
        (f"  {WAIT}", True, set()),
        (ONE_WARP, True, set()),
        ("", True, {"race"}),
        ("", False, set()),
    ],
)
def test_when_the_next_launch_may_begin(body: str, states: bool, found: set[str]) -> None:
    """A kernel whose manifest states that all before it have ended when the next one starts is held to it."""
    kernel = Kernel(parse(ptx_kernels.kernel(body), "k.ptx"), None, "k.ptx")
    launch = Launch((1, 1, 1), (ptx_kernels.THREADS, 1, 1), dependent=True, triggers_late=states)
    bound = kernel.bound(from_texts(["64xi64", "64xi64"]), launch)
    assert ptx_kernels.kinds(bound.run(bound.random_inputs(0))) == found


THREAD = "threads(%t, %u, %v) in (%w = %c1, %x = %c1, %y = %c1)"
PROMISE = f"""
#space = #gpu.address_space<workgroup>
!map = !nvgpu.tensormap.descriptor<tensor = memref<8x8xf32, 3>, swizzle = none, l2promo = none, oob = zero,
                                   interleave = none>
!barriers = !nvgpu.mbarrier.group<memorySpace = #space>
func.func @main(%weights: memref<8x8xf32>, %other: memref<8x8xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %bytes = arith.constant 256 : index
  %one = arith.constant 1.0 : f32
  %parity = arith.constant false
  %any = memref.cast %weights : memref<8x8xf32> to memref<*xf32>
  %map = nvgpu.tma.create.descriptor %any box[%c8, %c8] {{read_early}} : memref<*xf32> -> !map
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1) {THREAD} {{
    memref.store %one, WRITTEN[%c0, %c0] : memref<8x8xf32>
    gpu.terminator
  }}
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1) {THREAD} {{
    %tile = memref.alloc() : memref<8x8xf32, #space>
    %barrier = nvgpu.mbarrier.create -> !barriers
    nvgpu.mbarrier.init %barrier[%c0], %c1 : !barriers
    nvvm.fence.mbarrier.init
    nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes : !barriers
    nvgpu.tma.async.load %map[%c0, %c0], %barrier[%c0] to %tile : !map, !barriers -> memref<8x8xf32, #space>
    nvvm.griddepcontrol wait
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %parity, %bytes : !barriers
    gpu.terminator
  }}
  return
}}
"""


@pytest.mark.parametrize("written, found", [("%other", set()), ("%weights", {"race"})])
def test_a_promise_that_the_launch_before_breaks(written: str, found: set[str]) -> None:
    with mlir_context():
        emulation = Emulation(parse_payload(PROMISE.replace("WRITTEN", written), "promise.mlir"))
        outcome = emulation.run([np.zeros((8, 8), np.float32)] * 2)
    assert llvm_kernels.kinds(outcome) == found
    assert all("which the program states it does not" in finding.message for finding in outcome.findings)


BLOCKS, ALL_MEMORY = 146, 232448  # blocks that take a multiprocessor each


@pytest.mark.parametrize("who, found", [(0, set()), (BLOCKS - 1, {"deadlock"})])
def test_blocks_that_wait_for_one(who: int, found: set[str]) -> None:
    """All blocks wait for a number that the first one, or the last one, writes."""
    body = f"""
  setp.ne.u32 %p1, %b, {who};
  @%p1 bra WAIT;
  st.release.gpu.global.b64 [%Y], 5;
WAIT:
  ld.acquire.gpu.global.b64 %d1, [%Y];
  setp.ne.s64 %p2, %d1, 5;
  @%p2 bra WAIT;"""
    _, outcome = ptx_kernels.run(ptx_kernels.kernel(body), threads=1, blocks=BLOCKS, dynamic=ALL_MEMORY)
    assert ptx_kernels.kinds(outcome) == found
    for finding in outcome.findings:
        assert "144 resident blocks, as many as a GPU holds, wait for blocks that have not started" in finding.message
        assert finding.location.startswith("k.ptx:") and finding.op.startswith("ld.acquire")
