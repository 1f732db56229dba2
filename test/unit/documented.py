"""The commands that the documents and the help texts show, and a shell that runs them in order.

A block of commands in a document is a fence with the language `sh`, or `console` where its output follows. What the
commands of a block need beside the project stands behind the language (```sh gpu): one of `stand_ins.NEEDS`.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

import stand_ins
import stepladder
from stepladder.runtime.resources import transforms_dir

ROOT = transforms_dir().parent
# What of a checkout no command reads.
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", "Output", "*.egg-info", ".*_cache")


@dataclass(frozen=True)
class Command:
    """A command line.

    Attributes:
        text: the command, a comment behind it included; lines that a backslash continues are kept as they are.
        place: where it stands, `FILE:LINE`.
        output: the lines that a document shows behind it; None where it shows none.
    """

    text: str
    place: str
    output: str | None = None


@dataclass(frozen=True)
class Block:
    """The commands of one fence, its place, and what it says that they need."""

    place: str
    needs: frozenset[str]
    commands: tuple[Command, ...]


def documents() -> list[Path]:
    """Returns the documents of the checkout: the pages at its top and in docs/."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def name_of(path: Path) -> str:
    """Returns the path of a document in the checkout."""
    return path.relative_to(ROOT).as_posix()


def split_commands(text: str, name: str, first_line: int) -> Iterator[Command]:
    """Returns the commands of a shell text: lines, joined where a backslash continues them; no comments.

    Args:
        text: the shell text.
        name: the file it stands in.
        first_line: the line of that file it begins in, from 1.
    """
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), start=first_line):
        lines.append(line)
        if line.endswith("\\"):
            continue
        joined = "\n".join(lines)
        if joined.strip() and not joined.lstrip().startswith("#"):
            yield Command(joined, f"{name}:{number - len(lines) + 1}")
        lines = []


def _console_commands(text: str, name: str, first_line: int) -> Iterator[Command]:
    """Returns the commands of a console text, `$ COMMAND`, with the output behind each."""
    for found in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        yield Command(found[1], f"{name}:{first_line + text[: found.start()].count(chr(10))}", found[2])


def blocks(path: Path) -> list[Block]:
    """Returns the blocks of commands of a document, in order."""
    found = []
    name = name_of(path)
    for token in MarkdownIt().parse(path.read_text()):
        language, *needs = token.info.split() or [""]
        if token.type != "fence" or language not in ("sh", "console"):
            continue
        assert token.map
        split = split_commands if language == "sh" else _console_commands
        commands = tuple(split(token.content, name, token.map[0] + 2))
        found.append(Block(f"{name}:{token.map[0] + 1}", frozenset(needs), commands))
    return found


def examples(help_text: str, name: str) -> list[Command]:
    """Returns the commands below `examples:` in a help text; `name` is the command that prints it."""
    _, _, shown = help_text.partition("\nexamples:\n")
    lines = [line[2:] for line in shown.splitlines() if line.startswith("  ")]
    return list(split_commands("\n".join(lines), f"{name} --help, example", 1))


def make_checkout(folder: Path) -> Path:
    """Copies the checkout, which commands may write to, to a folder that is not there yet; returns the folder."""
    return Path(shutil.copytree(ROOT, folder, ignore=_NOT_COPIED))


@functools.cache
def command_server() -> str:
    """Starts a server of the project's commands, which ends with this process; returns its socket."""
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve().parents[1] / "inputs" / "command_server.py")],
        env={**os.environ, "PYTHONPATH": str(Path(stepladder.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout
    return server.stdout.readline().strip()


class Shell:
    """Runs commands in one bash after the other's, as a user does.

    Attributes:
        needs: place of a command -> what it used beside the project (`stand_ins.NEEDS`), after `run`.
        outputs: place of a command with an expected output -> what it printed.
    """

    def __init__(self, checkout: Path, scratch: Path, *, installed: bool, cache: Path | None = None) -> None:
        """Prepares a shell.

        Args:
            checkout: the folder that commands run in.
            scratch: a folder of its own, for programs and records.
            installed: whether the environment with the project is active.
            cache: the folder of machine code, by content, which several shells may share; one of its own unless given.
        """
        self.checkout = checkout
        self.scratch = scratch
        self.needs: dict[str, set[str]] = {}
        self.outputs: dict[str, str] = {}
        programs = stand_ins.install(scratch / "bin", stand_ins.SYSTEM)
        if installed:
            scripts = stand_ins.project_scripts(checkout)
            stand_ins.install(programs, (*stand_ins.ENVIRONMENT, *scripts, *stand_ins.TOOLS))
        # A project that is installed on this machine must not stand in for what a document forgets to install.
        path = [folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder, "stepladder").exists()]
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PYTEST") and name not in ("VIRTUAL_ENV", "PYTHONHOME")
        }
        self._environment: Mapping[str, str] = kept | {
            "PATH": os.pathsep.join([str(programs), *path]),
            "PYTHONPATH": str(Path(stepladder.__file__).parents[1]),
            "STEPLADDER_CACHE_DIR": str(cache or scratch / "cache"),
            "STAND_IN_LOG": str(scratch / "needs"),
            "STAND_IN_SERVER": command_server(),
            "NO_COLOR": "1",
        }

    def run(self, commands: Sequence[Command]) -> None:
        """Runs commands up to the first that fails, which is an AssertionError with its place and output."""
        lines = ["set -o pipefail"]
        for number, command in enumerate(commands):
            lines += [f"export STAND_IN_PLACE='{command.place}'", f"echo '{command.place}' > '{self.scratch}/place'"]
            if command.output is None:
                lines += [command.text, "status=$?; [ $status = 0 ] || exit $status"]
            else:
                lines += [f"{{ {command.text}", f"}} > '{self.scratch}/output{number}' 2>&1"]
        done = subprocess.run(
            ["bash"],
            input="\n".join([*lines, "exit 0"]),
            cwd=self.checkout,
            env=self._environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode:
            place = (self.scratch / "place").read_text().strip()
            raise AssertionError(f"{place}: exit status {done.returncode}:\n{done.stdout[-2000:]}")
        for number, command in enumerate(commands):
            if command.output is not None:
                self.outputs[command.place] = (self.scratch / f"output{number}").read_text()
        log = self.scratch / "needs"
        for line in log.read_text().splitlines() if log.is_file() else ():
            place, need = line.split("\t")
            self.needs.setdefault(place, set()).add(need)


def help_of(command: Sequence[str]) -> str:
    """Returns what a module of the package prints with --help."""
    return subprocess.run([sys.executable, "-m", *command, "--help"], capture_output=True, text=True, check=True).stdout
