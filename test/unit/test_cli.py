"""The command line: exit statuses, messages, and that what runs on the GPU machine imports no MLIR."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn, cast

import pytest

from conftest import make_manifest
from stepladder import __version__
from stepladder.cli import function_bundle, opt
from stepladder.cli import main as cli
from stepladder.cli.commands import run
from stepladder.emulator import matmul
from stepladder.emulator.memory.findings import Finding
from stepladder.measure.tuning.database import default_path
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import FunctionBundle, write_bundle
from stepladder.runtime.errors import (
    BAD_INPUT,
    FAILED,
    NOT_EXECUTED,
    OK,
    StepladderError,
)
from stepladder.runtime.files import check_writable, write_json
from stepladder.runtime.resources import cache_dir
from stepladder.verify.report import CheckReport

RUNNER = Path(cli.__file__).resolve().parents[2]


def stepladder(*arguments: Path | str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "stepladder", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(RUNNER)} | environment,
    )


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "matmul.bundle", make_manifest(), b"cubin", "ptx", {})
    return tmp_path / "matmul.bundle"


@pytest.mark.parametrize("command", ["run", "bench"])
def test_no_gpu_is_a_status_of_its_own(bundle: Path, command: str) -> None:
    done = stepladder(command, bundle, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == NOT_EXECUTED
    assert done.stderr.startswith("error: ")
    assert "no kernel was launched" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "line, name",
    [
        (["payload", "matmul", "--m", "4", "--n", "4", "--k", "4", "-o", ""], "--output"),
        (["compile", "", "-o", "x"], "the input file"),
        (["explain", "x.mlir", "--pipeline", "wgmma", "--gpu", ""], "--gpu"),
        (["bench", "x.bundle", ""], "BUNDLE"),
        (["tune", ""], "PAYLOAD.mlir"),
        (["list", "--json", ""], "--json"),
        (["emulate", "x.mlir", "--expect", ""], "--expect"),
    ],
)
def test_an_empty_name_is_refused(line: list[str], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line) == BAD_INPUT
    assert capsys.readouterr() == ("", f"error: {name} is an empty name\n")


@pytest.mark.parametrize("option", ["--dump-dir", "--from", "--through", "--step"])
def test_an_empty_name_is_refused_by_opt(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["x.mlir", "--pipeline", "wmma", option, ""]) == BAD_INPUT
    assert capsys.readouterr() == ("", f"error: {option} is an empty name\n")


@pytest.mark.parametrize("option", ["--grid=1", "--dynamic-shared=0", "--tolerance=0", "--expect=0=x", "--plugin=x.py"])
def test_a_function_takes_no_options_of_one_kernel(option: str) -> None:
    args = cli._parser(["emulate"]).parse_args(["emulate", "f.bundle", option])
    with pytest.raises(StepladderError, match=f"{option.partition('=')[0]} is for one kernel or for IR"):
        function_bundle.emulate(args, cast(FunctionBundle, None))


def test_a_database_that_is_named_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.mlir").touch()
    for command in (["compile", "-o", str(tmp_path / "b")], ["explain", "--pipeline", "wgmma"]):
        assert cli.main([*command, str(tmp_path / "x.mlir"), "--database", str(tmp_path / "none.json")]) == BAD_INPUT
        assert capsys.readouterr().err.startswith("error: cannot read the tuning database '")


def test_a_user_without_a_home_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> NoReturn:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "STEPLADDER_CACHE_DIR", "STEPLADDER_TUNING_DATABASE"):
        monkeypatch.delenv(variable, raising=False)
    for folder, variable in ((cache_dir, "XDG_CACHE_HOME"), (default_path, "XDG_DATA_HOME")):
        with pytest.raises(StepladderError, match="the user has no home folder") as caught:
            folder()
        assert list(caught.value.notes) == [f"set HOME, or {variable}"]
        monkeypatch.setenv(variable, str(tmp_path))
        assert folder().is_relative_to(tmp_path / "stepladder")


def test_errors_are_rendered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", str(tmp_path / "nothing")]) == BAD_INPUT
    assert capsys.readouterr().err == f"error: no bundle at '{tmp_path / 'nothing'}': no such folder\n"


def test_control_characters_of_names_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", str(tmp_path / "\x1b[31mred")]) == 2
    assert capsys.readouterr().err == f"error: no bundle at '{tmp_path}/\\x1b[31mred': no such folder\n"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"stepladder {__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert all(f"    {name} " in text for name in cli.COMMANDS)
    assert "examples:" in text


@pytest.mark.parametrize(
    "arguments, command, message",
    [
        ([], "", "arguments are required: COMMAND"),
        (["runn", "x"], "", "invalid choice: 'runn' (did you mean 'run'?) (choose from"),
        (["list", "knob"], " list", "argument {pipelines,steps,knobs}: invalid choice: 'knob' (did you mean 'knobs'?)"),
        (["run"], " run", "arguments are required: BUNDLE"),
        (["run", "x", "--seed", "-1"], " run", "must be a non-negative integer, got '-1'"),
        (["run", "x", "y", "--sanitize"], " run", "unrecognized arguments: y --sanitize"),
        (["bench", "x", "--baseline", "mkl"], " bench", "invalid choice: 'mkl'"),
    ],
)
def test_bad_command_lines(
    arguments: list[str], command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One message, without the usage, which has more lines than a screen for some commands."""
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == BAD_INPUT
    error, note = capsys.readouterr().err.splitlines()
    assert error.startswith(f"stepladder{command}: error: ") and message in error
    assert note == f"note: stepladder{command} --help lists the options"


@pytest.mark.parametrize("arguments", [["run", "nothing"], ["bench", "nothing"], ["--help"], ["run", "--help"]])
def test_imports_no_mlir(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom stepladder.cli.main import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "heavy = {'mlir', 'torch_mlir', 'torch', 'llvmlite'} & {name.split('.')[0] for name in sys.modules}\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(RUNNER)}
    )
    assert done.returncode == 0, done.stderr


def test_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(args: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("stepladder.cli.commands.run.main", interrupt)
    assert cli.main(["run", "x"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_closed_pipe() -> None:
    script = (
        "import sys\nfrom stepladder.cli import main as cli\nfrom stepladder.cli.commands import run\n"
        "run.main = lambda args: print('x' * 1000000)\nsys.exit(cli.main(['run', 'x']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(RUNNER)},
    )
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_progress_that_cannot_be_written_is_lost(tmp_path: Path) -> None:
    """Results and the exit status are those of the command; messages of errors are lost too, and not the status."""
    command = [sys.executable, "-m", "stepladder", "list", "knobs", "--pipeline", "wmma", "--json", "-"]
    environment = os.environ | {"PYTHONPATH": str(RUNNER)}
    ends = [(["--json"], 2), ([], 0)]
    for further, status in ends:
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*command, *further], stdout=subprocess.PIPE, stderr=full, text=True, env=environment, cwd=tmp_path
            )
        assert done.returncode == status
    assert json.loads(done.stdout)[0]["pipeline"] == "wmma"


def test_result_file(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "result.json"))
    assert list(tmp_path.iterdir()) == []
    write_json(str(tmp_path / "result.json"), {"tflops": 1.5})
    assert (tmp_path / "result.json").read_text() == '{\n  "tflops": 1.5\n}\n'
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize(
    "place, message", [("missing/result.json", "No such file or directory"), ("", "it is a folder")]
)
def test_result_file_that_cannot_be_written(tmp_path: Path, place: str, message: str) -> None:
    with pytest.raises(StepladderError, match=f"cannot write .*: {message}"):
        check_writable(str(tmp_path / place))


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_writable(str(pipe))
    write_json(str(pipe), {"tflops": 1.5})
    assert b"1.5" in os.read(reader, 100)
    os.close(reader)
    assert pipe.is_fifo()


def test_result_file_is_tried_before_the_gpu(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", str(bundle), "--json", str(tmp_path / "missing/result.json")]) == BAD_INPUT
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize(
    "numbers, findings, result, status",
    [
        (True, 0, "PASS", OK),
        (False, 0, "FAIL", FAILED),
        (True, 1, "FAIL", FAILED),
    ],
)
def test_the_result_of_run_is_one_word(
    bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    numbers: bool,
    findings: int,
    result: str,
    status: int,
) -> None:
    report = CheckReport("exact", numbers, 1)
    found = [Finding("race", "gpu.barrier", "x.mlir:1:1", "a race")] * findings
    monkeypatch.setattr(run, "_checked", lambda args, bundle: ([report], {}, found))
    assert cli.main(["run", str(bundle)]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"exact: {'PASS' if numbers else 'FAIL'}: ")
    assert lines[-1] == f"result: {result}"


def test_a_payload_that_is_no_matmul_is_no_step_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the input computes is the payload's affair: no step has run."""
    text = matmul_text(64, 64, 64)
    wrong = matmul.StepReport("input", False, CheckReport("exact", False, 1))
    monkeypatch.setattr(matmul, "check_steps", lambda *arguments, **_: arguments[-1](wrong))
    request = Request("mma_sync", {"block_m": 64, "block_n": 64, "warp_m": 32, "warp_n": 32})
    with mlir_context():
        finished = run_pipeline(text, "matmul.mlir", request)
        with pytest.raises(StepladderError) as caught:
            opt._check_each_step(text, "matmul.mlir", request, finished)
    assert caught.value.message.startswith("the payload itself does not compute C = AB + C, 64 x 64 x 64")
    assert caught.value.location == "matmul.mlir" and caught.value.status == BAD_INPUT
