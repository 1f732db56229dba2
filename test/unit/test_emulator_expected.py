"""Outputs compared with expected arrays, and findings as SARIF."""

import ml_dtypes
import numpy as np
import pytest

from stepladder.emulator.core.emulation import Outcome
from stepladder.emulator.core.expected import (
    UNWRITTEN,
    WRONG,
    Output,
    compare,
    compare_with_files,
    compare_with_reference,
)
from stepladder.emulator.memory.findings import Finding
from stepladder.emulator.memory.sarif import sarif_log
from stepladder.runtime.errors import StepladderError


def test_integers_must_be_equal() -> None:
    want = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert compare("c", want.copy(), want) == []
    found = want.copy()
    found[1, 2] += 1
    [finding] = compare("c", found, want, tolerance=10.0)
    assert finding.kind == WRONG
    assert "1 of 6" in finding.message and "[1, 2]: 6, expected 5" in finding.message


@pytest.mark.parametrize(
    ("dtype", "error", "is_wrong"),
    [
        (np.float32, 1e-4, False),
        (np.float32, 1e-3, True),
        (np.float16, 1e-2, False),
        (np.float16, 1e-1, True),
        (ml_dtypes.bfloat16, 5e-2, False),
        (ml_dtypes.bfloat16, 2e-1, True),
    ],
)
def test_tolerance_follows_the_type(dtype: type[np.generic], error: float, is_wrong: bool) -> None:
    want = np.ones(8)
    found = want.copy()
    found[3] += error
    assert bool(compare("c", found.astype(dtype), want)) == is_wrong


def test_small_elements_are_held_against_the_root_mean_square() -> None:
    want = np.array([1e-9, 1.0, -1.0, 1.0], np.float32)
    found = want.copy()
    found[0] = 1e-5  # what cancellation leaves
    assert compare("c", found, want) == []
    assert compare("c", found, want, tolerance=1e-6)


def test_not_a_number_never_passes_for_a_number() -> None:
    want = np.array([1.0, np.nan, np.inf], np.float32)
    assert compare("c", want.copy(), want) == []
    for wrong in ([np.nan, np.nan, np.inf], [1.0, 1.0, np.inf], [1.0, np.nan, -np.inf], [1.0, np.nan, 3e38]):
        assert len(compare("c", np.array(wrong, np.float32), want)) == 1


def test_shapes_must_agree() -> None:
    [finding] = compare("c", np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32))
    assert "2x3, and 3x2 is expected" in finding.message


def test_results_of_a_reference_stand_for_written_arguments_in_order() -> None:
    inputs = [np.zeros(2, np.float32)] * 3
    after = [inputs[0], np.full(2, 1, np.float32), np.full(2, 2, np.float32)]
    expected = [Output("result0", after[1]), Output("result1", after[2])]
    assert compare_with_reference(Outcome(after, []), inputs, expected) == []
    assert len(compare_with_reference(Outcome(after, []), inputs, expected[::-1])) == 2
    [finding] = compare_with_reference(Outcome([inputs[0], after[1], inputs[2]], []), inputs, expected)
    assert finding.kind == UNWRITTEN


def test_files_are_for_arguments_and_results() -> None:
    outcome = Outcome([np.zeros(2, np.float32), None], [np.ones(2, np.float32)])
    assert compare_with_files(outcome, {0: np.zeros(2), 2: np.ones(2)}, None) == []
    for number in (1, 3):
        with pytest.raises(StepladderError, match="there is no"):
            compare_with_files(outcome, {number: np.zeros(2)}, None)


def test_sarif_has_a_rule_for_each_kind_and_a_region_for_each_location() -> None:
    findings = [
        Finding("race", "reads byte 0x0", "vector.load", "k.mlir:7:9", "vector.store", "k.mlir:3:5", count=4),
        Finding("race", "reads byte 0x4", "vector.load", "k.mlir:8:9"),
        Finding("deadlock", "no thread can proceed"),
    ]
    [run] = sarif_log(findings, "k.mlir")["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["race", "deadlock"]
    first, _, last = run["results"]
    assert first["locations"][0]["physicalLocation"]["region"] == {"startLine": 7, "startColumn": 9}
    assert first["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 5}
    assert first["occurrenceCount"] == 4 and last["ruleIndex"] == 1
    assert last["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "k.mlir"}}
