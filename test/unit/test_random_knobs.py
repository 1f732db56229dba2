"""Random values of all knobs, with steps left out: right on the emulator, or refused with one message.

STEPLADDER_TEST_SEED=S draws other payloads and knobs; STEPLADDER_RANDOM_KNOBS=N of them, 500 with
STEPLADDER_TEST_PROFILE=random, for at most STEPLADDER_RANDOM_SECONDS=T.
"""

import collections
import os
import random
import time

import pytest

from conftest import PROFILE
from random_knobs import Case, random_case, repaired
from stepladder.emulator.matmul import EmulatedExecutor
from stepladder.payload import reference_export
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_pipeline
from stepladder.runtime.errors import BAD_INPUT, StepladderError
from stepladder.verify.check import check_matmul
from test_epilogues import first_known

SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
COUNT = int(os.environ.get("STEPLADDER_RANDOM_KNOBS", 500 if PROFILE == "random" else 2))
SECONDS = float(os.environ.get("STEPLADDER_RANDOM_SECONDS", "inf"))
TRIES = 30  # settings of one payload
PARTS = 2


def compiled(case: Case, drawn: random.Random) -> tuple[Case, Run] | None:
    """Returns the case with settings that a pipeline accepts, and its run; None where no change of them helps."""
    for _ in range(TRIES):
        try:
            return case, run_pipeline(
                case.text, "payload.mlir", Request(case.pipeline, case.knobs, without=case.without)
            )
        except StepladderError as error:
            assert error.message and "\n" not in error.message and not error.traceback, error.render()
            assert error.status == BAD_INPUT or ": tc." in error.message, error.render()
            changed = repaired(case, error.message, drawn)
        if changed is None:
            break
        case = changed
    return None


@pytest.mark.parametrize("part", range(PARTS))
def test_right_or_refused_with_one_message(part: int) -> None:
    outcomes, until = collections.Counter(), time.monotonic() + SECONDS
    for number in range(part, COUNT, PARTS):
        if time.monotonic() > until:
            break
        with mlir_context():
            seed = SEED * 1_000_003 + number
            found = compiled(random_case(seed), random.Random(seed))
            outcomes[found is not None] += 1
            if found is None:
                continue
            case, run = found
            assert run.matmul is not None
            expected = reference_export.export(parse_payload(case.text, "payload.mlir"), run.matmul.roles)
            name, emulation = first_known(reversed(run.steps))
            executor = EmulatedExecutor(emulation, expected.roles)
            reports = check_matmul(run.matmul.problem, expected, executor, number, repeats=False)
            said = f"{name}: {case.pipeline}, {case.knobs}, without {case.without}\n{case.text}"
            for report in reports:
                is_compared = "nothing of C could be compared" not in report.describe()
                assert report.passed or not is_compared, f"{report.describe()}\n{said}"
            assert not executor.findings, f"{executor.findings[0].render()}\n{said}"
    assert PROFILE != "random" or outcomes[True] > outcomes[False], outcomes
