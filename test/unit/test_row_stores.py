"""Epilogues that store whole rows of C, which may begin at any element: right at each step and as machine code.

STEPLADDER_TEST_PROFILE=random runs all combinations.
"""

import pytest

from batches import check_batch
from combinations import combinations, sample
from conftest import assert_right_at_some_steps
from epilogue_payloads import payload
from pair_payloads import PairPayload
from ptx_kernels import executor
from reduction_payloads import Reduced, reduction_payload
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.verify.check import check_matmul
from test_epilogues import TILES, check

ROWS = {**TILES, "stages": 2, "epilogue": "rows"}
# Units begin at other columns in each of 8, 4 or 2 rows, and in every row at the first.
WIDTHS = (45, 42, 44, 40)
# Types of A and B, of the sums and of C, and whether C is added to.
TYPES = (
    ("bf16", "f32", "bf16", False),
    ("f16", "f32", "f16", True),
    ("f16", "f32", "f32", True),
    ("f16", "f16", "f16", False),
)
FORMS = (
    {},
    {"block_n": 48, "epilogue_stages": 1},
    {"schedule": "pingpong", "block_n": 24},
    {"block_m": 256, "consumer_warpgroups": 2, "block_n": 16},
)


@pytest.mark.parametrize("n, types, form", combinations(WIDTHS, TYPES, FORMS))
def test_right_at_some_steps(n: int, types: tuple[str, str, str, bool], form: dict[str, int | str]) -> None:
    inputs, sums, stored, accumulate = types
    text = matmul_text(135, n, 40, a_type=inputs, b_type=inputs, acc_type=sums, c_type=stored, accumulate=accumulate)
    assert_right_at_some_steps(text, "wgmma", {**ROWS, **form})


OTHERS = (
    payload("add_matrix", 72, 45, 40, stored="f16"),
    payload("bias_gelu", 72, 42, 40, stored="f32"),
    payload("add_transposed_matrix", 72, 44, 40, stored="f16"),
    PairPayload(m=72, n=45, k=40, layout="row", biases=1).text(),
    reduction_payload(72, 45, 40, (Reduced("sum", 1), Reduced("max", 0)), stored="f16"),
    matmul_text(72, 37, 40, a_type="i8", b_type="i8", acc_type="i32", c_type="i32", b_layout="column"),
)


@pytest.mark.parametrize("text, lines", combinations(sample(OTHERS, 2), (1, 2, 4)))
def test_right_after_the_product(text: str, lines: int) -> None:
    """Elementwise ops read matrices with the rows of C in units, and others element by element."""
    check(text, "wgmma", {**ROWS, "epilogue_stages": lines}, levels="last")


def test_units_of_operands_are_read() -> None:
    with mlir_context():
        run = run_pipeline(payload("add_matrix", 72, 45, 40, stored="f16"), "p.mlir", Request("wgmma", ROWS))
    text = next(step.text for step in run.steps if step.name == "row_store_epilogue")
    # The matrix, of f32, has half of the elements in 16 bytes: eight of them are 32 bytes.
    assert "{alignment = 32 : i64} : memref<?x?xf32, strided<[45, 1], offset: ?>>, vector<8xf32>" in text


@pytest.mark.parametrize("n", [45, 42])
def test_machine_code_keeps_to_c(n: int) -> None:
    """In ping-pong, with tiles inside of C and at its edges."""
    knobs = {**ROWS, "block_m": 128, "schedule": "pingpong", "block_n": 32}
    types = {"a_type": "bf16", "b_type": "bf16", "c_type": "bf16"}
    text = matmul_text(200, n, 40, b_layout="column", accumulate=False, **types)
    with mlir_context():
        made = build(text, "payload.mlir", Request("wgmma", knobs))
    assert "st.global.v4" in made.code.ptx
    assert made.manifest.spills == {"stores": 0, "loads": 0}
    runs = executor(made.code.ptx, made.manifest)
    for report in check_matmul(made.manifest.problem, made.reference, runs, 0, repeats=False):
        assert report.passed, report.describe()
    assert not runs.findings, runs.findings[0].render()


@pytest.mark.parametrize("sizes", [(3, 72, 45, 40), (1, 97, 97, 40)])
def test_batches(sizes: tuple[int, int, int, int]) -> None:
    assert check_batch("wgmma", ROWS, sizes, accumulate=False)


@pytest.mark.parametrize(
    "text, knobs, message",
    [
        (matmul_text(64, 45, 40), {"swap_operands": True}, "epilogue = rows requires a row-major C"),
        (matmul_text(63, 45, 40, batch=2), {}, "requires a batch stride of C that is a multiple of 16 bytes"),
        (matmul_text(64, 45, 40), {"tile_scheduler": "stream_k"}, "requires epilogue = tma"),
    ],
)
def test_refused(text: str, knobs: dict[str, bool | str], message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError, match=message):
        run_pipeline(text, "payload.mlir", Request("wgmma", {**ROWS, **knobs}))


def added_between() -> str:
    """Returns a batch to whose rows those of D[row, matrix] are added."""
    a, b, c, d = "tensor<2x64x40xf16>", "tensor<2x34x40xf16>", "tensor<2x64x34xf32>", "tensor<64x2x34xf16>"
    loops, same = "(b, m, n, k)", "affine_map<(b, m, n) -> (b, m, n)>"
    maps = ", ".join(f"affine_map<{loops} -> {result}>" for result in ("(b, m, k)", "(b, n, k)", "(b, m, n)"))
    return f"""func.func @matmul(%A: {a}, %B: {b}, %D: {d}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {c}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {c}) -> {c}
  %product = linalg.batch_matmul indexing_maps = [{maps}] ins(%A, %B : {a}, {b}) outs(%zeros : {c}) -> {c}
  %c = linalg.generic {{indexing_maps = [{same}, affine_map<(b, m, n) -> (m, b, n)>, {same}],
                       iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%product, %D : {c}, {d}) outs(%empty : {c}) {{
  ^bb0(%x: f32, %d: f16, %y: f32):
    %e = arith.extf %d : f16 to f32
    %s = arith.addf %x, %e : f32
    linalg.yield %s : f32
  }} -> {c}
  return %c : {c}
}}
"""


@pytest.mark.parametrize("knobs", [ROWS, {**TILES, "epilogue": "registers"}])
def test_matrices_of_a_batch_that_begin_within_units(knobs: dict[str, bool | int | str]) -> None:
    """The rows of D are 68 elements apart, but the second matrix begins at the 34th: vectors of 4 are not aligned."""
    check(added_between(), "wgmma", knobs, levels="last")


@pytest.mark.parametrize("n, epilogue", [(4095, "rows"), (4096, "tma")])
def test_the_model_chooses_it_where_tma_does_not_take_rows(n: int, epilogue: str) -> None:
    text = matmul_text(4096, n, 4096, a_type="bf16", b_type="bf16", c_type="bf16", accumulate=False)
    with mlir_context():
        run = run_pipeline(text, "payload.mlir", Request("wgmma", {"target": "sm_90a"}, tuned=True))
    assert run.knobs["epilogue"] == epilogue
