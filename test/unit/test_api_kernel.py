"""Kernels compiled from payloads and specs: what they are called with, and what they tell."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepladder
from stepladder.payload.writing import matmul_text

PLUGIN = Path(__file__).resolve().parents[1] / "inputs" / "plugin"


pytestmark = pytest.mark.usefixtures("needs_ptxas")


def random(*shape: int, dtype: type[np.generic] = np.float16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize("copy", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_kernel_is_not_copied(copy: Callable[[object], object]) -> None:
    kernel = stepladder.compile(stepladder.MatmulSpec(64, 64, 32), device="emulator", target="sm_90a")
    with pytest.raises(stepladder.StepladderError, match="a Kernel is neither copied nor pickled"):
        copy(kernel)


def test_a_payload_that_accumulates(tmp_path: Path) -> None:
    file = tmp_path / "matmul.mlir"
    file.write_text(matmul_text(64, 64, 32))
    kernel = stepladder.compile(file, device="emulator", target="sm_90a")
    a, b, c = random(64, 32), random(32, 64, seed=1), random(64, 64, dtype=np.float32, seed=2)
    wanted = product(a, b) + c
    held = c.copy()
    assert kernel(a, b, out=held) is held and np.abs(held - wanted).max() < 1e-4
    assert kernel(a, b, held) is held  # as the function's own argument
    assert np.abs(held - wanted - product(a, b)).max() < 1e-4
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' is missing: the kernel accumulates into it"):
        kernel(a, b)
    with pytest.raises(stepladder.ArgumentError, match="1 arrays were passed, and the kernel takes 2"):
        kernel(a)
    with pytest.raises(stepladder.ArgumentError, match="'argument 0' is 32 x 64; accepted: 64 x 32"):
        kernel(b, a, out=held)
    with pytest.raises(stepladder.ArgumentError, match="'argument 0' has elements of f32; accepted: f16"):
        kernel(c, b, out=held)
    with pytest.raises(stepladder.ArgumentError, match=r"'argument 1' has strides .* accepted: contiguous, row-major"):
        kernel(a, random(64, 32, seed=1).T, out=held)
    held.flags.writeable = False
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' is read-only"):
        kernel(a, b, out=held)


def test_what_a_kernel_tells(tmp_path: Path) -> None:
    kernel = stepladder.compile(matmul_text(64, 64, 32, accumulate=False), target="sm_90a", stages=2)
    assert kernel.manifest.knobs["stages"] == 2 and kernel.manifest.pipeline == "wgmma"
    assert "linalg.matmul" in kernel.ir("input") and kernel.ir() == kernel.ir(kernel.steps[-1])
    with pytest.raises(stepladder.ArgumentError, match=r"no step 'tile_to_block' ran .did you mean 'tile_to_blocks'"):
        kernel.ir("tile_to_block")
    kernel.save(tmp_path / "saved.bundle")
    loaded = stepladder.load(tmp_path / "saved.bundle", device="emulator")
    assert loaded.manifest.kernel_name == kernel.manifest.kernel_name and loaded.ir() == kernel.ir()
    a, b = random(64, 32), random(32, 64, seed=1)
    assert np.abs(loaded(a, b) - product(a, b)).max() < 1e-4
    assert "C = AB, 64 x 64 x 32" in repr(loaded)


TENSORS = """
func.func @layer(%x: tensor<2x32x48xf16>, %c: tensor<2x32x64xf32>) -> tensor<2x32x64xf32> {
  %w = arith.constant dense<WEIGHTS> : tensor<48x64xf16>
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x32x48xf16> into tensor<64x48xf16>
  %d = tensor.collapse_shape %c [[0, 1], [2]] : tensor<2x32x64xf32> into tensor<64x64xf32>
  %p = linalg.matmul ins(%m, %w : tensor<64x48xf16>, tensor<48x64xf16>) outs(%d : tensor<64x64xf32>)
    -> tensor<64x64xf32>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 32, 64] : tensor<64x64xf32> into tensor<2x32x64xf32>
  return %r : tensor<2x32x64xf32>
}
"""


def test_a_function_of_tensors_with_a_constant() -> None:
    weights = random(48, 64, seed=3)
    text = TENSORS.replace("WEIGHTS", f'"0x{weights.tobytes().hex().upper()}"')
    kernel = stepladder.compile(text, device="emulator", target="sm_90a")
    x, c = random(2, 32, 48), random(2, 32, 64, dtype=np.float32, seed=1)
    before = c.copy()
    got = kernel(x, c)
    assert np.abs(got - product(x, weights) - c).max() < 1e-4 and np.array_equal(c, before)
    assert kernel(x, c, out=c) is c and np.array_equal(c, got)


def test_a_constant_that_a_kernel_in_front_reads() -> None:
    """wgmma reads f32 only along k: a kernel in front transposes the constant."""
    weights = np.random.default_rng(0).integers(-4, 5, (16, 8)).astype(np.float32)
    text = matmul_text(8, 8, 16, a_type="f32", b_type="f32", accumulate=False)
    start = text.index("func.func")
    text = text[:start] + text[start:].replace("%B: memref<16x8xf32>, ", "").replace(
        "bufferization.to_tensor %B restrict : memref<16x8xf32> to tensor<16x8xf32>",
        f"arith.constant dense<{weights.tolist()}> : tensor<16x8xf32>",
    )
    knobs = {"split_f32": "kernels"}
    kernel = stepladder.compile(text, pipeline="wgmma", device="emulator", target="sm_90a", **knobs)
    a = random(8, 16, dtype=np.float32)
    assert kernel.manifest.front and np.abs(kernel(a) - product(a, weights)).max() < 1e-4


WITHOUT_EFFECT = """
#all = affine_map<(i, j) -> (i, j)>
func.func @f(%a: tensor<8x16xf16>, %b: tensor<16x8xf16>, %bias: tensor<8x8xf32>, %other: tensor<8xf32>,
    %scale: f32) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x8xf16>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.generic {indexing_maps = [#all, affine_map<(i, j) -> (j)>, #all, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %other, %bias : tensor<8x8xf32>, tensor<8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%x: f32, %o: f32, %y: f32, %old: f32):
    %unused = arith.mulf %o, %scale : f32
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
"""


def test_an_operand_without_effect_is_no_parameter(tmp_path: Path) -> None:
    """The kernel reads what its results depend on; a bundle of it is read, and called with all arguments."""
    stepladder.compile(WITHOUT_EFFECT, target="sm_80").save(tmp_path / "bundle")
    kernel = stepladder.load(tmp_path / "bundle", device="emulator")
    assert {item.role for item in kernel.manifest.arguments} == {"a", "b", "c", "d0"}
    a, b, bias = random(8, 16), random(16, 8), random(8, 8, dtype=np.float32)
    made = kernel(a, b, bias, random(8, dtype=np.float32), 2.0)
    assert np.abs(made - product(a, b) - bias).max() < 1e-4


def test_arrays_of_fp8() -> None:
    """NumPy's array interface has no name for float8_e5m2."""
    a, b = (random(*shape).astype(ml_dtypes.float8_e5m2) for shape in ((16, 32), (32, 8)))
    made = stepladder.matmul(a, b, device="emulator")
    assert np.abs(made - product(a, b)).max() < 1e-2


def test_a_pipeline_of_the_user() -> None:
    kernel = stepladder.compile(
        matmul_text(128, 128, 64, accumulate=False),
        pipeline=PLUGIN / "occupancy.mlir",
        plugins=[PLUGIN / "occupancy.py"],
        device="emulator",
        resident=2,
        target="sm_80",
    )
    assert "limit_registers" in kernel.steps and kernel.manifest.knobs["resident"] == 2
    a, b = random(128, 64), random(64, 128, seed=1)
    assert np.abs(kernel(a, b) - product(a, b)).max() < 1e-4


def test_a_spec_is_one_kernel_or_is_refused() -> None:
    """What would be a function of several kernels: products of i32, and more operands than a kernel takes."""
    with pytest.raises(stepladder.StepladderError, match="no pipeline compiles this payload"):
        stepladder.compile(stepladder.MatmulSpec(16, 16, 16, a_type="i32"), target="sm_80")
    rows = [np.ones(16, np.float32) for _ in range(9)]
    with pytest.raises(stepladder.StepladderError, match="elementwise ops read 9 arguments; accepted: at most 8"):
        stepladder.matmul(random(16, 16), random(16, 16), epilogue=lambda x: sum(rows, x), device="emulator")
    assert stepladder.MatmulSpec(16, 16, 16, a_type="f64").stored == "f64"


def test_refusals_have_the_messages_of_the_command_line() -> None:
    with pytest.raises(stepladder.StepladderError, match="m must be a multiple of block_m, but m = 40"):
        stepladder.compile(stepladder.MatmulSpec(40, 64, 64), pipeline="wmma_upstream", target="sm_80")
    with pytest.raises(stepladder.StepladderError, match="no pipeline compiles this payload") as caught:
        stepladder.compile(stepladder.MatmulSpec(40, 65, 64, a_type="i32"), target="sm_90a")
    assert [note.partition(":")[0] for note in caught.value.notes] == ["wgmma", "mma_sync", "wmma"]
    # What another pipeline has no knob for says nothing about the payload.
    with pytest.raises(stepladder.StepladderError, match="no pipeline compiles this payload") as caught:
        stepladder.compile(stepladder.MatmulSpec(40, 65, 64, a_type="i32"), target="sm_90a", allow_tf32=True)
    assert [note.partition(":")[0] for note in caught.value.notes] == ["wgmma", "mma_sync"]
    with pytest.raises(stepladder.StepladderError, match="unknown target 'sm_91'"):
        stepladder.compile(stepladder.MatmulSpec(64, 64, 64), target="sm_91")
    with pytest.raises(stepladder.StepladderError, match=r"no linalg\.matmul in the payload"):
        stepladder.compile("func.func @f() {\n  return\n}\n", target="sm_80")
    # What all of them refuse alike is said once.
    for knobs, message in (
        ({"block_q": 1}, "none of the pipelines has the knob 'block_q'"),
        ({"group": True}, "none of the pipelines has the knob 'group' (did you mean 'groups'?)"),
        ({"groups": True}, "knob 'groups' is of functions that are several kernels, and this payload is one kernel"),
        ({"stages": 99}, "knob 'stages' cannot be 99"),
        ({"block_m": "wide"}, "knob 'block_m' must be an integer, got 'wide'"),
    ):
        with pytest.raises(stepladder.StepladderError) as caught:
            stepladder.compile(stepladder.MatmulSpec(64, 64, 64), target="sm_90a", **knobs)
        assert caught.value.render().splitlines()[0].startswith(f"error: {message}")
    with pytest.raises(stepladder.StepladderError, match="no knob 'block_q'"):
        stepladder.compile(stepladder.MatmulSpec(64, 64, 64), pipeline="wgmma", target="sm_90a", block_q=3)
    # That a payload on buffers is no function of several kernels says nothing about a knob.
    with pytest.raises(stepladder.StepladderError) as caught:
        stepladder.compile("test/inputs/payloads/gemm.mlir", target="sm_80", block_q=3)
    assert not any("as a function" in note for note in caught.value.notes)
    with pytest.raises(stepladder.StepladderError, match=r"cannot read 'a\\x00b': embedded null byte"):
        stepladder.compile("a\0b", target="sm_80")
