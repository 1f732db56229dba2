"""SPIR-V of kernels for Intel's GPUs: cache hints, the validator, the bundle."""

from __future__ import annotations

import json

import pytest

from stepladder.payload.writing import matmul_text
from stepladder.pipeline import spirv_build
from stepladder.pipeline.codegen import spirv, spirv_backend
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.bundle.spirv import read_spirv
from stepladder.runtime.errors import StepladderError

SMALL = {"block_m": 32, "block_n": 32, "sg_m": 16, "sg_n": 32}
needs_validator = pytest.mark.skipif(spirv.find_validator() is None, reason="spirv-val is not installed")


@pytest.fixture(scope="module")
def built() -> spirv_build.SpirvBuild:
    with mlir_context():
        request = Request("xetile", SMALL, tuned=False)
        return spirv_build.build(matmul_text(40, 40, 72), "matmul.mlir", request, use_cache=False)


def test_each_cache_hint_has_a_pointer_of_its_own() -> None:
    """Two levels a prefetch: two pointers, and the first level is that of the pointer which the call takes."""
    hint = "call ptr addrspace(1) @llvm.ptr.annotation.p1.p1(ptr addrspace(1) {}, ptr addrspace(1) @{}, i32 0)"
    lines = [f"  %1 = {hint.format('%0', 'first')}", f"  %2 = {hint.format('%1', 'third')}", "  call void @f(%2)"]
    text = spirv_backend.separated("\n".join(lines)).splitlines()
    assert [line.strip() for line in text] == [
        "%hinted.1 = getelementptr i8, ptr addrspace(1) %0, i64 0",
        f"%1 = {hint.format('%hinted.1', 'third')}",
        "%hinted.2 = getelementptr i8, ptr addrspace(1) %1, i64 0",
        f"%2 = {hint.format('%hinted.2', 'first')}",
        "call void @f(%2)",
    ]


def test_the_bundle_holds_the_module_and_how_it_is_launched(built, tmp_path) -> None:
    built.write(tmp_path / "bundle")
    manifest, module = read_spirv(tmp_path / "bundle")
    assert module == built.code.spirv and module[:4] == bytes.fromhex("03022307")
    assert (manifest["target"], manifest["subgroup_size"], manifest["grid"]) == ("bmg", 16, [2, 2, 1])
    assert [argument["role"] for argument in manifest["arguments"]] == ["a", "b", "c"]
    with pytest.raises(StepladderError, match="the kernel is for 'bmg'"):
        read_bundle(tmp_path / "bundle")
    (tmp_path / "bundle" / "kernel.spv").write_bytes(module[:-4])
    with pytest.raises(StepladderError, match=r"kernel\.spv' is truncated or was edited"):
        read_spirv(tmp_path / "bundle")


def test_a_bundle_of_another_format_is_refused(tmp_path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"schema_version": 1}))
    with pytest.raises(StepladderError, match="is no bundle with SPIR-V"):
        read_spirv(tmp_path)


def test_a_kernel_that_llvm_does_not_take_is_refused() -> None:
    with pytest.raises(StepladderError, match="LLVM cannot make SPIR-V of the kernel"):
        spirv.to_spirv("define void @k() {\n  ret i32 0\n}\n")


@needs_validator
def test_spirv_val_accepts_the_module_and_refuses_an_edited_one(built) -> None:
    validator = spirv.find_validator()
    spirv.validate(built.code.spirv, validator)
    with pytest.raises(StepladderError, match="spirv-val refuses the kernel"):
        spirv.validate(built.code.spirv[:-4], validator)
