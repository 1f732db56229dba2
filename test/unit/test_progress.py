"""How far the emulator is: few plain lines, or a bar on a terminal, with the time that is left."""

import io
from pathlib import Path
from typing import NoReturn

import pytest

from stepladder.cli import main as cli
from stepladder.cli import progress
from stepladder.cli.progress import LaunchProgress, describe_seconds
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.verify import check


class Clock:
    """Seconds that pass as a test says."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A file that is a terminal."""

    def isatty(self) -> bool:
        return True


def lines_of(launches: int, blocks: int, seconds: float) -> list[str]:
    """Returns what is shown of launches of `blocks` blocks that take `seconds` each."""
    file, clock = io.StringIO(), Clock()
    with LaunchProgress(launches, file=file, clock=clock) as progress:
        for _ in range(launches):
            for done in range(1, blocks + 1):
                clock.now += seconds
                progress(done, blocks)
    return file.getvalue().splitlines()


def test_short_runs_are_silent() -> None:
    assert lines_of(3, 8, 0.2) == []


def test_lines() -> None:
    assert lines_of(3, 10, 2.0) == [
        "3 of 30 blocks (10%) in 6 s, about 54 s left",
        "8 of 30 blocks (26%) in 16 s, about 44 s left",
        "18 of 30 blocks (60%) in 36 s, about 24 s left",
    ]


def test_lines_are_sparse_and_never_stop() -> None:
    """Nine minutes: a line at least every minute, and a dozen in all."""
    lines = lines_of(3, 180, 1.0)
    assert 8 <= len(lines) <= 12
    assert lines[0] == "5 of 540 blocks (0%) in 5 s, about 9 min left"
    assert lines[-1].startswith("495 of 540 blocks (91%) in 8 min, about 45 s left")


def test_the_end_is_no_line() -> None:
    assert lines_of(1, 1, 100.0) == []


def test_blocks_that_wait_for_others() -> None:
    """None has ended for long: then there is nothing to estimate from."""
    file, clock = io.StringIO(), Clock()
    with LaunchProgress(1, file=file, clock=clock) as progress:
        clock.now += 50
        progress(0, 4)
        progress(2, 4)
    assert file.getvalue() == "2 of 4 blocks (50%) in 50 s, about 50 s left\n"


def test_more_launches_than_were_announced() -> None:
    file, clock = io.StringIO(), Clock()
    with LaunchProgress(1, file=file, clock=clock) as progress:
        for _ in range(3):
            clock.now += 60
            progress(1, 2)
            progress(2, 2)
    assert [line.split(" (")[0] for line in file.getvalue().splitlines()] == ["1 of 2 blocks"] * 3


def test_a_bar_on_a_terminal() -> None:
    file = Terminal()
    with LaunchProgress(2, file=file) as progress:
        progress(4, 4)
        progress(1, 4)
        progress._bar.refresh()
        assert "5/8" in file.getvalue()
    assert all(word in file.getvalue() for word in ("emulating", "blocks", "passed", "left"))


def test_a_bar_is_taken_away_by_an_error() -> None:
    file = Terminal()
    progress = LaunchProgress(file=file)
    with pytest.raises(KeyboardInterrupt), progress:
        raise KeyboardInterrupt
    assert progress._bar.finished or not progress._bar.live.is_started


@pytest.mark.parametrize(
    "seconds, text",
    [(0.2, "0 s"), (99.4, "99 s"), (99.6, "2 min"), (540, "9 min"), (7500, "2 h 5 min"), (3599, "1 h 0 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert describe_seconds(seconds) == text


def make_bundle(path: Path, size: int) -> str:
    with mlir_context():
        build.build(matmul_text(size, size, size), "matmul.mlir", Request("wmma")).write(path)
    return str(path)


def test_a_smaller_problem_is_named_before_a_long_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = make_bundle(tmp_path / "bundle", 2048)

    def interrupt(*arguments: object, **named: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "check_matmul", interrupt)
    assert cli.main(["run", bundle, "--backend", "emulator"]) == 130
    note = (
        "note: 2 launches of 256 blocks; a payload of 256 x 256 x 128, compiled with the same knobs, checks the "
        "same steps in 1/1024 of the arithmetic"
    )
    assert note in capsys.readouterr().err.splitlines()


def test_progress_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A small problem: no smaller one is named, and each of the two launches counts."""
    bundle = make_bundle(tmp_path / "bundle", 128)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    assert cli.main(["run", bundle, "--backend", "emulator"]) == 0
    shown = capsys.readouterr().err.splitlines()
    assert [line.split(" (")[0] for line in shown if " left" in line] == ["1 of 2 blocks"]
    assert not any("a payload of" in line for line in shown)
