"""XeTile programs on the emulator, compared with their linalg references, and the faults that it finds in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from combinations import combinations, sample
from conftest import PROFILE
from stepladder.emulator import matmul
from stepladder.emulator.core.emulation import Emulation
from stepladder.mlir.bindings import interpreter, ir
from stepladder.mlir.xetile.wg_map import WgMap, Wrong
from stepladder.pipeline.codegen import machine_code, spirv
from stepladder.pipeline.codegen.kernel import find_kernel
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem
from stepladder.verify import opencl
from xetile_programs import FOLDER, PROGRAMS, entry, program, run_both, small_integers

# One tile, several ragged ones, and fewer elements than a tile has.
SHAPES = [(256, 256, 64), (296, 264, 72), (40, 24, 104)]


def assert_numbers(name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    """Compares sums of small integers, which are exact, and those of a softmax, which are not."""
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if name == "softmax" else 0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_numbers_of_its_reference(name: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    if name == "cooperative_slm":  # each element of shared local memory is checked for races
        m, n = min(m, 256), min(n, 256)
    with mlir_context():
        module = parse_payload(program(name, m, n, k), name)
        outcome, found, wanted = run_both(module, name)
    assert not outcome.findings
    assert_numbers(name, found, wanted)


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_barrier_of_shared_local_memory_is_a_race(number: int) -> None:
    parts = program("cooperative_slm", 32, 32, 160).split("gpu.barrier\n")
    assert len(parts) == 3
    text = parts[0] + ("" if number == 0 else "gpu.barrier\n") + parts[1] + ("gpu.barrier\n" if number == 0 else "")
    with mlir_context():
        outcome, _, _ = run_both(parse_payload(text + parts[2], "edited"), "cooperative_slm")
    assert {finding.kind for finding in outcome.findings} == {"race"} if number else {"race", "uninitialized"}
    assert all("xetile." in str(finding) for finding in outcome.findings)


def test_a_work_group_of_another_size_is_refused() -> None:
    text = program("gemm", 32, 32, 32).replace("%threads = arith.constant 512", "%threads = arith.constant 256")
    with mlir_context(), pytest.raises(StepladderError, match=r"has 16 of 16 threads: launch 512 threads"):
        run_both(parse_payload(text, "edited"), "gemm")


def test_a_bias_beyond_the_matrix_is_padded() -> None:
    """`padding` is what a load gives for elements beyond the matrix."""
    text = """func.func @gemm(%a: memref<4x4xf32>, %c: memref<8x8xf32>) {
      %zero = arith.constant 0 : index
      %ta = "xetile.init_tile"(%a, %zero, %zero) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
        : (memref<4x4xf32>, index, index) -> !xetile.tile<vector<8x8xf32>, unit>
      %v = "xetile.load_tile"(%ta) {padding = 7.0 : f32} : (!xetile.tile<vector<8x8xf32>, unit>) -> vector<8x8xf32>
      %tc = "xetile.init_tile"(%c, %zero, %zero) {operandSegmentSizes = array<i32: 1, 2, 0, 0>}
        : (memref<8x8xf32>, index, index) -> !xetile.tile<vector<8x8xf32>, unit>
      "xetile.store_tile"(%v, %tc) : (vector<8x8xf32>, !xetile.tile<vector<8x8xf32>, unit>) -> ()
      return
    }
    func.func @golden(%a: tensor<4x4xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %seven = arith.constant 7.0 : f32
      %padded = tensor.pad %a low[0, 0] high[4, 4] {
      ^body(%i: index, %j: index):
        tensor.yield %seven : f32
      } : tensor<4x4xf32> to tensor<8x8xf32>
      return %padded : tensor<8x8xf32>
    }"""
    with mlir_context():
        outcome, found, wanted = run_both(parse_payload(text, "padding"), "gemm")
    assert not outcome.findings
    np.testing.assert_array_equal(found, wanted)


def test_gathers_and_scatters_leave_out_masked_elements_and_those_beyond() -> None:
    text = """func.func @gemm(%a: memref<16xi32>, %c: memref<16xi32>) {
      %at = arith.constant dense<[3, 1, 20, 5]> : vector<4xindex>
      %to = arith.constant dense<[0, 2, 4, 16]> : vector<4xindex>
      %mask = arith.constant dense<[true, false, true, true]> : vector<4xi1>
      %all = arith.constant dense<true> : vector<4xi1>
      %ta = "xetile.init_tile"(%a, %at) {operandSegmentSizes = array<i32: 1, 1, 0, 0>}
        : (memref<16xi32>, vector<4xindex>) -> !xetile.tile<vector<4xi32>, #xetile.scatter>
      %v = "xetile.load_gather"(%ta, %mask) {padding = 9 : i32}
        : (!xetile.tile<vector<4xi32>, #xetile.scatter>, vector<4xi1>) -> vector<4xi32>
      %tc = "xetile.init_tile"(%c, %to) {operandSegmentSizes = array<i32: 1, 1, 0, 0>}
        : (memref<16xi32>, vector<4xindex>) -> !xetile.tile<vector<4xi32>, #xetile.scatter>
      "xetile.store_scatter"(%v, %all, %tc)
        : (vector<4xi32>, vector<4xi1>, !xetile.tile<vector<4xi32>, #xetile.scatter>) -> ()
      return
    }"""
    with mlir_context():
        emulation = Emulation(parse_payload(text, "scattered"))
        a, c = np.arange(16, dtype=np.int32), np.full(16, -1, np.int32)
        found = emulation.run([a, c]).arguments[-1]
    c[[0, 2, 4]] = [3, 9, 9]
    np.testing.assert_array_equal(found, c)


def test_the_distribution_of_the_rfc() -> None:
    """The table of the RFC: a tile of 128 x 128, sg_layout = [2, 2], sg_data = [32, 128]."""
    wg = WgMap((2, 2), (32, 128))
    rows, columns = wg.indices(0, 128), wg.indices(1, 128)
    for subgroup, first in enumerate((0, 0, 32, 32)):
        assert rows[subgroup].tolist() == [*range(first, first + 32), *range(first + 64, first + 96)]
        assert columns[subgroup].tolist() == list(range(128))


@pytest.mark.parametrize(
    ("layout", "data", "shape", "is_right"),
    [
        ((8, 4), (32, 32), (256, 32), True),  # the second dimension wraps around
        ((32, 1), (8, 32), (256, 32), True),
        ((2, 2), (16, 16), (64, 64), True),  # two rounds along each dimension
        ((3, 1), (8, 32), (64, 32), False),
        ((2, 2), (24, 32), (64, 64), False),
    ],
)
def test_even_distribution(
    layout: tuple[int, int], data: tuple[int, int], shape: tuple[int, int], is_right: bool
) -> None:
    if is_right:
        WgMap(layout, data).check_shape(shape)
    else:
        with pytest.raises(Wrong):
            WgMap(layout, data).check_shape(shape)


def test_a_transpose_in_registers_is_one_of_what_a_subgroup_owns() -> None:
    b = WgMap((8, 4), (32, 64))
    assert WgMap((32, 1), (64, 32)).owns_alike(b, (256, 32), transposed=True)
    assert not WgMap((4, 8), (64, 32)).owns_alike(b, (256, 32), transposed=True)


SCRIPT = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    "tc.distribute_tiles"(%module) {slm_bytes = 65536 : i64} : (!transform.any_op) -> ()
    MORE
    transform.yield
  }
}"""
TO_XEGPU = '"tc.tiles_to_xegpu"(%module) : (!transform.any_op) -> ()'


def distributed(module: ir.Module, more: str = "") -> ir.Module:
    """Returns the module at subgroup level, after `more` ops of a transform script."""
    script = ir.Module.parse(SCRIPT.replace("MORE", more))
    interpreter.apply_named_sequence(module.operation, script.body.operations[0].operation, script.operation)
    assert module.operation.verify()
    return module


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith("appendix_1")])
def test_a_program_at_subgroup_level_gives_the_same_numbers(name: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    if name in ("cooperative_slm", "transpose_broadcast_reduction", "transpose_in_registers"):
        m, n, k = min(m, 256), min(n, 256), min(k, 72)
    with mlir_context():
        module = distributed(parse_payload(program(name, m, n, k), name))
        assert "wg_map" not in str(module)
        outcome, found, wanted = run_both(module, name)
    assert not outcome.findings
    assert_numbers(name, found, wanted)


@pytest.mark.parametrize("name", ["appendix_1_column_major", "appendix_1_transpose", "gemm", "two_cache_levels"])
def test_a_program_in_xegpu_gives_the_same_numbers(name: str) -> None:
    with mlir_context():
        module = distributed(parse_payload(program(name, 72, 88, 40), name), TO_XEGPU)
        assert "xetile" not in str(module)
        outcome, found, wanted = run_both(module, name)
    assert not outcome.findings
    np.testing.assert_array_equal(found, wanted)


# Slow with 32 sub-groups: the emulator executes atomic updates one by one, and Intel's runtime threads at barriers.
SLOW = ["cooperative_slm", "split_k", "transpose_broadcast_reduction", "transpose_in_registers"]
WIDE = [(40, 40, 104), *SHAPES[:2]]  # rows of at least 64 bytes
IN_BUILT_INS = [
    *combinations([name for name in PROGRAMS if name not in SLOW], WIDE),
    *((name, shape) for name in sample(SLOW, 4) for shape in (WIDE if PROFILE == "random" else WIDE[:1])),
]


def lowered(name: str, shape: tuple[int, int, int]) -> ir.Module:
    """Returns a program at the end of the pipeline."""
    request = Request("xetile", start="distribute_to_subgroups", tuned=False)
    return run_pipeline(program(name, *shape), name, request).module


@pytest.mark.parametrize(("name", "shape"), IN_BUILT_INS)
def test_a_program_in_built_ins_gives_the_same_numbers(name: str, shape: tuple[int, int, int]) -> None:
    with mlir_context():
        module = lowered(name, shape)
        assert "xegpu" not in str(module) and "intel_sub_group_2d_block_read" in str(module)
        outcome, found, wanted = run_both(module, name)
    assert not outcome.findings
    assert_numbers(name, found, wanted)


@pytest.mark.parametrize("name", sample([name for name in PROGRAMS if PROFILE == "random" or name not in SLOW], 2))
def test_a_program_becomes_valid_spirv_that_gives_the_same_numbers_on_the_cpu(name: str) -> None:
    shape = (72, 88, 40)
    with mlir_context():
        module = lowered(name, shape)
        kernel = find_kernel(module)
        code = spirv.generate(kernel, use_cache=False)
        numbers = [parameter.number for parameter in kernel.parameters]
        original = parse_payload(program(name, *shape), name)
        inputs = small_integers(Emulation(original, entry(name)))
        wanted = Emulation(original, "golden").run(inputs, count=False).results[0]
    if opencl.find_runtime() is None:
        pytest.skip("Intel's OpenCL runtime is not installed")
    buffers = [inputs[number].view(np.uint8) for number in numbers]
    after = opencl.run(code.spirv, kernel.name, buffers, kernel.grid, kernel.block)
    found = after[numbers.index(len(inputs) - 1)].view(wanted.dtype).reshape(wanted.shape)
    assert_numbers(name, found, wanted)


@pytest.mark.parametrize("path", sorted((FOLDER / "users").glob("*.mlir")), ids=lambda path: path.stem)
def test_a_program_with_other_tiles_gives_the_same_numbers_at_every_level(path: Path) -> None:
    """The work-group level says what is right: the levels below are compared with it."""
    text = path.read_text(encoding="utf-8")
    with mlir_context():
        emulation = Emulation(parse_payload(text, path.name), "gemm")
        inputs = small_integers(emulation)
        wanted = emulation.run(inputs, count=False).arguments
        request = Request("xetile", start="distribute_to_subgroups", tuned=False)
        for step in run_pipeline(text, path.name, request).steps[1::2]:
            outcome = Emulation(parse_payload(step.text, path.name), "gemm").run(inputs, count=False)
            assert not outcome.findings, step.name
            for found, array in zip(outcome.arguments, wanted):
                np.testing.assert_allclose(found, array, rtol=1e-5, atol=1e-6, err_msg=step.name)


def test_a_program_takes_the_steps_of_mma_sync() -> None:
    """Its tile of C, 256 x 256, is divided among four blocks; the kernel becomes a cubin without spills."""
    text = program("gemm", 256, 256, 64)
    with mlir_context():
        request = Request("xetile_mma_sync", start="stage_tiles_in_shared_memory", tuned=False)
        module = run_pipeline(text.partition("func.func @golden")[0], "gemm.mlir", request).module
        assert "nvvm.mma.sync" in str(module) and "nvvm.cp.async" in str(module)
        emulation, golden = Emulation(module, "gemm"), Emulation(parse_payload(text, "gemm.mlir"), "golden")
        random = np.random.default_rng(0)
        inputs = [random.integers(-4, 5, array.shape).astype(array.dtype) for array in emulation.random_inputs(0)]
        outcome = emulation.run(inputs, count=False)
        kernel = find_kernel(module)
        code = machine_code.generate(kernel)
    assert not outcome.findings and not code.spill_stores
    assert (kernel.grid, kernel.block) == ([2, 2, 1], [128, 1, 1])
    np.testing.assert_array_equal(outcome.arguments[-1], golden.run(inputs, count=False).results[0])


def test_a_program_has_the_kernel_of_mma_sync() -> None:
    """Program 2.1, by the steps of `mma_sync` and the same knobs: the same PTX but for the kernel's name."""
    text = program("gemm", 256, 256, 64).partition("func.func @golden")[0].replace("@gemm(", "@matmul(")
    request = Request("xetile_mma_sync", start="stage_tiles_in_shared_memory", tuned=False)
    payload = matmul.payload_of(Problem(256, 256, 64, "f16", "f16", "f32", "f32", False))
    texts = []
    for given, how in ((text, request), (payload, Request("mma_sync", tuned=False))):
        with mlir_context():
            run = run_pipeline(given, "given", how)
            texts.append(machine_code.generate(find_kernel(run.module)).ptx)
    assert texts[0] == texts[1]


def test_a_program_without_a_product_is_refused_at_its_launch() -> None:
    text = program("softmax").partition("func.func @golden")[0]
    with mlir_context(), pytest.raises(StepladderError, match=r"no product in the IR: .* xetile.tile_mma") as raised:
        run_pipeline(
            text, "softmax.mlir", Request("xetile_mma_sync", start="stage_tiles_in_shared_memory", tuned=False)
        )
    assert str(raised.value.location).startswith("softmax.mlir:16:")


@pytest.mark.parametrize("k", [96, 32])  # 32: one step, without a loop
def test_each_step_of_the_nvidia_pipeline_gives_the_numbers_of_the_payload(k: int) -> None:
    settings, reports = {"block_m": 64, "block_n": 64, "warp_m": 32, "warp_n": 32}, []
    text = matmul.payload_of(Problem(128, 64, k, "bf16", "bf16", "f32", "f32", False))
    with mlir_context():
        matmul.check_steps(text, "payload", Request("xetile_mma_sync", settings, tuned=False), reports.append)
    assert all(report.passed for report in reports), [(report.step, report.notes()) for report in reports]


def test_rows_that_no_2d_block_operation_accesses_are_a_finding() -> None:
    """The op that creates descriptors refuses them; here the memref is edited afterwards."""
    with mlir_context():
        module = distributed(parse_payload(program("gemm", 32, 64, 32), "gemm"), TO_XEGPU)
        text = str(module).partition("func.func @golden")[0].replace("memref<32x32xf16>", "memref<32x36xf16>") + "}"
        emulation = Emulation(parse_payload(text, "pitch"), "gemm")
        outcome = emulation.run(emulation.random_inputs(0))
    assert {finding.kind for finding in outcome.findings} == {"misaligned"}


def test_only_a_transpose_between_subgroups_takes_shared_local_memory() -> None:
    with mlir_context():
        texts = [
            str(distributed(parse_payload(program(name), name)))
            for name in ("transpose_broadcast_reduction", "transpose_in_registers")
        ]
    assert ["memref<256x32xf16, 3>" in text for text in texts] == [True, False]
    assert ["xetile.transpose" in text for text in texts] == [False, True]
    # 256 KB of sums are exchanged in four parts.
    assert all("memref<256x64xf32, 3>" in text for text in texts)


def test_a_missing_barrier_of_an_exchange_is_a_race() -> None:
    with mlir_context():
        module = distributed(parse_payload(program("transpose_broadcast_reduction", 32, 256, 32), "edited"))
        text = str(module).replace("gpu.barrier", "", 1)
        outcome, _, _ = run_both(parse_payload(text, "edited"), "gemm")
    assert {finding.kind for finding in outcome.findings} >= {"race"}


@pytest.mark.parametrize(
    ("problem", "settings"),
    [
        (Problem(64, 128, 64, "f16", "f16", "f32", "f32", True), {}),
        (
            Problem(72, 40, 88, "f16", "f16", "f32", "f32", False, b_layout="column"),
            {"sg_m": 16, "block_m": 128},
        ),
        (Problem(40, 136, 48, "bf16", "bf16", "f32", "f32", True), {"distance": 1, "block_k": 16}),
        (
            Problem(72, 40, 40, "f16", "f16", "f32", "f32", True, a_layout="column", b_layout="column"),
            {"sg_m": 16, "block_m": 128, "block_n": 64},
        ),
    ],
    ids=str,
)
def test_each_step_of_the_pipeline_gives_the_numbers_of_the_payload(problem: Problem, settings: dict[str, int]) -> None:
    reports = []
    request = Request("xetile", settings, tuned=False)
    with mlir_context():
        matmul.check_steps(matmul.payload_of(problem), "payload", request, reports.append)
    checked = [report for report in reports if not report.is_unchanged]
    assert [report.step for report in checked][1:] == [
        "convert_to_tiles",
        "prefetch_tiles",
        "map_to_blocks",
        "launch_subgroups",
        "distribute_to_subgroups",
        "convert_to_xegpu",
        "outline_subgroups",
        "block_to_instructions",
        "distribute_to_lanes",
        *(["transpose_by_words"] if problem.a_layout == "column" else []),
        "lower_to_xevm",
        "lower_xevm_to_llvm",
    ]
    assert all(report.passed for report in checked), [(report.step, report.notes()) for report in checked]


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (Problem(40, 80, 64, "i8", "i8", "i32", "i32", True), "f16 or bf16"),
    ],
    ids=str,
)
def test_what_is_not_distributed_to_lanes_ends_in_blocks_of_instructions(problem: Problem, reason: str) -> None:
    name, reports = "xetile", []
    settings = {"sg_m": 16, "block_m": 128, "block_n": 128}
    text = matmul.payload_of(problem)
    with mlir_context():
        with pytest.raises(StepladderError, match=reason):
            matmul.check_steps(text, "payload", Request(name, settings, tuned=False), reports.append)
        request = Request(name, settings, "block_to_instructions", tuned=False)
        matmul.check_steps(text, "payload", request, reports.append)
    assert reports[-1].step == "block_to_instructions"
    assert all(report.passed for report in reports if not report.is_unchanged)
