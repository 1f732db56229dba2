"""`gpu.shuffle`: offsets that differ by thread, and widths."""

from collections.abc import Callable

import numpy as np
import pytest

from foreign_kernels import INTS, launch, run, run_clean


def shuffled(mode: str, offset: str, width: str, *, threads: int = 64) -> str:
    """Returns a launch whose threads exchange their numbers; those that get none store -1."""
    return launch(
        f"""
        %v = arith.index_cast %t : index to i32
        {offset}
        {width}
        %o, %valid = gpu.shuffle {mode} %v, %offset, %width : i32
        %minus = arith.constant -1 : i32
        %s = arith.select %valid, %o, %minus : i32
        memref.store %s, %Y[%t] : memref<64xi32>
        gpu.terminator""",
        threads=threads,
    )


@pytest.mark.parametrize("width", [12, 32])
@pytest.mark.parametrize(
    "mode, source",
    [
        ("xor", lambda lane, offset: lane ^ offset),
        ("up", lambda lane, offset: lane - offset),
        ("down", lambda lane, offset: lane + offset),
        ("idx", lambda lane, offset: offset),
    ],
)
def test_offsets_that_differ_by_thread(mode: str, source: Callable[[int, int], int], width: int) -> None:
    offset = "%seven = arith.constant 7 : i32\n%offset = arith.remui %v, %seven : i32"
    outcome = run_clean(shuffled(mode, offset, f"%width = arith.constant {width} : i32"), INTS)
    found = outcome.arguments[0]
    assert found is not None
    for thread, got in enumerate(found):
        other = source(thread % 32, thread % 7)
        is_inside = thread % 32 < width and 0 <= other < width
        assert got == (thread - thread % 32 + other if is_inside else -1)


OFFSET = "%offset = arith.constant 16 : i32"


@pytest.mark.parametrize(
    "width",
    [
        "%one = arith.constant 1 : i32\n%width = arith.addi %v, %one : i32",
        "%width = arith.constant 33 : i32",
        "%width = arith.constant 0 : i32",
    ],
)
def test_a_width_that_a_warp_does_not_have(width: str) -> None:
    (finding, *_) = run(shuffled("xor", OFFSET, width), INTS).findings
    assert finding.kind == "assumption"
    assert "it is one for all lanes, from 1 to 32" in finding.message


def test_a_width_for_each_warp() -> None:
    width = """%five = arith.constant 5 : i32
        %warp = arith.shrui %v, %five : i32
        %sixteen = arith.constant 16 : i32
        %more = arith.muli %warp, %sixteen : i32
        %width = arith.addi %more, %sixteen : i32"""
    found = run_clean(shuffled("xor", OFFSET, width), INTS).arguments[0]
    assert found is not None
    assert found[:32].tolist() == [-1] * 32
    assert found[32:].tolist() == [32 + (lane ^ 16) for lane in range(32)]


def test_a_lane_that_the_block_does_not_have() -> None:
    outcome = run(shuffled("xor", OFFSET, "%width = arith.constant 32 : i32", threads=16), np.zeros(64, np.int32))
    assert outcome.findings[0].kind == "divergent-barrier"
    assert "reads the value of a thread that does not execute the shuffle" in outcome.findings[0].message
