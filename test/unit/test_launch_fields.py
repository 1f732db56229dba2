"""The launch that a manifest states must be that of the bundle's IR, before the emulator or OpenCL runs a kernel."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from bundles import change, edit_manifest
from stepladder.cli.main import main
from stepladder.payload.writing import matmul_text
from stepladder.runtime.errors import BAD_INPUT, OK

pytestmark = pytest.mark.usefixtures("needs_ptxas")

INPUTS = Path(__file__).parents[1] / "inputs" / "functions"
MATMUL = matmul_text(64, 32, 32, accumulate=False)
EMULATED = ("--backend", "emulator")


def compiled(folder: Path, text: str, pipeline: str, target: str, **knobs: int | str) -> Path:
    payload, bundle = folder / "payload.mlir", folder / "bundle"
    payload.write_text(text)
    settings = [word for name, value in knobs.items() for word in ("--set", f"{name}={value}")]
    command = ["compile", str(payload), "--pipeline", pipeline, "--target", target, *settings, "-o", str(bundle)]
    assert main(command) == OK
    return bundle


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel with a cluster and dynamic shared memory."""
    knobs = {"block_m": 64, "block_n": 16, "block_k": 32, "stages": 2, "cluster_n": 2}
    return compiled(tmp_path_factory.mktemp("matmul"), MATMUL, "wgmma", "sm_90a", **knobs)


@pytest.fixture(scope="module")
def repacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel with one in front, which copies operands whose rows TMA does not read."""
    text = matmul_text(64, 32, 29, accumulate=False)
    return compiled(tmp_path_factory.mktemp("repacked"), text, "wgmma", "sm_90a")


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A function with a kernel over rows and one of a matmul."""
    text = (INPUTS / "rms_linear.mlir").read_text()
    return compiled(tmp_path_factory.mktemp("function"), text, "mma_sync", "sm_80")


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A function whose first launch is a group of matmuls."""
    text = (INPUTS / "experts.mlir").read_text()
    return compiled(tmp_path_factory.mktemp("group"), text, "auto", "sm_90a", groups="true")


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel in SPIR-V."""
    return compiled(tmp_path_factory.mktemp("tiles"), matmul_text(32, 32, 32), "xetile", "bmg")


@pytest.mark.parametrize(
    ("bundle", "field", "value", "command"),
    [
        ("matmul", "kernel_name", "other", ("run", *EMULATED)),
        ("matmul", "target", "sm_90", ("run", *EMULATED)),
        ("matmul", "grid", [8, 1, 1], ("run", *EMULATED)),
        ("matmul", "grid", [8, 1, 1], ("emulate",)),
        ("matmul", "block", [128, 1, 1], ("run", *EMULATED)),
        ("matmul", "cluster", [1, 1, 1], ("run", *EMULATED)),
        ("matmul", "dynamic_shared_memory", 16, ("run", *EMULATED)),
        ("repacked", "grid", [2, 2, 1], ("run", *EMULATED)),
        ("repacked", "front.0.kernel_name", "other", ("run", *EMULATED)),
        ("repacked", "front.0.grid", [999, 1, 1], ("run", *EMULATED)),
        ("repacked", "front.0.block", [32, 1, 1], ("run", *EMULATED)),
        ("function", "launches.0.kernel.kernel_name", "other", ("run", *EMULATED)),
        ("function", "launches.0.kernel.grid", [3, 1, 1], ("run", *EMULATED)),
        ("function", "launches.0.kernel.grid", [3, 1, 1], ("emulate",)),
        ("function", "launches.0.kernel.block", [128, 1, 1], ("run", *EMULATED)),
        ("function", "launches.0.kernel.dynamic_shared_memory", 16, ("run", *EMULATED)),
        ("group", "launches.0.kernel.grid", [99, 1, 1], ("run", *EMULATED)),
        ("group", "launches.0.kernel.dynamic_shared_memory", 16, ("run", *EMULATED)),
        ("tiles", "kernel_name", "other", ("run",)),
        ("tiles", "grid", [9, 1, 1], ("run",)),
        ("tiles", "work_group", [16, 9, 1], ("run",)),
    ],
)
def test_a_launch_that_is_not_that_of_the_ir_is_refused(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    bundle: str,
    field: str,
    value: object,
    command: tuple[str, ...],
) -> None:
    copy = tmp_path / "bundle"
    shutil.copytree(request.getfixturevalue(bundle), copy)
    edit_manifest(copy, change(field, value))
    assert main([command[0], str(copy), *command[1:]]) == BAD_INPUT
    said = capsys.readouterr().err
    shown = f'"{value}"' if isinstance(value, str) else value
    named = field.replace(".0", "[0]")
    assert f"{copy / 'manifest.json'}: error: field '{named}' is {shown}, and the kernel that " in said
    assert "Traceback" not in said and said.count("error:") == 1


def test_the_manifest_of_a_matmul_in_a_function_is_compared(
    function: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "bundle"
    shutil.copytree(function, copy)
    (folder,) = (copy / "kernels").glob("*matmul*")
    edit_manifest(folder, change("grid", [99, 1, 1]))
    digest = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    edit_manifest(copy, lambda data: data["files"].update({f"kernels/{folder.name}/manifest.json": digest}))
    assert main(["run", str(copy), *EMULATED]) == BAD_INPUT
    said = capsys.readouterr().err
    assert f"{folder / 'manifest.json'}: error: field 'grid' is [99, 1, 1], and the kernel that ir/" in said


@pytest.mark.parametrize("bundle", ["matmul", "repacked", "function", "group"])
def test_a_launch_as_compiled_runs(request: pytest.FixtureRequest, bundle: str) -> None:
    assert main(["run", str(request.getfixturevalue(bundle)), *EMULATED]) == OK
