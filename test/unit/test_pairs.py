"""Pairs of products: recognized as users write them, right on the emulator, refused where they are none.

STEPLADDER_TEST_SEED=S draws others; STEPLADDER_RANDOM_PAIRS=N of them, and STEPLADDER_TEST_PROFILE=random ten times as
many.
"""

import os
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from combinations import combinations, sample
from conftest import examples
from pair_payloads import PairPayload, drawn, stored_gate
from ptx_kernels import check as run_ptx
from stepladder.emulator.functions import EmulatedFunction
from stepladder.payload.matmul import PayloadMatmul, find_matmul
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.any_payload import build_any
from stepladder.pipeline.build import Build, build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.functions import divided_function
from stepladder.pipeline.functions.build import FunctionBuild
from stepladder.pipeline.functions.pair_choice import is_slower
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.resources import transforms_dir
from stepladder.verify.function_check import check_function
from test_epilogues import check

SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
COUNT = int(os.environ.get("STEPLADDER_RANDOM_PAIRS", examples(6)))
TILES = {"block_m": 64, "block_n": 32, "block_k": 32, "consumer_warpgroups": 1, "persistent_blocks": 2}
WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}
SETTINGS = [
    ("wgmma", TILES),
    ("wgmma", {**TILES, "epilogue": "registers", "block_n": 16}),
    ("wgmma", {**TILES, "schedule": "pingpong"}),
    ("mma_sync", WARPS),
    ("mma_sync", {**WARPS, "block_n": 16, "warp_m": 32, "warp_n": 16, "math": "libdevice"}),
    ("wmma", WARPS),
    ("wmma", {**WARPS, "prefetch": "cp_async", "stages": 3}),
    ("wgmma_multistage", {**TILES, "persistent_blocks": None}),
    ("wgmma_single_stage", {**TILES, "persistent_blocks": None}),
]
# Rows that TMA does not take, and tiles that fill clusters.
OTHERS = [
    (PairPayload(k=37, n=37, layout="row", biases=1), {**TILES, "epilogue": "registers"}),
    (PairPayload(m=128, n=40, layout="row"), {**TILES, "cluster_m": 2}),
    (PairPayload(m=72, n=64, layout="transposed"), {**TILES, "cluster_n": 2}),
    (PairPayload(m=200, n=128), {**TILES, "cluster_m": 2, "cluster_n": 2, "block_n": 64, "persistent_blocks": 4}),
]
KINDS = [
    PairPayload(layout="row", biases=2),
    PairPayload(rounded="f16"),
    PairPayload(inputs="bf16", stored="f32", rounded="bf16", layout="generic", late=True, buffers=True),
    PairPayload(m=130, n=72, k=104, activation="tanh", biases=1, late=True),
    PairPayload(m=1, n=8, k=8, activation="relu"),
    PairPayload(m=64, n=64, k=64, layout="row", activation="none", stored="f32", buffers=True),
    PairPayload(m=64, n=40, biases=1, prepared="x"),
    PairPayload(m=40, n=24, batch=2, biases=1),
    PairPayload(m=40, n=72, layout="row", stored="f32", activation="relu", reduced=1),
    PairPayload(m=72, n=40, layout="row", stored="f32", activation="none", reduced=0),
]


def found(text: str) -> PayloadMatmul:
    with mlir_context():
        return find_matmul(parse_payload(text, "pair.mlir"))


@pytest.mark.parametrize("kind, setting", combinations(KINDS, SETTINGS))
def test_right_on_every_pipeline(kind: PairPayload, setting: tuple[str, dict[str, int | str | None]]) -> None:
    pipeline, knobs = setting
    knobs = {name: value for name, value in knobs.items() if value is not None}
    check(kind.text(), pipeline, knobs, levels="last")


def test_zeros_below_a_b_leave_the_other_alone() -> None:
    """Both have fewer rows than their tiles, and are loaded while threads write the zeros."""
    knobs = {**TILES, "block_n": 32, "early_weights": True, "epilogue": "registers"}
    check(PairPayload(m=8, n=24, layout="transposed").text(), "wgmma", knobs, levels="last")


@pytest.mark.parametrize("number", range(COUNT))
def test_random_pairs(number: int) -> None:
    generator = random.Random(f"{SEED} {number}")
    kind = drawn(generator)
    pipeline, knobs = generator.choice(SETTINGS[:7])
    check(kind.text(), pipeline, knobs, levels="last")


@pytest.mark.parametrize("kind, knobs", sample(OTHERS, 2))
def test_copied_operands_and_clusters(kind: PairPayload, knobs: dict) -> None:
    check(kind.text(), "wgmma", knobs, levels="last")


@pytest.mark.parametrize("pipeline, knobs", [("wgmma", TILES), ("mma_sync", WARPS), ("wmma", WARPS)])
def test_each_step_is_right(pipeline: str, knobs: dict) -> None:
    check(KINDS[0].text(), pipeline, knobs)


def test_what_is_recognized() -> None:
    payload = found(PairPayload(biases=2, rounded="f16").text())
    problem = payload.problem
    assert (problem.m, problem.n, problem.k, problem.b_layout, problem.products) == (72, 48, 40, "column", 2)
    assert payload.roles == {0: "a", 1: "b", 2: "d0", 3: "d1", 4: "d2", 5: "c"}
    assert problem.second_b == 0
    assert problem.epilogue_operands[0].shape == problem.b_shape == (48, 40)
    assert problem.flops == 2 * replace(problem, second_b=None).flops
    assert problem.describe().startswith("C = f(AB, AD0), 72 x 48 x 40, f16 x f16 -> f16 (f32 accumulation)")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("linalg.matmul ins(%x, %ut", "linalg.matmul ins(%other, %ut", "whose A is not that of the first"),
        ("%u: tensor<48x40xf16>", "%u: tensor<40x48xf16>", "a second product whose b_layout is row, and column"),
    ],
)
def test_other_products_are_refused(old: str, new: str, message: str) -> None:
    text = PairPayload().text()
    if "%other" in new:
        text = text.replace("@pair(", "@pair(%other: tensor<72x40xf16>, ")
    else:
        text = re.sub(
            r"%ut = linalg.transpose.*", "%ut = tensor.cast %u : tensor<40x48xf16> to tensor<40x48xf16>", text
        )
    with pytest.raises(StepladderError, match=message) as refused:
        found(text.replace(old, new))
    assert refused.value.location is not None and refused.value.location.startswith("pair.mlir:")
    assert any("two products of one A" in note for note in refused.value.notes)


@pytest.mark.parametrize("operand", ["g", "u"])
def test_pairs_whose_b_elementwise_ops_make_are_refused(operand: str) -> None:
    with pytest.raises(StepladderError, match="elementwise ops compute a B operand of a pair of products") as refused:
        found(PairPayload(prepared=operand).text())
    assert refused.value.location is not None and refused.value.location.startswith("pair.mlir:")


@pytest.mark.parametrize("target, pipeline", [("sm_80", "mma_sync"), ("sm_75", "wmma")])
def test_targets_without_wgmma_have_one_kernel(target: str, pipeline: str) -> None:
    with mlir_context():
        made = build_any(PairPayload().text(), "pair.mlir", Request("auto", {"target": target}, tuned=True))
    assert isinstance(made, Build)
    assert (made.manifest.pipeline, made.manifest.problem.second_b) == (pipeline, 0)
    assert made.manifest.spills == {"stores": 0, "loads": 0}


@pytest.mark.parametrize("pipeline, knobs", [("wgmma", TILES), ("mma_sync", WARPS), ("wmma", WARPS)])
def test_machine_code_is_right(pipeline: str, knobs: dict) -> None:
    with mlir_context():
        made = build(PairPayload(m=40, n=40, biases=1, batch=2).text(), "pair.mlir", Request(pipeline, knobs))
    found, findings = run_ptx(made.code.ptx, made)
    assert not found, [finding.render() for finding in findings]


def test_pair_that_wgmma_refuses_is_two_of_its_kernels() -> None:
    text = PairPayload(inputs="f32", stored="f32", layout="row").text()
    with mlir_context():
        made = build_any(text, "pair.mlir", Request("auto", {"target": "sm_90a"}, tuned=True))
        with pytest.raises(StepladderError, match="block_n must be at most 128"):
            build_any(PairPayload().text(), "pair.mlir", Request("wgmma", {**TILES, "block_n": 136}))
    assert isinstance(made, FunctionBuild)
    launches = made.bundle.manifest.launches
    assert [made.bundle.matmul(launch).manifest.pipeline for launch in launches] == ["wgmma", "wgmma"]


@pytest.mark.parametrize("pairs, count", [("false", 2), ("true", 1)])
def test_set_pairs(pairs: str, count: int) -> None:
    request = Request("wgmma", {"target": "sm_90a", "pairs": pairs}, tuned=True)
    with mlir_context():
        made = build_any(PairPayload().text(), "pair.mlir", request)
    assert isinstance(made, FunctionBuild) and len(made.bundle.manifest.launches) == count


def test_few_tiles_of_a_long_reduction_are_two_kernels() -> None:
    request = Request("wgmma", {"target": "sm_90a"}, tuned=True)
    with mlir_context():
        assert is_slower([PairPayload(m=32, n=2048, k=8192).text()], list, request)
        assert not is_slower([PairPayload(m=2048, n=2048, k=2048).text()], list, request)
        assert not is_slower([PairPayload(m=8, n=14336, k=4096).text()], list, request)


@pytest.mark.parametrize("m, bits, kernels", [(16, 4, (2, 0)), (8192, 8, (1, 1))])
def test_stored_weights_of_few_rows_are_two_kernels(
    m: int, bits: int, kernels: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each dequantizes its own; of many rows, a pair reads what a kernel in front makes. The function is divided once
    from the beginning."""
    divisions: list[str] = []
    monkeypatch.setattr(
        divided_function, "run_pipeline", lambda *given: divisions.append(given[1]) or run_pipeline(*given)
    )
    with mlir_context():
        made = build_any(stored_gate(m, 4096, 4096, bits), "gate", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    plain = [launch.kernel for launch in made.bundle.manifest.launches if launch.kernel is not None]
    assert (len(made.bundle.manifest.launches) - len(plain), len(plain)) == kernels
    assert divisions == ["gate"]


def test_stored_weights_are_right() -> None:
    with mlir_context():
        made = build_any(stored_gate(16, 64, 64, 4), "gate", Request("auto", {"target": "sm_90a"}, tuned=True))
    assert isinstance(made, FunctionBuild)
    function = EmulatedFunction(made.bundle)
    assert [report.describe() for report in check_function(made.bundle, function, 0) if not report.passed] == []
    assert function.findings == []


@pytest.mark.parametrize("m", [8, 64])
def test_few_rows_are_stored_from_registers(m: int) -> None:
    """TMA's boxes have all rows of the tile: the activations of rows outside of C would be computed."""
    with mlir_context():
        query = read_query(
            library.load("wgmma"),
            Request("wgmma", {"target": "sm_90a"}, tuned=True),
            PairPayload(m=m, n=14336, k=4096).text(),
            "pair.mlir",
        )
        ranked = knob_choice.rank(query)
    assert ranked is not None
    knobs = ranked.first(1)[0].knobs
    assert (knobs["epilogue"], knobs["cluster_n"] == 1) == (("registers", True) if m < 64 else ("tma", False))


def test_pipelines_without_pairs_refuse_them(tmp_path: Path) -> None:
    own = tmp_path / "own.mlir"
    script = (transforms_dir() / "wmma.mlir").read_text()
    own.write_text(script.replace("@wmma(", "@own(").replace(', takes_pairs = "1"', ""))
    with (
        mlir_context(),
        pytest.raises(StepladderError, match="one product; wmma"),
    ):
        run_pipeline(PairPayload().text(), "pair.mlir", Request(str(own), {}))


@pytest.mark.parametrize(
    "knobs, message",
    [
        ({"split_k": 2, "persistent_blocks": 0, "epilogue": "registers"}, "a single product, not a pair"),
        ({"block_n": 136}, "block_n must be at most 128"),
    ],
)
def test_knobs_that_are_for_one_product(knobs: dict, message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError, match=message):
        run_pipeline(PairPayload().text(), "pair.mlir", Request("wgmma", {**TILES, **knobs}))


def test_default_knobs_keep_both_accumulators_in_registers() -> None:
    text = PairPayload(m=4096, n=11008, k=4096, rounded="f16").text()
    with mlir_context():
        made = build(text, "pair.mlir", Request("wgmma", {"target": "sm_90a"}, tuned=True))
    manifest = made.manifest
    assert manifest.spills == {"stores": 0, "loads": 0}
    knobs = manifest.knobs
    rows = knobs["block_m"] / (1 if knobs["schedule"] == "pingpong" else knobs["consumer_warpgroups"])
    assert 64 <= 2 * rows * knobs["block_n"] / 128 <= 192  # registers of a thread
    assert manifest.problem.second_b == 0
    # A's tile, and each half of B's, by a descriptor of its own.
    assert [item.role for item in manifest.tma_descriptors].count("d0") == 1
