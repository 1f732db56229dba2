"""Options that a command does not take together, or not for its input: one message, and nothing is written."""

from pathlib import Path

import numpy as np
import pytest

from stepladder.cli.main import main
from stepladder.runtime import bundle
from stepladder.runtime.bundle import Bundle, FunctionBundle
from stepladder.runtime.errors import BAD_INPUT

PTX = Path(__file__).resolve().parents[1] / "inputs" / "emulator" / "scale.ptx"
LAUNCH = ("--kernel", "scale", "--grid", "4", "--block", "128")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("report - - -o page.html", "standard input is given twice, and can be read once"),
        ("report folder --target sm_80 -o page.html", "--target applies to payloads, and 'folder' is a folder"),
        ("report folder --set block_m=64 -o page.html", "--set applies to payloads"),
        ("report folder --gpu h100 -o page.html", "--gpu applies to payloads"),
        ("report folder --pipeline wmma -o page.html", "--pipeline applies to payloads"),
        ("tune build x.mlir --folder plan --json -", "tune build has no measurements for --json"),
        ("tune build x.mlir", "tune build requires --folder, where `tune build` writes kernels"),
        ("tune measure", "tune measure requires --folder, where `tune build` writes kernels"),
        ("tune build --folder plan", "tune build requires a payload"),
        ("tune measure x.mlir --folder plan", "tune measure takes no payloads, got x.mlir"),
        ("demo --layer embedding", "unknown layer 'embedding'"),
        (f"emulate {PTX} --expect 0=x.npy,0=y.npy", "--expect has two files for 0"),
        (f"emulate {PTX} --expect first=x.npy", "--expect takes NUMBER=FILE.npy, separated by commas"),
    ],
)
def test_options_that_exclude_each_other(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    assert main(line.split()) == BAD_INPUT
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"error: {message}"), err.count("error")) == ("", True, 1), err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


REORDERED = """func.func @f(%a: tensor<2x3x8x4xf32>, %b: tensor<5x3x4x8xf32>, %c: tensor<2x5x8x8xf32>)
    -> tensor<2x5x8x8xf32> {
  %r = linalg.contract indexing_maps = [affine_map<(m, n, k, x, y, z) -> (m, k, x, z)>,
      affine_map<(m, n, k, x, y, z) -> (n, k, z, y)>, affine_map<(m, n, k, x, y, z) -> (m, n, x, y)>]
      ins(%a, %b : tensor<2x3x8x4xf32>, tensor<5x3x4x8xf32>) outs(%c : tensor<2x5x8x8xf32>) -> tensor<2x5x8x8xf32>
  return %r : tensor<2x5x8x8xf32>
}
"""


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("split_k=2", "pipeline 'mma_sync' has no knob 'split_k'"),
        ("stages=0", "knob 'stages' of pipeline 'mma_sync' cannot be 0"),
    ],
)
def test_a_knob_that_the_matmuls_of_a_function_do_not_have(
    setting: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The knob is what is refused; the order of dimensions that one kernel does not take is a note."""
    file = tmp_path / "reordered.mlir"
    file.write_text(REORDERED)
    arguments = ["--pipeline", "mma_sync", "--target", "sm_80", "--set", setting, "-o", str(tmp_path / "out")]
    assert main(["compile", str(file), *arguments]) == BAD_INPUT
    first, *notes = capsys.readouterr().err.splitlines()
    assert message in first
    assert any("the dimensions of C are in an order" in note for note in notes)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bench function kernel", "'function' is a bundle of a function, and 'kernel' of a single kernel"),
        ("bench function --ceiling", "--ceiling is for bundles of one matmul, and 'function' is a function's"),
        ("bench function --rotate", "--rotate is for bundles of one matmul, and 'function' is a function's"),
    ],
)
def test_benchmarks_of_functions(
    line: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read(path: str) -> Bundle | FunctionBundle:
        read_bundle = object.__new__(FunctionBundle if path == "function" else Bundle)
        object.__setattr__(read_bundle, "path", Path(path))
        return read_bundle

    monkeypatch.setattr(bundle, "read_any", read)
    assert main(line.split()) == BAD_INPUT
    assert capsys.readouterr().err.startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ("x.npy,512xf32,2.5:f32,512:i32", ["--inputs", "x.npy"], "--inputs and files in --arguments are two ways"),
        ("raw.npy,512xf32,2.5:f32,512:i32", [], "input 'raw.npy' is of |V3: give its shape and type here"),
        ("none.npy,512xf32,2.5:f32,512:i32", [], "cannot read input 'none.npy': No such file or directory"),
    ],
)
def test_arrays_of_kernels(
    arguments: str,
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros(512, np.float32))
    np.save("raw.npy", np.zeros(512, "V3"))
    assert main(["emulate", str(PTX), *LAUNCH, "--arguments", arguments, *options]) == BAD_INPUT
    assert f"error: {message}" in capsys.readouterr().err
