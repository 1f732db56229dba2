"""Random programs of a contraction and elementwise ops: right on the emulator, or refused with one message.

STEPLADDER_TEST_SEED=S draws others; STEPLADDER_RANDOM_PROGRAMS=N of them, 500 with STEPLADDER_TEST_PROFILE=random.
"""

import os
import random

import pytest

from conftest import PROFILE
from random_programs import Writer, program
from stepladder.runtime.errors import StepladderError
from test_epilogues import PIPELINES, SPLIT, TILES, check

SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
COUNT = int(os.environ.get("STEPLADDER_RANDOM_PROGRAMS", 500 if PROFILE == "random" else 12))
WHERE = [*PIPELINES.values(), ("wgmma", SPLIT), ("wgmma", {**TILES, "schedule": "pingpong"})]
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_right_or_refused_with_one_message(part: int) -> None:
    numbers = range(part, COUNT, PARTS)
    refused = []
    for number in numbers:
        drawn = random.Random(SEED * 1_000_003 + number)
        pipeline, knobs = drawn.choice(WHERE)
        text = program(drawn, pipeline)
        try:
            check(text, pipeline, knobs, number, levels="last")
        except StepladderError as error:
            assert error.message and "\n" not in error.message, f"{error.message}\n{text}"
            assert "raised" not in error.message, f"{error.message}\n{text}"
            refused.append(error.message)
        except Exception as error:
            raise AssertionError(f"program {number} on {pipeline}: {error}\n{text}") from error
    if PROFILE == "random":
        assert len(refused) < len(numbers) // 2, refused


def test_integers_that_become_numbers_of_16_bits() -> None:
    """The sums of i8 are in i32, and C is of f16."""
    drawn = random.Random(27)
    writer = Writer(drawn, None, 64, 64, 40)
    writer.product("i8", "i32", "b")
    sums = (writer.values[-1][0], writer.tensor([64, 64], "i32"), "i, j")
    scale = (writer.argument([64], "f32"), "tensor<64xf32>", "j")
    body = ["%f = arith.sitofp %x : i32 to f32", "%v = arith.mulf %f, %s : f32", "%r = arith.truncf %v : f32 to f16"]
    writer.elementwise([sums, scale], ["%x: i32", "%s: f32"], body, "f16")
    check(writer.text(), *PIPELINES["wgmma, TMA"], levels="last")
