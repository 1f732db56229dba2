"""Every op of upstream's dialects `arith` and `math`: computed in an epilogue, or refused for the reason that a page
states."""

import importlib
import re

import pytest

from stepladder.mlir.bindings import PREFIX, ir
from stepladder.mlir.traverse import walk
from stepladder.payload.consumers import SCALAR_OPS
from stepladder.payload.rewrites import expansions
from stepladder.pipeline.context import mlir_context
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.resources import transforms_dir
from test_epilogues import PIPELINES, check

FLOATS = """
%one = arith.constant 1.0 : f32
%half = arith.constant 0.5 : f32
%many = arith.constant 1.0e3 : f32
%size = math.absf %x : f32
%above = arith.addf %size, %one : f32
%t = math.tanh %x : f32
%u = arith.mulf %t, %half : f32
%a0 = math.acos %u : f32
%a1 = math.asin %u : f32
%a2 = math.atanh %u : f32
%a3 = arith.mulf %a1, %a2 : f32
%r0 = arith.addf %a0, %a3 : f32
%b0 = math.cbrt %x : f32
%b1 = math.erfc %x : f32
%b2 = math.log10 %above : f32
%b3 = math.asinh %x : f32
%b4 = math.acosh %above : f32
%b5 = arith.addf %b0, %b1 : f32
%b6 = arith.addf %b2, %b3 : f32
%b7 = arith.addf %b5, %b6 : f32
%r1 = arith.addf %b4, %b7 : f32
%c0 = math.sinh %u : f32
%c1 = math.copysign %c0, %x : f32
%c2 = math.cosh %u : f32
%c3 = math.tan %u : f32
%c4 = math.atan2 %x, %above : f32
%c5 = math.atan %x : f32
%c6 = arith.addf %c1, %c2 : f32
%c7 = arith.addf %c3, %c4 : f32
%c8 = arith.addf %c5, %c6 : f32
%r2 = arith.addf %c7, %c8 : f32
%d0 = math.powf %above, %half : f32
%d1 = arith.remf %above, %many : f32
%r3 = arith.addf %d0, %d1 : f32
%r01 = arith.addf %r0, %r1 : f32
%r23 = arith.addf %r2, %r3 : f32
%r = arith.addf %r01, %r23 : f32
"""
INTEGERS = """
%five = arith.constant -5 : i32
%nine = arith.constant 9 : i32
%many = arith.constant 2000 : i32
%a0 = arith.divsi %x, %nine : i32
%a1 = arith.remsi %x, %five : i32
%a2 = arith.floordivsi %x, %five : i32
%a3 = arith.ceildivsi %x, %nine : i32
%a4 = arith.addi %a0, %a1 : i32
%a5 = arith.muli %a2, %a3 : i32
%r0 = arith.addi %a4, %a5 : i32
%b0 = arith.divui %x, %nine : i32
%b1 = arith.remui %x, %five : i32
%b2 = arith.ceildivui %x, %many : i32
%b3 = arith.xori %b0, %b1 : i32
%r1 = arith.addi %b2, %b3 : i32
%c0 = arith.maxui %x, %many : i32
%c1 = arith.minui %x, %five : i32
%c2 = arith.shli %x, %nine : i32
%c3 = arith.shrsi %c2, %nine : i32
%c4 = arith.shrui %x, %nine : i32
%c5 = arith.ori %c3, %c4 : i32
%c6 = arith.andi %c0, %c5 : i32
%r2 = arith.subi %c6, %c1 : i32
%d0 = arith.extui %x : i32 to i64
%d1 = arith.constant 1234567890 : i64
%d2 = arith.muli %d0, %d1 : i64
%d3 = arith.constant 33 : i64
%d4 = arith.shrsi %d2, %d3 : i64
%d5 = arith.trunci %d4 : i64 to i32
%d6 = arith.uitofp %d5 : i32 to f32
%d7 = arith.constant 1.0e-6 : f32
%d8 = arith.mulf %d6, %d7 : f32
%r3 = arith.fptosi %d8 : f32 to i32
%r01 = arith.xori %r0, %r1 : i32
%r23 = arith.xori %r2, %r3 : i32
%r = arith.addi %r01, %r23 : i32
"""


def text_of(body: str, inputs: str, sums: str) -> str:
    """Returns a payload of a matmul whose epilogue has a body that makes %r of %x."""
    type_, map_ = f"tensor<64x64x{sums}>", "affine_map<(i, j) -> (i, j)>"
    return f"""func.func @f(%A: tensor<64x40x{inputs}>, %B: tensor<40x64x{inputs}>) -> {type_} {{
  %zero = arith.constant {"0" if sums == "i32" else "0.0"} : {sums}
  %e = tensor.empty() : {type_}
  %z = linalg.fill ins(%zero : {sums}) outs(%e : {type_}) -> {type_}
  %p = linalg.matmul ins(%A, %B : tensor<64x40x{inputs}>, tensor<40x64x{inputs}>) outs(%z : {type_}) -> {type_}
  %c = linalg.generic {{indexing_maps = [{map_}, {map_}], iterator_types = ["parallel", "parallel"]}}
      ins(%p : {type_}) outs(%e : {type_}) {{
  ^bb0(%x: {sums}, %o: {sums}):
    {body}
    linalg.yield %r : {sums}
  }} -> {type_}
  return %c : {type_}
}}
"""


@pytest.mark.parametrize("where", ["wgmma, TMA", "mma_sync"])
@pytest.mark.parametrize("body, inputs, sums", [(FLOATS, "f16", "f32"), (INTEGERS, "i8", "i32")], ids=["f32", "i32"])
def test_right(where: str, body: str, inputs: str, sums: str) -> None:
    check(text_of(body, inputs, sums), *PIPELINES[where], levels="last")


@pytest.mark.parametrize(
    "line, message",
    [
        ("%r = arith.divsi %x, %x : i32", "'arith.divsi' by an element of an operand, which may be 0"),
        ("%r = arith.shli %x, %x : i32", "'arith.shli' by an element of an operand, which may be wider than"),
        ("%k = arith.constant 0 : i32\n%r = arith.remui %x, %k : i32", "'arith.remui' by 0"),
    ],
)
def test_undefined_numbers_on_the_right(line: str, message: str) -> None:
    with pytest.raises(StepladderError) as raised:
        check(text_of(line, "i8", "i32"), *PIPELINES["mma_sync"])
    assert message in raised.value.message


def ops_of(dialect: str) -> set[str]:
    """Returns the names of a dialect's ops in the bindings."""
    module = importlib.import_module(f"{PREFIX}.dialects.{dialect}")
    return {item.OPERATION_NAME for item in vars(module).values() if hasattr(item, "OPERATION_NAME")}


def documented_ops() -> dict[str, str]:
    """Returns what the table of docs/fusion.md says of each op."""
    text = (transforms_dir().parent / "docs" / "fusion.md").read_text()
    found = {}
    for dialect, names, says in re.findall(r"^\| `(arith|math)`: (.*?) \| (.*?) \|$", text, re.M):
        found |= {f"{dialect}.{name}": says for name in re.findall(r"`(\w+)`", names)}
    return found


def test_the_table_has_all_ops() -> None:
    says = documented_ops()
    assert set(says) == ops_of("arith") | ops_of("math")
    computed = {name for name, text in says.items() if not text.startswith("refused")}
    expanded = {name for name, text in says.items() if text.startswith("become")}
    assert computed == SCALAR_OPS | expanded and not SCALAR_OPS & expanded


def test_ops_that_become_others() -> None:
    text = """func.func @f(%x: f32) -> (i1, i1, i1, i1, f32, f32, f32, f32, f32, f32, i32, i32, i32, i32) {
      %n = arith.constant 3 : i32
      %mask = arith.constant 0x7fffffff : i32
      %a = math.isnan %x : f32
      %b = math.isinf %x : f32
      %c = math.isfinite %x : f32
      %d = math.isnormal %x : f32
      %e, %f = math.sincos %x : f32
      %g = math.trunc %x : f32
      %h = math.fpowi %x, %n : f32, i32
      %i = math.clampf %x to [%e, %f] : f32
      %bits = arith.bitcast %x : f32 to i32
      %kept = arith.andi %bits, %mask : i32
      %j = arith.bitcast %kept : i32 to f32
      %k = math.ctlz %kept : i32
      %l = math.cttz %kept : i32
      %m = math.ctpop %kept : i32
      %p = math.ipowi %kept, %m : i32
      return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j, %k, %l, %m, %p
        : i1, i1, i1, i1, f32, f32, f32, f32, f32, f32, i32, i32, i32, i32
    }"""
    written = {name for name, says in documented_ops().items() if says.startswith("become")}
    with mlir_context():
        module = ir.Module.parse(text)
        function = module.body.operations[0].operation
        assert written <= {op.name for op in walk(function)}
        expansions.expand(function)
        names = {op.name for op in walk(function) if op.name.startswith(("arith.", "math."))}
    assert names <= SCALAR_OPS
    assert sum(op.name == "arith.bitcast" for op in walk(function)) == 1  # the sign alone became others
