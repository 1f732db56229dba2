"""Matmuls of arrays from Python on the emulator, compared with NumPy in float64."""

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepladder
from combinations import sample
from stepladder import functions as F
from stepladder.api import building, compiling, rows, store
from stepladder.api.emulated import run_ptx
from stepladder.api.spec import MatmulSpec
from stepladder.api.traced import Traced
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request

M, N, K = 64, 72, 40


pytestmark = pytest.mark.usefixtures("needs_ptxas")


def random(*shape: int, dtype: type[np.generic] = np.float16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def wide(array: np.ndarray) -> np.ndarray:
    return np.asarray(array).astype(np.float64)


def close(got: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-5) -> None:
    assert got.shape == wanted.shape
    scale = max(1.0, float(np.abs(wanted).max()))
    assert np.abs(wide(got) - wanted).max() <= tolerance * scale


def run(*arrays: np.ndarray, **options: object) -> np.ndarray:
    return stepladder.matmul(*arrays, device="emulator", **options)


def test_layouts_types_and_the_result() -> None:
    a, b = random(K, M, dtype=ml_dtypes.bfloat16).T, random(N, K, dtype=ml_dtypes.bfloat16, seed=1).T
    got = run(a, b)
    assert got.dtype == ml_dtypes.bfloat16
    close(got, wide(a) @ wide(b), 2**-8)
    out = np.empty((M, N), np.float32)
    assert run(a, b, out=out) is out
    close(out, wide(a) @ wide(b))


def test_a_product_of_vectors_has_no_dimension() -> None:
    a, b = random(K), random(K, seed=1)
    close(run(a, b, dtype=np.float32), wide(a) @ wide(b))
    out = np.empty((), np.float32)
    assert run(a, b, out=out) is out and abs(out - wide(a) @ wide(b)) < 1e-5 * K


def test_odd_row_pitches() -> None:
    """A kernel in front of that of the matmul copies A and B, whose rows are no multiple of 16 bytes."""
    a, b = random(37, 29), random(29, 43, seed=1)
    kernel = stepladder.compile(MatmulSpec(37, 43, 29, c_type="f32"), device="emulator", target="sm_90a")
    assert kernel.manifest.front
    close(kernel(a, b), wide(a) @ wide(b))
    close(run(a, b, dtype="f32", target="sm_90a"), wide(a) @ wide(b))


def test_a_bundle_in_memory_has_the_kernels_in_front(tmp_path: Path) -> None:
    """It is what a GPU loads: of a build, and of the cache of kernels."""
    with mlir_context():
        text = matmul_text(37, 44, 29, accumulate=False)
        built = build(text, "payload", Request("wgmma", {"target": "sm_90a"})).bundle("made")
    assert len(built.front) == len(built.manifest.front) == 1
    assert all(".entry matmul_repack_" in ptx for _, ptx in built.front)
    key = store.key_of({"payload": text}, tmp_path / "none.json")
    store.save(key, built)
    stored = store.load(key)
    assert stored is not None and stored.front == built.front and stored.data == built.data


def test_one_element_of_eight_bits_takes_a_tile_of_32_bytes() -> None:
    """The shallowest tile of `wgmma`, 16 elements, is too few bytes for one instruction."""
    a, b = np.array([[3]], np.int8), np.array([[-5]], np.int8)
    spec = MatmulSpec(1, 1, 1, a_type="i8", acc_type="i32", c_type="i32")
    kernel = stepladder.compile(spec, device="emulator", pipeline="wgmma", target="sm_90a")
    assert kernel.manifest.knobs["block_k"] == 32 and kernel(a, b) == -15


def test_a_batch_with_one_b_is_one_matmul() -> None:
    a, b = random(2, 4, 8, K), random(K, N, seed=1)
    close(run(a, b, dtype="f32"), wide(a) @ wide(b))


def test_a_batch_from_strides() -> None:
    # Heads of an attention block: a view of (batch, head, row, column), and keys of which all matrices are transposed.
    a, b = random(3, 32, K), random(3, N, K, seed=1).swapaxes(1, 2)
    close(run(a, b, dtype="f32"), wide(a) @ wide(b))


def test_an_epilogue_with_a_bias_and_a_matrix() -> None:
    a, b = random(M, K), random(K, N, seed=1)
    bias, column = random(N, dtype=np.float32, seed=2), random(M, 1, seed=3)
    residual = random(N, M, dtype=np.float32, seed=4).T
    close(
        run(a, b, epilogue=lambda x, scale: F.gelu(x * 0.25 + bias) * scale + residual, operands=[column], dtype="f32"),
        F.gelu((wide(a) @ wide(b)) * 0.25 + bias) * wide(column) + residual,
    )


def test_conditions_and_casts_of_an_epilogue() -> None:
    a, b = random(M, K), random(K, N, seed=1)

    def shrunk(x: Traced) -> Traced:
        rounded = x.astype(np.float32)
        return F.where((rounded > 1) | (rounded < -1), F.clip(rounded, -3, 3), 0.0) - F.absolute(x)

    product = wide(a) @ wide(b)
    wanted = np.where(np.abs(product) > 1, np.clip(product, -3, 3), 0) - np.abs(product)
    sure = np.abs(np.abs(product) - 1) > 1e-4
    got = run(a, b, epilogue=shrunk, dtype="f32")
    close(got[sure], wanted[sure])


@pytest.mark.parametrize("a, b", [((64,), (3, 64, 32)), ((3, 1, 64), (3, 64, 32)), ((3, 8, 64), (3, 64, 1))])
def test_products_of_a_batch_with_one_row_or_column(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    with pytest.raises(stepladder.ArgumentError, match=r"argument 'a' is .*: m, n or k is 1 in each product of the ba"):
        run(random(*a), random(*b))


def test_c_is_added() -> None:
    a, b, c = random(M, K), random(K, N, seed=1), random(M, N, seed=2)
    wanted = wide(a) @ wide(b) + wide(c)
    close(run(a, b, c=c[0], epilogue=F.relu, dtype="f32"), np.maximum(wide(a) @ wide(b) + wide(c[0]), 0))
    held = c.copy()
    assert run(a, b, c=held, out=held) is held
    close(held, wanted, 2**-10)
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' overlaps argument 'c'"):
        run(a, b, c=held[:], out=held)
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' overlaps argument 'a'"):
        square = random(M, M)
        run(square, square.T, out=square)


def test_integers_with_scales() -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-100, 100, shape, dtype=np.int8) for shape in ((128, 64), (64, 128)))
    exact = a.astype(np.int32) @ b.astype(np.int32)
    assert np.array_equal(run(a, b), exact)
    scale = random(128, dtype=np.float32)
    close(run(a, b, epilogue=lambda x: x * scale), exact * wide(scale))


def test_a_call_compiles_once_and_threads_share_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLADDER_CACHE_DIR", str(tmp_path))
    compiled = []
    compile_by = building.compile_by
    monkeypatch.setattr(building, "compile_by", lambda *job: compiled.append(job) or compile_by(*job))
    a, b = random(48, 56), random(56, 40, seed=1)
    wanted = wide(a) @ wide(b)
    results: list = []
    threads = [threading.Thread(target=lambda: results.append(run(a, b, dtype="f32"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and len(compiled) == 1
    for result in results:
        close(result, wanted)
    assert any(tmp_path.iterdir())

    # Another process finds the kernel on disk; one whose cache was deleted compiles it again.
    monkeypatch.setattr(building, "_kernels", type(building._kernels)())
    spec = stepladder.MatmulSpec(48, 40, 56, c_type="f32", acc_type="f32")
    kernel = stepladder.precompile([spec], target="sm_90a")[0]
    assert len(compiled) == 1
    assert "gpu.launch_func" in kernel.ir("outline_kernel") and kernel.manifest.target == "sm_90a"
    shutil.rmtree(tmp_path)
    monkeypatch.setattr(building, "_kernels", type(building._kernels)())
    stepladder.precompile([spec], target="sm_90a")
    assert len(compiled) == 2


def test_one_kernel_for_a_range_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays have memory for the rows of the call alone, which the sanitizer watches."""
    compiled = []
    compile_kernel = compiling.compile
    monkeypatch.setattr(
        compiling, "compile", lambda spec, **more: compiled.append(spec.m) or compile_kernel(spec, **more)
    )
    b, bias = random(64, 48), random(48, dtype=np.float32, seed=1)
    for m in sample(range(1, 9), 2):
        a = random(m, 64, seed=m)
        got = run(a, b, epilogue=lambda x: F.relu(x + bias), dtype="f32", row_buckets=(8, 32))
        close(got, np.maximum(wide(a) @ wide(b) + bias, 0))
    assert set(compiled) == {8}
    spec = stepladder.MatmulSpec(8, 48, 64)
    kernel = compile_kernel(spec, target="sm_90a", device="emulator", epilogue="tma")
    fewer = rows.RowsKernel(kernel, spec, 3)
    close(fewer(random(3, 64), b), wide(random(3, 64)) @ wide(b))
    # With the descriptor of eight rows, those beyond the third are written, and found.
    whole = replace(fewer.manifest, tma_descriptors=kernel.manifest.tma_descriptors)
    with pytest.raises(stepladder.StepladderError, match="out of bounds"):
        run_ptx(
            replace(fewer.built.bundle, manifest=whole),
            {"a": random(3, 64), "b": b, "c": np.zeros((3, 48), np.float32)},
        )
    with pytest.raises(stepladder.StepladderError, match="for a range of rows: C is not accessed by TMA row by row"):
        rows.RowsKernel(compile_kernel(spec, target="sm_90a", epilogue="registers"), spec, 3)


def test_a_range_of_rows_with_weights_that_are_loaded_early() -> None:
    """The manifest states that the launch before does not write them."""
    a, b = random(3, 64), random(64, 48)
    got = run(a, b, dtype="f32", row_buckets=(8,), target="sm_90a", constant_weights=True, early_weights=True)
    close(got, wide(a) @ wide(b))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, b: run(a, b, row_buckets=(8, 0)), "'row_buckets' is (8, 0); accepted: numbers of rows"),
        (lambda a, b: run(a, b, row_buckets=8), "'row_buckets' is 8; accepted: numbers of rows"),
        (
            lambda a, b: run(np.asfortranarray(a), b, row_buckets=[8]),
            "A is column-major, so that the pitch of its rows",
        ),
        (lambda a, b: run(a, b, c=random(4, 48), row_buckets=[8]), "operand 0 of the epilogue has rows of C"),
        (lambda a, b: run(np.stack([a, a]), np.stack([b, b]), row_buckets=[8]), "the matmul is a batch"),
        (lambda a, b: run(a, b, row_buckets=[8], target="sm_80"), "knob 'target' of pipeline 'wgmma' cannot be sm_80"),
    ],
)
def test_ranges_of_rows_that_are_refused(call: Callable[..., object], message: str) -> None:
    with pytest.raises(stepladder.StepladderError) as caught:
        call(random(4, 64), random(64, 48))
    assert message in caught.value.message
