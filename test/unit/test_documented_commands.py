"""Every command of the documents and of the help texts runs as it is written.

The commands of a document run in order in one shell, in a copy of the checkout. `stand_ins` says what becomes of those
that need what a machine may lack.
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import documented
import stand_ins
from conftest import NO_GPU
from stepladder.cli.main import COMMANDS

pytestmark = [
    pytest.mark.skipif(not (documented.ROOT / "README.md").is_file(), reason="not a checkout"),
    pytest.mark.skipif(shutil.which("bash") is None, reason="documented commands are bash's"),
]

# Commands whose examples use the files that those of the commands before them make.
ORDER = ("list", "compile", "emulate", "run", "bench")


def _plain(text: str) -> str:
    """Returns output without what differs between runs: numbers, and where lines are folded."""
    return re.sub(r"0x[0-9a-f]+|\d+", "N", " ".join(text.split()))


def _difference(block: documented.Block, used: set[str]) -> str:
    """Returns how what a block says that it needs differs from what its commands used, or an empty string."""
    unsaid, unused = used - block.needs, block.needs - used
    if not NO_GPU:
        unused -= {"gpu"}
    if unsaid:
        return f"{block.place}: needs {', '.join(sorted(unsaid))}, which its first line does not say"
    return f"{block.place}: says that it needs {', '.join(sorted(unused))}, and does not" if unused else ""


@pytest.fixture(scope="module")
def machine_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of machine code that the shells of all documents share, as a user's do."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "machine-code"


@pytest.mark.parametrize("path", documented.documents(), ids=documented.name_of)
def test_commands_of_a_document_run(path: Path, tmp_path: Path, machine_code: Path) -> None:
    found = documented.blocks(path)
    if not found:
        pytest.skip("shows no commands")
    # The README installs the project; the other pages assume that it is installed.
    shell = documented.Shell(
        documented.make_checkout(tmp_path / "checkout"),
        tmp_path / "scratch",
        installed=path != documented.ROOT / "README.md",
        cache=machine_code,
    )
    shell.run([command for block in found for command in block.commands])
    for block in found:
        assert block.needs <= set(stand_ins.NEEDS)
        used = {need for command in block.commands for need in shell.needs.get(command.place, ())}
        assert not _difference(block, used)
        for command in block.commands:
            if command.output is not None:
                assert _plain(command.output) in _plain(shell.outputs[command.place]), command.place


def _help_texts() -> Iterator[tuple[str, str]]:
    """Returns name and help text of every command, those first whose examples make what others use."""
    yield "stepladder", documented.help_of(["stepladder"])
    yield "stepladder-opt", documented.help_of(["stepladder.cli.opt"])
    for name in sorted(COMMANDS, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)):
        yield f"stepladder {name}", documented.help_of(["stepladder", name])


def _alone_in_documents() -> set[str]:
    """Returns the commands of documents that are a program and one of its commands: they depend on no file."""
    found = (block for path in documented.documents() for block in documented.blocks(path))
    lines = (command.text for block in found for command in block.commands)
    commands = (command.strip() for line in lines for command in line.partition("#")[0].split("&&"))
    return {command for command in commands if len(command.split()) == 2}


def test_examples_of_help_texts_run(tmp_path: Path, machine_code: Path) -> None:
    texts = dict(_help_texts())
    found = {name: documented.examples(text, name) for name, text in texts.items()}
    assert all(found.values()), "a help text without examples"
    shell = documented.Shell(
        documented.make_checkout(tmp_path / "checkout"), tmp_path / "scratch", installed=True, cache=machine_code
    )
    # What several help texts show runs once, and what depends on no file and a document shows runs for that.
    first: dict[str, documented.Command] = {}
    elsewhere = _alone_in_documents()
    for command in (command for commands in found.values() for command in commands):
        if command.text not in elsewhere:
            first.setdefault(command.text, command)
    shell.run(list(first.values()))
    by_place = {command.place: command.text for command in first.values()}
    for place, needs in shell.needs.items():
        name = " ".join(by_place[place].split()[:2])
        assert needs == {"gpu"}, place
        assert "no GPU" in texts[name], f"{name} --help does not say what it does without a GPU"


# Faults in documents: what a block shows, what it says that it needs, and what the failure names.
FAULTS = {
    "option": ("stepladder bench matmul.bundle --celing", "gpu", "unrecognized arguments: --celing"),
    "program": ("stepladdr list", "", "exit status 127"),
    "file": ("stepladder emulate dumps/missing.mlir", "", "missing.mlir"),
    "script": ("python benchmarks/hopper.py sizes build", "measurement", "RESULT.json"),
    "extra": ("pip install '.[fast]'", "network", "no extra 'fast'"),
    "index": ("pip install stepladder", "network", "'stepladder' is no package"),
    "pipe": ("stepladder lost | cat", "", "invalid choice: 'lost'"),
    "test": ("pytest --nonsense", "", "--nonsense"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_command_that_does_not_work_fails(fault: str, tmp_path: Path) -> None:
    text, _, message = FAULTS[fault]
    shell = documented.Shell(documented.ROOT, tmp_path, installed=True)
    with pytest.raises(AssertionError, match=re.escape(message)) as failure:
        shell.run([documented.Command("true", "doc.md:1"), documented.Command(text, "doc.md:2")])
    assert "doc.md:2" in str(failure.value)


def test_a_project_that_is_not_installed_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="exit status 127"):
        documented.Shell(documented.ROOT, tmp_path, installed=False).run([documented.Command("stepladder list", "x:1")])


@pytest.mark.parametrize(
    ("says", "used", "message"),
    [
        ((), {"network"}, "needs network, which its first line does not say"),
        (("cmake",), set(), "says that it needs cmake, and does not"),
        (("gpu",), {"gpu"}, ""),
        ((), set(), ""),
    ],
)
def test_needs_are_those_that_a_block_says(says: tuple[str, ...], used: set[str], message: str) -> None:
    difference = _difference(documented.Block("doc.md:1", frozenset(says), ()), used)
    assert message in difference and bool(message) == bool(difference)


def test_hints_to_install_name_what_pip_can_install() -> None:
    sources = [
        *documented.documents(),
        *(documented.ROOT / "runner").rglob("*.py"),
        *(documented.ROOT / "benchmarks").rglob("*.py"),
        documented.ROOT / "CMakeLists.txt",
    ]
    hints = [
        (path, found[1] or found[2])
        for path in sources
        for found in re.finditer(r"pip install (?:-e )?(?:'([^']+)'|([\w.\-\[\],=*]+))", path.read_text())
    ]
    assert hints
    for path, requirement in hints:
        if "{" not in requirement:  # a name that the source fills in
            assert not stand_ins.refused_requirements([requirement], documented.ROOT), f"{path.name}: {requirement}"


def test_dumps_are_named_by_their_step() -> None:
    """The number of a dump changes with the steps before it: `dumps/*-STEP.mlir` and regular expressions do not."""
    sources = [
        *documented.documents(),
        *(documented.ROOT / "runner").rglob("*.py"),
        *(documented.ROOT / "test").rglob("*.test"),
        *(documented.ROOT / "test").rglob("*.py"),
    ]
    steps = sorted(path.stem for path in (documented.ROOT / "transforms" / "steps").rglob("*.mlir"))
    numbered = re.compile(rf"(?<![\w-])\d\d-(?:{'|'.join(steps)})\.mlir")
    # The unit test of dumps numbers steps of its own.
    for path in (path for path in sources if path.name != "test_dumps.py"):
        assert not (found := numbered.search(path.read_text())), f"{path.relative_to(documented.ROOT)}: {found}"
