"""A build from a payload to a cubin: how long it takes, and that the manifest says how the kernel is launched."""

import itertools
import os
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from conftest import examples
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import build
from stepladder.pipeline.codegen import machine_code
from stepladder.pipeline.codegen.kernel import Kernel
from stepladder.pipeline.codegen.machine_code import MachineCode, describe_code
from stepladder.pipeline.codegen.ptx import assemble
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.runtime import targets

# Tiles that every target has room for, and warp tiles that fit into them.
SIDES = st.sampled_from([(32, 16), (32, 32), (64, 16), (64, 32), (64, 64), (128, 32), (128, 64)])
FORMS = {"wmma": ("wmma", {}), "wmma_asynchronous": ("wmma", {"prefetch": "cp_async"}), "mma_sync": ("mma_sync", {})}


@pytest.mark.parametrize("pipeline", ["wmma", "mma_sync"])
def test_a_large_matmul_builds_in_seconds(pipeline: str) -> None:
    text = matmul_text(8192, 8192, 8192)

    def seconds() -> float:
        """Returns the processor time of a build, ptxas included: other processes do not add to it."""
        began = sum(os.times()[:4])
        with mlir_context():
            built = build.build(text, "matmul.mlir", Request(pipeline), use_cache=False)
        assert not built.code.cached and built.code.cubin.startswith(b"\x7fELF")
        return sum(os.times()[:4]) - began

    assert any(seconds() < 3 for _ in range(3))


def spills_with_one_block(code: MachineCode, target: str) -> int:
    """Returns the bytes that a kernel spills where ptxas need not fit more than one block on a multiprocessor."""
    ptx, count = re.subn(r"(\.maxntid .*)", r"\1\n.minnctapersm 1", code.ptx)
    assert count == 1
    _, log = assemble(ptx, target)
    return sum(map(int, re.findall(r"(\d+) bytes spill", log)))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@example(rows=(128, 64), columns=(64, 16), repeats=(3, 2, 4), type_="f32", accumulate=False)
@given(
    rows=SIDES,
    columns=SIDES,
    repeats=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(3, 5)),
    type_=st.sampled_from(["f16", "f32"]),
    accumulate=st.booleans(),
)
def test_manifest_matches_the_tiles(
    form: str,
    rows: tuple[int, int],
    columns: tuple[int, int],
    repeats: tuple[int, int, int],
    type_: str,
    accumulate: bool,
) -> None:
    (block_m, warp_m), (block_n, warp_n) = rows, columns
    m, n, k = block_m * repeats[0], block_n * repeats[1], 32 * repeats[2]
    knobs = {"block_m": block_m, "block_n": block_n, "warp_m": warp_m, "warp_n": warp_n}
    threads = block_m // warp_m * (block_n // warp_n) * 32
    assume(threads * 8 <= 32 * min(block_m, block_n))  # as many runs of eight elements to copy as threads
    pipeline, chosen = FORMS[form]
    with mlir_context():
        built = build.build(
            matmul_text(m, n, k, acc_type=type_, c_type=type_, accumulate=accumulate),
            "matmul.mlir",
            Request(pipeline, {**knobs, **chosen}),
        )
    manifest = built.manifest
    assert manifest.grid == (n // block_n, m // block_m, 1)
    assert manifest.block == (threads, 1, 1)
    assert (manifest.problem.m, manifest.problem.n, manifest.problem.k) == (m, n, k)
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    assert {argument.role: argument.shape for argument in manifest.arguments} == shapes
    access = {argument.role: argument.access for argument in manifest.arguments}
    assert access == {"a": "read", "b": "read", "c": "readwrite" if accumulate else "write"}
    # These warp tiles leave registers: a spill is ptxas fitting more blocks on a multiprocessor.
    if any(manifest.spills.values()):
        assert manifest.registers < targets.registers_of_thread(threads)
        assert spills_with_one_block(built.code, manifest.target) == 0
    padding = built.run.knobs.get("padding", 0)
    assert manifest.static_shared_memory + manifest.dynamic_shared_memory == built.run.knobs["stages"] * 2 * (
        block_m * (32 + padding) + 32 * (block_n + padding)
    )


def spills_of(knobs: dict[str, int], **types: object) -> tuple[int, str]:
    """Builds with `mma_sync`, for 1024^3 in f16; returns the bytes that a thread spills and what is said of them."""
    types = {"acc_type": "f16", "c_type": "f16", **types}
    with mlir_context():
        built = build.build(
            matmul_text(1024, 1024, 1024, accumulate=False, **types),
            "matmul.mlir",
            Request("mma_sync", {"stages": 2, **knobs}),
        )
    return sum(built.manifest.spills.values()), "".join(describe_code(built.code, built.manifest.block))


@pytest.mark.parametrize(
    "spilling, better, advice",
    [
        (
            {"block_m": 128, "block_n": 128, "warp_m": 128, "warp_n": 64},
            {"block_m": 128, "block_n": 128, "warp_m": 64, "warp_n": 64},
            "it has all 255 registers that a thread can have; a smaller warp tile needs fewer",
        ),
        (
            {"block_m": 256, "block_n": 256, "warp_m": 64, "warp_n": 64},
            {"block_m": 128, "block_n": 256, "warp_m": 64, "warp_n": 64},
            "with 512 threads per block, each can have 128 registers; a smaller block leaves more to each",
        ),
    ],
)
def test_advice_on_spills_is_true(spilling: dict[str, int], better: dict[str, int], advice: str) -> None:
    spilled, said = spills_of(spilling)
    assert spilled > 0 and said.startswith("warning: a thread spills ") and said.endswith(advice)
    assert spills_of(better) == (0, "")


def test_spills_for_occupancy_are_not_blamed_on_the_tiles() -> None:
    code = MachineCode("", b"", 64, 4, 8, 0, False, False)
    assert describe_code(code, (256, 1, 1)) == [
        "note: a thread spills 4 bytes and reads 8 back: ptxas gives it 64 of the 255 registers that it can have, to "
        "fit more blocks on a multiprocessor"
    ]


def test_spills_of_warpgroups_that_divide_registers() -> None:
    code = MachineCode("setmaxnreg.dec.sync.aligned.u32 24;", b"", 168, 4, 8, 0, False, False)
    assert describe_code(code, (384, 1, 1)) == [
        "warning: a thread spills 4 bytes and reads 8 back; the warpgroups of a block divide its registers among them "
        "(setmaxnreg)"
    ]


def test_serialized_wgmma_is_reported() -> None:
    code = MachineCode("", b"", 168, 0, 0, 0, True, False)
    assert describe_code(code, (384, 1, 1)) == [
        "warning: ptxas serializes the wgmma instructions of the kernel; other tiles may avoid that"
    ]


def built_where_slow(is_slow: Callable[[int], bool], request: Request, monkeypatch: pytest.MonkeyPatch) -> build.Build:
    """Builds where ptxas makes slow code of choices of knobs, by the number of the choice."""
    count = itertools.count()

    def generate(kernel: Kernel, *, use_cache: bool) -> MachineCode:
        return replace(machine_code.generate(kernel, use_cache=use_cache), is_serialized=is_slow(next(count)))

    monkeypatch.setattr(build, "generate", generate)
    with mlir_context():
        return build.build(matmul_text(512, 512, 512, accumulate=False), "matmul.mlir", request)


def test_choices_that_ptxas_makes_slow_code_of_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request("wgmma", {"target": "sm_90a"}, tuned=True)
    first, third = (
        built_where_slow(lambda number, below=below: number < below, request, monkeypatch).run for below in (0, 2)
    )
    with mlir_context():
        wanted = build.build(
            matmul_text(512, 512, 512, accumulate=False), "matmul.mlir", replace(request, passed_over=2)
        ).run
    assert third.knobs == wanted.knobs != first.knobs
    assert built_where_slow(lambda _: True, request, monkeypatch).run.knobs == first.knobs  # none is better


def test_given_knobs_are_kept_where_ptxas_makes_slow_code_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs = {"block_m": 128, "block_n": 64, "consumer_warpgroups": 1}
    built = built_where_slow(lambda number: number == 0, Request("wgmma", knobs), monkeypatch)
    assert built.code.is_slow and knobs.items() <= built.run.knobs.items()
