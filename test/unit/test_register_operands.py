"""Elementwise ops that wgmma's register operand is made by: right at every step, exact conversions, no spills.

STEPLADDER_TEST_PROFILE=random runs many more payloads.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from combinations import SEED, combinations
from conftest import PROFILE
from emulator_ops import run
from fault_edits import Edit, drop, mark
from producer_payloads import ProducerPayload
from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.matmul import check_steps
from stepladder.extension.lib import narrow_integers
from stepladder.extension.lib.mixed_radix import Index, NoDigits, digits, linear
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.errors import StepladderError
from test_epilogues import check
from weight_payloads import KINDS, weights

KNOBS = {"block_m": 64, "block_n": 32, "consumer_warpgroups": 1, "producers": "registers"}
FORMS = {
    "cooperative": {"block_m": 128, "consumer_warpgroups": 2, "epilogue": "tma", "persistent_blocks": 2},
    "ping-pong": {"schedule": "pingpong", "epilogue": "tma", "persistent_blocks": 2},
    "two rows of products": {"block_m": 128, "epilogue": "registers", "stages": 2},
    "split-K": {"split_k": 2, "persistent_blocks": 0, "epilogue": "registers"},
    "one stage": {"stages": 1, "epilogue": "registers"},
    "early": {"early_weights": True, "persistent_blocks": 0, "epilogue": "registers"},
}
COUNT = 60 if PROFILE == "random" else 1
STEPS = range(100)


def wrong_steps(text: str, knobs: dict, first: int = 0) -> list:
    """Returns the reports of what is wrong: of every fourth step, from `first` on, or of all."""
    reports = []
    chosen = STEPS if PROFILE == "random" else STEPS[first % 4 :: 4]
    with mlir_context():
        check_steps(text, "f.mlir", Request("wgmma", knobs), reports.append, is_chosen_step=chosen.__contains__)
    assert len(reports) > 6
    return [report for report in reports if report.passed is not True or report.findings]


@pytest.mark.parametrize("kind, form, layout, type_", combinations(KINDS, FORMS, ("nk", "kn"), ("f16", "bf16")))
def test_weights_are_right_at_every_step(kind: str, form: str, layout: str, type_: str) -> None:
    text = weights(kind, 24, 160, 128, layout=layout, type_=type_)
    knobs = {**KNOBS, "block_k": 64, "swap_operands": True, **FORMS[form]}
    assert wrong_steps(text, knobs, SEED + list(KINDS).index(kind)) == []


# The product of an A that is made, and a column-major B.
PRODUCT = """  %zero = arith.constant 0.0 : f32
  %c = tensor.empty() : tensor<96x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%c : tensor<96x32xf32>) -> tensor<96x32xf32>
  %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<96x64xf16>, tensor<32x64xf16>) outs(%z : tensor<96x32xf32>) -> tensor<96x32xf32>
  return %p : tensor<96x32xf32>
}
"""

# A is twice the transpose of what is given.
TURNED = """func.func @f(%X: tensor<64x96xf16>, %B: tensor<32x64xf16>) -> tensor<96x32xf32> {
  %e = tensor.empty() : tensor<96x64xf16>
  %A = linalg.generic {indexing_maps = [affine_map<(i, k) -> (k, i)>, affine_map<(i, k) -> (i, k)>],
      iterator_types = ["parallel", "parallel"]} ins(%X : tensor<64x96xf16>) outs(%e : tensor<96x64xf16>) {
  ^bb0(%x: f16, %o: f16):
    %y = arith.addf %x, %x : f16
    linalg.yield %y : f16
  } -> tensor<96x64xf16>
"""


def test_tiles_of_48_rows_that_are_loaded_along_them() -> None:
    """The rows of the tile that TMA loads are steps of k: all of them are needed."""
    check(TURNED + PRODUCT, "wgmma", {**KNOBS, "block_m": 48, "block_k": 32, "epilogue": "registers"}, levels="last")


_FENCE, _WAIT = "nvvm.wgmma.fence.aligned", "nvvm.wgmma.wait.group.sync.aligned"
_WARP = "nvvm.bar.warp.sync"


@pytest.mark.parametrize(
    "edit, kind, says",
    [
        (drop(_FENCE, 1), "order", "the write to its A registers"),
        (drop(_WAIT, 0), "in-flight", "writes an A register"),
        (mark(_WAIT, 0, "group", "2 : i64"), "in-flight", "writes an A register"),
        (drop(_WARP), "race", "arrived at an mbarrier for its warp"),
    ],
)
def test_registers_that_are_written_again_are_checked(edit: Edit, kind: str, says: str) -> None:
    with mlir_context():
        request = Request("wgmma", {**KNOBS, "block_k": 32, "stages": 1, "epilogue": "registers"})
        text = run_pipeline(TURNED + PRODUCT, "f.mlir", request).steps[-1].text
    assert _findings(text) == []
    found = [finding for finding in _findings(edit(text)) if finding.kind == kind]
    assert any(says in finding.message for finding in found)


def _findings(text: str) -> list:
    with mlir_context():
        emulation = Emulation(parse_payload(text, "f.mlir"))
        given = [np.ones(type_.static_shape, type_.element.dtype) for type_ in emulation.function.argument_types]  # pyright: ignore
        return emulation.run(given, count=False).findings


# Rows of A share their numbers by sixteen, which each multiplies by its place among them.
SHARED = """func.func @f(%X: tensor<6x64xf16>, %B: tensor<32x64xf16>) -> tensor<96x32xf32> {
  %e = tensor.empty() : tensor<6x16x64xf16>
  %made = linalg.generic {indexing_maps = [affine_map<(i, s, k) -> (i, k)>, affine_map<(i, s, k) -> (i, s, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%X : tensor<6x64xf16>) outs(%e : tensor<6x16x64xf16>) {
  ^bb0(%x: f16, %o: f16):
    %place = linalg.index 1 : index
    %number = arith.index_cast %place : index to i32
    %scale = arith.sitofp %number : i32 to f16
    %y = arith.mulf %x, %scale : f16
    linalg.yield %y : f16
  } -> tensor<6x16x64xf16>
  %A = tensor.collapse_shape %made [[0, 1], [2]] : tensor<6x16x64xf16> into tensor<96x64xf16>
"""


def test_stages_of_few_rows_begin_where_a_swizzle_does() -> None:
    """Four rows of 64 bytes are half of what its permutation repeats after."""
    knobs = {**KNOBS, "block_m": 48, "block_k": 32, "epilogue": "registers"}
    check(SHARED + PRODUCT, "wgmma", knobs, levels="last")
    with mlir_context(), pytest.raises(StepladderError, match="block_m must be a multiple of 16"):
        run_pipeline(SHARED + PRODUCT, "f.mlir", Request("wgmma", {**knobs, "block_m": 24}))


@pytest.mark.parametrize("number", range(COUNT))
def test_random_payloads_are_right_or_refused(number: int) -> None:
    payload = ProducerPayload(1000 * SEED + number)
    drawn = random.Random(number)
    knobs = {
        **KNOBS,
        "block_k": drawn.choice((16, 32)),
        "persistent_blocks": 2,
        "epilogue": drawn.choice(("registers", "tma")),
        "schedule": drawn.choice(("cooperative", "pingpong")),
        "swap_operands": drawn.random() < 0.5,
        "stages": drawn.choice((2, 3)),
    }
    try:
        wrong = wrong_steps(payload.text, knobs, SEED + number)
    except StepladderError as error:
        assert "raised" not in error.message and "step '" in error.message, error.render()
        return
    assert wrong == [], f"{payload.text}\n{knobs}"


def test_what_cannot_be_in_registers_is_refused() -> None:
    """Groups that steps of k do not divide, and a k that is no multiple of them."""
    for block_k, message in ((128, "block_k"), (64, "k must be a multiple of block_k")):
        text = weights("i8 by group", 40, 160, 192 if block_k == 128 else 208, group=48 if block_k == 128 else 16)
        with pytest.raises(StepladderError, match=message) as caught:
            wrong_steps(text, {**KNOBS, "block_k": block_k, "swap_operands": True})
        assert caught.value.location


# Kinds of weights, and how many instructions a thread has for its 32 pairs in a step of k.
INSTRUCTIONS = {
    "i8 by column": {"mul.wide.u16": 32, "add.rn.f16x2": 32},
    "i4 with zero points": {"mul.wide.u16": 32, "add.rn.f16x2": 32, "shr.s16": 0, "shl.b16": 0},
    "fp8 by column": {"cvt.rn.f16x2.e4m3x2": 32, "selp.b16": 0},
}


@pytest.mark.parametrize("kind", INSTRUCTIONS)
def test_the_kernel_converts_by_bits_and_does_not_spill(kind: str, tmp_path: Path) -> None:
    text = weights(kind, 16, 1024, 1024, group=128)
    knobs = {**KNOBS, **FORMS["cooperative"], "block_n": 16, "block_k": 128, "swap_operands": True}
    with mlir_context():
        try:
            build(text, "f.mlir", Request("wgmma", knobs)).write(str(tmp_path / "f"))
        except StepladderError as error:
            pytest.skip(error.message)
    bundle = read_bundle(tmp_path / "f")
    ptx = (tmp_path / "f" / "kernel.ptx").read_text()
    assert set(bundle.manifest.spills.values()) == {0}
    assert not bundle.manifest.front and not bundle.manifest.workspaces
    assert {name: len(re.findall(rf"\t{name}[ \t]", ptx)) for name in INSTRUCTIONS[kind]} == INSTRUCTIONS[kind]
    assert ptx.count("wgmma.mma_async") == 8 and "cvt.rn.f16.s" not in ptx and "cvt.rn.f16.u" not in ptx


def converted(cast: str, name: str, bits: int) -> str | None:
    """Returns a function that converts bytes, or their low bits, by the bits of the result; None where a cast does."""
    narrow = "%n = arith.trunci %a : vector<2xi8> to vector<2xi4>" if bits == 4 else ""
    text = f"""func.func @f(%a: vector<2xi8>, %b: i{bits}) -> vector<2x{name}> {{
      {narrow}
      %x = arith.{cast} {"%n" if narrow else "%a"} : vector<2xi{bits}> to vector<2x{name}>
      %y = arith.{cast} %b : i{bits} to {name}
      return %x : vector<2x{name}> }}"""
    with mlir_context():
        module = ir.Module.parse(text)
        op, scalar = walk(module, f"arith.{cast}")
        operand = op.operands[0]
        with ir.InsertionPoint(op), op.location:
            found = narrow_integers.converted(scalar, operand, narrow_integers.IntegerBounds().of(operand))
        if found is None:
            return None
        op.results[0].replace_all_uses_with(found)
        return str(module)


@pytest.mark.parametrize("name, bits, cast", [("f16", 8, "sitofp"), ("f16", 8, "uitofp"), ("bf16", 4, "sitofp")])
def test_integers_by_their_bits_are_exact(name: str, bits: int, cast: str) -> None:
    text = converted(cast, name, bits)
    assert text is not None
    numbers = np.arange(256, dtype=np.uint8).view(np.int8)
    low = numbers.astype(np.int64) & (1 << bits) - 1
    expected = np.where(low >> (bits - 1), low - (1 << bits), low) if cast == "sitofp" else low
    for pair, wanted in zip(numbers.reshape(-1, 2), expected.reshape(-1, 2)):
        np.testing.assert_array_equal(np.asarray(run(text, pair, 0)[0]).astype(np.int64), wanted)


def test_bf16_has_no_room_for_bytes() -> None:
    assert converted("sitofp", "bf16", 8) is None


def test_digits_are_quotients_and_remainders() -> None:
    """Of all rows and steps of k of a matrix with groups, as NumPy has them."""
    rows, steps, lane = (Index.of(*item) for item in (("row", 6), ("step", 8), ("lane", 4)))
    k = steps * 16 + lane * 2 + 9
    place = digits(linear([rows, k], [6, 128]), [6, 4, 32])
    again = linear([place[0], linear(place[1:], [4, 32])], [6, 128])
    assert again == linear([rows, k], [6, 128])
    for row in range(6):
        for step in range(8):
            for number in range(4):
                values = {"row": row, "step": step, "lane": number}
                got = [
                    part.constant + sum(values[each.base] // each.divisor % each.size * f for each, f in part.terms)
                    for part in place
                ]
                column = 16 * step + 2 * number + 9
                assert got == [row, column // 32, column % 32]
    with pytest.raises(NoDigits):
        (lane * 2 + 7).divided(8)


def chosen(text: str, **given: object) -> dict:
    """Returns the knobs that `compile` takes, of which some are given."""
    with mlir_context():
        return run_pipeline(text, "f.mlir", Request("wgmma", {"target": "sm_90a", **given}, tuned=True)).knobs


def test_compile_chooses_registers_for_weights_alone() -> None:
    """Of weights in any order that registers take; an activation is made again for each tile along n."""
    knobs = chosen(weights("i4 by group", 16, 4096, 4096, group=128))
    assert (knobs["producers"], knobs["swap_operands"]) == ("registers", True)
    activation = """func.func @f(%X: tensor<4096x4096xf16>, %B: tensor<4096x4096xf16>) -> tensor<4096x4096xf32> {
      %e = tensor.empty() : tensor<4096x4096xf16>
      %A = linalg.tanh ins(%X : tensor<4096x4096xf16>) outs(%e : tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
      %zero = arith.constant 0.0 : f32
      %c = tensor.empty() : tensor<4096x4096xf32>
      %z = linalg.fill ins(%zero : f32) outs(%c : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
      %p = linalg.matmul ins(%A, %B : tensor<4096x4096xf16>, tensor<4096x4096xf16>) outs(%z : tensor<4096x4096xf32>)
          -> tensor<4096x4096xf32>
      return %p : tensor<4096x4096xf32> }"""
    assert chosen(activation)["producers"] == "kernels"


def test_compile_takes_a_kernel_in_front_where_a_step_refuses_registers() -> None:
    """Packed numbers of which a tile has rows that TMA does not swizzle."""
    text = ProducerPayload(60).text
    assert chosen(text)["producers"] == "kernels"
    with pytest.raises(StepladderError, match="prepare_in_registers"):
        chosen(text, producers="registers", swap_operands=True)
