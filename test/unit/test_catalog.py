"""The catalog is read once, and anew whenever what it was read from is another."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stepladder.pipeline import catalog
from stepladder.runtime import resources
from stepladder.runtime.errors import StepladderError


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's scripts, and a cache folder of its own."""
    folder = tmp_path / "transforms"
    shutil.copytree(resources.transforms_dir(), folder)
    for module in ("catalog", "library", "pipeline_cache"):
        monkeypatch.setattr(f"stepladder.pipeline.{module}.transforms_dir", lambda: folder)
    monkeypatch.setenv("STEPLADDER_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def read_anew(monkeypatch: pytest.MonkeyPatch) -> list:
    """Returns a list that grows by one with every reading of the scripts."""
    read, counted = catalog._read, []
    monkeypatch.setattr(catalog, "_read", lambda names: counted.append(names) or read(names))
    return counted


def test_what_was_kept_is_what_was_read(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = read_anew(monkeypatch)
    first = {kind: catalog.rows(kind) for kind in catalog.KINDS}
    assert {kind: catalog.rows(kind) for kind in catalog.KINDS} == first
    assert len(counted) == 1
    assert catalog.rows("steps", "wmma") == [row for row in first["steps"] if row["pipeline"] == "wmma"]


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("wmma.mlir", '"rows of the tile of C that a block computes"', '"another description"'),
        ("steps/tile_to_blocks.mlir", "// Tiles", "// Saws"),
    ],
)
def test_a_changed_script_is_read_anew(
    scripts: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str
) -> None:
    before = catalog.rows("knobs"), catalog.rows("steps")
    text = (scripts / name).read_text()
    (scripts / name).write_text(text.replace(old, new))
    assert (scripts / name).read_text() != text
    counted = read_anew(monkeypatch)
    assert (catalog.rows("knobs"), catalog.rows("steps")) != before
    assert len(counted) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_text("no JSON"),
        lambda file: file.write_bytes(b"\xff\xfe"),
        lambda file: file.write_text("[" * 100_000),
        lambda file: file.write_text("[]"),
        lambda file: file.write_text(json.dumps({**json.loads(file.read_text()), "rows": {}})),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: (shutil.rmtree(file.parent), file.parent.write_text("a file in place of the folder")),
    ],
)
def test_a_damaged_file_is_read_anew(scripts: Path, tmp_path: Path, damage: Callable[..., object]) -> None:
    rows = catalog.rows("knobs")
    damage(tmp_path / "cache/catalog.json")
    assert catalog.rows("knobs") == rows


def test_a_pipeline_of_ones_own_is_read_each_time(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.mlir"
    own.write_text((scripts / "wmma.mlir").read_text().replace("@wmma(", "@own("))
    counted = read_anew(monkeypatch)
    assert catalog.rows("pipelines", str(own))[0]["pipeline"] == "own"
    assert catalog.rows("pipelines", str(own)) and len(counted) == 2


def test_an_unknown_pipeline_is_refused(scripts: Path) -> None:
    with pytest.raises(StepladderError, match="unknown pipeline 'wmna'"):
        catalog.rows("steps", "wmna")
