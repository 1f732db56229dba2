"""Faults in programs that no pipeline makes (`planted`): nothing is found before, and each fault afterwards.

A run takes half of the faults; STEPLADDER_TEST_PROFILE=random takes all.
"""

from collections.abc import Iterator

import pytest

from combinations import sample
from planted import EXPECTED, FOLDER, Fault, check, faults_of, text_of
from stepladder.pipeline.context import mlir_context

FAULTS = [fault for file in EXPECTED for fault in faults_of(file)]


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[None]:
    with mlir_context():
        yield


def test_every_file_is_run() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(EXPECTED)


@pytest.mark.parametrize("file", EXPECTED)
def test_nothing_is_found_before(file: str) -> None:
    kinds, findings = check(text_of(file), file)
    assert not kinds, [finding.render() for finding in findings]


@pytest.mark.parametrize("fault", sample(FAULTS, 2), ids=lambda fault: f"{fault.file}: {fault.name}")
def test_fault_is_found(fault: Fault) -> None:
    before = text_of(fault.file)
    text = fault.plant(before)
    assert text != before
    kinds, findings = check(text, fault.file)
    assert all(kinds & wanted for wanted in fault.finds), (kinds, [finding.render() for finding in findings])
    located = [finding for finding in findings if finding.kind not in ("unwritten-output", "deadlock")]
    assert all(finding.location.startswith(f"{fault.file}:") for finding in located), located


# Those that MLIR lowers as they are: TMA descriptors are no arguments of kernels for it.
LOWERED = ("cp_async.mlir", "mma_sync.mlir", "reduction.mlir", "stencil.mlir", "tickets.mlir")


@pytest.mark.parametrize(
    "fault",
    sample([fault for fault in FAULTS if fault.file in LOWERED], 6),
    ids=lambda fault: f"{fault.file}: {fault.name}",
)
def test_lowering_changes_no_finding(fault: Fault) -> None:
    for text in (text_of(fault.file), fault.plant(text_of(fault.file))):
        before, _ = check(text, fault.file)
        after, _ = check(text, fault.file, lowered=True)
        # The LLVM dialect knows whole arrays, not their rows: what is beyond a row is in another one.
        assert after == before or "out-of-bounds" in before
