"""Writing over a bundle: the files that its manifest lists are replaced, and no others."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

from bundles import edit_manifest
from conftest import make_manifest
from stepladder.runtime.bundle import check_output, read_bundle, write_bundle
from stepladder.runtime.errors import StepladderError


def put(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def listing(folder: Path) -> list[str]:
    return sorted(str(item.relative_to(folder)) for item in folder.rglob("*"))


def test_replaces_a_bundle_and_leaves_nothing_beside(bundle: Path) -> None:
    write_bundle(bundle, make_manifest(), b"second", ".version 8.0\n", {})
    assert read_bundle(bundle).cubin == b"second"
    assert not (bundle / "ir").exists()
    assert [entry.name for entry in bundle.parent.iterdir()] == ["matmul.bundle"]


def test_does_not_replace_what_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").write_text("years of work")
    with pytest.raises(StepladderError, match="is not a bundle"):
        write_bundle(tmp_path / "thesis", make_manifest(), b"", "", {})
    assert (tmp_path / "thesis/chapter.tex").read_text() == "years of work"


def test_keeps_what_the_manifest_does_not_list(bundle: Path) -> None:
    for name in ("notes.txt", "profiles/run.csv", "ir/mine.mlir", "ir/old/00-input.mlir"):
        put(bundle / name, name)
    (bundle / "empty").mkdir()
    (bundle / "latest.csv").symlink_to("profiles/run.csv")
    (bundle / "dangling").symlink_to("nowhere")
    write_bundle(bundle, make_manifest(), b"second", ".version 8.0\n", {"01-step.mlir": "module {}\n"})
    assert read_bundle(bundle).cubin == b"second"
    assert listing(bundle) == [
        "dangling",
        "empty",
        "ir",
        "ir/01-step.mlir",
        "ir/mine.mlir",
        "ir/old",
        "ir/old/00-input.mlir",
        "kernel.cubin",
        "kernel.ptx",
        "latest.csv",
        "manifest.json",
        "notes.txt",
        "profiles",
        "profiles/run.csv",
    ]
    for name in ("notes.txt", "profiles/run.csv", "ir/mine.mlir", "ir/old/00-input.mlir"):
        assert (bundle / name).read_text() == name
    assert (bundle / "latest.csv").is_symlink() and (bundle / "dangling").is_symlink()


def test_keeps_files_where_there_are_no_hard_links(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bundle / "notes.txt", "notes")

    def no_links(*arguments: object, **options: object) -> NoReturn:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    write_bundle(bundle, make_manifest(), b"second", "", {})
    assert (bundle / "notes.txt").read_text() == "notes"


@pytest.mark.parametrize("name", ["reference.json", "ir/01-step.mlir", "data/table.json/rows.txt", "data"])
def test_does_not_write_over_files_of_the_user(bundle: Path, name: str) -> None:
    put(bundle / name, "mine")
    before = listing(bundle)
    with pytest.raises(StepladderError, match="has the name of a file of the new bundle") as caught:
        write_bundle(
            bundle,
            make_manifest(),
            b"second",
            "",
            {"01-step.mlir": ""},
            {"reference.json": "{}", "data/table.json": "{}"},
        )
    assert "it was not changed" in caught.value.message
    assert (bundle / name).read_text() == "mine"
    assert listing(bundle) == before
    assert read_bundle(bundle).cubin == b"\x7fELF cubin"


def test_further_files_are_listed_and_replaced(bundle: Path) -> None:
    write_bundle(bundle, make_manifest(), b"", "", {}, {"notes.json": "{}"})
    assert "notes.json" in read_bundle(bundle).manifest.files
    write_bundle(bundle, make_manifest(), b"", "", {}, {"notes.json": "[]"})
    assert (bundle / "notes.json").read_text() == "[]"
    write_bundle(bundle, make_manifest(), b"", "", {})
    assert listing(bundle) == ["kernel.cubin", "kernel.ptx", "manifest.json"]


@pytest.mark.parametrize(
    "manifest, reason",
    [
        ('{"name": "an extension", "manifest_version": 3}', "field 'schema_version' is missing"),
        ('{"schema_version": 1, "files": {}}', "field 'files' does not list 'kernel.cubin'"),
        ('{"schema_version": 1, "files": {"kernel.cubin": "", "../chapter.tex": ""}}', "which is outside the bundle"),
        ('{"schema_version": 1, "files"', "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "not a manifest"),
    ],
)
def test_a_folder_with_another_manifest_is_no_bundle(tmp_path: Path, manifest: str, reason: str) -> None:
    put(tmp_path / "thesis/chapter.tex", "years of work")
    put(tmp_path / "thesis/manifest.json", manifest)
    for refused in (check_output, lambda path: write_bundle(path, make_manifest(), b"", "", {})):
        with pytest.raises(StepladderError, match="is not a bundle; it was not changed") as caught:
            refused(tmp_path / "thesis")
        assert reason in caught.value.render()
    assert (tmp_path / "thesis/chapter.tex").read_text() == "years of work"
    assert (tmp_path / "thesis/manifest.json").read_text() == manifest


def test_bundles_that_cannot_be_read_are_replaced(bundle: Path) -> None:
    """A file is missing, a field is wrong, the layout is another one: what is listed is replaced all the same."""
    (bundle / "kernel.ptx").unlink()
    edit_manifest(bundle, lambda data: data.update(schema_version=2, target="sm_999"))
    check_output(bundle)
    write_bundle(bundle, make_manifest(), b"second", "", {})
    assert read_bundle(bundle).cubin == b"second"


def test_writes_through_a_link(bundle: Path) -> None:
    link = bundle.parent / "link"
    link.symlink_to(bundle)
    write_bundle(link, make_manifest(), b"second", "", {})
    assert link.is_symlink() and read_bundle(bundle).cubin == b"second"
    (bundle.parent / "new").symlink_to("other.bundle")
    write_bundle(bundle.parent / "new", make_manifest(), b"third", "", {})
    assert (bundle.parent / "new").is_symlink() and read_bundle(bundle.parent / "other.bundle").cubin == b"third"


def test_unwritable_output(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StepladderError, match=r"cannot write bundle '.*file/matmul.bundle': Not a directory"):
        write_bundle(tmp_path / "file/matmul.bundle", make_manifest(), b"", "", {})


def test_old_bundle_survives_a_failed_write(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = type(bundle).rename

    def fail_at_second(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(type(bundle), "rename", fail_at_second)
    with pytest.raises(StepladderError, match="No space left on device"):
        write_bundle(bundle, make_manifest(), b"second", "", {})
    assert read_bundle(bundle).cubin == b"\x7fELF cubin"
    assert [entry.name for entry in bundle.parent.iterdir()] == ["matmul.bundle"]
