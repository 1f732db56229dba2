"""Values that no kernel has: reading refuses them, by field, and says what is accepted."""

from pathlib import Path

import pytest

from bundles import change, edit_manifest, refusal
from conftest import make_manifest, make_problem
from stepladder.runtime.bundle import read_bundle, write_bundle


@pytest.mark.parametrize(
    "path, value, message",
    [
        (
            "grid",
            [10**9, 10**9, 1],
            "field 'grid' must be at most 2147483647 x 65535 x 65535 blocks, got [1000000000, 100",
        ),
        ("grid", [2**31, 1, 1], "field 'grid' must be at most"),
        ("grid", [1, 1, 65536], "field 'grid' must be at most"),
        ("block", [100_000, 1, 1], "field 'block' must be at most 1024 x 1024 x 64 threads, got [100000, 1, 1]"),
        ("block", [1, 1, 65], "field 'block' must be at most 1024 x 1024 x 64 threads, got [1, 1, 65]"),
        ("block", [32, 33, 1], "field 'block' must have at most 1024 threads, got 1056: [32, 33, 1]"),
        ("registers", 256, "field 'registers' must be at most 255 a thread in a block of 64 threads, got 256"),
        ("target", "sm_999", "field 'target' must be one of sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a, got \"sm_999\""),
        (
            "static_shared_memory",
            10**6,
            "field 'static_shared_memory' must be at most 166912 bytes on sm_80, got 1000000",
        ),
        (
            "dynamic_shared_memory",
            166913,
            "field 'dynamic_shared_memory' must be at most 166912 bytes on sm_80, beside 0 static ones, got 166913",
        ),
        ("cluster", [1, 2, 1], "field 'cluster' must be [1, 1, 1] on sm_80, which has no clusters, got [1, 2, 1]"),
        ("read_early", ["b"], "field 'read_early' needs a target of compute capability 9.0 or later"),
        ("dependent_launch", True, "field 'dependent_launch' needs a target of compute capability 9.0 or later"),
        (
            "problem.a_type",
            "q7",
            "field 'problem.a_type' must be one of f16, bf16, f32, f64, f8E4M3FN, f8E5M2, i8, got \"q7\"",
        ),
        (
            "problem.a_type",
            "i32",
            "field 'problem.a_type' must be one of f16, bf16, f32, f64, f8E4M3FN, f8E5M2, i8, got",
        ),
        (
            "problem.b_type",
            "i8",
            "field 'problem.b_type' must be one of f16, bf16, f32, f64, f8E4M3FN, f8E5M2 where a_type is",
        ),
        (
            "problem.acc_type",
            "i32",
            "field 'problem.acc_type' must be one of f16, bf16, f32, f64, f8E4M3FN, f8E5M2 where a_ty",
        ),
        (
            "problem.c_type",
            "q7",
            "field 'problem.c_type' must be one of f16, bf16, f32, f64, f8E4M3FN, f8E5M2, i8, i32, got",
        ),
        ("arguments", [], "field 'arguments' must have one of each role a, b, c, got none"),
        ("arguments.1.role", "b", "field 'arguments' must have one of each role a, b, c, got c, b, b"),
        ("arguments.1.element_type", "q7", "field 'arguments[1].element_type' must be one of f16, bf16,"),
        (
            "arguments.1.element_type",
            "bf16",
            "field 'arguments[1].element_type' must be \"f16\", as 'problem' has it, got \"bf16\"",
        ),
        (
            "arguments.0.shape",
            [64, 65],
            "field 'arguments[0].shape' must be [64, 64], as 'problem' has it, got [64, 65]",
        ),
        ("arguments.0.access", "write", "field 'arguments[0].access' must be \"readwrite\", as 'problem' has it, got"),
        (
            "arguments.1.access",
            "write",
            "field 'arguments[1].access' must be \"read\", as 'problem' has it, got \"write\"",
        ),
        ("problem.m", 128, "field 'arguments[0].shape' must be [128, 64], as 'problem' has it, got [64, 64]"),
        ("problem.accumulate", False, "field 'arguments[0].access' must be \"write\", as 'problem' has it, got"),
        ("registers", int("9" * 100), "field 'registers' must be at most 255"),
    ],
)
def test_impossible_value(bundle: Path, path: str, value: bool | int | list[int] | str, message: str) -> None:
    edit_manifest(bundle, change(path, value))
    text = refusal(bundle)
    assert message in text
    assert text.startswith(f"{bundle / 'manifest.json'}: error: ")
    assert len(text.splitlines()) == 1 and len(text) < 400


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("cluster", [4, 5, 1], "field 'cluster' must have at most 16 blocks on sm_90a, got [4, 5, 1]"),
        (
            "grid",
            [1, 63, 1],
            "field 'grid' must be a multiple of the cluster [1, 2, 1] in every dimension, got [1, 63, 1]",
        ),
        ("target", "sm_80", "field 'cluster' must be [1, 1, 1] on sm_80, which has no clusters, got [1, 2, 1]"),
        (
            "tma_descriptors.0.element_type",
            "bf16",
            "field 'tma_descriptors[0].element_type' must be \"f16\", as 'problem' has it, got \"bf16\"",
        ),
        ("tma_descriptors.0.shape", [65, 64], "'tma_descriptors[0].shape' must be that of a tensor within the 8192"),
        ("tma_descriptors.0.strides", [10**30], "must be that of a tensor within the 8192 bytes of 'a'"),
        ("tma_descriptors.0.offset", 16, "it ends at byte 8208 with shape [64, 64], strides [128] and offset 16"),
        ("tma_descriptors.0.element_type", "q7", "field 'tma_descriptors[0].element_type' must be one of f16, bf16,"),
    ],
)
def test_impossible_value_on_hopper(tma_bundle: Path, path: str, value: int | list[int] | str, message: str) -> None:
    edit_manifest(tma_bundle, change(path, value))
    assert message in refusal(tma_bundle)


@pytest.mark.parametrize("roles", [["c"], ["w0"], ["b", "d0"]])
def test_what_is_read_early_is_an_argument_that_is_only_read(tma_bundle: Path, roles: list[str]) -> None:
    edit_manifest(tma_bundle, lambda data: data.update(dependent_launch=False, read_early=roles))
    message = f"field 'read_early' must name arguments that the kernel only reads, got \"{roles[-1]}\""
    assert message in refusal(tma_bundle)


def test_descriptors_need_hopper(tma_bundle: Path) -> None:
    edit_manifest(tma_bundle, lambda data: data.update(target="sm_89", cluster=[1, 1, 1], dependent_launch=False))
    assert (
        "field 'tma_descriptors' needs a target of compute capability 9.0 or later, and 'target' is sm_89"
        in refusal(tma_bundle)
    )


@pytest.mark.parametrize("threads, registers", [(256, 255), (384, 168), (512, 128), (1024, 64)])
def test_registers_of_a_block(tmp_path: Path, threads: int, registers: int) -> None:
    for given, is_read in ((registers, True), (registers + 1, False)):
        write_bundle(tmp_path / "bundle", make_manifest(block=(threads, 1, 1), registers=given), b"", "", {})
        if is_read:
            assert read_bundle(tmp_path / "bundle").manifest.registers == registers
        else:
            assert f"at most {registers} a thread in a block of {threads} threads" in refusal(tmp_path / "bundle")


@pytest.mark.parametrize("field", ["acc_type", "c_type"])
def test_sums_of_integers(tmp_path: Path, field: str) -> None:
    problem = make_problem(inputs="i8", acc_type="i32", c_type="i32")
    write_bundle(tmp_path / "bundle", make_manifest(problem), b"", "", {})
    assert read_bundle(tmp_path / "bundle").manifest.problem == problem
    edit_manifest(tmp_path / "bundle", change(f"problem.{field}", "i8"))
    assert f"field 'problem.{field}' must be one of i32 where a_type is i8, got \"i8\"" in refusal(tmp_path / "bundle")
