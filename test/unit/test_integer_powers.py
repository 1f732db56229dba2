"""Powers of integers: of bodies and of StableHLO, with and without a sign, beside Python's; and loops in bodies whose
values come from outside of the body."""

import importlib.util
import itertools
from typing import Any

import numpy as np
import pytest

import stepladder
from stepladder.mlir.bindings import PREFIX, ir
from stepladder.mlir.traverse import walk
from stepladder.payload.rewrites import identities, integer_powers
from stepladder.pipeline.context import mlir_context
from test_epilogues import PIPELINES, check
from test_scalar_ops import text_of

NEEDS_TORCH = pytest.mark.skipif(
    importlib.util.find_spec(f"{PREFIX}.dialects.torch") is None, reason="needs torch-mlir"
)


def power(base: int, exponent: int, width: int) -> int:
    """Returns what a power is modulo 2^width; a negative one as MLIR's folds of `math.ipowi` have it."""
    if exponent < 0:
        return (base ** (exponent % 2) if abs(base) == 1 else 0) % 2**width
    return pow(base, exponent, 2**width)


def called(text: str, *inputs: np.ndarray) -> Any:  # noqa: ANN401
    return stepladder.compile(text, device="emulator", target="sm_80")(*inputs)


@NEEDS_TORCH
@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("type_", ["i32", "ui32", "i8", "ui8"])
def test_powers_of_stablehlo(type_: str) -> None:
    width, is_signed = int(type_.strip("ui")), not type_.startswith("u")
    last = 2 ** (width - is_signed) - 1
    bases = [0, 1, 2, 3, 6, 7, last - 1, last, *([-1, -2, -3, -last - 1] if is_signed else [last // 2 + 1])]
    exponents = [0, 1, 2, 5, width - 1, width, 64, 65, last // 2 + 1, last, *([-1, -2, -7] if is_signed else [])]
    pairs = list(itertools.product(bases, [number for number in exponents if number <= last]))
    pairs += [(0, 0)] * (-len(pairs) % 8)
    kind = np.dtype(f"{'' if is_signed else 'u'}int{width}")
    x, y = (np.array(column, kind).reshape(8, -1) for column in zip(*pairs))
    shape = f"8x{x.shape[1]}"
    text = f"""
func.func public @main(%a: tensor<8x16xf16>, %b: tensor<16x{x.shape[1]}xf16>, %x: tensor<{shape}x{type_}>,
    %y: tensor<{shape}x{type_}>) -> (tensor<{shape}xf32>, tensor<{shape}x{type_}>, tensor<{shape}x{type_}>) {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8x16xf16>, tensor<16x{x.shape[1]}xf16>) -> tensor<{shape}xf32>
  %1 = stablehlo.power %x, %y : tensor<{shape}x{type_}>
  %three = stablehlo.constant dense<3> : tensor<{shape}x{type_}>
  %2 = stablehlo.power %x, %three : tensor<{shape}x{type_}>
  return %0, %1, %2 : tensor<{shape}xf32>, tensor<{shape}x{type_}>, tensor<{shape}x{type_}>
}}
"""
    a, b = np.zeros((8, 16), np.float16), np.zeros((16, x.shape[1]), np.float16)
    signless = np.dtype(f"int{width}")
    _, any_power, cube = called(text, a, b, x.view(signless), y.view(signless))
    unsigned = np.dtype(f"uint{width}")
    wanted = [power(*map(int, pair), width) for pair in zip(x.ravel(), y.ravel())]
    assert any_power.view(unsigned).ravel().tolist() == wanted
    assert cube.view(unsigned).ravel().tolist() == [power(int(base), 3, width) for base in x.ravel()]


@pytest.mark.parametrize("where", ["wgmma, TMA", "mma_sync"])
def test_powers_in_an_epilogue(where: str) -> None:
    body = """%mask = arith.constant 7 : i32
      %n = arith.andi %x, %mask : i32
      %y = math.ipowi %x, %n : i32
      %five = arith.constant 5 : i32
      %fifth = math.ipowi %x, %five : i32
      %r = arith.xori %y, %fifth : i32"""
    check(text_of(body, "i8", "i32"), *PIPELINES[where], levels="last")


def test_a_constant_exponent_is_a_few_products() -> None:
    text = """func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
      %n = arith.constant dense<10> : tensor<4xi32>
      %y = math.ipowi %x, %n : tensor<4xi32>
      return %y : tensor<4xi32>
    }"""
    with mlir_context():
        module = ir.Module.parse(text)
        integer_powers.expand(module.body.operations[0].operation)
        assert module.operation.verify()
        names = [op.name for op in walk(module) if op.name.startswith(("arith.mul", "arith.sel", "math."))]
    assert names == ["arith.muli"] * 4  # x^2, x^4, x^8, x^2 x^8


def test_a_loop_in_a_body_that_reads_a_constant_from_outside() -> None:
    text = """func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
      %from = arith.constant 0 : index
      %to = arith.constant 3 : index
      %by = arith.constant 1 : index
      %three = arith.constant 3 : i32
      %e = tensor.empty() : tensor<4xi32>
      %double = linalg.add ins(%x, %x : tensor<4xi32>, tensor<4xi32>) outs(%e : tensor<4xi32>) -> tensor<4xi32>
      %y = linalg.generic {
          indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
      } ins(%double : tensor<4xi32>) outs(%e : tensor<4xi32>) {
      ^bb0(%in: i32, %out: i32):
        %r = scf.for %i = %from to %to step %by iter_args(%c = %in) -> (i32) {
          %n = arith.muli %c, %three : i32
          scf.yield %n : i32
        }
        linalg.yield %r : i32
      } -> tensor<4xi32>
      return %y : tensor<4xi32>
    }"""
    with mlir_context():
        module = ir.Module.parse(text)
        identities.forward(walk(module, "func.func")[0])
        assert module.operation.verify() and walk(module, "linalg.generic")
