"""Kernels of modules that run alone: arguments that do not fit, and what else is refused, each with one message."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from stepladder.cli import main as cli
from stepladder.runtime.errors import BAD_INPUT, FAILED, OK

INPUTS = Path(__file__).resolve().parents[1] / "inputs" / "emulator"
KERNELS = str(INPUTS / "kernels.mlir")
SCALE = str(INPUTS / "scale.ptx")
ONE = ["--grid", "1", "--block", "64"]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = BAD_INPUT) -> str:
    """Returns the one message of a run that is refused."""
    assert cli.main(["emulate", *arguments]) == status
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert sum("error: " in line for line in lines) == 1 and "Traceback" not in captured.err, captured.err
    assert not captured.out
    return captured.err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ["--kernel", "axp", *ONE],
            "kernels.mlir: error: there is no kernel @axp (did you mean 'axpy'?)\nnote: ",
        ),
        (ONE, "error: there are several kernels: select one by --kernel\nnote: kernels: kernels::axpy, "),
        (
            ["--kernel", "axpy", "--block", "64"],
            "kernels.mlir:4:5: error: kernel kernels::axpy needs --grid and --arguments too\n"
            "note: its parameters: memref<?xf32>, memref<?xf32>, f32, index",
        ),
        (
            ["--kernel", "axpy", *ONE, "--arguments", "4xf32"],
            "kernel @kernels::axpy takes 4 arguments, and 1 were given: memref<?xf32>, memref<?xf32>, f32, index",
        ),
        (
            ["--kernel", "axpy", *ONE, "--arguments", "4xf16,4xf32,1:f32,4:i32"],
            "takes memref<?xf32> as argument 0, and an array 4xf16 was given: give an array such as 16xf32",
        ),
        (
            ["--kernel", "axpy", *ONE, "--arguments", "4xf32,4xf32,1:f64,4:i32"],
            "takes f32 as argument 2, and a number of type f64 was given: give a scalar such as 7:f32",
        ),
        (
            ["--kernel", "tile", *ONE, "--arguments", "8x5xf32,4x8xf32"],
            "takes memref<8x4xf32> as argument 0, and an array 8x5xf32 was given: give an array such as 8x4xf32",
        ),
        (
            ["--kernel", "expanded", *ONE, "--arguments", "8x4xf32,8xf32,1:i64"],
            "takes 15 arguments, and 3 were given",
        ),
        (
            ["--kernel", "scale", *ONE, "--arguments", "4xf32,4:i64,4:i32"],
            "takes !llvm.ptr<1> as argument 1, and a number of type i64 was given: give an array such as 64x64xf32",
        ),
        (["--kernel", "scale", *ONE, "--arguments", "4xf32,4xf32,4.5:i32"], "'4.5:i32' is not an integer"),
        (["--kernel", "scale", *ONE, "--arguments", "4xf32,4xf32,1.2.3:f32"], "'1.2.3:f32' must be 256x128xf16"),
        (["--kernel", "scale", *ONE, "--arguments", "4xf32,4xf32,4000000000000:i32"], "does not fit i32, which goes"),
        (["--kernel", "scale", *ONE, "--arguments", "4xf32,4xf99,4:i32"], "has the element type 'f99', which there"),
        (["--kernel", "scale", *ONE, "--arguments", "4x0xf32,4xf32,4:i32"], "has a size of 0"),
        (
            ["--kernel", "scale", *ONE, "--arguments", "4x8xf32[4x4,48b],4xf32,4:i32"],
            "a swizzle of 48 bytes; accepted: 32, 64",
        ),
        (
            ["--kernel", "scale", *ONE, "--arguments", "90000000000x1000xf32,4xf32,4:i32"],
            "kernels.mlir:25:5: error: kernel kernels::scale with these arguments needs ",
        ),
        (
            ["--kernel", "scale", "--grid", "3", "--cluster", "2", "--block", "64", "--arguments", "4xf32,4xf32,4:i32"],
            "has a grid of [3, 1, 1], which clusters of [2, 1, 1] do not divide",
        ),
        (["--kernel", "scale", "--function", "golden", *ONE], "--function runs a host function, and --kernel"),
        (["--function", "axpy"], "there is no function @axpy with a body\nnote: functions: golden, "),
        (["--function", "axpy"], "; --kernel, --grid and --block run one alone"),
        (["--kernel", "axpy", *ONE, "--arguments", "no.npy,4xf32,1:f32,4:i32"], "cannot read input 'no.npy'"),
        (
            ["--kernel", "tile", *ONE, "--reference", "golden"],
            "the reference must take the arguments of @kernels::",
        ),
        (["--kernel", "tile", *ONE, "--reference", "gone"], "there is no function @gone with a body"),
        (["--kernel", "tile", *ONE, "--reference", "gone.mlir:golden"], "cannot read 'gone.mlir'"),
    ],
)
def test_what_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    assert message in refused(capsys, KERNELS, *arguments, "--output", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_an_endless_loop_ends(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    text = refused(capsys, KERNELS, "--kernel", "endless", *ONE, "--max-steps", "999", "--output", out, status=FAILED)
    assert "kernels.mlir:" in text and "error: stopped after 999 steps, at gpu.thread_id: an endless loop?" in text
    assert not Path(out).exists()


def test_all_unknown_ops_of_a_kernel_are_in_one_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = refused(capsys, str(INPUTS / "unknown-kernel.mlir"), "--kernel", "k", *ONE)
    first, *notes = text.splitlines()
    assert first.endswith("unknown-kernel.mlir:4:12: error: the emulator does not support shape.const_size")
    assert notes[0] == "note: and in 1 more place"
    assert notes[1].endswith("unknown-kernel.mlir:6:12: the emulator does not support shape.const_witness")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--arguments", "4xf32,4xf32,1:f32,4.5:i32"], "'4.5:i32' is not an integer"),
        (["--arguments", "4xf32,4xf32,1:f32,9:i64"], "takes 4 bytes as argument 3 (.param .u32 count), and a number"),
        (["--arguments", "4xf32,4xf32,1:f32,4:i32", "--reference", "golden"], "PTX has no function @golden"),
        (["--arguments", "4xf32,4xf32,1:f32,4:i32", "--expect", "7=none.npy"], "cannot read input 'none.npy'"),
        (["--arguments", "900000000000x100xf32,4xf32,1:f32,4:i32"], "scale.ptx:6:17: error: kernel scale with these"),
    ],
)
def test_what_is_refused_of_ptx(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    assert message in refused(capsys, SCALE, *ONE, *arguments, "--output", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_memref_of_one_element_takes_an_array_of_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kernel = tmp_path / "one.mlir"
    kernel.write_text(
        """
        gpu.module @m {
          gpu.func @k(%x: memref<f32>, %s: i1, %y: memref<4xf32>) kernel {
            %t = gpu.thread_id x
            %v = memref.load %x[] : memref<f32>
            %z = arith.constant 0.0 : f32
            %w = arith.select %s, %v, %z : f32
            memref.store %w, %y[%t] : memref<4xf32>
            gpu.return
          }
        }"""
    )
    command = ["emulate", str(kernel), "--kernel", "k", "--grid", "1", "--block", "4", "--output", str(tmp_path)]
    assert cli.main([*command, "--arguments", "1xf32=7,1:i1,4xf32=out"]) == OK
    assert np.load(tmp_path / "argument2.npy").tolist() == [7, 7, 7, 7]
    capsys.readouterr()
    text = refused(capsys, *command[1:], "--arguments", "2xf32,1:i1,4xf32")
    assert "takes memref<f32> as argument 0, and an array 2xf32 was given: give an array such as 1xf32" in text


FAULTS = INPUTS / "faults"


def notes_of(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str, old: str, new: str, *arguments: str
) -> list[str]:
    """Returns the notes of the findings of a program of `planted` in which a text is replaced."""
    text = (FAULTS / file).read_text()
    assert old in text
    edited = tmp_path / file
    edited.write_text(text.replace(old, new))
    assert cli.main(["emulate", str(edited), *arguments]) == FAILED
    lines = capsys.readouterr().out.replace(str(tmp_path) + "/", "").splitlines()
    return [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]


def test_notes_name_the_element_of_a_buffer_and_the_iteration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    notes = notes_of(
        capsys, tmp_path, "cp_async.mlir", "nvgpu.device_async_wait %g0", "// ", "--kernel", "pipelined", "--grid", "1",
        "--block", "64",
    )  # fmt: skip
    element = r"byte (0x[0-9a-f]+) of shared memory is element \[0, (\d+)\] of %s \(cp_async.mlir:7:19\)"
    found = [match for match in (re.fullmatch(element, note) for note in notes) if match]
    assert found and all(int(match[1], 16) == 4 * int(match[2]) for match in found)
    assert any(
        re.fullmatch(r"in iteration 2 of scf.for at cp_async.mlir:\d+:7, where its induction variable is 2", note)
        for note in notes
    )


def test_notes_name_mbarriers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    notes = notes_of(
        capsys, tmp_path, "tma.mlir", "nvgpu.mbarrier.init %bars[%c1], %c1", "// ", "--kernel", "tma", "--grid", "1",
        "--block", "64", "--arguments", "32x64xf16,32x64xf16",
    )  # fmt: skip
    assert any(note.startswith("byte 0x1008 of shared memory is mbarrier 1 of %bars (tma.mlir:") for note in notes)


def test_notes_name_variables_of_ptx(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    notes = notes_of(
        capsys, tmp_path, "warps.ptx", "\n  bar.sync 0;", "", "--grid", "1", "--block", "128", "--arguments",
        "256xi32,2xi32",
    )  # fmt: skip
    assert "byte 0x4 of shared memory is byte 0x4 of @part" in notes


def test_notes_name_no_numbers_of_the_launch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Threads of this block have 255 registers, which is no offset in shared memory."""
    notes = notes_of(
        capsys, tmp_path, "warps.ptx", "part[16];", "part[16], rest[512];\n  ld.shared.u32 %r39, [rest+500];",
        "--grid", "1", "--block", "128", "--arguments", "256xi32,2xi32",
    )  # fmt: skip
    assert "byte 0x204 of shared memory is byte 0x1f4 of @rest" in notes


TRANSPOSED = """func.func @golden(%x: memref<8x4xf32, strided<[6, 1], offset: 2>>, %y: memref<4x8xf32>) {{
  affine.for %i = 0 to 4 {{
    affine.for %j = 0 to {columns} {{
      %u = memref.load %x[%j, %i] : memref<8x4xf32, strided<[6, 1], offset: 2>>
      memref.store %u, %y[%i, %j] : memref<4x8xf32>
    }}
  }}
  return
}}
"""


def test_places_are_in_the_file_that_ran_beside_a_reference_of_another(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report, reference = tmp_path / "report.json", tmp_path / "reference.mlir"
    words = [KERNELS, "--kernel", "tile", "--grid", "4", "--block", "8", "--reference", str(reference)]
    reference.write_text(TRANSPOSED.format(columns=8))
    assert cli.main(["emulate", *words, "--json", str(report)]) == OK
    accesses = json.loads(report.read_text())["counters"]["accesses"]
    assert accesses and all("kernels.mlir:" in access["location"] for access in accesses)
    capsys.readouterr()
    reference.write_text(TRANSPOSED.format(columns=9))
    text = refused(capsys, *words)
    assert "reference.mlir:4:12: error: the reference @golden is invalid: out-of-bounds: memref.load: " in text
