"""Programs that documented commands find on PATH.

Those of the project are the real ones (`stand_in_project.py`). What a machine may lack (a network, a GPU, CMake, a
stock mlir-opt), or what would take hours, is recorded as a need of the command; the real program runs as far as it can,
and else the command line is checked: by the parser of the real program, or for files that are not there.

As a script: stand_ins.py PROGRAM ARGUMENT..., with the environment variables STAND_IN_LOG, a file that needs are
appended to, and STAND_IN_PLACE, where the command stands.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from stand_in_project import need as _need

NEEDS = ("network", "gpu", "cmake", "mlir-opt", "nvdisasm", "measurement")

# What a machine has before the project is installed, what an environment has, and what the extra `test` brings.
SYSTEM = ("python", "python3", "cmake", "mlir-opt", "nvdisasm", "less")
ENVIRONMENT = ("python", "python3", "pip")
TOOLS = ("lit", "pytest")
LINTERS = ("ruff", "pyright", "pre-commit")
_HERE = Path(__file__).resolve()


def install(folder: Path, programs: Iterable[str]) -> Path:
    """Writes programs to a folder, which may be there; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        path = folder / program
        path.unlink(missing_ok=True)  # in an environment, a link to the real one
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {_script_of(program)} {program} "$@"\n')
        path.chmod(0o755)
    return folder


def _script_of(program: str) -> str:
    """Returns the script of a program's stand-in: the project's need no packages, which Python takes long to find."""
    is_own = program in _PROGRAMS and not program.startswith("python")
    return f'"{_HERE}"' if is_own else f'-S "{_HERE.with_name("stand_in_project.py")}"'


def _project(checkout: Path) -> dict:
    try:
        import tomllib
    except ModuleNotFoundError:  # before Python 3.11
        import tomli as tomllib  # pyright: ignore[reportMissingImports]
    return tomllib.loads((checkout / "pyproject.toml").read_text())["project"]


def project_scripts(checkout: Path) -> dict[str, str]:
    """Returns name -> entry point of the programs that the project installs."""
    return _project(checkout)["scripts"]


def refused_requirements(requirements: Sequence[str], checkout: Path) -> list[str]:
    """Returns why pip could not install requirements: an extra that is not there, a package that nothing depends on.

    The project itself is on no index: it is installed by the path of its checkout.
    """
    project = _project(checkout)
    extras: dict[str, list[str]] = project["optional-dependencies"]
    every = [*project["dependencies"], *(name for names in extras.values() for name in names)]
    known = {re.split(r"[\[=<>~!; ]", name)[0].lower() for name in every} - {project["name"]}
    refused = []
    for requirement in requirements:
        name, _, rest = requirement.partition("[")
        name = re.split(r"[=<>]", name)[0]
        if name == ".":
            wanted = filter(None, rest.rstrip("]").split(","))
            refused += [f"no extra '{extra}'" for extra in wanted if extra not in extras]
        elif name.lower() not in known:
            refused.append(f"'{requirement}' is no package that the project depends on")
    return refused


def _run(*command: str) -> int:
    return subprocess.run(command).returncode


def _missing_files(names: Iterable[str]) -> int:
    """Returns an exit status: whether files that a command reads are there."""
    missing = [name for name in names if not Path(name).exists()]
    for name in missing:
        print(f"no such file: {name}", file=sys.stderr)
    return 1 if missing else 0


def _python(_: str, arguments: list[str]) -> int:
    if arguments[:2] == ["-m", "venv"]:
        venv.EnvBuilder().create(arguments[2])
        install(Path(arguments[2], "bin"), ENVIRONMENT)
        return 0
    return _run(sys.executable, *arguments)


def _pip(_: str, arguments: list[str]) -> int:
    _need("network")
    parser = argparse.ArgumentParser(prog="pip")
    parser.add_argument("command", choices=["install"])
    parser.add_argument("-e", "--editable", action="append", default=[])
    parser.add_argument("requirements", nargs="*")
    args = parser.parse_args(arguments)
    wanted = [*args.editable, *args.requirements]
    if refused := refused_requirements(wanted, Path.cwd()):
        parser.error("; ".join(refused))
    for requirement in wanted:
        if requirement.startswith("."):
            tools = (*(TOOLS if "test" in requirement else ()), *(LINTERS if "lint" in requirement else ()))
            install(Path(os.environ["VIRTUAL_ENV"], "bin"), (*project_scripts(Path.cwd()), *tools))
    return 0


def _cmake(_: str, arguments: list[str]) -> int:
    """CMake as it is, but a build only says what it would run."""
    _need("cmake")
    real = _other("cmake")
    if real and (_other("make") or _other("ninja")):
        return _run(real, *arguments, *(("--", "-n") if arguments[0] == "--build" else ()))
    target = re.search(r"--target (\S+)", " ".join(arguments))
    return 0 if target is None or target[1] in Path("CMakeLists.txt").read_text() else 1


def _mlir_opt(_: str, arguments: list[str]) -> int:
    _need("mlir-opt")
    real = os.environ.get("MLIR_OPT") or shutil.which("mlir-opt-22") or _other("mlir-opt")
    if real:
        return _run(real, *arguments)
    libraries = [
        found[1].split(",") for word in arguments if (found := re.search(r"transform-library-paths=(\S+)", word))
    ]
    return _missing_files([arguments[0], *(name for names in libraries for name in names)])


def _nvdisasm(_: str, arguments: list[str]) -> int:
    _need("nvdisasm")
    real = _other("nvdisasm")
    return _run(real, *arguments) if real else _missing_files(word for word in arguments if not word.startswith("-"))


def _less(_: str, arguments: list[str]) -> int:
    return _run("cat", *arguments)


def _lit(_: str, arguments: list[str]) -> int:
    """The real command line and all tests, none of which runs."""
    return _run(sys.executable, "-m", "lit.main", "--show-tests", *arguments)


def _pytest(_: str, arguments: list[str]) -> int:
    """The real command line; of the tests, those that it names, or those of the smallest file, and none runs."""
    named = any(argument.split("::")[0].endswith(".py") for argument in arguments)
    files = [] if named else [min(Path("test/unit").glob("test_*.py"), key=lambda path: path.stat().st_size)]
    return _run(sys.executable, "-m", "pytest", "--collect-only", *arguments, *map(str, files))


def _linter(program: str, _: list[str]) -> int:
    """Only checks that the extra `lint` has the program: a copy of the checkout is no repository."""
    extra = _project(Path.cwd())["optional-dependencies"]["lint"]
    return 0 if any(requirement.startswith(program) for requirement in extra) else 1


def _other(program: str) -> str | None:
    """Returns the program of this name that is no stand-in."""
    here = Path(sys.executable).parent  # where an environment has what pip brought
    folders = [
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not (Path(folder, program).is_file() and b"stand_ins.py" in Path(folder, program).read_bytes()[:500])
    ]
    return shutil.which(program, path=os.pathsep.join([*folders, str(here)]))


_PROGRAMS: dict[str, Callable[[str, list[str]], int]] = {
    "python": _python,
    "python3": _python,
    "pip": _pip,
    "cmake": _cmake,
    "mlir-opt": _mlir_opt,
    "nvdisasm": _nvdisasm,
    "less": _less,
    "lit": _lit,
    "pytest": _pytest,
    **dict.fromkeys(LINTERS, _linter),
}


if __name__ == "__main__":
    sys.exit(_PROGRAMS[sys.argv[1]](sys.argv[1], sys.argv[2:]))
