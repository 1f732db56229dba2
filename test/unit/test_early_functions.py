"""Functions of few rows: which of their kernels load weights before they wait for the kernel before them."""

from collections.abc import Sequence

import pytest

from stepladder.emulator.functions import EmulatedFunction
from stepladder.runtime.bundle import FunctionBundle
from stepladder.verify.function_check import check_function
from weight_functions import EARLY, bundle_of, chain

pytestmark = pytest.mark.usefixtures("needs_ptxas")

LARGE = 8192  # weights of 128 MiB, which L2 does not hold


def early_of(bundle: FunctionBundle) -> list[bool | None]:
    """Returns which launches load weights early; None for kernels that are no matmul."""
    return [
        None if launch.kernel is not None else bundle.matmul(launch).manifest.read_early == ("b",)
        for launch in bundle.manifest.launches
    ]


@pytest.mark.parametrize(
    "weights, promised, early",
    [
        # Nothing is known of what precedes the first kernel, unless the caller promises.
        ([1, 2, 3], False, [False, True, True]),
        ([1, 2, 3], True, [True, True, True]),
        ([1, 1], False, [False, True]),
        # A kernel in front writes the weights of the first matmul, and not those of the second.
        (["twice", 1], True, [None, False, True]),
        ([1, "twice"], True, [True, None, False]),
    ],
)
def test_what_is_chosen(weights: Sequence[int | str], promised: bool, early: list[bool | None]) -> None:
    bundle = bundle_of(chain(4, LARGE, weights), constant_weights=promised)
    assert sorted(early_of(bundle), key=str) == sorted(early, key=str)
    for launch, loads_early in zip(bundle.manifest.launches, early_of(bundle)):
        if loads_early:
            kinds = {bundle.manifest.buffers[number].kind for role, number in launch.operands.items() if role == "b"}
            assert kinds == {"argument"}
    # Equal matmuls that may and may not load early are two kernels, others one.
    kernels = {launch.folder for launch in bundle.manifest.launches}
    assert len(kernels) == len(set(map(str, early)))
    assert kernels == set(bundle.kernels)


@pytest.mark.parametrize("weights", [[1, 2, 3], [1, 1], ["twice", 1], [1, "twice"]])
def test_numbers(weights: Sequence[int | str]) -> None:
    bundle = bundle_of(chain(5, 128, weights), EARLY)
    assert all(item is not False for item in early_of(bundle))
    function = EmulatedFunction(bundle)
    assert all(report.passed for report in check_function(bundle, function, 0))
    assert not function.findings
