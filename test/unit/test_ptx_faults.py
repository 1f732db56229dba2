"""Faults that are planted into the PTX of kernels: the sanitizer or the reference must find each.

An edit is of the nth line that a pattern is found in. What must find a fault are kinds of findings, and "numbers" where
the result must be wrong (`faults`); one of them is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from ptx_kernels import check, compiled
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request


@dataclass(frozen=True)
class Fault:
    """A fault: in the nth line that `pattern` is found in, `old` becomes `new`; without `old`, the line is dropped."""

    name: str
    base: str
    finds: set[str]
    pattern: str
    number: int
    old: str = ""
    new: str = ""

    def plant(self, text: str) -> str:
        """Returns PTX with the fault in it."""
        lines = text.split("\n")
        place = [number for number, line in enumerate(lines) if re.search(self.pattern, line)][self.number]
        lines[place] = re.sub(self.old, self.new, lines[place], count=1) if self.old else ""
        return "\n".join(lines)


_TRY = r"mbarrier\.try_wait"
_LOAD = r"cp\.async\.bulk\.tensor.*complete_tx"

# Of each base: name, what finds it, the pattern, the number, and what becomes of it.
ROWS: dict[str, list[tuple]] = {
    "wmma": [
        ("first barrier dropped", {"race"}, r"bar\.sync", 0),
        ("barrier in the middle dropped", {"race"}, r"bar\.sync", 2),
        ("leading dimension of A's fragments", {"numbers", "out-of-bounds"}, r"wmma\.load\.a", 0, r"%r\d+;", "32;"),
        ("fragment of B one row further", {"numbers", "misaligned"}, r"wmma\.load\.b", 1, r"\+(\d+)\]", r"+1\1]"),
        ("copy to shared memory dropped", {"uninitialized"}, r"st\.shared\.v4", 0),
    ],
    "mma.sync": [
        ("barrier in the loop dropped", {"race"}, r"bar\.sync", 1),
        ("first barrier dropped", {"race"}, r"bar\.sync", 0),
        ("one group too many may be in flight", {"in-flight"}, r"wait_group", 1, r"1;", "2;"),
        ("first wait dropped", {"in-flight"}, r"wait_group", 0),
        ("group not committed", {"in-flight", "numbers", "unwaited"}, r"commit_group", 0),
        ("rows of A's fragment elsewhere", {"numbers", "uninitialized"}, r"ldmatrix.*x4\.shared", 0, r"\]", "+1024]"),
        ("address of a fragment not aligned", {"misaligned"}, r"ldmatrix.*x4\.shared", 1, r"\]", "+8]"),
        ("fragment of B not transposed", {"numbers"}, r"ldmatrix.*trans", 0, r"\.trans", ""),
        ("copies beyond the end of A", {"out-of-bounds"}, r"cp\.async\.cg.*, %r", 1, r", %r\d+;", ";"),
        ("C stored elsewhere", {"numbers", "out-of-bounds"}, r"st\.global", 0, r"\+", "+40"),
    ],
    "wgmma": [
        ("arrivals that an mbarrier waits for", {"deadlock"}, r"mbarrier\.init", 1, r"%r\d+;", "2;"),
        ("bytes announced too many", {"deadlock"}, r"expect_tx", 0, r"%r\d+;", "16384;"),
        ("bytes announced too few", {"deadlock", "transaction-bytes"}, r"expect_tx", 0, r"%r\d+;", "4096;"),
        ("fence of the mbarriers dropped", {"proxy"}, r"fence\.mbarrier_init", 0),
        ("fence before the stores dropped", {"proxy"}, r"fence\.proxy", 0),
        ("fence of the wrong memory", {"proxy"}, r"fence\.proxy", 0, "shared::cta", "global"),
        ("wgmma.fence dropped", {"order"}, r"wgmma\.fence", 0),
        ("products not waited for", {"in-flight"}, r"wgmma\.wait_group.*\t0", 0),
        ("products not committed", {"in-flight"}, r"wgmma\.commit_group", 0),
        ("stages never released", {"deadlock"}, r"mbarrier\.arrive\.shared", 0),
        ("consumer waits for one parity", {"in-flight", "race", "deadlock"}, _TRY, 1, r"%r\d+, (%r\d+);", r"0, \1;"),
        ("consumer asks once and goes on", {"in-flight"}, r"bra\.uni\s+LAB_WAIT", 1),
        ("consumer waits without acquiring", {"race"}, _TRY, 1, r"\.shared", ".relaxed.cta.shared"),
        ("barrier before the epilogue dropped", {"race", "in-flight"}, r"bar\.sync\s+%r\d+, 128", 0),
        ("barrier before the store dropped", {"race", "proxy"}, r"bar\.sync\s+%r\d+, 128", 1),
        ("boxes still read", {"in-flight", "unwaited"}, r"bulk\.wait_group\.read", -1),
        ("coordinates of A swapped", {"numbers"}, _LOAD, 0, r"\{(%r\d+), (%r\d+)\}", r"{\2, \1}"),
        ("box at the wrong place", {"misaligned"}, _LOAD, 1, r"\[(%rd\d+|shared_memory)(\+\d+)?\], \[", r"[\1+64], ["),
        ("A's sign turned", {"numbers"}, r"wgmma\.mma_async", 0, r"p, 1,", "p, -1,"),
        ("B not transposed", {"numbers"}, r"wgmma\.mma_async", 0, r"1;$", "0;"),
        ("sums not kept", {"numbers"}, r"setp\.ne\.b32 p, 1, 0", 1, "1, 0", "0, 0"),
    ],
    "wgmma, cluster": [
        ("cluster not waited for", {"race", "deadlock", "uninitialized", "order"}, r"barrier\.cluster\.wait", 0),
        ("cluster ends too early", {"order"}, r"barrier\.cluster\.wait", -1),
        ("arrival at a block that is not there", {"out-of-bounds"}, r"mapa", 0, r"%r\d+;", "5;"),
        ("multicast to the own block alone", {"deadlock", "numbers"}, r"multicast", 0, r"%rs\d+;", "1;"),
    ],
    "wgmma, split reduction": [
        ("arrival at the cluster that releases nothing", {"race"}, r"cluster\.arrive", 0, "arrive", "arrive.relaxed"),
        ("own part read twice", {"numbers"}, r"mapa\.shared::cluster\.u64", 1, "1;", "0;"),
    ],
    "wgmma, split in memory": [
        ("counts itself in without a release", {"race"}, r"atom\.release", 0, "release", "relaxed"),
        ("counts itself in for its own block", {"race"}, r"atom\.release", 0, "gpu", "cta"),
        ("waits without acquiring", {"race"}, r"ld\.acquire", 0, "acquire", "relaxed"),
        ("waits at the scope of its block", {"race"}, r"ld\.acquire", 0, "gpu", "cta"),
        ("does not wait", {"race"}, r"@!p bra WAIT", 0),
        ("last number of the semaphore", {"deadlock"}, r"atom\.release", 0, r", 3;", ", 1;"),
    ],
}

FAULTS = [Fault(row[0], base, *row[1:]) for base, rows in ROWS.items() for row in rows]


@pytest.mark.parametrize("base", ROWS)
def test_nothing_is_found_before(base: str) -> None:
    found, findings = check(compiled(base).code.ptx, compiled(base))
    assert not found, [finding.render() for finding in findings]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.base}: {fault.name}")
def test_fault_is_found(fault: Fault) -> None:
    before = compiled(fault.base).code.ptx
    text = fault.plant(before)
    assert text != before
    found, findings = check(text, compiled(fault.base))
    rendered = [finding.render() for finding in findings]
    assert found & fault.finds, (found, rendered)
    assert all(finding.location.startswith("kernel.ptx:") for finding in findings), rendered


@pytest.mark.parametrize("number", [0, 2])
def test_a_load_of_a_product_that_is_computed_again(number: int) -> None:
    """What a kernel finds to be no number, it computes again from its operands: a load that is missing changes none."""
    knobs = {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32, "raster_group": 1}
    text = matmul_text(64, 64, 64, a_type="f32", b_type="f32", accumulate=False)
    with mlir_context():
        made = build(text, "payload.mlir", Request("mma_sync", {**knobs, "keep_infinities": True}))
    before = made.code.ptx
    assert check(before, made) == (set(), [])
    fault = Fault("a load dropped", "", {"uninitialized"}, r"ldmatrix|ld\.shared", number)
    found, findings = check(fault.plant(before), made)
    assert found == fault.finds
    assert "which nothing has written" in findings[0].message
