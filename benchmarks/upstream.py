"""LLVM's own integration tests on the emulator: docs/results/emulator_upstream.json.

    python benchmarks/upstream.py --source DIR [--filter TEXT] [--jobs N]

DIR holds, or gets, Debian's source package of LLVM (`apt-get source`, about 200 MB; nothing of it is copied into the
repository). Where it cannot be had the command says so, and ends with status 3. FileCheck (Debian: llvm-22-tools) or
the package `filecheck` compares what programs print with the tests' own CHECK lines.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from pieces import DOCS, said_command, write_result

from upstream_mends import MENDED_FILES, MENDS

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
# Tests of what a compiler prints: there is nothing to run.
_OF_COMPILERS = {
    "dump-ptx.mlir": "checks the PTX that a pass prints",
    "dump-sass.mlir": "checks the machine code that a pass prints",
    "command-line-arg.mlir": "checks the command line that ptxas is called with",
    "matrix-multiply-row.mlir": "sets the layout of matrices by a flag of mlir-runner, not in the IR",
    "flat-transpose-row.mlir": "sets the layout of matrices by a flag of mlir-runner, not in the IR",
}
# Findings that a test is about: of programs that are to fail.
_MEANT = {"assert.mlir": {"assertion"}}
_RUNTIME_VERIFICATION = {"assertion", "out-of-bounds", "misaligned"}


@dataclass
class Case:
    """A test and how it went.

    Attributes:
        status: "right" (the checks pass, nothing was found), "finding" (something was, and the mended copy is right),
            "found" (something was, and nothing mends it here), "wrong" or "unsupported".
        reason: the first line of the error, or of the first finding.
    """

    group: str
    name: str
    status: str = ""
    reason: str = ""
    findings: list[dict] = field(default_factory=list)


def fetch(folder: Path) -> Path | None:
    """Returns the tests' folder, downloaded where it is not there; None, with a message, where it cannot be had."""
    found = next(iter(folder.glob(f"{PACKAGE}*/mlir/test")), None)
    if found is not None:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("apt-get") is None:
        print("there is no apt-get: LLVM's tests cannot be had", file=sys.stderr)
        return None
    done = subprocess.run(
        ["apt-get", "source", "--download-only", "--tar-only", PACKAGE], cwd=folder, text=True, capture_output=True
    )
    archive = next(iter(folder.glob(f"{PACKAGE}_*.orig.tar.*")), None)
    if done.returncode or archive is None:
        print(
            f"apt-get source {PACKAGE} gives nothing; is a deb-src line in the sources?\n{done.stderr.strip()}",
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
    """Returns the function that a test's RUN lines name, or main."""
    found = re.search(r"\bentry_point\} = (\w+)|(?:^|\s)-e[= ](\w+)|-entry-point[= ](\w+)", text, re.MULTILINE)
    return next(filter(None, found.groups()), "main") if found else "main"


def passes(path: Path, printed: str) -> bool:
    """Returns whether what a test printed is what its CHECK lines say; true where there are none."""
    if not re.search(r"(//|#)\s*CHECK(-[A-Z]+)*:", path.read_text()):
        return True
    tool = next(filter(None, map(shutil.which, _FILECHECK)), None)
    if tool is None:
        raise SystemExit("there is no FileCheck: install llvm-22-tools, or pip install filecheck")
    return not subprocess.run(
        [tool, str(path), "--allow-empty"], input=printed, text=True, capture_output=True
    ).returncode


def run(path: Path, edited: Path | None = None) -> tuple[str, str, list[dict]]:
    """Returns how a test went: "right", "found", "wrong" or "unsupported", a reason, and the findings."""
    with tempfile.TemporaryDirectory() as folder:
        findings = Path(folder) / "findings.json"
        command = [sys.executable, str(CASE), str(path), entry_of(path.read_text()), str(findings)]
        try:
            done = subprocess.run(
                command + ([str(edited)] if edited else []), text=True, capture_output=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return "unsupported", f"takes more than {SECONDS} s", []
        if done.returncode == 2:
            return "unsupported", done.stderr.splitlines()[0], []
        found = json.loads(findings.read_text()) if findings.exists() else []
        if done.returncode < 0 or done.returncode and "Traceback" not in done.stderr:
            return "unsupported", f"ended with status {done.returncode}", []
        text = path.read_text()
        meant = _MEANT.get(path.name, _RUNTIME_VERIFICATION if "-generate-runtime-verification" in text else set())
        others = [finding for finding in found if finding["kind"] not in meant]
        right = not done.returncode and passes(path, done.stdout)
        if others:
            first = others[0]
            place = first["location"].rpartition("/")[2]
            return "found", f"{place} {first['kind']}: {first['message']}".strip(), others
        if right:
            return "right", "", found
        return "wrong", (done.stderr.strip().splitlines() or ["other output than its CHECK lines"])[-1], found


def mended(path: Path) -> bool | None:
    """Returns whether the mended copy of a test is right; None where there are no mends."""
    if not MENDS.get(path.name):
        return None
    with tempfile.TemporaryDirectory() as folder:
        # A test in Python imports what lies beside it.
        beside = path.suffix == ".py"
        if beside:
            shutil.copytree(path.parent, Path(folder) / "copy", ignore=shutil.ignore_patterns("*.mlir"))
        copy = Path(folder) / ("copy" if beside else "") / path.name
        name = MENDED_FILES.get(path.name, path.name)
        text = (path.parent / name).read_text()
        for pattern, replacement in MENDS[path.name]:
            text, count = re.subn(pattern, replacement, text)
            assert count, f"{name}: nothing matches {pattern}"
        (copy.parent / name).write_text(text)
        return run(path, copy)[0] == "right"


def outcome(group: str, root: Path, path: Path) -> Case:
    """Runs a test, and its mended copy where something is found."""
    case = Case(group, str(path.relative_to(root)))
    if path.name in _OF_COMPILERS:
        case.status, case.reason = "unsupported", _OF_COMPILERS[path.name]
        return case
    case.status, case.reason, case.findings = run(path)
    if case.status in ("found", "wrong"):
        case.status = "finding" if mended(path) else case.status
    return case


def main() -> int:
    """Runs the tests and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, metavar="DIR")
    parser.add_argument("--filter", default="", metavar="TEXT", help="only tests with TEXT in their path; no result")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    args = parser.parse_args()
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
                "command": said_command(),
                "package": PACKAGE,
                "date": datetime.now(timezone.utc).isoformat(),
                "cases": [asdict(case) | {"findings": len(case.findings)} for case in cases],
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
