"""The ceiling's kernels: ptxas takes them, and their operands are numbers whose negatives cancel them."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from stepladder.measure.ceiling import INSTRUCTIONS, ceiling_ptx, find_instruction
from stepladder.pipeline.codegen.toolchain import find_tool
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError

FORMS = sorted(INSTRUCTIONS)
NAMES = {
    ("f16", "f32"): "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ("f16", "f16"): "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    ("bf16", "f32"): "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    ("tf32", "f32"): "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    ("i8", "i32"): "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
}


def find_ptxas() -> str | None:
    try:
        return find_tool("ptxas")
    except StepladderError:
        return None


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("compute_type, acc_type", FORMS)
def test_ptxas_takes_it(tmp_path: Path, compute_type: str, acc_type: str, target: str) -> None:
    (tmp_path / "ceiling.ptx").write_text(ceiling_ptx(acc_type, compute_type))
    done = subprocess.run(
        [find_ptxas(), "-v", f"-arch={target}", tmp_path / "ceiling.ptx", "-o", tmp_path / "cubin"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in done.stderr


@pytest.mark.parametrize("compute_type, acc_type", FORMS)
def test_every_iteration_adds_and_takes_away(compute_type: str, acc_type: str) -> None:
    text = ceiling_ptx(acc_type, compute_type)
    name = NAMES[compute_type, acc_type]
    assert text.count(name) == text.count("mma.sync") == 32
    assert text.count("{%a0, %a1, %a2, %a3}") == text.count("{%m0, %m1, %m2, %m3}") == 16
    assert find_instruction(compute_type, acc_type).flops == 2 * 16 * 8 * int(name.split("m16n8k")[1].split(".")[0])


@pytest.mark.parametrize("compute_type, acc_type", FORMS)
def test_operands_are_numbers_and_their_negatives(compute_type: str, acc_type: str) -> None:
    instruction = find_instruction(compute_type, acc_type)
    words = np.random.default_rng(0).integers(0, 2**32, 10000, np.uint32)
    operands = words & np.uint32(instruction.keep) | np.uint32(instruction.fixed)
    dtype = element_type("f32" if compute_type == "tf32" else compute_type).dtype
    values, negatives = ((bits.view(dtype)).astype(np.float64) for bits in (operands, operands ^ instruction.negate))
    assert np.array_equal(negatives, -values)
    if compute_type == "i8":
        assert set(values) == set(range(-127, 128, 2))
    else:
        assert np.abs(values).min() < 0.51 and np.abs(values).min() >= 0.5 and 1.98 < np.abs(values).max() < 2
        assert 0.45 < (values < 0).mean() < 0.55
    if compute_type == "tf32":
        assert not (operands & 0x1FFF).any()


def test_no_such_instruction() -> None:
    with pytest.raises(
        StepladderError, match=r"no mma.sync of bf16 products with f16 accumulation.*bf16 with f32 accumulation"
    ):
        ceiling_ptx("f16", "bf16")
