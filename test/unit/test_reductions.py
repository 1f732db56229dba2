"""Reductions of a product's rows and columns: folded by the epilogue of each pipeline, right at each level.

STEPLADDER_TEST_PROFILE=random draws more, and all combinations.
"""

import random
from pathlib import Path

import pytest

from combinations import SEED, combinations
from conftest import examples
from reduction_payloads import FOLDS, Reduced, reduction_payload
from refused import refusal
from stepladder.cli.main import main
from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.errors import StepladderError
from test_epilogues import DIRECT, PIPELINES, SPLIT, TILES, WARPS, check

# Sizes that tiles divide, and sizes that they do not.
WHERE = {
    **{f"{name}, edges": value for name, value in PIPELINES.items()},
    "mma_sync": PIPELINES["mma_sync"],
    "wmma": PIPELINES["wmma"],
    "ping-pong": ("wgmma", {**TILES, "schedule": "pingpong"}),
    "two warpgroups": ("wgmma", {**DIRECT, "block_m": 128, "consumer_warpgroups": 2}),
    "multistage": ("wgmma_multistage", {key: TILES[key] for key in list(TILES)[:4]}),
}
KINDS = (
    (Reduced("sum", 1),),
    (Reduced("max", 0),),
    (Reduced("shifted", 1, squares=True), Reduced("min", 0)),
    (Reduced("sum", 0, squares=True), Reduced("sum", 0), Reduced("largest", 1)),
)


@pytest.mark.parametrize("where, kind, stored", combinations(WHERE, KINDS, ("f16", "f32")))
def test_right_on_every_pipeline(where: str, kind: tuple[Reduced, ...], stored: str) -> None:
    pipeline, knobs = WHERE[where]
    size = (64, 64, 32)
    if "edges" in where:
        size = (72, 40, 40) if pipeline == "wgmma" else (37, 45, 40)
    elif pipeline != "mma_sync" and pipeline != "wmma":
        size = (136, 72, 40)
    check(reduction_payload(*size, kind, stored=stored), pipeline, knobs, levels="three" if stored == "f32" else "last")


@pytest.mark.parametrize(
    "where, kind, stored",
    combinations(("mma_sync, edges", "wmma", "multistage"), KINDS[1:], ("f16", "bf16")),
)
def test_results_of_16_bits(where: str, kind: tuple[Reduced, ...], stored: str) -> None:
    pipeline, knobs = WHERE[where]
    stored = "f16" if pipeline == "wmma" else stored
    size = (64, 64, 32) if pipeline == "wmma" else (37, 40, 40)
    payload = reduction_payload(*size, kind, stored=stored, inputs=stored, of_stored=True)
    check(payload, pipeline, knobs, levels="three")


@pytest.mark.parametrize("pipeline, knobs", [("mma_sync", WARPS), ("wgmma", TILES)])
def test_integers_are_exact(pipeline: str, knobs: dict[str, int]) -> None:
    reductions = (Reduced("sum", 1), Reduced("min", 0), Reduced("max", 1, squares=True))
    check(reduction_payload(40, 48, 40, reductions, inputs="i8", stored="i32"), pipeline, knobs, levels="last")


@pytest.mark.parametrize("axis, m, n, cluster", [(0, 13, 72, "cluster_n"), (1, 264, 16, "cluster_m")])
@pytest.mark.parametrize("epilogue", ["tma", "registers"])
def test_blocks_of_a_cluster_beyond_c_have_no_partial_results(
    axis: int, m: int, n: int, cluster: str, epilogue: str
) -> None:
    """Two clusters of four tiles in a row, of which C has five."""
    knobs = {"block_m": 64, "block_n": 16, "consumer_warpgroups": 1, cluster: 4, "stages": 2, "epilogue": epilogue}
    check(reduction_payload(m, n, 32, (Reduced("max", axis), Reduced("sum", 1 - axis))), "wgmma", knobs, levels="last")


@pytest.mark.parametrize(
    "pipeline, size, knobs, axis",
    [
        ("wgmma", (520, 72, 16), {**TILES, "block_n": 64}, 0),
        ("wgmma", (520, 136, 16), {**TILES, "block_n": 128}, 0),
        ("wgmma", (40, 592, 16), {**TILES, "block_n": 16}, 1),
        ("mma_sync", (37, 1040, 16), WARPS, 1),
        ("wmma", (528, 40, 16), WARPS, 0),
    ],
    ids=["two elements", "four elements", "a prime number", "rows", "wmma"],
)
def test_many_partial_results_are_folded_twice(
    pipeline: str, size: tuple[int, int, int], knobs: dict[str, int], axis: int
) -> None:
    """By the warps of adjacent tiles, and then all of them, unless their number is prime."""
    check(reduction_payload(*size, (Reduced("shifted", axis),), stored="f16"), pipeline, knobs, levels="last")


@pytest.mark.parametrize("m, n", [(24, 1), (1, 24)])
def test_a_kernel_of_one_row_or_column(m: int, n: int, tmp_path: Path) -> None:
    """A reduction has as many elements as C, and one dimension less."""
    payload = reduction_payload(m, n, 32, (Reduced("sum", 1), Reduced("max", 0)))
    with mlir_context():
        build(payload, "f.mlir", Request("mma_sync", WARPS)).write(str(tmp_path / "f"))
    manifest = read_bundle(tmp_path / "f").manifest
    written = {item.role: item.shape for item in manifest.arguments if item.access != "read"}
    assert written == {"c": (m, n), "r0": (m,), "r1": (n,)}


# The sums start from C, which is read before it is written; what is stored and reduced is one value.
IN_PLACE = """func.func @f(%A: memref<40x32xf16>, %B: memref<32x37xf16>, %C: memref<40x37xf32>, %R: memref<37xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<40x32xf16> to tensor<40x32xf16>
  %b = bufferization.to_tensor %B restrict : memref<32x37xf16> to tensor<32x37xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<40x37xf32> to tensor<40x37xf32>
  %r = bufferization.to_tensor %R restrict writable : memref<37xf32> to tensor<37xf32>
  %zero = arith.constant 0.0 : f32
  %p = linalg.matmul ins(%a, %b : tensor<40x32xf16>, tensor<32x37xf16>) outs(%c : tensor<40x37xf32>)
      -> tensor<40x37xf32>
  %f = linalg.fill ins(%zero : f32) outs(%r : tensor<37xf32>) -> tensor<37xf32>
  %s = linalg.reduce ins(%p : tensor<40x37xf32>) outs(%f : tensor<37xf32>) dimensions = [0]
    (%x: f32, %y: f32) {
      %t = arith.addf %x, %y : f32
      linalg.yield %t : f32
    }
  bufferization.materialize_in_destination %p in restrict writable %C : (tensor<40x37xf32>, memref<40x37xf32>) -> ()
  bufferization.materialize_in_destination %s in restrict writable %R : (tensor<37xf32>, memref<37xf32>) -> ()
  return
}
"""
FROM_ZEROS = IN_PLACE.replace("outs(%c :", "outs(%z :").replace(
    "  %p =", "  %z = linalg.fill ins(%zero : f32) outs(%c : tensor<40x37xf32>) -> tensor<40x37xf32>\n  %p ="
)


@pytest.mark.parametrize(
    "where, text", combinations(["wgmma, registers", "mma_sync", "wmma"] * 2, [IN_PLACE, FROM_ZEROS])
)
def test_sums_that_are_stored_as_they_are(where: str, text: str) -> None:
    check(text, *PIPELINES[where], levels="last")


@pytest.mark.parametrize("returned", ["both", "the reduction"])
@pytest.mark.usefixtures("needs_ptxas")
def test_one_kernel_of_a_function(returned: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = reduction_payload(40, 48, 32, [Reduced("sum", 1, squares=True)])
    types = "tensor<40x48xf32>, tensor<40xf32>"
    if returned == "both":
        # A function of its own for the kernel: another op reads its result.
        text = text.replace(
            f"  return %sums, %r0 : {types}",
            "  %root = linalg.sqrt ins(%r0 : tensor<40xf32>) outs(%e0 : tensor<40xf32>) -> tensor<40xf32>\n"
            f"  return %sums, %root : {types}",
        )
    else:
        text = text.replace(f"return %sums, %r0 : {types}", "return %r0 : tensor<40xf32>").replace(
            f"-> ({types})", "-> tensor<40xf32>"
        )
    file, bundle = tmp_path / "rows.mlir", str(tmp_path / "rows.bundle")
    file.write_text(text)
    assert main(["compile", str(file), "--pipeline", "mma_sync", "-o", bundle]) == 0
    described = capsys.readouterr()
    assert "also stores R0 (40xf32)" in described.out + described.err
    assert main(["run", bundle, "--backend", "emulator"]) == 0


@pytest.mark.parametrize("number", range(examples(3)))
def test_drawn(number: int) -> None:
    drawn = random.Random(SEED * 1_000_003 + number)
    pipeline, knobs = drawn.choice(list(WHERE.values()))
    least = 8 if pipeline.startswith("wgmma") else 1
    size = [least * drawn.randint(1, 96 // least) for _ in "mnk"]
    kinds = [Reduced(drawn.choice(FOLDS), drawn.randrange(2), drawn.random() < 0.3) for _ in range(drawn.randint(1, 3))]
    kinds = list(dict.fromkeys(kinds))
    inputs = drawn.choice(["f16", "bf16"] if pipeline != "wmma" else ["f16"])
    stored, columns = drawn.choice(["f32", "f16", "bf16"]), drawn.choice(["", "a", "b", "ab"])
    text = reduction_payload(*size, kinds, stored=stored, inputs=inputs, columns=columns)
    check(text, pipeline, knobs, number, levels="last")


@pytest.mark.parametrize(
    "pipeline, size", [("mma_sync", (64, 64, 32)), ("wgmma", (64, 64, 32)), ("wgmma", (520, 8, 16))]
)
@pytest.mark.usefixtures("needs_ptxas")
def test_partial_results_are_ordered_in_ptx(
    pipeline: str, size: tuple[int, int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, bundle = tmp_path / "sums.mlir", str(tmp_path / "sums.bundle")
    file.write_text(reduction_payload(*size, KINDS[2], stored="f16"))
    knobs = [
        f"--set={name}={value}"
        for name, value in PIPELINES[pipeline if pipeline == "mma_sync" else "wgmma, TMA"][1].items()
    ]
    assert main(["compile", str(file), "--pipeline", pipeline, *knobs, "-o", bundle]) == 0
    assert main(["emulate", f"{bundle}/kernel.ptx"]) == 0
    assert "findings: none" in capsys.readouterr().out


@pytest.mark.usefixtures("needs_ptxas")
def test_column_sums_of_the_widest_tile_do_not_spill() -> None:
    with mlir_context():
        text = reduction_payload(4096, 4096, 4096, [Reduced("sum", 0)], stored="f16")
        made = build(text, "payload.mlir", Request("wgmma"))
    assert (made.code.spill_stores, made.code.spill_loads) == (0, 0)


def changed(before: str, after: str) -> str:
    text = reduction_payload(64, 64, 64, KINDS[2][:1])
    assert before in text
    return text.replace(before, after)


REFUSED = {
    "product": (changed("%v = arith.addf %o, %s", "%v = arith.mulf %o, %s"), "does not simply fold a value"),
    "twice": (
        changed("%v = arith.addf %o, %s", "%t = arith.addf %o, %s : f32\n%v = arith.addf %t, %o"),
        "does not simply fold a value",
    ),
    "i8": (
        reduction_payload(64, 64, 64, KINDS[0])
        .replace("tensor<64xf32>", "tensor<64xi8>")
        .replace("%b0 = arith.constant 0.0 : f32", "%b0 = arith.constant 0 : i8")
        .replace("ins(%b0 : f32)", "ins(%b0 : i8)")
        .replace("%bias: tensor<64xi8>", "%bias: tensor<64xf32>")
        .replace("%bias : tensor<64x64xf32>, tensor<64xi8>", "%bias : tensor<64x64xf32>, tensor<64xf32>")
        .replace(
            "linalg.reduce ins(%sums : tensor<64x64xf32>)",
            "linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], "
            'iterator_types = ["parallel", "reduction"]} ins(%sums : tensor<64x64xf32>)',
        )
        .replace(
            "dimensions = [1]\n (%x: f32, %o: f32) {\n %v = arith.addf %x, %o : f32\n linalg.yield %v : f32 }",
            "{\n^bb0(%x: f32, %o: i8):\n %y = arith.fptosi %x : f32 to i8\n %v = arith.addi %y, %o : i8\n"
            " linalg.yield %v : i8 } -> tensor<64xi8>",
        ),
        "reduces in i8",
    ),
    "begins with an argument": (
        "\n".join(
            line
            for line in changed("outs(%f0 : tensor<64xf32>)", "outs(%bias : tensor<64xf32>)").split("\n")
            if "%f0 =" not in line
        ),
        "the initial value of linalg.generic is an argument",
    ),
    "of arguments": (
        changed("ins(%sums : tensor<64x64xf32>) outs(%f0", "ins(%A : tensor<64x64xf16>) outs(%f0").replace(
            "^bb0(%x: f32, %o: f32):\n %s = arith.mulf %x, %x : f32",
            "^bb0(%x: f16, %o: f32):\n %s = arith.extf %x : f16 to f32",
        ),
        "does not read the result of linalg.matmul|takes argument 0, which is A too",
    ),
    "alone": (
        changed("return %sums, %r0 : tensor<64x64xf32>, tensor<64xf32>", "return %r0 : tensor<64xf32>").replace(
            "-> (tensor<64x64xf32>, tensor<64xf32>)", "-> (tensor<64xf32>)"
        ),
        "has only reductions of the product as results",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_one_message(name: str) -> None:
    refusal(*REFUSED[name])


def test_split_k_is_refused() -> None:
    with mlir_context(), pytest.raises(StepladderError, match="does not support reductions of the product"):
        run_pipeline(reduction_payload(64, 64, 64, KINDS[0]), "payload.mlir", Request("wgmma", SPLIT))


def test_the_problem_names_reductions() -> None:
    with mlir_context():
        problem = find_matmul(parse_payload(reduction_payload(64, 32, 16, KINDS[2]), "payload.mlir")).problem
    assert problem.reductions == 2 and problem.describe().endswith("also stores R0 (64xf32), R1 (32xf32)")


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("stored", ["f16", "bf16"])
def test_ptxas_does_not_serialize_wgmma_for_sums_of_rounded_elements(stored: str) -> None:
    """Conversions of one element each had ptxas serialize the main loop of these tiles (C7514)."""
    payload = reduction_payload(1024, 1056, 256, (Reduced("sum", 1),), stored=stored, inputs=stored, of_stored=True)
    knobs = {"block_m": 128, "block_n": 176, "consumer_warpgroups": 1, "schedule": "pingpong", "persistent_blocks": 132}
    with mlir_context():
        code = build(payload, "payload.mlir", Request("wgmma", knobs)).code
    assert not code.is_slow
    assert code.ptx.count(f"cvt.rn.{stored}.f32") < code.ptx.count(f"cvt.rn.{stored}x2.f32")  # the sums are rounded too
