"""Operands whose rows are no multiple of 16 bytes: copied by kernels in front, on the emulator and by the runtime."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bundles import edit_manifest, refusal
from fake_cuda import FakeGpu
from stepladder.cli.main import main
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.device import Device
from stepladder.runtime.errors import BAD_INPUT, OK, StepladderError
from stepladder.runtime.launch import MatmulBuffers
from stepladder.verify.check import check_exact

KNOBS = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1, "stages": 2, "epilogue": "registers"}
SMALL = matmul_text(67, 33, 29, a_type="bf16", b_type="bf16", c_type="bf16")


def check(text: str, knobs: dict) -> None:
    """Compiles a payload and checks all numbers of its last IR."""
    from stepladder.payload import reference_export

    with mlir_context():
        run = run_pipeline(text, "payload.mlir", Request("wgmma", knobs, tuned=not knobs))
        expected = reference_export.export(parse_payload(text, "payload.mlir"), run.matmul.roles)
        executor = EmulatedExecutor(Emulation(parse_payload(run.steps[-1].text, "last")), expected.roles, count=False)
        report = check_exact(run.matmul.problem, expected, executor, 0)
    assert report.passed, report.describe()
    assert not executor.findings, executor.findings[0].render()


@pytest.mark.parametrize("a_layout, b_layout", [("row", "row"), ("row", "column"), ("column", "row"), ("column",) * 2])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_right_in_all_layouts(kind: str, a_layout: str, b_layout: str) -> None:
    check(matmul_text(67, 33, 29, a_type=kind, b_type=kind, a_layout=a_layout, b_layout=b_layout, c_type=kind), KNOBS)


@pytest.mark.parametrize("kind, c_type", [("f32", "f32"), ("f8E4M3FN", "bf16"), ("f8E5M2", "f32")])
def test_right_in_types_that_wgmma_reads_along_k(kind: str, c_type: str) -> None:
    text = matmul_text(67, 33, 45, a_type=kind, b_type=kind, b_layout="column", c_type=c_type, accumulate=False)
    check(text, {**KNOBS, "allow_tf32": True} if kind == "f32" else KNOBS)


@pytest.mark.parametrize(
    "text, knobs",
    [
        pytest.param(matmul_text(129, 257, 65, accumulate=False, c_type="f16"), {}, id="knobs of the cost model"),
        pytest.param(matmul_text(72, 40, 44, c_type="f16"), {**KNOBS, "epilogue": "tma"}, id="pairs, TMA store"),
        pytest.param(matmul_text(64, 40, 77, accumulate=False), {**KNOBS, "cluster_m": 1, "split_k": 2,
                     "persistent_blocks": 0}, id="split-K"),
        pytest.param(matmul_text(130, 64, 33), {**KNOBS, "cluster_m": 2, "block_n": 64}, id="multicast"),
        pytest.param(matmul_text(66, 34, 29, batch=2, accumulate=False), KNOBS, id="batch"),
        pytest.param(matmul_text(66, 34, 29, batch=2, broadcast="b"), KNOBS, id="batch, B broadcast"),
        pytest.param(matmul_text(33, 67, 29, accumulate=False), {**KNOBS, "swap_operands": True}, id="swapped"),
    ],
)  # fmt: skip
def test_right_with_other_knobs(text: str, knobs: dict[str, bool | int | str]) -> None:
    check(text, knobs)


def test_aligned_operands_have_one_kernel() -> None:
    with mlir_context():
        made = build(matmul_text(64, 32, 32), "payload.mlir", Request("wgmma", KNOBS | {"block_k": 32}))
    assert (made.manifest.front, made.manifest.workspaces, made.manifest.schema_version) == ((), (), 1)
    assert not {"front", "workspaces"} & made.manifest.to_json().keys()


@pytest.fixture(scope="module")
def odd_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with a kernel in front, which copies both operands."""
    path = tmp_path_factory.mktemp("odd") / "odd.bundle"
    with mlir_context():
        build(SMALL, "payload.mlir", Request("wgmma", KNOBS)).write(path)
    return path


@pytest.fixture
def copied(odd_bundle: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    import shutil

    return shutil.copytree(odd_bundle, tmp_path / "odd.bundle")


def test_bundle_describes_kernels_and_workspaces(odd_bundle: Path) -> None:
    bundle = read_bundle(odd_bundle)
    manifest = bundle.manifest
    assert manifest.schema_version == 2
    assert [item.kernel_name for item in manifest.front] == ["matmul_repack_0"]
    assert [[argument.role for argument in item.arguments] for item in manifest.front] == [["a", "w0", "b", "w1"]]
    assert [(item.element_type, item.shape) for item in manifest.workspaces] == [("bf16", (67, 64)), ("bf16", (29, 64))]
    assert [(item.role, item.shape, item.strides) for item in manifest.tma_descriptors] == [
        ("w0", (67, 29), (128,)),
        ("w1", (29, 33), (128,)),
    ]
    assert len(bundle.front) == 1 and ".entry matmul_repack_0" in bundle.front[0][1]


def test_ptx_of_all_kernels_is_right(odd_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", str(odd_bundle / "kernel.ptx")]) == OK
    assert "exact: PASS" in capsys.readouterr().out


def test_ptx_of_a_kernel_in_front_matters(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store that is left out of the kernel that copies A shows in C."""
    file = copied / "front/matmul_repack_0.ptx"
    text = file.read_text()
    lines = text.splitlines()
    store = next(number for number, line in enumerate(lines) if "st.global" in line)
    file.write_text("\n".join(lines[:store] + lines[store + 1 :]))
    assert main(["emulate", str(copied / "kernel.ptx")]) != OK
    assert "exact: FAIL" in capsys.readouterr().out


def test_bundle_runs_on_the_emulator(odd_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(odd_bundle), "--backend", "emulator"]) == OK


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda data: data.update(schema_version=1), "field 'workspaces' requires schema_version 2"),
        (lambda data: data["workspaces"].pop(), "field 'arguments[1].role' is 'w1', and 'workspaces' has 1"),
        (lambda data: data["front"].pop(), "must each be written by a kernel of 'front' and read by a later"),
        (lambda data: data["front"].append(data["front"][0]), "is 'w0', which an earlier kernel writes"),
        (
            lambda data: data["front"][0]["arguments"][1].update(access="read"),
            "is 'w0', which no earlier kernel writes",
        ),
        (lambda data: data["front"][0]["arguments"][0].update(shape=[67, 30]), "must be [67, 29], as 'a' has it"),
        (lambda data: data["front"][0].update(block=[2048, 1, 1]), "field 'front[0].block' must be at most"),
        (lambda data: data["front"][0].update(cubin="other.cubin"), "does not list 'other.cubin'"),
        (lambda data: data["tma_descriptors"][0].update(shape=[68, 29]), "must be inside of [67, 64]"),
        (lambda data: data["tma_descriptors"][0].update(strides=[64]), "must be [128], those of 'w0'"),
        (lambda data: data.update(schema_version=3), "this version of stepladder reads 1, 2, 4"),
    ],
)
def test_damaged_descriptions_are_refused(copied: Path, change: Callable[..., object], message: str) -> None:
    edit_manifest(copied, change)
    assert message in refusal(copied)


def test_damaged_files_are_refused(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copied / "front/matmul_repack_0.cubin").write_bytes(b"other")
    assert "is truncated or was edited" in refusal(copied)
    assert main(["emulate", str(copied)]) == BAD_INPUT
    captured = capsys.readouterr()
    assert "matmul_repack_0.cubin' is truncated or was edited" in captured.err and not captured.out


def test_kernels_are_launched_in_order_with_one_workspace_each(odd_bundle: Path) -> None:
    gpu = FakeGpu()
    device = Device(0, gpu.cuda)
    bundle = read_bundle(odd_bundle)
    buffers = MatmulBuffers(device, bundle.manifest.problem)
    enqueue = buffers.launcher(device.load(bundle), bundle)
    allocated = len(gpu.called("allocate"))
    for _ in range(2):
        enqueue()
    names = [name for name, *_ in gpu.calls if name in ("launch", "cuLaunchKernelEx")]
    assert names == ["launch", "cuLaunchKernelEx"] * 2
    assert len(gpu.called("allocate")) == allocated
    grids = [config.grid for _, config, *_ in gpu.called("launch")]
    assert grids == [item.grid for item in bundle.manifest.front] * 2
    # Only the kernel of the matmul waits by itself for what was launched before it.
    assert not any(config.programmatic_stream_serialization for _, config, *_ in gpu.called("launch"))
    again = buffers.launcher(device.load(bundle), bundle)
    again()
    assert len(gpu.called("allocate")) == allocated


def test_explain_counts_the_copies(tmp_path: Path) -> None:
    """8191 x 8191 elements of two bytes, read and written twice: 0.5 GB at less than 4.8 TB/s."""
    found = {}
    for n in (8192, 8191):
        text = matmul_text(8192, 8192, n, a_type="bf16", b_type="bf16", c_type="bf16", accumulate=False)
        (tmp_path / "m.mlir").write_text(text)
        out = tmp_path / f"{n}.json"
        arguments = ["explain", str(tmp_path / "m.mlir"), "--pipeline", "wgmma", "--target", "sm_90a"]
        assert main([*arguments, "--json", str(out)]) == OK
        found[n] = json.loads(out.read_text())["candidates"][0]
    assert "repacking" not in found[8192]["times"]
    assert 50 < found[8191]["times"]["repacking"] < 100


def test_other_pipelines_name_the_pitch() -> None:
    with mlir_context(), pytest.raises(StepladderError, match="TMA requires multiples of 16 bytes"):
        run_pipeline(matmul_text(128, 128, 29), "payload.mlir", Request("wgmma_multistage", {}))


def test_a_constant_is_copied_too(tmp_path: Path) -> None:
    """The weight of a layer has odd rows: its data goes with the kernel that copies it."""
    weight = np.arange(29 * 32, dtype=np.float32).reshape(29, 32) % 5
    rows = ", ".join("[" + ", ".join(f"{value:.1f}" for value in row) + "]" for row in weight.T)
    text = (
        SMALL.replace("%B: memref<29x33xbf16>, ", "")
        .replace("  %b = bufferization.to_tensor %B restrict : memref<29x33xbf16> to tensor<29x33xbf16>",
                 f"  %weight = arith.constant dense<[{rows}]> : tensor<32x29xbf16>")
    )  # fmt: skip
    text = text.replace("67x33", "67x32").replace(
        "linalg.matmul ins(%a, %b : tensor<67x29xbf16>, tensor<29x33xbf16>)",
        "linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
        "affine_map<(m, n, k) -> (m, n)>] ins(%a, %weight : tensor<67x29xbf16>, tensor<32x29xbf16>)",
    )
    with mlir_context():
        build(text, "payload.mlir", Request("wgmma", KNOBS)).write(tmp_path / "constant.bundle")
    bundle = read_bundle(tmp_path / "constant.bundle")
    assert np.array_equal(bundle.constants()["b"].astype(np.float32), weight.T)
    files = {argument.role: argument.data for item in bundle.manifest.front for argument in item.arguments}
    assert files["a"] is None and files["b"] is not None
