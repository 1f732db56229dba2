"""A build from a payload to a cubin: how long it takes, and that the manifest says how the kernel is launched."""

import time

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from stepladder.payload.problem import matmul_text
from stepladder.pipeline import build, engine

# Tiles that every target has room for, and warp tiles that fit into them.
SIDES = st.sampled_from([(32, 16), (32, 32), (64, 16), (64, 32), (64, 64), (128, 32), (128, 64)])
FORMS = {"wmma": ("wmma", {}), "wmma_asynchronous": ("wmma", {"prefetch": "cp_async"}), "mma_sync": ("mma_sync", {})}


@pytest.mark.parametrize("pipeline", ["wmma", "mma_sync"])
def test_a_large_matmul_builds_in_seconds(pipeline):
    text = matmul_text(8192, 8192, 8192)

    def seconds():
        began = time.perf_counter()
        with engine.mlir_context():
            built = build.build(text, "matmul.mlir", engine.Request(pipeline), use_cache=False)
        assert not built.code.cached and built.code.cubin.startswith(b"\x7fELF")
        return time.perf_counter() - began

    # The best of some: what else runs on the machine is not what is measured.
    assert any(seconds() < 3 for _ in range(3))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=SIDES,
    columns=SIDES,
    repeats=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(3, 5)),
    type_=st.sampled_from(["f16", "f32"]),
    accumulate=st.booleans(),
)
def test_manifest_matches_the_tiles(form, rows, columns, repeats, type_, accumulate):
    (block_m, warp_m), (block_n, warp_n) = rows, columns
    m, n, k = block_m * repeats[0], block_n * repeats[1], 32 * repeats[2]
    knobs = {"block_m": block_m, "block_n": block_n, "warp_m": warp_m, "warp_n": warp_n}
    threads = block_m // warp_m * (block_n // warp_n) * 32
    assume(threads * 8 <= 32 * min(block_m, block_n))  # as many runs of eight elements to copy as threads
    pipeline, chosen = FORMS[form]
    with engine.mlir_context():
        built = build.build(
            matmul_text(m, n, k, acc_type=type_, c_type=type_, accumulate=accumulate),
            "matmul.mlir",
            engine.Request(pipeline, {**knobs, **chosen}),
        )
    manifest = built.manifest
    assert manifest.grid == (n // block_n, m // block_m, 1)
    assert manifest.block == (threads, 1, 1)
    assert (manifest.problem.m, manifest.problem.n, manifest.problem.k) == (m, n, k)
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    assert {argument.role: argument.shape for argument in manifest.arguments} == shapes
    access = {argument.role: argument.access for argument in manifest.arguments}
    assert access == {"a": "read", "b": "read", "c": "readwrite" if accumulate else "write"}
    assert manifest.spills == {"stores": 0, "loads": 0}
    padding = built.run.knobs.get("padding", 0)
    assert manifest.static_shared_memory + manifest.dynamic_shared_memory == built.run.knobs["stages"] * 2 * (
        block_m * (32 + padding) + 32 * (block_n + padding)
    )
