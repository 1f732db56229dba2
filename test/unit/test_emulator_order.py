"""Order, scope and proxies of memory, as IR states them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ptx_kernels
from llvm_kernels import kernel, kinds, run
from stepladder.emulator.memory import order
from test_emulator_llvm_products import wgmma

X = np.arange(64, dtype=np.int32)


def handover(write: str, wait: str, *, before: str = "", behind: str = "", blocks: int = 1, cluster: int = 1) -> str:
    """Returns a kernel in which half of the threads write and count up; the others wait for the count and read.

    With two blocks, each half is a block.
    """
    text = kernel(
        f"""
      %zero = llvm.mlir.constant(0 : i32) : i32
      %flag = llvm.mlir.addressof @flag : !llvm.ptr
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %first = llvm.icmp "{"eq" if blocks > 1 else "ult"}" {"%block, %c0" if blocks > 1 else "%t, %c32"} : i32
      %partner = llvm.xor %t, %c32 : i32
      %number = llvm.select %first, %t, {"%t" if blocks > 1 else "%partner"} : i1, i32
      %wide = llvm.sext %number : i32 to i64
      %there = llvm.getelementptr %Y[%wide] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      llvm.cond_br %first, ^write, ^wait
    ^write:
      llvm.store %t, %there : i32, !llvm.ptr
      {before}
      %one = llvm.atomicrmw add %flag, %c1 {write} : !llvm.ptr, i32
      llvm.br ^end
    ^wait:
      %now = llvm.load %flag atomic {wait} {{alignment = 4 : i64}} : !llvm.ptr -> i32
      %ready = llvm.icmp "uge" %now, %c32 : i32
      llvm.cond_br %ready, ^read, ^wait
    ^read:
      {behind}
      %v = llvm.load %there : !llvm.ptr -> i32
      llvm.br ^end
    ^end:
      llvm.return""",
        element="i32",
        threads=32 if blocks > 1 else 64,
        globals_="llvm.mlir.global internal @flag(0 : i32) {addr_space = 0 : i32} : i32",
    )
    clusters = "clusters in (%two, %c1, %c1) " if cluster > 1 else ""
    return text.replace(
        "gpu.launch_func @k::@k blocks in (%c1,",
        f"%two = arith.constant {blocks} : index\n    gpu.launch_func @k::@k {clusters}blocks in (%two,",
    )


@pytest.mark.parametrize(
    "write, before, wait, behind, found",
    [
        ("release", "", "acquire", "", set()),
        ("monotonic", "", "acquire", "", {"race"}),
        ("release", "", "monotonic", "", {"race"}),
        ("monotonic", "llvm.fence release", "acquire", "", set()),
        ("monotonic", "llvm.fence acquire", "acquire", "", {"race"}),
        ("release", "", "monotonic", "llvm.fence acquire", set()),
        ("monotonic", "nvvm.memory.barrier #nvvm.mem_scope<cta>", "monotonic", "llvm.fence seq_cst", set()),
        ("monotonic", 'llvm.fence syncscope("singlethread") release', "acquire", "", {"race"}),
    ],
)
def test_orders(write: str, before: str, wait: str, behind: str, found: set[str]) -> None:
    _, outcome = run(handover(write, wait, before=before, behind=behind), X)
    assert kinds(outcome) == found
    assert all(finding.location.startswith("kernel.mlir:") for finding in outcome.findings)


@pytest.mark.parametrize(
    "write, wait, cluster, found",
    [
        ('syncscope("device") release', 'syncscope("device") acquire', 1, set()),
        ("release", "acquire", 1, set()),
        ('syncscope("block") release', 'syncscope("device") acquire', 1, {"race"}),
        ('syncscope("device") release', 'syncscope("block") acquire', 1, {"race"}),
        ('syncscope("cluster") release', 'syncscope("cluster") acquire', 1, {"race"}),
        ('syncscope("cluster") release', 'syncscope("cluster") acquire', 2, set()),
    ],
)
def test_scopes(write: str, wait: str, cluster: int, found: set[str]) -> None:
    _, outcome = run(handover(write, wait, blocks=2, cluster=cluster), X)
    assert kinds(outcome) == found


def test_a_scope_that_the_target_lacks() -> None:
    with pytest.raises(Exception, match='the target has "", "device", "cluster", "block", "singlethread"'):
        run(handover('syncscope("agent") release', "acquire"), X)


# Clusters and mbarriers.


def crossed(arrive: str) -> str:
    """Returns a kernel of two blocks that read what the other one wrote to its shared memory."""
    text = kernel(
        f"""
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %peer = llvm.xor %rank, %c1 : i32
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %t, %p : i32, !llvm.ptr<3>
      {arrive}
      nvvm.cluster.wait
      %q = nvvm.mapa %p, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
      %v = llvm.load %q : !llvm.ptr<7> -> i32
      nvvm.cluster.arrive.relaxed
      nvvm.cluster.wait
      llvm.return""",
        element="i32",
        threads=32,
        globals_="llvm.mlir.global private @s() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x i32>",
    )
    return text.replace(
        "gpu.launch_func @k::@k blocks in (%c1,",
        "%two = arith.constant 2 : index\n    gpu.launch_func @k::@k clusters in (%two, %c1, %c1) blocks in (%two,",
    )


def test_a_relaxed_arrival_at_the_cluster_releases_nothing() -> None:
    _, outcome = run(crossed("nvvm.cluster.arrive.relaxed"), X)
    (finding,) = [finding for finding in outcome.findings if finding.kind == "race"]
    assert (finding.op, finding.other) == ("llvm.load", "llvm.store")


def test_an_arrival_at_the_cluster_releases() -> None:
    _, outcome = run(crossed("nvvm.cluster.arrive"), X)
    assert "race" not in kinds(outcome)


_REMOTE_ARRIVAL = """
  mov.b32 %r1, bar;
  mov.u32 %r2, %cluster_ctarank;
  xor.b32 %r3, %r2, 1;
  setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared.b64 [%r1], 64;
  {fence}
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait;
  mapa.shared::cluster.u32 %r4, %r1, %r3;
  mbarrier.arrive.shared::cluster.b64 _, [%r4];
  barrier.cluster.arrive;
  barrier.cluster.wait;
"""


@pytest.mark.parametrize("fence, found", [("@%p1 fence.mbarrier_init.release.cluster;", set()), ("", {"race"})])
def test_mbarriers_behind_a_relaxed_arrival(fence: str, found: set[str]) -> None:
    """A fence makes an initialized mbarrier known to those who wait for a relaxed arrival behind it."""
    text = ptx_kernels.kernel(_REMOTE_ARRIVAL.format(fence=fence), shared=".shared .align 8 .b64 bar;")
    _, outcome = ptx_kernels.run(text, blocks=2, cluster=2)
    assert ptx_kernels.kinds(outcome) == found


@pytest.mark.parametrize("attributes, found", [("", set()), (" {relaxed = true}", {"race"})])
def test_an_arrival_at_an_mbarrier(attributes: str, found: set[str]) -> None:
    body = f"""
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %m = llvm.mlir.addressof @m : !llvm.ptr<3>
      %all = llvm.mlir.constant(64 : i32) : i32
      %ticks = llvm.mlir.constant(1000 : i32) : i32
      %first = llvm.icmp "eq" %t, %c0 : i32
      nvvm.mbarrier.init %m, %all, predicate = %first : !llvm.ptr<3>, i32, i1
      nvvm.barrier
      %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %t, %p : i32, !llvm.ptr<3>
      %token = nvvm.mbarrier.arrive %m{attributes} : !llvm.ptr<3> -> i64
      nvvm.mbarrier.try_wait.parity %m, %c0, %ticks : !llvm.ptr<3>, i32, i32
      %partner = llvm.xor %t, %c32 : i32
      %q = llvm.getelementptr %s[%partner] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %q : !llvm.ptr<3> -> i32
      llvm.return"""
    globals_ = """llvm.mlir.global private @s() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i32>
    llvm.mlir.global private @m() {addr_space = 3 : i32, alignment = 8 : i64} : i64"""
    _, outcome = run(kernel(body, element="i32", globals_=globals_), X)
    assert kinds(outcome) == found


# Proxies.


@pytest.mark.parametrize(
    "kind, found",
    [
        ("kind = #nvvm.proxy_kind<async>", set()),
        ("kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>", set()),
        ("kind = #nvvm.proxy_kind<async.global>", {"proxy"}),
        ("kind = #nvvm.proxy_kind<alias>", {"proxy"}),
    ],
)
def test_a_fence_of_a_kind(kind: str, found: set[str]) -> None:
    text = wgmma("nvvm.wgmma.wait.group.sync.aligned 0")
    fence = "kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>"
    assert fence in text
    _, outcome = run(text.replace(fence, kind), np.zeros(128, np.float32))
    assert kinds(outcome) == found


def test_releases_of_a_block_at_an_address_are_one_record() -> None:
    """Hundreds of updates of one number, each of which acquires what the others released, take linear time."""
    clock = np.zeros(2, np.int32)

    def released(warps: object) -> np.ndarray:
        clock[0] += 1
        return clock.copy()

    sanitizer = SimpleNamespace(enabled=True, known_by=lambda warp: {}, release=released)
    machine = SimpleNamespace(published={})
    group = SimpleNamespace(
        is_host=False, sanitizer=sanitizer, machine=machine, number=3, state={}, warp_of_lane=[0], block_of_lane=[0]
    )
    fiber: Any = SimpleNamespace(group=group)
    for scope in ("gpu", "sys", "gpu", "gpu"):
        order.release(fiber, 0, "global", 64, scope, is_relaxed=False, replaces=False)
    records = machine.published[64]
    assert {record.scope: record[3].tolist() for record in records.values()} == {"gpu": [4, 0], "sys": [2, 0]}
    order.release(fiber, 0, "global", 64, "cta", is_relaxed=False, replaces=True)
    assert [record.scope for record in machine.published[64].values()] == ["cta"]


@pytest.mark.parametrize("how, found", [("", {"race"}), (" atomic monotonic {alignment = 4 : i64}", set())])
def test_the_first_load_of_a_loop_of_compare_and_exchange(how: str, found: set[str]) -> None:
    text = kernel(
        f"""
      %first = llvm.load %Y{how} : !llvm.ptr -> i32
      llvm.br ^again(%first : i32)
    ^again(%old: i32):
      %new = llvm.add %old, %c1 : i32
      %pair = llvm.cmpxchg %Y, %old, %new acq_rel monotonic : !llvm.ptr, i32
      %value = llvm.extractvalue %pair[0] : !llvm.struct<(i32, i1)>
      %done = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
      llvm.cond_br %done, ^end, ^again(%value : i32)
    ^end:
      llvm.return""",
        element="i32",
    )
    y, outcome = run(text, X)
    assert y is not None and y[0] == 63  # from -1 on
    assert kinds(outcome) == found
    assert all("atomic monotonic" in finding.notes[-1] for finding in outcome.findings)
