"""Random tests draw the same examples in every run, and other ones, and more, where that is asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAW = """
import conftest
from hypothesis import given, settings, strategies

drawn = []

@settings(max_examples=conftest.examples(20), database=None)
@given(strategies.integers(0, 10**9))
def draw(number):
    drawn.append(number)

draw()
print(len(drawn), sum(drawn))
"""


def draw(profile: str | None) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if name != "STEPLADDER_TEST_PROFILE"}
    if profile:
        environment["STEPLADDER_TEST_PROFILE"] = profile
    return subprocess.run(
        [sys.executable, "-c", DRAW], capture_output=True, text=True, cwd=Path(__file__).parent, env=environment
    )


@pytest.mark.parametrize("profile", [None, "", "repeatable"])
def test_the_same_examples(profile: str | None) -> None:
    first, second = draw(profile), draw(None)
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout and first.stdout.startswith("20 ")


def test_other_examples() -> None:
    first, second = draw("random"), draw("random")
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("200 ") and first.stdout != second.stdout


def test_unknown_profile() -> None:
    done = draw("lucky")
    assert done.returncode != 0
    assert "STEPLADDER_TEST_PROFILE must be one of repeatable, random, got 'lucky'" in done.stderr
