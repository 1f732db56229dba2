"""SPIR-V of kernels for Intel's GPUs: cache hints, the validator, the bundle."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from combinations import sample
from stepladder.emulator import matmul
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import spirv_build
from stepladder.pipeline.codegen import spirv, spirv_backend
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.bundle.spirv import is_spirv_bundle, read_spirv_bundle
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem
from stepladder.runtime.resources import transforms_dir
from stepladder.verify import opencl
from stepladder.verify.check import check_exact

SMALL = {"block_m": 32, "block_n": 32, "sg_m": 16, "sg_n": 32}
needs_validator = pytest.mark.skipif(spirv.find_validator() is None, reason="spirv-val is not installed")

needs_opencl = pytest.mark.skipif(opencl.find_runtime() is None, reason="Intel's OpenCL runtime is not installed")


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


@pytest.mark.parametrize("name", ["sub_group_shuffle", "sub_group_shuffle_xor"])
@pytest.mark.parametrize("element", ["f", "i", "s"])
def test_shuffles_of_lanes_are_those_of_the_extension(name: str, element: str) -> None:
    line = f"  %1 = call i16 @_Z{len(name)}{name}{element}j(i16 %0, i32 1)"
    made = spirv_backend.with_shuffles_of_intel(line)
    assert made == line.replace(f"{len(name)}{name}", f"{len(name) + 6}intel_{name}")


def test_the_bundle_holds_the_module_and_how_it_is_launched(built: spirv_build.SpirvBuild, tmp_path: Path) -> None:
    built.write(tmp_path / "bundle")
    found = read_spirv_bundle(tmp_path / "bundle")
    assert is_spirv_bundle(tmp_path / "bundle") and not is_spirv_bundle(tmp_path)
    assert found.spirv == built.code.spirv and found.spirv[:4] == bytes.fromhex("03022307")
    assert found.manifest == built.manifest
    assert (found.manifest.target, found.manifest.subgroup_size, found.manifest.grid) == ("bmg", 16, (2, 2, 1))
    assert [argument.role for argument in found.manifest.arguments] == ["a", "b", "c"]
    with pytest.raises(StepladderError, match="the kernel is for 'bmg'"):
        read_bundle(tmp_path / "bundle")
    (tmp_path / "bundle" / "kernel.spv").write_bytes(found.spirv[:-4])
    with pytest.raises(StepladderError, match=r"kernel\.spv' is truncated or was edited"):
        read_spirv_bundle(tmp_path / "bundle")


@pytest.mark.parametrize(
    "path, value, message",
    [
        (("arguments",), [], "field 'arguments' must have one of each role a, b, c, got none"),
        (("arguments", 0, "role"), "w0", r"field 'arguments\[0\].role' must be one of a, b, c"),
        (("arguments", 1, "shape"), [1, 2], r"field 'arguments\[1\].shape' must be \[\d+, \d+\], as 'problem' has it"),
        (("arguments", 2, "by_value"), True, r"field 'arguments\[2\].by_value' must be false"),
        (("work_group",), [512, 4, 1], "field 'work_group' must have at most 1024 threads, got 2048"),
        (("subgroup_size",), 7, "field 'subgroup_size' must be one of 8, 16, 32, got 7"),
        (("shared_local_memory",), 10**30, "field 'shared_local_memory' must be at most 65536 bytes on bmg, got 10"),
        (("knobs", "block_n"), {}, "field 'knobs.block_n' must be the value of a knob"),
    ],
)
def test_a_field_that_no_kernel_has_is_refused(
    built: spirv_build.SpirvBuild, tmp_path: Path, path: tuple[int | str, ...], value: object, message: str
) -> None:
    built.write(tmp_path / "bundle")
    file = tmp_path / "bundle" / "manifest.json"
    data = json.loads(file.read_text())
    place = data
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    file.write_text(json.dumps(data))
    with pytest.raises(StepladderError, match=message):
        read_spirv_bundle(tmp_path / "bundle")


def test_a_tile_program_becomes_a_bundle_without_a_problem(tmp_path: Path) -> None:
    with mlir_context():
        text = (transforms_dir().parent / "test" / "inputs" / "xetile" / "gemm.mlir").read_text()
        built = spirv_build.build(text, "gemm.mlir", Request("xetile"), use_cache=False)
    built.write(tmp_path / "bundle")
    found = read_spirv_bundle(tmp_path / "bundle")
    assert found.manifest == built.manifest and found.manifest.problem is None and found.reference is None
    assert [(item.name, item.element_type, item.shape) for item in found.manifest.arguments] == [
        ("argument0", "f16", (512, 160)),
        ("argument1", "f16", (160, 768)),
        ("argument2", "f32", (512, 768)),
    ]
    assert found.manifest.steps[0] == "distribute_to_subgroups" and found.manifest.grid == (3, 2, 1)


def test_a_build_runs_the_whole_pipeline() -> None:
    message = "a build runs a whole pipeline, and the request begins with step 'map_to_blocks'"
    with mlir_context(), pytest.raises(StepladderError, match=message):
        spirv_build.build(matmul_text(64, 64, 64), "matmul", Request("xetile", start="map_to_blocks"))


def test_an_argument_of_the_kernel_that_is_no_operand_is_refused(built: spirv_build.SpirvBuild) -> None:
    """No payload of the rule has one: the kernel is edited."""
    kernel = SimpleNamespace(parameters=[SimpleNamespace(number=7)])
    with pytest.raises(StepladderError, match="the kernel takes argument 7 of the function, which is not an operand"):
        spirv_build._of_matmul(built.run, kernel)


def test_a_bundle_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"schema_version": 1}))
    with pytest.raises(StepladderError, match="is no bundle with SPIR-V"):
        read_spirv_bundle(tmp_path)


def test_a_kernel_that_llvm_does_not_take_is_refused() -> None:
    with pytest.raises(StepladderError, match="LLVM cannot make SPIR-V of the kernel"):
        spirv.to_spirv("define void @k() {\n  ret i32 0\n}\n")


@needs_validator
def test_spirv_val_accepts_the_module_and_refuses_an_edited_one(built: spirv_build.SpirvBuild) -> None:
    validator = spirv.find_validator()
    spirv.validate(built.code.spirv, validator)
    with pytest.raises(StepladderError, match="spirv-val refuses the kernel"):
        spirv.validate(built.code.spirv[:-4], validator)


def test_built_ins_that_the_library_has_no_form_of_are_refused() -> None:
    module = b"\x05\x00_Z41intel_sub_group_2d_block_read_16b_8r16x1cPU3AS1viiiDv2_iPt\x00"
    assert "\nREAD(intel_sub_group_2d_block_read_16b_8r16x1c, ushort, 8, 16, 1)\n" in opencl.library(module)
    with pytest.raises(StepladderError, match="imports 'intel_sub_group_block_read_us', which the library"):
        opencl.library(b"_Z29intel_sub_group_block_read_usPU3AS1Kt\x00")


def executor_of(problem: Problem, settings: dict) -> tuple:
    """Returns an executor on the CPU of a problem's kernel, and the reference program."""
    with mlir_context():
        built = spirv_build.build(matmul.payload_of(problem), "payload", Request("xetile", settings, tuned=False))
    return opencl.OpenClExecutor(built.code.spirv, built.manifest, {}), built.reference


@needs_opencl
@pytest.mark.parametrize(
    "problem",
    sample(
        [
            Problem(40, 40, 72, "f16", "f16", "f32", "f32", True),
            Problem(24, 72, 104, "bf16", "bf16", "f32", "f32", False),
            Problem(72, 40, 40, "f16", "f16", "f32", "f32", False, b_layout="column"),
        ],
        2,
    ),
    ids=str,
)
def test_the_runtime_of_opencl_gives_the_numbers_of_the_payload(problem: Problem) -> None:
    executor, reference = executor_of(problem, SMALL)
    report = check_exact(problem, reference, executor, 0)
    assert report.passed, report.describe()


@needs_opencl
def test_the_runtime_of_opencl_finds_a_wrong_kernel() -> None:
    """A kernel for another product: the check can fail."""
    problem = Problem(40, 40, 72, "f16", "f16", "f32", "f32", True)
    executor, reference = executor_of(problem, SMALL)
    executor.spirv = executor.spirv.replace(b"_read_16b_8r16x1c", b"_read_16b_4r16x1c")
    assert not check_exact(problem, reference, executor, 0).passed
