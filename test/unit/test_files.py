"""Files that are written: through links, whole or not at all, and with the system's reason where they cannot be."""

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stepladder.cli import emulation_output
from stepladder.pipeline import scripts
from stepladder.runtime import files
from stepladder.runtime.errors import StepladderError, printable, reason
from stepladder.runtime.files import check_writable, read_text, temporary_folder, write_text

RUNNER = Path(files.__file__).resolve().parents[2]


def test_links_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_text("before")
    (tmp_path / "link").symlink_to("folder/file")
    (tmp_path / "second").symlink_to("link")
    for name in ("link", "second"):
        check_writable(str(tmp_path / name))
        write_text(str(tmp_path / name), name)
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "folder/file").read_text() == name
    assert [entry.name for entry in (tmp_path / "folder").iterdir()] == ["file"]


def test_links_to_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    write_text(str(tmp_path / "link"), "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "new").read_text() == "text"


def test_permissions_are_those_of_the_file_before_or_of_the_umask(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        for mode in (0o640, 0o600):
            write_text(str(tmp_path / "file"), "text")
            assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
            (tmp_path / "file").chmod(0o600)
    finally:
        os.umask(mask)


@pytest.mark.parametrize("write", [check_writable, lambda path: write_text(path, "text")])
def test_links_that_lead_back(tmp_path: Path, write: Callable[[Path], None]) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(StepladderError, match=r"cannot write '.*one': Too many levels of symbolic links"):
        write(str(tmp_path / "one"))
    assert (tmp_path / "one").is_symlink() and (tmp_path / "two").is_symlink()


def test_links_into_folders_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("missing/file")
    for write in (check_writable, lambda path: write_text(path, "text")):
        with pytest.raises(StepladderError, match=r"cannot write '.*link': No such file or directory"):
            write(str(tmp_path / "link"))


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    """Messages, and texts that are written, have their bytes as escapes; valid UTF-8 is kept in any locale."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.mlir")
    write_text(path, f"text of {path}")
    text, name = read_text(path)
    assert text.endswith(r"/caf\udce9.mlir") and name == rf"{tmp_path}/caf\xe9.mlir"
    assert printable("\xfc".encode().decode("ascii", "surrogateescape")) == "\xfc"
    assert printable("\ud800") == r"\ud800"
    with pytest.raises(StepladderError, match=r"the path of script '.*/caf\\xe9.mlir' is not UTF-8"):
        scripts.parse(Path(path))


@pytest.mark.parametrize(
    "error, text",
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("1000 requested and 256 written"), "1000 requested and 256 written"),
        (OSError(), "OSError"),
    ],
)
def test_reasons(error: OSError, text: str) -> None:
    assert reason(error) == text


def test_arrays_that_cannot_be_written_whole(tmp_path: Path) -> None:
    """The message has the reason of the system, which errors of NumPy lack."""
    (tmp_path / "argument0.npy").write_bytes(b"before")
    script = (
        "import resource, sys, numpy as np\nfrom stepladder.cli.emulation_output import save_arrays\n"
        "from stepladder.runtime.errors import StepladderError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    save_arrays(sys.argv[1], {'argument0': np.zeros(10**6)})\n"
        "except StepladderError as error:\n    print(error.render())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(RUNNER)},
    )
    message = f"error: cannot write '{tmp_path / 'argument0.npy'}': {os.strerror(errno.EFBIG)}\n"
    assert done.stdout == message, done.stderr
    assert (tmp_path / "argument0.npy").read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["argument0.npy"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), OSError("1000 requested and 256 written")])
def test_temporary_files_that_do_not_fit(error: OSError) -> None:
    with (
        pytest.raises(StepladderError, match=f"cannot write a temporary file: {reason(error)}") as caught,
        temporary_folder() as folder,
    ):
        raise error
    assert not folder.exists() and caught.value.notes == ("TMPDIR names the folder of temporary files",)
    missing = FileNotFoundError(errno.ENOENT, "missing", "/none/ptxas")
    with pytest.raises(FileNotFoundError) as passed, temporary_folder():
        raise missing
    assert passed.value is missing


def test_arrays(tmp_path: Path) -> None:
    emulation_output.save_arrays(str(tmp_path / "new"), {"result0": np.arange(3)})
    assert np.load(tmp_path / "new/result0.npy").tolist() == [0, 1, 2]
