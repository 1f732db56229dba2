"""The CMake targets name what they lack; with all of it they run the project's own commands."""

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from documented import ROOT

pytestmark = [
    pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake"),
    pytest.mark.skipif(not (shutil.which("make") or shutil.which("ninja")), reason="needs make or ninja"),
    pytest.mark.skipif(not (ROOT / "CMakeLists.txt").is_file(), reason="not a checkout"),
]


def _configure(build: Path, *options: str, **environment: str) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run(
        ["cmake", "-S", ROOT, "-B", build, *options], env=kept | environment, check=True, capture_output=True
    )


def _build(build: Path, target: str, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        ["cmake", "--build", build, "--target", target, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build folder that was configured in an environment with nothing but Python."""
    environment = tmp_path_factory.mktemp("bare") / "environment"
    venv.EnvBuilder().create(environment)
    build = environment.parent / "build"
    _configure(build, "-DMLIR_OPT=MLIR_OPT-NOTFOUND", VIRTUAL_ENV=str(environment))
    return build


@pytest.mark.parametrize("target", ["check", "demo"])
def test_an_environment_without_the_project_is_named(bare: Path, target: str) -> None:
    status, output = _build(bare, target)
    assert status != 0
    assert f"{bare.parent / 'environment'}" in output and "cannot import: stepladder" in output
    assert "Activate an environment" in output and "Traceback" not in output


def test_a_missing_mlir_opt_is_named(bare: Path) -> None:
    status, output = _build(bare, "check-stock")
    assert status != 0
    assert "CMake finds no stock mlir-opt 22" in output and "-DMLIR_OPT=PATH" in output
    assert "not found" not in output, "the shell ran a part of the note"


def test_targets_run_the_commands_of_the_project(tmp_path: Path) -> None:
    _configure(
        tmp_path,
        f"-DMLIR_OPT={shutil.which('true')}",
        PATH=os.environ["PATH"],
        VIRTUAL_ENV=os.environ.get("VIRTUAL_ENV", ""),
    )
    for target, command in (
        ("check", "-m lit.main -sv"),
        ("check", "-m pytest -q -n auto"),
        ("check-stock", f"MLIR_OPT={shutil.which('true')}"),
        ("demo", "-m stepladder demo"),
    ):
        status, output = _build(tmp_path, target, "--", "-n")
        assert status == 0 and command in output
