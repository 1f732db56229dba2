"""The tuning database: one JSON file a user, with the fastest measured knobs of every problem that was tuned.

An entry is for a GPU, a problem, the text of a pipeline and the versions of the tools that made the kernels. Whoever
adds an entry locks a file beside the database, reads it, and replaces it as a whole, so that several processes can use
one database and an interruption does not damage it. A file that cannot be read, or that a newer version of the package
wrote, is never overwritten: readers print a warning, and a writer renames it first.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from stepladder.runtime.bundle.fields import Fields, parse_object
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.files import check_writable, write_json
from stepladder.runtime.problem import Problem
from stepladder.runtime.resources import user_dir

SCHEMA_VERSION = 1
VARIABLE = "STEPLADDER_TUNING_DATABASE"

Knobs = dict[str, int | str]


def default_path() -> Path:
    """Returns the user's database: STEPLADDER_TUNING_DATABASE, or a file in the user's data folder.

    Raises:
        StepladderError: the user has no home folder.
    """
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    return user_dir("XDG_DATA_HOME", ".local/share") / "tuning.json"


PASSED, FAILED_CHECK = "PASS", "FAIL"


@dataclass(frozen=True)
class Candidate:
    """A setting that was tried for a problem.

    Args:
        knobs: of the setting.
        predicted_microseconds: of a launch, by the cost model.
        microseconds: of a launch, the median; None where the kernel was not measured.
        check: PASSED or FAILED_CHECK, the check of the results; None where the kernel did not run to its end.
        reason: why the kernel was not measured, else an empty text.
    """

    knobs: Knobs
    predicted_microseconds: float
    microseconds: float | None
    check: str | None
    reason: str = ""


@dataclass(frozen=True)
class Entry:
    """The fastest measured knobs of a problem.

    Args:
        gpu: that it was measured on, as the driver calls it.
        target: of the kernel.
        problem: `problem_key` of the problem.
        pipeline: name of the pipeline, for people.
        digest: of the pipeline's text.
        knobs: the fastest ones.
        microseconds: of a launch, the median.
        of_cublas: median ratio of cuBLAS's time to this one; None where it was not measured.
        measured: settings that were measured.
        excluded: setting -> why it was not: wrong results, no result in time.
        date: of the measurement, ISO 8601.
        tool_versions: of what made the kernels.
        candidates: all settings that were tried, in the order of the plan; none in entries of earlier versions.
    """

    gpu: str
    target: str
    problem: str
    pipeline: str
    digest: str
    knobs: Knobs
    microseconds: float
    of_cublas: float | None
    measured: int
    date: str
    tool_versions: dict[str, str]
    excluded: dict[str, str] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str, tuple[tuple[str, str], ...]]:
        """Returns what there is one entry for."""
        return self.gpu, self.target, self.problem, self.digest, tuple(sorted(self.tool_versions.items()))


def problem_key(problem: Problem) -> str:
    """Returns the text that represents a problem: sizes, types, those of the products where they are others, layouts,
    whether it accumulates, and its epilogue; of a batch also what is broadcast.

    Args:
        problem: of a kernel.
    """
    batch = "" if problem.batch is None else f"{problem.batch}x"
    broadcast = "".join(
        f" {role}-broadcast" for role, is_one in (("a", problem.a_broadcast), ("b", problem.b_broadcast)) if is_one
    )
    products = "" if problem.compute_type == problem.a_type else f"({problem.compute_type})"
    return (
        f"{batch}{problem.m}x{problem.n}x{problem.k} {problem.a_type}x{problem.b_type}{products}->{problem.acc_type}->"
        f"{problem.c_type} {problem.a_layout}-{problem.b_layout}{broadcast}"
        f"{' accumulate' if problem.accumulate else ''}{_epilogue_key(problem)}"
    )


def _epilogue_key(problem: Problem) -> str:
    """Returns the text that represents the elementwise ops after a product; empty where there are none.

    Those before it are kernels of their own, which knobs do not change.
    """
    if not problem.has_epilogue:
        return ""
    operands = "".join(
        f" {'x'.join(map(str, (*operand.shape, operand.element_type)))}" for operand in problem.epilogue_operands
    )
    results = "".join(
        f" stores {'x'.join(map(str, (*result.shape, result.element_type)))}" for result in problem.results
    )
    pair = "" if problem.second_b is None else f" pair d{problem.second_b}"
    return f" {','.join(problem.consumers)}{operands}{results}{pair}"


class _Unusable(Exception):
    """A file that is no database of this version; `suffix` is what it is renamed with."""

    def __init__(self, reason: str, suffix: str) -> None:
        super().__init__(reason)
        self.suffix = suffix


class Database:
    """A tuning database.

    Args:
        path: its file, which need not exist.
        warn: called with a line where the file is damaged or newer; default: print to standard error.
    """

    def __init__(self, path: Path, warn: Callable[[str], None] | None = None) -> None:
        self.path = path
        self._warn = warn or (lambda line: print(line, file=sys.stderr, flush=True))

    def entries(self) -> list[Entry]:
        """Returns all entries; none, with a line to the user, where the file is damaged or newer.

        Raises:
            StepladderError: the file cannot be opened.
        """
        try:
            return self._read()
        except _Unusable as error:
            self._warn(f"warning: the tuning database '{self.path}' {error}; it is neither used nor changed")
            return []

    def find(self, problem: str, digest: str, target: str, gpu: str | None = None) -> list[Entry]:
        """Returns the entries for a problem, the latest first.

        Args:
            problem: `problem_key`.
            digest: of the pipeline's text.
            target: of the kernel.
            gpu: that it must be measured on; None for any of the target.
        """
        matches = [
            entry
            for entry in self.entries()
            if (entry.problem, entry.digest, entry.target) == (problem, digest, target) and gpu in (None, entry.gpu)
        ]
        return sorted(matches, key=lambda entry: entry.date, reverse=True)

    def check_writable(self) -> None:
        """Finds out whether the database can be written, before work is done whose result it is to hold.

        Raises:
            StepladderError: it cannot.
        """
        with self._locked():
            check_writable(str(self.path))

    def add(self, entry: Entry) -> None:
        """Adds an entry, or replaces the one with its key.

        Args:
            entry: the fastest knobs of a problem, with what they were measured on.

        Raises:
            StepladderError: the file cannot be written.
        """
        with self._locked():
            try:
                entries = self._read()
            except _Unusable as error:
                self._set_aside(error)
                entries = []
            others = [item for item in entries if item.key != entry.key]
            write_json(
                str(self.path),
                {"schema_version": SCHEMA_VERSION, "entries": [asdict(item) for item in [*others, entry]]},
            )

    def _read(self) -> list[Entry]:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StepladderError(f"cannot read the tuning database '{self.path}': {error.strerror}") from None
        try:
            fields = parse_object(content, str(self.path), "tuning database", "it is truncated or was edited")
            version = fields.integer("schema_version")
            if version > SCHEMA_VERSION:
                raise _Unusable(f"is of version {version}, and this stepladder reads up to {SCHEMA_VERSION}", "newer")
            return [_entry(entry) for entry in fields.objects("entries")]
        except StepladderError as error:
            raise _Unusable(f"is damaged: {error.message}", "damaged") from None

    def _set_aside(self, error: _Unusable) -> None:
        """Renames the file to a name that is free, and tells the user."""
        number = 1
        while (free := self.path.with_name(f"{self.path.name}.{error.suffix}-{number}")).exists():
            number += 1
        self.path.rename(free)
        self._warn(f"warning: the tuning database '{self.path}' {error}; it was renamed to '{free.name}'")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        import fcntl

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = self.path.with_name(f".{self.path.name}.lock").open("w")
        except OSError as error:
            raise StepladderError(f"cannot write the tuning database '{self.path}': {error.strerror}") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _entry(fields: Fields) -> Entry:
    """Returns the entry that a file has in `fields`. Raises StepladderError where it has none."""
    return Entry(
        gpu=fields.string("gpu"),
        target=fields.string("target"),
        problem=fields.string("problem"),
        pipeline=fields.string("pipeline"),
        digest=fields.string("digest"),
        knobs=fields.knobs("knobs"),
        microseconds=fields.number("microseconds"),
        of_cublas=None if fields.data.get("of_cublas") is None else fields.number("of_cublas"),
        measured=fields.integer("measured"),
        date=fields.string("date"),
        tool_versions=fields.string_map("tool_versions"),
        excluded=fields.string_map("excluded") if "excluded" in fields.data else {},
        candidates=tuple(map(_candidate, fields.objects("candidates"))) if "candidates" in fields.data else (),
    )


def _candidate(fields: Fields) -> Candidate:
    """Returns the candidate that a file has in `fields`. Raises StepladderError where it has none."""
    return Candidate(
        knobs=fields.knobs("knobs"),
        predicted_microseconds=fields.number("predicted_microseconds"),
        microseconds=None if fields.data.get("microseconds") is None else fields.number("microseconds"),
        check=None if fields.data.get("check") is None else fields.string("check", (PASSED, FAILED_CHECK)),
        reason=fields.string("reason"),
    )
