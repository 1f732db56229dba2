"""Groups of matmuls that are one launch: compiled, and executed as IR and as PTX."""

import functools
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from combinations import sample
from conftest import PROFILE
from random_groups import layers
from stepladder.cli.main import main
from stepladder.emulator import function_steps
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.functions import EmulatedFunction
from stepladder.measure.functions import flops_of
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.functions.build import build_function
from stepladder.pipeline.functions.group_knobs import _shares
from stepladder.pipeline.library import pipeline_file
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_again, run_pipeline
from stepladder.runtime.bundle import FunctionBundle, PlainCode, read_any
from stepladder.runtime.bundle.function import SCHEMA_VERSION_EMPTY
from stepladder.runtime.errors import StepladderError
from stepladder.verify.function_check import check_function

INPUTS = Path(__file__).parents[1] / "inputs" / "functions"
EXPERTS = (INPUTS / "experts.mlir").read_text()
SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
COUNT = 200 if PROFILE == "random" else 4
WHERE = (("auto", "sm_90a"), ("auto", "sm_80"), ("wmma", "sm_80"), ("wgmma_multistage", "sm_90a"))

pytestmark = pytest.mark.usefixtures("needs_ptxas")


@functools.cache
def built(text: str, pipeline: str = "auto", target: str = "sm_90a", **settings: object) -> FunctionBundle:
    knobs = {"groups": True, **settings, "target": target}
    with mlir_context():
        return build_function(text, "layers.mlir", Request(pipeline, knobs, tuned=True)).bundle  # pyright: ignore


def wrong(bundle: FunctionBundle, seed: int = 0) -> list[str]:
    """Returns what the checks of a function's PTX find: wrong numbers, and faults."""
    function = EmulatedFunction(bundle, {"reverses_blocks": bool(seed % 2)})
    failed = [report.describe() for report in check_function(bundle, function, seed) if not report.passed]
    return [*failed, *(finding.render() for finding in function.findings)]


def groups_of(bundle: FunctionBundle) -> list[int]:
    return [len(launch.grouped) for launch in bundle.manifest.launches]


@pytest.mark.parametrize(("pipeline", "target"), sample(WHERE, 2))
def test_experts_of_unlike_sizes(pipeline: str, target: str) -> None:
    bundle = built(EXPERTS, pipeline, target)
    assert groups_of(bundle) == [3, 3]
    assert wrong(bundle) == []
    assert flops_of(bundle) == 2 * 2 * (16 + 40 + 16) * 32 * 48


@pytest.mark.parametrize("number", range(COUNT))
def test_drawn_layers(number: int) -> None:
    drawn = random.Random(SEED * 1_000_003 + number)
    pipeline, target = drawn.choice(WHERE)
    type_ = drawn.choice(("f16", "f16", "bf16", "f32", "i8"))
    text = layers(drawn, type_, 16 if type_ == "i8" else 8)
    try:
        bundle = built(text, pipeline, target)
    except StepladderError as error:
        assert "raised" not in error.message and pipeline != "auto", f"{error.render()}\n{text}"
        return
    assert wrong(bundle, number) == [], text


def test_each_step_and_the_merge() -> None:
    reports = []
    with mlir_context():
        request = Request(pipeline_file("functions"), {"groups": True})
        function_steps.check_function_steps(EXPERTS, "experts", request, reports.append)
    assert [report.step for report in reports if report.passed is not True] == []
    assert "group_matmuls" in [report.step for report in reports]
    bundle = built(EXPERTS, "mma_sync", "sm_80")
    code = bundle.plain(bundle.manifest.launches[0])
    results = [_run(code, name) for name in ("00-input.mlir", "01-merge_launches.mlir")]
    assert code.ir["00-input.mlir"].count("gpu.launch_func") == 3
    assert code.ir["01-merge_launches.mlir"].count("gpu.launch_func") == 1
    for before, after in zip(*results):
        assert before.tobytes() == after.tobytes()


def _run(code: PlainCode, name: str) -> list[np.ndarray]:
    """Returns what the arguments of a group's function hold after its launches."""
    with mlir_context():
        emulation = Emulation(parse_payload(code.ir[name], name), name=name)
        types = emulation.function.argument_types
        rng = np.random.default_rng(0)
        given = [rng.integers(-3, 4, type_.static_shape).astype(type_.element.dtype) for type_ in types]  # pyright: ignore
        outcome = emulation.run(given, count=False)
    assert outcome.findings == []
    return [np.asarray(array) for array in outcome.arguments]


def test_buffers_of_a_group_are_apart() -> None:
    """Without groups, the second chain may take the place of what the first one has read."""
    apart, shared = built(EXPERTS), built(EXPERTS, groups=False)
    assert groups_of(shared) == [0] * 6
    assert apart.manifest.workspace > shared.manifest.workspace


def test_matmuls_that_one_kernel_cannot_take_are_launches_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of 6 bytes are repacked by kernels of their own on `wgmma`; `mma_sync` has none."""
    text = EXPERTS.replace("32", "3").replace("f3>", "f32>").replace(": f3\n", ": f32\n")
    text = re.sub(r"\bf3\b", "f32", text)
    source, folder = tmp_path / "layers.mlir", tmp_path / "layers.bundle"
    source.write_text(text)
    options = ["--pipeline", "wgmma", "--target", "sm_90a", "--set", "groups=true"]
    assert main(["compile", str(source), *options, "-o", str(folder)]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert len(notes) == 2 and all(" are a launch each: " in note for note in notes), notes
    alone = read_any(folder)
    assert isinstance(alone, FunctionBundle) and groups_of(alone) == [0] * 6
    bundle = built(text)
    assert groups_of(bundle) == [3, 3] and wrong(bundle) == []


@pytest.mark.parametrize(
    ("tiles", "blocks", "cluster", "shares"),
    [
        ([33] * 4, 132, 1, [33] * 4),
        ([33] * 8, 132, 1, [11] * 8),
        ([1, 100, 300], 132, 1, [1, 25, 75]),
        ([5, 6], 8, 2, [4, 4]),
        ([4, 4], 2, 1, [1, 1]),
    ],
)
def test_shares_of_persistent_blocks(tiles: list[int], blocks: int, cluster: int, shares: list[int]) -> None:
    assert _shares(tiles, {"persistent_blocks": blocks, "cluster_m": cluster}) == shares


def test_persistent_blocks_loop_over_the_tiles_of_their_matmul() -> None:
    knobs = {"block_m": 64, "block_n": 16, "stages": 2, "consumer_warpgroups": 1, "swap_operands": False}
    knobs |= {"persistent_blocks": 4, "cluster_m": 1, "cluster_n": 1}
    bundle = built(EXPERTS, "wgmma", **knobs)
    assert [launch.kernel.grid[0] for launch in bundle.manifest.launches if launch.kernel] == [3, 3]
    assert wrong(bundle) == []
    larger = EXPERTS.replace("16x", "128x").replace("40x", "200x")
    clusters = built(larger, "wgmma", **{**knobs, "cluster_m": 2, "persistent_blocks": 12})
    assert {launch.kernel.cluster for launch in clusters.manifest.launches if launch.kernel} == {(2, 1, 1)}
    assert wrong(clusters) == []


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "experts.bundle"
    source = str(INPUTS / "experts.mlir")
    assert main(["compile", source, "--target", "sm_90a", "--set", "groups=true", "-o", str(folder)]) == 0
    assert "@experts: 0 matmuls and 0 other kernels, groups of 3, 3 matmuls" in capsys.readouterr().out
    assert main(["run", str(folder), "--backend", "emulator"]) == 0
    bundle = read_any(folder)
    assert isinstance(bundle, FunctionBundle) and groups_of(bundle) == [3, 3]
    original = json.loads((folder / "manifest.json").read_text())

    def refused(edit: Callable[[dict], object]) -> str:
        data = json.loads(json.dumps(original))
        edit(data)
        (folder / "manifest.json").write_text(json.dumps(data))
        with pytest.raises(StepladderError) as caught:
            read_any(folder)
        return caught.value.message

    first = ("launches", 0, "kernel")
    assert "must be at most" in refused(lambda data: _at(data, *first).update(dynamic_shared_memory=10**6))
    assert "multiple of the cluster" in refused(
        lambda data: _at(data, *first).update(grid=[3, 1, 1], cluster=[2, 1, 1])
    )
    assert "read_early' must name arguments that the kernel only reads" in refused(
        lambda data: _at(data, *first).update(read_early=["p9"])
    )
    assert "dependent_launch' must be false" in refused(
        lambda data: _at(data, *first).update(read_early=["p0"], dependent_launch=True)
    )
    assert "'tma_descriptors' has" in refused(lambda data: _at(data, *first, "arguments", 0).update(descriptor=99))
    assert "schema_version" in refused(lambda data: data.update(schema_version=SCHEMA_VERSION_EMPTY + 1))


def _at(data: dict, *path: str | int) -> dict:
    for key in path:
        data = data[key]  # pyright: ignore[reportArgumentType]
    return data


@pytest.mark.parametrize(
    "name, settings, shared",
    [("experts", {"groups": True}, "outline_elementwise"), ("gated_mlp", {"pairs": False}, "permute_contractions")],
)
def test_a_division_with_other_knobs_repeats_the_steps_that_they_change(name: str, settings: dict, shared: str) -> None:
    """The IR after each step is that of a run from the start, and the first run stays as it is."""
    text = (INPUTS / f"{name}.mlir").read_text()
    division = pipeline_file("functions")
    with mlir_context():
        first = run_pipeline(text, "f.mlir", Request(division))
        texts = [step.text for step in first.steps]
        again = run_again(first, Request(division, settings))
        whole = run_pipeline(text, "f.mlir", Request(division, settings))
        assert [step.text for step in first.steps] == texts
        assert [(step.name, step.text) for step in again.steps] == [(step.name, step.text) for step in whole.steps]
        assert (again.knobs, again.sources, again.dumps()) == (whole.knobs, whole.sources, whole.dumps())
        same = [step.name for step in again.steps if any(step is before for before in first.steps)]
    assert same[-1] == shared
