"""Runs LLVM's integration tests on the emulator: docs/results/emulator_upstream.json.

    python benchmarks/upstream.py --source DIR [--filter TEXT] [--jobs 2]

DIR contains Debian's source package of LLVM, or the script downloads it there (`apt-get source`, about 200 MB); the
exit status is 3 if that fails. FileCheck (Debian: llvm-22-tools) or the package `filecheck` compares the output of the
programs with the CHECK lines of the tests.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import DOCS, command_line, new_parser, write_result
from common import run as run_script
from upstream_case import scheduled
from upstream_fixes import FIXED_FILES, FIXED_SCHEDULED, FIXES

PACKAGE = "llvm-toolchain-22"
CASE = Path(__file__).with_name("upstream_case.py")
SECONDS = 900  # that a test may take
NOT_HAD = 3  # exit status
_GROUPS = {
    "CUDA": ("Integration/GPU/CUDA", ("**/*.mlir", "sm90/python/matmul.py")),
    "NVGPU": ("Examples/NVGPU", ("Ch?.py",)),
    "CPU": ("Integration/Dialect", ("Vector/CPU/*.mlir", "Linalg/CPU/*.mlir", "Arith/CPU/*.mlir", "MemRef/*.mlir")),
}
_FILECHECK = ("FileCheck", "FileCheck-22", "/usr/lib/llvm-22/bin/FileCheck", "filecheck")
# Tests of a compiler's output, which execute nothing.
_OF_COMPILERS = {
    "dump-ptx.mlir": "checks the PTX that a pass prints",
    "dump-sass.mlir": "checks the machine code that a pass prints",
    "command-line-arg.mlir": "checks the command line that ptxas is called with",
    "matrix-multiply-row.mlir": "sets the layout of matrices by a flag of mlir-runner, not in the IR",
    "flat-transpose-row.mlir": "sets the layout of matrices by a flag of mlir-runner, not in the IR",
}
# Findings that a test expects, because its program is meant to fail.
_MEANT = {"assert.mlir": {"assertion"}}
_RUNTIME_VERIFICATION = {"assertion", "assumption", "out-of-bounds", "misaligned"}


@dataclass
class Case:
    """A test and its outcome.

    Attributes:
        status: "right" (the checks pass without a finding), "finding" (with findings, and the fixed copy passes),
            "found" (with findings, and no fixed copy passes), "wrong" or "unsupported".
        reason: the first line of the error, or of the first finding.
    """

    group: str
    name: str
    status: str = ""
    reason: str = ""
    findings: list[dict] = field(default_factory=list)


def fetch(folder: Path) -> Path | None:
    """Returns the folder of the tests, downloaded where it is missing.

    Args:
        folder: of the download.

    Returns:
        The folder; None, with a message, where the download fails.
    """
    tests = next(iter(folder.glob(f"{PACKAGE}*/mlir/test")), None)
    if tests is not None:
        return tests
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("apt-get") is None:
        print("LLVM's tests are not downloaded: there is no apt-get", file=sys.stderr)
        return None
    process = subprocess.run(
        ["apt-get", "source", "--download-only", "--tar-only", PACKAGE], cwd=folder, text=True, capture_output=True
    )
    archive = next(iter(folder.glob(f"{PACKAGE}_*.orig.tar.*")), None)
    if process.returncode or archive is None:
        print(
            f"apt-get source {PACKAGE} fails; it needs a deb-src line in the sources\n{process.stderr.strip()}",
            file=sys.stderr,
        )
        return None
    roots = [
        f"*/mlir/test/{folder}"
        for folder in (
            "Integration/GPU/CUDA",
            "Examples/NVGPU",
            *(f"Integration/Dialect/{dialect}" for dialect in ("Vector", "Linalg", "Arith", "MemRef")),
        )
    ]
    subprocess.run(["tar", "-xf", archive.name, "--wildcards", *roots], cwd=folder, check=True)
    return next(iter(folder.glob(f"{PACKAGE}*/mlir/test")), None)


def entry_of(text: str) -> str:
    """Returns the function that a test's RUN lines name, or main.

    Args:
        text: of the test.
    """
    match = re.search(r"\bentry_point\} = (\w+)|(?:^|\s)-e[= ](\w+)|-entry-point[= ](\w+)", text, re.MULTILINE)
    return next(filter(None, match.groups()), "main") if match else "main"


def passes(path: Path, printed: str) -> bool:
    """Returns whether the output of a test matches its CHECK lines; true where it has none.

    Args:
        path: of the test.
        printed: the output.

    Raises:
        SystemExit: FileCheck is not installed.
    """
    if not re.search(r"(//|#)\s*CHECK(-[A-Z]+)*:", path.read_text()):
        return True
    tool = next(filter(None, map(shutil.which, _FILECHECK)), None)
    if tool is None:
        raise SystemExit("needs FileCheck: install llvm-22-tools, or pip install filecheck")
    return not subprocess.run(
        [tool, str(path), "--allow-empty"], input=printed, text=True, capture_output=True
    ).returncode


def run(path: Path, edited: Path | None = None) -> tuple[str, str, list[dict]]:
    """Runs a test.

    Args:
        path: of the test.
        edited: a copy of the test to run in its place.

    Returns:
        The outcome ("right", "found", "wrong" or "unsupported"), a reason, and the findings.
    """
    with tempfile.TemporaryDirectory() as folder:
        findings = Path(folder) / "findings.json"
        command = [sys.executable, str(CASE), str(path), entry_of(path.read_text()), str(findings)]
        try:
            process = subprocess.run(
                command + ([str(edited)] if edited else []), text=True, capture_output=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return "unsupported", f"takes more than {SECONDS} s", []
        if process.returncode == 2:
            return "unsupported", process.stderr.splitlines()[0], []
        reported = json.loads(findings.read_text()) if findings.exists() else []
        if process.returncode < 0 or (process.returncode and "Traceback" not in process.stderr):
            return "unsupported", f"ended with status {process.returncode}", []
        text = path.read_text()
        meant = _MEANT.get(path.name, _RUNTIME_VERIFICATION if "-generate-runtime-verification" in text else set())
        unexpected = [finding for finding in reported if finding["kind"] not in meant]
        right = not process.returncode and passes(path, process.stdout)
        if unexpected:
            first = unexpected[0]
            place = first["location"].rpartition("/")[2]
            return "found", f"{place} {first['kind']}: {first['message']}".strip(), unexpected
        if right:
            return "right", "", reported
        return "wrong", (process.stderr.strip().splitlines() or ["other output than its CHECK lines"])[-1], reported


def passes_when_fixed(path: Path) -> bool | None:
    """Returns whether the fixed copy of a test passes; None where the test has no fixes.

    Args:
        path: of the test.
    """
    if not FIXES.get(path.name):
        return None
    with tempfile.TemporaryDirectory() as folder:
        # A test in Python imports modules of its folder.
        beside = path.suffix == ".py"
        if beside:
            shutil.copytree(path.parent, Path(folder) / "copy", ignore=shutil.ignore_patterns("*.mlir"))
        copy = Path(folder) / ("copy" if beside else "") / path.name
        name = FIXED_FILES.get(path.name, path.name)
        text = (path.parent / name).read_text()
        if path.name in FIXED_SCHEDULED:
            text = scheduled(text, name)
        for pattern, replacement in FIXES[path.name]:
            text, count = re.subn(pattern, replacement, text)
            assert count, f"{name}: nothing matches {pattern}"
        (copy.parent / name).write_text(text)
        return run(path, copy)[0] == "right"


def outcome(group: str, root: Path, path: Path) -> Case:
    """Runs a test, and its fixed copy where it has findings.

    Args:
        group: of the test.
        root: the folder that the name of the test is relative to.
        path: of the test.

    Returns:
        The case with its status, reason and findings.
    """
    case = Case(group, str(path.relative_to(root)))
    if path.name in _OF_COMPILERS:
        case.status, case.reason = "unsupported", _OF_COMPILERS[path.name]
        return case
    case.status, case.reason, case.findings = run(path)
    if case.status in ("found", "wrong"):
        case.status = "finding" if passes_when_fixed(path) else case.status
    return case


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--source", type=Path, required=True, metavar="DIR", help="folder of LLVM's source package")
    parser.add_argument("--filter", default="", metavar="TEXT", help="only tests with TEXT in their path; no result")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="tests that run at a time (default: 1)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tests and writes the result; returns the exit status.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    tests = fetch(args.source)
    if tests is None:
        return NOT_HAD
    work = [
        (group, tests / root, path)
        for group, (root, patterns) in _GROUPS.items()
        for pattern in patterns
        for path in sorted((tests / root).glob(pattern))
        if args.filter in str(path.relative_to(tests))
    ]
    with ThreadPoolExecutor(args.jobs) as pool:
        cases = []
        for case in pool.map(lambda item: outcome(*item), work):
            cases.append(case)
            print(f"{case.status:12} {case.group:6} {case.name}  {case.reason[:150]}", flush=True)
    for group in _GROUPS:
        counts = {
            status: sum(case.group == group and case.status == status for case in cases)
            for status in ("right", "finding", "found", "wrong", "unsupported")
        }
        print(group, counts)
    if not args.filter:
        write_result(
            DOCS / "results" / "emulator_upstream.json",
            {
                "command": command_line(),
                "package": PACKAGE,
                "date": datetime.now(timezone.utc).isoformat(),
                "cases": [asdict(case) | {"findings": len(case.findings)} for case in cases],
            },
        )
    return 0


if __name__ == "__main__":
    run_script(main)
