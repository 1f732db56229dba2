"""Dumps of one run do not mix with those of another; temporary reproducers do not pile up."""

import os
import tempfile
from pathlib import Path

import pytest

from stepladder.pipeline import reproducers
from stepladder.pipeline.dumps import RECORD, DumpFolder


def write(folder: Path, steps: list[str], kept: str | None = None, text: str = "module {}\n") -> None:
    dumps = DumpFolder(str(folder), kept)
    for step in steps:
        dumps.write(step, f"// {step}\n{text}")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.name != RECORD)


def test_dumps_of_the_last_run_go(tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    write(folder, ["input", "tile", "bufferize", "lower"])
    write(folder, ["input", "bufferize"])
    assert names(folder) == ["00-input.mlir", "01-bufferize.mlir"]
    write(folder, ["input", "tile", "bufferize", "lower"])
    assert names(folder) == ["00-input.mlir", "01-tile.mlir", "02-bufferize.mlir", "03-lower.mlir"]


def test_other_files_stay(tmp_path: Path) -> None:
    mine = ["01-mine.mlir", "99-input.mlir", "notes.txt", "reproduce-tile.mlir", "02-lower"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    write(tmp_path, ["input", "tile", "lower"])
    (tmp_path / "02-lower.mlir").write_text("edited")
    write(tmp_path, ["input"])
    assert names(tmp_path) == sorted(["00-input.mlir", "02-lower.mlir", *mine])
    assert (tmp_path / "02-lower.mlir").read_text() == "edited"
    assert all((tmp_path / name).read_text() == "mine" for name in mine)


def test_the_input_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run from a dump, into the same folder, can be repeated."""
    write(tmp_path, ["input", "tile", "bufferize", "lower"])
    monkeypatch.chdir(tmp_path)
    write(tmp_path, ["input", "lower"], kept="02-bufferize.mlir")
    assert names(tmp_path) == ["00-input.mlir", "01-lower.mlir", "02-bufferize.mlir"]


def test_a_run_that_failed_is_recorded(tmp_path: Path) -> None:
    dumps = DumpFolder(str(tmp_path), "<stdin>")
    dumps.write("input", "module {}\n")
    dumps.write("tile", "module {}\n")
    write(tmp_path, ["input"], kept="<stdin>")
    assert names(tmp_path) == ["00-input.mlir"]


@pytest.mark.parametrize(
    "record",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"../mine.mlir": "DIGEST"}',
        '{"/elsewhere/mine.mlir": "DIGEST"}',
        '{"mine.mlir": 1}',
        '{"link": "DIGEST"}',
        '{"folder": "DIGEST"}',
    ],
)
def test_records_that_are_damaged_remove_nothing(tmp_path: Path, record: str) -> None:
    import hashlib

    folder = tmp_path / "dumps"
    (folder / "folder").mkdir(parents=True)
    for place in (tmp_path, folder):
        (place / "mine.mlir").write_text("mine")
    (folder / "link").symlink_to("mine.mlir")
    (folder / RECORD).write_text(record.replace("DIGEST", hashlib.sha256(b"mine").hexdigest()))
    write(folder, ["input"])
    assert names(folder) == ["00-input.mlir", "folder", "link", "mine.mlir"]
    assert (tmp_path / "mine.mlir").read_text() == "mine"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def make_reproducers(count: int) -> list[Path]:
    made = []
    for number in range(count):
        path = reproducers.make_path("tile")
        path.write_text(f"// {number}\n")
        os.utime(path.parent, (1000 + number, 1000 + number))
        made.append(path)
    return made


def test_the_last_reproducers_are_kept(temporary: Path) -> None:
    made = make_reproducers(reproducers.KEPT + 5)
    assert [path.exists() for path in made] == [False] * 5 + [True] * reproducers.KEPT
    assert sorted(temporary.iterdir()) == sorted(path.parent for path in made[5:])
    assert reproducers.describe_kept() == f"{temporary} keeps the last {reproducers.KEPT} reproducers"


def test_only_reproducers_are_removed(temporary: Path) -> None:
    """Not a folder with something else in it, nor what only looks like one."""
    first, *_ = make_reproducers(1)
    (first.parent / "notes.txt").write_text("mine")
    os.utime(first.parent, (1, 1))
    (temporary / "other").mkdir()
    (temporary / "other/reproduce-tile.mlir").write_text("mine")
    (temporary / "stepladder-reproducer-link").symlink_to("other")
    (temporary / "stepladder-reproducer-file").write_text("mine")
    (temporary / "stepladder-123").mkdir()
    make_reproducers(reproducers.KEPT + 3)
    assert (first.parent / "notes.txt").read_text() == "mine"
    assert (temporary / "other/reproduce-tile.mlir").read_text() == "mine"
    assert (temporary / "stepladder-reproducer-link").is_symlink()
    assert (temporary / "stepladder-reproducer-file").is_file() and (temporary / "stepladder-123").is_dir()


def test_reproducers_beside_dumps_are_all_kept(tmp_path: Path, temporary: Path) -> None:
    for number in range(reproducers.KEPT + 3):
        reproducers.make_path(f"step_{number}", tmp_path / "dumps").write_text("")
    assert len(list((tmp_path / "dumps").iterdir())) == reproducers.KEPT + 3
