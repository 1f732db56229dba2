"""The IR after every step of every pipeline gives the right numbers, and the sanitizer finds nothing in it.

The exact check compares with the reference over integers, so that one dropped or doubled product shows.
`test_every_step` runs all steps; the other tests run one step of four in turn, others for another STEPLADDER_TEST_SEED,
and all of them with STEPLADDER_TEST_PROFILE=random.
"""

import dataclasses
from collections.abc import Container

import pytest

from chosen import chosen_steps
from combinations import sample
from default_kernels import default_payload, defaults
from stepladder.emulator import matmul
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import StepladderError

WARPS = {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32}
TILES = {"block_m": 64, "block_n": 64, "block_k": 32, "consumer_warpgroups": 1}
PERSISTENT = {**TILES, "persistent_blocks": 2}

KNOBS = {
    "wmma": WARPS,
    "wmma_upstream": WARPS,
    "mma_sync": WARPS,
    "wgmma_single_stage": TILES,
    "wgmma_multistage": TILES,
    "wgmma": PERSISTENT,
}

# One tile, several, and a long way along k; rows that no tile divides where a pipeline takes them.
WHOLE = [(64, 64, 64), (128, 64, 96), (64, 128, 160)]
ANY = [(64, 64, 64), (136, 72, 104), (1, 8, 168)]
SHAPES = {
    "wmma": WHOLE,
    "wmma_upstream": WHOLE,
    "mma_sync": WHOLE,
    "wgmma_single_stage": ANY,
    "wgmma_multistage": ANY,
    "wgmma": ANY,
}

CASES = [
    (pipeline, shape, accumulate, sums)
    for pipeline, shapes in SHAPES.items()
    for shape in shapes
    for accumulate in (True, False)
    for sums in ("f32", "f16")
]

# Numbers of steps, more than any pipeline has.
STEPS = range(100)


_PASSED: dict[tuple, matmul.StepReport] = {}
_check_step = matmul.check_step


@pytest.fixture(autouse=True)
def run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs IR that tests have in common, such as that of a pipeline before the step that is left out, once a process.

    What has passed passes again: the runs are of the same IR on the same numbers.
    """

    def check_step(step: str, text: str, name: str, *compared: object, **options: object) -> matmul.StepReport:
        key = text, *map(repr, compared), repr(options)
        if key not in _PASSED:
            report = _check_step(step, text, name, *compared, **options)
            if not report.passed:
                return report
            _PASSED[key] = report
        return dataclasses.replace(_PASSED[key], step=step)

    monkeypatch.setattr(matmul, "check_step", check_step)


def check_some(
    number: int, *arguments: str | dict[str, int | str] | tuple[int, int, int], **types: tuple[object, ...]
) -> list[str]:
    """Runs a pipeline as `check_all` does, and the IR after one step of four, by the number of the case."""
    return check_all(*arguments, **types, chosen={(step + number) % len(STEPS) for step in sample(STEPS, 4)})


def check_all(
    pipeline: str, settings: dict, shape: tuple, *, without: tuple = (), chosen: Container[int] = STEPS, **types: object
) -> list[str]:
    """Runs a pipeline and the IR after each of its steps; returns the names of the steps whose IR was run."""
    names = []

    def checked(report: matmul.StepReport) -> None:
        step = report.step
        assert report.passed is not None, f"{step}: {report.unknown}"
        assert report.check.passed, f"{step}: {report.check.describe()}"
        assert not report.findings, f"{step}: {report.findings[0].render()}"
        names.append(step)

    with mlir_context():
        text = matmul_text(*shape, **types)
        request = Request(pipeline, settings, without=without)
        matmul.check_steps(text, "payload.mlir", request, checked, is_chosen_step=chosen.__contains__)
    return names


@pytest.mark.parametrize("pipeline, shape, accumulate, sums", sample(list(CASES), 4))
def test_every_step(pipeline: str, shape: tuple[int, int, int], accumulate: bool, sums: str) -> None:
    checked = check_all(pipeline, KNOBS[pipeline], shape, accumulate=accumulate, acc_type=sums, c_type=sums)
    with mlir_context():
        steps = library.load(pipeline).steps
    unconditional = {step.name for step in steps if step.condition is None}
    assert unconditional <= set(checked)


IN_MEMORY = {"split_k_workspace": "memory", "persistent_blocks": 0, "epilogue": "registers"}
FORMS = {
    "one buffer": ("wmma", {**WARPS, "stages": 1}, (64, 64, 96)),
    "asynchronous copies": ("wmma", {**WARPS, "prefetch": "cp_async", "stages": 3}, (64, 64, 160)),
    "block rows in groups": ("wmma", {**WARPS, "raster_group": 4}, (384, 64, 32)),
    "two consumers": ("wgmma", {**PERSISTENT, "block_m": 128, "consumer_warpgroups": 2}, (136, 72, 104)),
    "clusters that share B": ("wgmma", {**TILES, "cluster_m": 2, "persistent_blocks": 4}, (136, 72, 104)),
    "clusters that share A": ("wgmma", {**TILES, "cluster_n": 2, "persistent_blocks": 4}, (72, 136, 104)),
    "clusters that share both": (
        "wgmma",
        {**TILES, "cluster_m": 2, "cluster_n": 2, "persistent_blocks": 4},
        (128, 256, 96),
    ),
    "divided reduction": (
        "wgmma",
        {**TILES, "split_k": 4, "persistent_blocks": 0, "epilogue": "registers"},
        (136, 64, 256),
    ),
    "divided reduction of few rows": (
        "wgmma",
        {**TILES, "split_k": 3, "persistent_blocks": 0, "epilogue": "registers"},
        (5, 72, 200),
    ),
    "divided reduction in memory": ("wgmma", {**TILES, **IN_MEMORY, "split_k": 4}, (72, 72, 256)),
    "divided reduction in memory, of clusters that share B": (
        "wgmma",
        {**TILES, **IN_MEMORY, "split_k": 3, "cluster_m": 2, "raster_group": 1},
        (136, 72, 200),
    ),
    "divided reduction in memory, of clusters that share both": (
        "wgmma",
        {**TILES, **IN_MEMORY, "split_k": 2, "cluster_m": 2, "cluster_n": 2},
        (128, 128, 136),
    ),
    "divided reduction in memory, of two consumers": (
        "wgmma",
        {**TILES, **IN_MEMORY, "split_k": 2, "block_m": 128, "consumer_warpgroups": 2},
        (136, 72, 136),
    ),
    "one stage": ("wgmma", {**PERSISTENT, "stages": 1}, (136, 72, 104)),
    "ping-pong consumers": ("wgmma", {**PERSISTENT, "schedule": "pingpong"}, (136, 72, 104)),
    "ping-pong consumers, stores from registers": (
        "wgmma",
        {**PERSISTENT, "schedule": "pingpong", "epilogue": "registers"},
        (136, 72, 104),
    ),
    "stores from registers": ("wgmma", {**PERSISTENT, "epilogue": "registers"}, (65, 9 * 8, 104)),
    "stream-K tail": ("wgmma", {**TILES, "persistent_blocks": 3, "tile_scheduler": "stream_k"}, (128, 128, 192)),
    "stream-K tail in clusters": (
        "wgmma",
        {**TILES, "persistent_blocks": 4, "cluster_m": 2, "tile_scheduler": "stream_k"},
        (384, 64, 192),
    ),
    "tiles in groups": ("wgmma", {**PERSISTENT, "raster_group": 2}, (192, 128, 64)),
    "launches in order": ("wgmma", {**PERSISTENT, "dependent_launch": False}, (64, 64, 64)),
    "launches behind the exit": ("wgmma", {**PERSISTENT, "launch_trigger": "exit"}, (64, 64, 64)),
}


@pytest.mark.parametrize("form", sample(list(FORMS), 2))
def test_every_form(form: str) -> None:
    assert check_some(list(FORMS).index(form), *FORMS[form])


TYPES = [
    ("mma_sync", {}, {"a_type": "bf16", "b_type": "bf16", "a_layout": "column", "b_layout": "column"}),
    ("mma_sync", {"allow_tf32": True}, {"a_type": "f32", "b_type": "f32", "b_layout": "column"}),
    ("mma_sync", {"block_k": 64}, {"a_type": "i8", "b_type": "i8", "acc_type": "i32", "c_type": "i32"}),
    ("wgmma", {}, {"a_type": "bf16", "b_type": "bf16", "c_type": "bf16", "accumulate": False}),
    ("wgmma", {"block_n": 192}, {"c_type": "f16", "accumulate": False}),
    ("wgmma", {"allow_tf32": True}, {"a_type": "f32", "b_type": "f32", "b_layout": "column"}),
    ("wgmma", {}, {"a_type": "f8E4M3FN", "b_type": "f8E5M2", "b_layout": "column"}),
    ("wgmma", {}, {"a_layout": "column", "b_layout": "row"}),
    ("wgmma", {}, {"a_layout": "column", "b_layout": "column"}),
]


@pytest.mark.parametrize(
    "number, pipeline, knobs, types", sample([(number, *case) for number, case in enumerate(TYPES)], 2)
)
def test_every_type(number: int, pipeline: str, knobs: dict[str, bool | int], types: dict[str, bool | str]) -> None:
    shape = (128, 64, 192) if pipeline == "mma_sync" else (80, 208, 112)
    assert check_some(number, pipeline, {**KNOBS[pipeline], **knobs}, shape, **types)


# Pipelines whose optimizations are left out one by one: by name, with the knobs that choose these optimizations.
OPTIMIZED = {name: (name, knobs) for name, knobs in KNOBS.items()}
OPTIMIZED |= {
    "wgmma": ("wgmma", {**TILES, "persistent_blocks": 4, "tile_scheduler": "stream_k"}),
    "wmma, asynchronous": ("wmma", {**WARPS, "prefetch": "cp_async", "stages": 3}),
}


def _left_out() -> list[tuple[str, str]]:
    with mlir_context():
        return [
            (form, step.name)
            for form, (pipeline, knobs) in OPTIMIZED.items()
            for step in chosen_steps(pipeline, knobs)
            if step.optimization
        ]


@pytest.mark.parametrize("form, step", sample(list(_left_out()), 3))
def test_every_pipeline_without_a_step(form: str, step: str) -> None:
    """An optimization, and all that need it, can be left out, and every other step's IR stays right.

    Where a lowering needs it, the pipeline says so.
    """
    pipeline, knobs = OPTIMIZED[form]
    with mlir_context():
        steps = chosen_steps(pipeline, knobs)
    without = {step}
    for later in steps:
        if later.optimization and without & set(later.needs):
            without.add(later.name)
    decided = {knob for later in steps if later.name in without for knob in later.left_out}
    settings = {knob: value for knob, value in knobs.items() if knob not in decided}
    needed = [later.name for later in steps if later.name not in without and without & set(later.needs)]
    if needed:
        with pytest.raises(StepladderError, match=f"step '{needed[0]}' needs"):
            check_all(pipeline, settings, SHAPES[pipeline][1], without=tuple(without))
    else:
        assert check_some(len(without), pipeline, settings, SHAPES[pipeline][1], without=tuple(without))


@pytest.mark.parametrize("pipeline, knobs, size, types", sample(defaults(), 6))
def test_every_default(
    pipeline: str, knobs: dict[str, bool | int | str], size: tuple[int, int, int], types: tuple[int, int]
) -> None:
    """The last IR of kernels that `compile` chooses, a sixth of them drawn, for small problems with the same edges."""
    text = default_payload(pipeline, size, types)
    with mlir_context():
        _, report = matmul.check_small(text, "payload.mlir", Request(pipeline, knobs))
    assert report.step == ("lower_to_inline_ptx" if pipeline == "wgmma" else "lower_to_nvvm")
    assert report.check.passed, report.check.describe()
    assert not report.findings, report.findings[0].render()
