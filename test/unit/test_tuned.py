"""Which measured knobs a problem takes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from epilogue_payloads import payload
from stepladder.pipeline import library, measured_knobs
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.measured_knobs import Measured
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem
from stepladder.runtime.resources import transforms_dir


def problem(m: int, n: int, k: int, c_type: str = "f32") -> Problem:
    return Problem(m, n, k, "f16", "f16", "f32", c_type, False)


def entry(m: int, n: int, k: int, **knobs: int) -> dict:
    return {"m": m, "n": n, "k": k, "a_bits": 16, "c_bits": 32, "knobs": knobs}


@pytest.fixture
def pipeline(tmp_path: Path) -> Callable[..., object]:
    (tmp_path / "defaults").mkdir()

    def write(*entries: dict[str, object]) -> Path:
        (tmp_path / "defaults" / "mine.json").write_text(json.dumps({"problems": entries}))
        return tmp_path / "mine.mlir"

    return write


def blocks_m(found: list[dict[str, int | str]]) -> list[int]:
    return [knobs["block_m"] for knobs in found]


def test_nothing_measured(tmp_path: Path) -> None:
    assert measured_knobs.candidates(tmp_path / "mine.mlir", problem(64, 64, 64)) == []


def test_the_measured_problem_itself_comes_first(pipeline: Callable[..., object]) -> None:
    sizes = [(1024, 1024, 1024), (2048, 2048, 2048), (512, 8192, 1024), (8192, 512, 1024), (8704, 8704, 8704)]
    path = pipeline(
        *(
            entry(*size, block_m=128, block_n=256, persistent_blocks=132, raster_group=number)
            for number, size in enumerate(sizes)
        )
    )
    for number, size in enumerate(sizes):
        assert measured_knobs.candidates(path, problem(*size))[0]["raster_group"] == number


def test_what_fills_a_tile_by_half_has_knobs_of_its_own(pipeline: Callable[..., object]) -> None:
    path = pipeline(entry(128, 8192, 8192, block_m=128, block_n=128))
    assert [len(measured_knobs.near(path, problem(rows, 8192, 8192))) for rows in (64, 65, 128)] == [0, 1, 1]
    assert [len(measured_knobs.near(path, problem(128, 8192, k))) for k in (8192, 8000)] == [1, 0]


def test_rows_that_begin_within_sectors_have_knobs_of_their_own(pipeline: Callable[..., object]) -> None:
    """4008 elements of 16 bits are an odd multiple of 16 bytes; 4001 are none, and such rows are repacked."""
    path = pipeline(entry(4096, 4096, 4096, block_m=128, block_n=256))
    sizes = [(4000, 4096, 4096), (4096, 4008, 4096), (4096, 4096, 4088), (4096, 4001, 4096), (4008, 4096, 4096)]
    assert [len(measured_knobs.near(path, problem(*size))) for size in sizes] == [1, 0, 0, 1, 1]
    column = replace(problem(4096, 4008, 4096), b_layout="column")
    assert len(measured_knobs.near(path, column)) == 1
    assert measured_knobs.near(path, replace(problem(4008, 4096, 4096), a_layout="column")) == []


def test_measured_knobs_may_be_for_further_gpus(pipeline: Callable[..., object]) -> None:
    path = pipeline()
    data = {"measured_on": "one", "also_for": ["two"], "problems": [entry(64, 64, 64, block_m=64, block_n=64)]}
    (path.parent / "defaults" / "mine.json").write_text(json.dumps(data))
    (found,) = measured_knobs.near(path, problem(64, 64, 64))
    assert [found.is_for(name) for name in ("one", "two", "three")] == [True, True, False]


def test_knobs_of_a_batch_are_for_as_many_matmuls(pipeline: Callable[..., object]) -> None:
    knobs = {"block_m": 128, "block_n": 128, "persistent_blocks": 132}
    path = pipeline(entry(512, 512, 512, **knobs, stages=4), {**entry(512, 512, 512, **knobs, stages=6), "batch": 64})
    one = problem(512, 512, 512)
    batches = [replace(one, batch=count) for count in (64, 32)]
    assert [[found.knobs["stages"] for found in measured_knobs.near(path, each)] for each in (one, *batches)] == [
        [4],
        [6],
        [],
    ]
    assert measured_knobs.near(path, replace(batches[0], b_broadcast=True)) == []
    assert [found.describe() for found in measured_knobs.near(path, batches[0])] == ["64 of 512 x 512 x 512"]
    assert [[found["stages"] for found in measured_knobs.candidates(path, each)] for each in (one, batches[1])] == [
        [4],
        [4],
    ]


def test_the_width_of_c_decides_among_problems_of_one_size(pipeline: Callable[..., object]) -> None:
    path = pipeline(
        entry(1024, 1024, 1024, block_m=64),
        entry(1024, 1024, 1024, block_m=128) | {"c_bits": 16},
        entry(4096, 4096, 4096, block_m=256) | {"c_bits": 16},
    )
    assert blocks_m(measured_knobs.candidates(path, problem(1024, 1024, 1024))) == [64, 128, 256]
    assert blocks_m(measured_knobs.candidates(path, problem(1024, 1024, 1024, "f16"))) == [128, 64, 256]


def test_without_blocks_that_stay_the_size_of_c_decides(pipeline: Callable[..., object]) -> None:
    path = pipeline(entry(1024, 1024, 1024, block_m=64), entry(4096, 4096, 4096, block_m=128))
    assert blocks_m(measured_knobs.candidates(path, problem(1100, 1100, 1100))) == [64, 128]
    assert blocks_m(measured_knobs.candidates(path, problem(4000, 3000, 512))) == [128, 64]


def test_flat_problems_take_the_knobs_of_flat_ones(pipeline: Callable[..., object]) -> None:
    path = pipeline(entry(16384, 256, 1024, block_m=256), entry(256, 16384, 1024, block_m=64))
    assert blocks_m(measured_knobs.candidates(path, problem(200, 20000, 1024))) == [64, 256]
    assert blocks_m(measured_knobs.candidates(path, problem(20000, 200, 1024))) == [256, 64]


def test_tiles_that_come_out_uneven_are_avoided(pipeline: Callable[..., object]) -> None:
    """At 8192, 1376 tiles of 256 x 192 are 10.4 waves of 132 blocks, of 128 x 256 exactly 16 of 128."""
    path = pipeline(
        entry(8448, 8448, 8448, block_m=256, block_n=192, persistent_blocks=132),
        entry(10240, 10240, 10240, block_m=128, block_n=256, persistent_blocks=128),
    )
    assert blocks_m(measured_knobs.candidates(path, problem(8192, 8192, 8192))) == [128, 256]


def test_equal_knobs_stand_once(pipeline: Callable[..., object]) -> None:
    path = pipeline(entry(1024, 1024, 1024, block_m=64), entry(1024, 1024, 2048, block_m=64))
    assert blocks_m(measured_knobs.candidates(path, problem(1024, 1024, 1024))) == [64]


def test_operands_of_a_width_that_was_not_measured_take_as_many_bytes_of_k(pipeline: Callable[..., object]) -> None:
    path = pipeline(entry(1024, 1024, 1024, block_m=64, block_k=64))
    wide = Problem(1024, 1024, 1024, "f32", "f32", "f32", "f32", False)
    assert measured_knobs.candidates(path, wide) == [{"block_m": 64, "block_k": 32}]
    narrow = Problem(1024, 1024, 1024, "f8E4M3FN", "f8E4M3FN", "f32", "f32", False)
    assert measured_knobs.candidates(path, narrow) == [{"block_m": 64, "block_k": 128}]


# Next to measured ones whose knobs do not suit: an odd number of tiles for clusters, no or few steps of k for parts, a
# workspace too large for them, one tile, types of other widths, C that is rounded.
@pytest.mark.parametrize(
    "size, types",
    [
        ((6336, 6336, 512), ("f16", "f32")),
        ((128, 1024, 512), ("f16", "f32")),
        ((100, 1024, 512), ("f16", "f32")),
        ((504, 504, 128), ("f16", "f32")),
        ((512, 512, 64), ("f16", "f32")),
        ((8448, 16384, 16384), ("f16", "f32")),
        ((1, 8, 8), ("f16", "f16")),
        ((8192, 8192, 8192), ("bf16", "bf16")),
        ((4096, 4096, 4096), ("f32", "f32")),
        ((1000, 1008, 1008), ("f8E5M2", "f16")),
    ],
)
def test_default_knobs_of_wgmma_suit_any_problem(size: tuple[int, int, int], types: tuple[str, str]) -> None:
    from stepladder.payload.writing import matmul_text

    element, c_type = types
    text = matmul_text(
        *size,
        a_type=element,
        b_type=element,
        c_type=c_type,
        accumulate=False,
        b_layout="row" if element in ("f16", "bf16") else "column",
    )
    knobs = {"allow_tf32": True} if element == "f32" else {}
    with mlir_context():
        run = run_pipeline(text, "payload.mlir", Request("wgmma", knobs, tuned=True, through="pack_shared_memory"))
    assert "nvgpu.tma.async.load" in run.steps[-1].text


@pytest.fixture
def copy(tmp_path: Path) -> Callable[..., Measured]:
    """Returns a function that gives what is found for a copy of a pipeline with some texts replaced."""

    def found(name: str, *changes: tuple[str, str], step: str | None = None) -> Measured:
        text = (transforms_dir() / f"{name}.mlir").read_text().replace(f"@{name}(", "@mine(")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "mine.mlir").write_text(text)
        if step:
            (tmp_path / step.name).write_text(step.read_text())
        with mlir_context():
            return measured_knobs.find_measured(library.load(str(tmp_path / "mine.mlir")))

    return found


@pytest.mark.parametrize("name", ["wmma", "mma_sync", "wgmma"])
def test_a_copy_keeps_measured_knobs(copy: Callable[..., Measured], name: str) -> None:
    measured = copy(name)
    assert measured.source == transforms_dir() / f"{name}.mlir"
    assert measured.reason == f"pipeline 'mine' is a copy of {name} and keeps the knobs measured for it"


INCLUDE = "    transform.include @pad_shared_memory failures(propagate) (%module) : (!transform.any_op) -> ()\n"


@pytest.mark.parametrize(
    "changes, reason",
    [
        ([(INCLUDE, "")], "it has no step 'pad_shared_memory'"),
        (
            [(INCLUDE, INCLUDE.replace("pad", "swizzle"))],
            "it has a step 'swizzle_shared_memory'",
        ),
        ([('"block_k"> = 32', '"block_k"> = 64')], "knob 'block_k' is 64 by default, and 32 there"),
        (
            [
                (
                    'block_k"> = 32 from options = [16, 32, 64, 128]',
                    'block_k"> = 32 from options = [16, 32]',
                )
            ],
            "knob 'block_k' has other options",
        ),
        ([('run = "128 / a_bits"', 'run = "2 * 64 / a_bits"')], "it derives other names from knobs"),
        (
            [("failures(propagate) (%module, %warp_m, %warp_n)", "failures(propagate) (%module, %warp_n, %warp_m)")],
            "its sequence includes the steps in another way",
        ),
        (
            [('"has_edges or cyclic"', '"cyclic"')],
            "step 'map_copies_to_threads' runs in other cases",
        ),
    ],
)
def test_a_pipeline_that_differs_has_no_measured_knobs(
    copy: Callable[..., Measured], changes: list[tuple[str, str]], reason: str
) -> None:
    measured = copy("wmma", *changes)
    assert measured.source is None
    assert measured.reason == f"no knobs were measured for pipeline 'mine', and those of wmma are not for it: {reason}"


def test_a_step_of_ones_own_under_the_same_name_is_another(copy: Callable[..., Measured], tmp_path: Path) -> None:
    step = transforms_dir() / "steps" / "bufferize.mlir"
    own = tmp_path / "own" / "bufferize.mlir"
    own.parent.mkdir()
    own.write_text(step.read_text().replace("transform.structured.eliminate_empty_tensors", "transform.print"))
    assert copy("wmma", step=own).reason.endswith("step 'bufferize' is another")


def test_another_sequence_that_a_step_includes_makes_it_another(copy: Callable[..., Measured], tmp_path: Path) -> None:
    step = transforms_dir() / "steps" / "canonicalize.mlir"
    own = tmp_path / "own" / "canonicalize.mlir"
    own.parent.mkdir()
    own.write_text(step.read_text().replace("{apply_cse}", ""))
    include = INCLUDE.replace("pad_shared_memory", "canonicalize")
    first = "    transform.include @normalize_payload"
    assert copy("wmma", (first, include + first), step=own).source is None
    assert copy("wmma", (INCLUDE, INCLUDE + include)).source is None


def test_measured_knobs_beside_a_pipeline_are_its_own(copy: Callable[..., Measured], tmp_path: Path) -> None:
    (tmp_path / "defaults").mkdir()
    (tmp_path / "defaults" / "mine.json").write_text('{"problems": []}')
    measured = copy("wmma", ('"block_k"> = 32', '"block_k"> = 64'))
    assert measured.source == tmp_path / "mine.mlir" and measured.reason == "knobs were measured for pipeline 'mine'"


@pytest.mark.parametrize("text", ["", "[]", '{"problems": [{}]}', '{"knobs": []}'])
def test_a_file_without_measured_knobs_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "defaults").mkdir()
    (tmp_path / "defaults" / "mine.json").write_text(text)
    with pytest.raises(StepladderError, match=r"defaults/mine.json' does not hold measured knobs"):
        measured_knobs.candidates(tmp_path / "mine.mlir", problem(64, 64, 64))


def test_a_copy_runs_with_the_measured_knobs(tmp_path: Path) -> None:
    from stepladder.payload.writing import matmul_text

    (tmp_path / "mine.mlir").write_text((transforms_dir() / "wgmma.mlir").read_text().replace("@wgmma(", "@mine("))
    text = matmul_text(1024, 1024, 1024, accumulate=False)
    runs = []
    for pipeline in ("wgmma", str(tmp_path / "mine.mlir")):
        with mlir_context():
            request = Request(pipeline, tuned=True, through="tile_to_blocks")
            runs.append(run_pipeline(text, "payload.mlir", request))
    assert runs[0].knobs == runs[1].knobs


@pytest.mark.parametrize(
    "kind, size, schedule, epilogue_stages",
    [
        ("row_bias_f16", 8192, "pingpong", 2),
        ("add_matrix_bf16", 2048, "cooperative", 4),
        ("bias_gelu", 4096, "cooperative", 4),
        ("relu", 4096, "cooperative", 2),
        ("many_operands", 8192, "cooperative", 2),
    ],
)
def test_knobs_of_an_epilogue_with_one_operand(kind: str, size: int, schedule: str, epilogue_stages: int) -> None:
    """Those of the matmul alone, but where others were measured to be faster with an operand."""
    with mlir_context():
        text = payload(kind, size, size, size, stored="f16")
        run = run_pipeline(text, "payload.mlir", Request("wgmma", {}, tuned=True, through="tile_to_blocks"))
    assert (run.knobs["schedule"], run.knobs["epilogue_stages"]) == (schedule, epilogue_stages)
