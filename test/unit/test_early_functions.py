"""Functions of few rows: which of their kernels load weights before they wait for the kernel before them."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from stepladder.emulator.functions import EmulatedFunction
from stepladder.runtime.bundle import FunctionBundle, PlainCode
from stepladder.runtime.overlap import triggers_late
from stepladder.verify.function_check import check_function
from stepladder.verify.function_inputs import random_inputs
from stepladder.verify.function_tolerance import error_of_matmuls
from weight_functions import EARLY, bundle_of, chain, gated, projections

pytestmark = pytest.mark.usefixtures("needs_ptxas")

INPUTS = Path(__file__).parents[1] / "inputs" / "functions"
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
    # The next kernel may load early whatever precedes the function, and each may start while that ends.
    assert all(triggers_late(code.ptx) for code in bundle.kernels.values())
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


def test_kernels_that_let_the_next_one_start_at_their_exit() -> None:
    """All kernels before one have ended when it starts, as with a trigger behind the wait."""
    bundle = bundle_of(chain(5, 128, [1, 2]), {**EARLY, "launch_trigger": "exit"})
    assert early_of(bundle) == [True, True]
    for code in bundle.kernels.values():
        assert triggers_late(code.ptx) and "launch_dependents" not in code.ptx
    function = EmulatedFunction(bundle)
    assert all(report.passed for report in check_function(bundle, function, 0))
    assert not function.findings


def groups_of(bundle: FunctionBundle) -> list[tuple[int, bool]]:
    """Returns of each group its matmuls, and whether it loads all of their weights early."""
    kernels = [launch.kernel for launch in bundle.manifest.launches if launch.kernel is not None]
    return [(len(kernel.problems), len(kernel.read_early) == len(kernel.problems)) for kernel in kernels]


@pytest.mark.parametrize(
    "rows, settings, promised, groups",
    [
        (4, {}, False, [(3, False)]),  # the first kernel
        (4, {}, True, [(3, True)]),
        (4, {"groups": "false"}, True, []),
        (128, {}, True, []),
        (128, {"groups": "true"}, True, [(3, False)]),
    ],
)
def test_projections_of_few_rows(
    rows: int, settings: dict[str, str], promised: bool, groups: list[tuple[int, bool]]
) -> None:
    bundle = bundle_of(projections(rows, 4096, [4096, 1024, 1024]), settings, constant_weights=promised)
    assert groups_of(bundle) == groups
    assert len(bundle.manifest.launches) == (1 if groups else 3)
    launch = bundle.manifest.launches[0]
    if rows == 4 and launch.kernel is not None:  # tiles of 64 columns, with operands exchanged
        assert launch.kernel.grid == ((4096 + 1024 + 1024) // 64, 1, 1)


def test_numbers_of_a_group() -> None:
    bundle = bundle_of(projections(5, 200, [128, 64, 40]), {**EARLY, "groups": "true"})
    assert groups_of(bundle) == [(3, True)]
    (launch,) = bundle.manifest.launches
    kinds = [bundle.manifest.buffers[launch.operands[role]].number for role in launch.kernel.read_early]
    assert kinds == [1, 2, 3]
    function = EmulatedFunction(bundle)
    reports = check_function(bundle, function, 0)
    assert all(report.passed for report in reports)
    assert not function.findings
    # What is allowed has the errors of all matmuls of the group.
    allowed = [report.norm_tolerance for report in reports if report.norm_tolerance is not None]
    assert len(allowed) == 3 and min(allowed) > error_of_matmuls(launch.grouped)


def test_a_pair_of_products() -> None:
    """Both matrices of weights are read early; the pair is the first kernel, and the next one reads its own."""
    knobs = {**EARLY, "swap_operands": "false", "block_n": 16}
    bundle = bundle_of(gated(4, 64, 96), knobs)
    first, second = (bundle.matmul(launch).manifest for launch in bundle.manifest.launches)
    assert set(first.read_early) == {"b", "d0"} and second.read_early == ("b",)
    function = EmulatedFunction(bundle)
    assert all(report.passed for report in check_function(bundle, function, 0))
    assert not function.findings


@pytest.mark.parametrize(
    "settings, waits", [({}, True), ({"dependent_launch": "false"}, False), ({"target": "sm_80"}, False)]
)
def test_kernels_of_no_matmul_wait_first(settings: dict[str, str], waits: bool) -> None:
    """A norm waits before it accesses memory, and then lets the next kernel start."""
    bundle = bundle_of((INPUTS / "norm_linear.mlir").read_text(), settings)
    launches = [launch for launch in bundle.manifest.launches if launch.kernel is not None]
    assert launches
    for launch in launches:
        assert launch.kernel is not None and launch.kernel.waits_at_start == waits
        before, *behind = bundle.plain(launch).ptx.split("griddepcontrol.wait;")
        assert len(behind) == waits
        assert not waits or (".global." not in before.replace("cvta.to.global", "") and "launch_dep" not in before)


@pytest.mark.parametrize(
    "instruction, instead, says",
    [
        ("griddepcontrol.wait;", "", "before griddepcontrol.wait: the launch before may still write it"),
        ("wait;", "launch_dependents;", "lets the next launch begin before griddepcontrol.wait"),
    ],
)
def test_a_kernel_that_does_not_wait_races(instruction: str, instead: str, says: str) -> None:
    bundle = bundle_of((INPUTS / "norm_linear.mlir").read_text())
    folder = next(launch.folder for launch in bundle.manifest.launches if launch.kernel is not None)
    code = bundle.kernels[folder]
    assert isinstance(code, PlainCode) and instruction in code.ptx
    wrong = dataclasses.replace(code, ptx=code.ptx.replace(instruction, instead))
    function = EmulatedFunction(dataclasses.replace(bundle, kernels={**bundle.kernels, folder: wrong}))
    function.run(random_inputs(bundle, 0))
    assert any(finding.kind == "race" and says in finding.message for finding in function.findings)


@pytest.mark.parametrize("promised", [False, True])
def test_a_pair_is_chosen_to_load_early(promised: bool) -> None:
    bundle = bundle_of(gated(4, 4096, 14336), constant_weights=promised)
    first, second = (bundle.matmul(launch).manifest for launch in bundle.manifest.launches)
    assert set(first.read_early) == ({"b", "d0"} if promised else set())
    assert second.read_early == ("b",)
