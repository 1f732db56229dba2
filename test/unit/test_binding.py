"""Dynamic dimensions get sizes by `--bind`: of tensors, buffers and what is computed from them."""

from pathlib import Path

import pytest

import stepladder
from stepladder.cli.main import main
from stepladder.emulator.matmul import check_steps
from stepladder.mlir.traverse import symbol_of, walk
from stepladder.payload.binding import bind
from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.context import bound_text, mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import BAD_INPUT, StepladderError

TENSORS = """func.func @f(%A: tensor<?x32xf16>, %B: tensor<32x?xf16>, %bias: tensor<?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %A, %c0 : tensor<?x32xf16>
  %n = tensor.dim %B, %c1 : tensor<32x?xf16>
  %length = tensor.dim %bias, %c0 : tensor<?xf32>
  %same = arith.cmpi eq, %n, %length : index
  cf.assert %same, "the bias must have the columns of B"
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.matmul ins(%A, %B : tensor<?x32xf16>, tensor<32x?xf16>) outs(%start : tensor<?x?xf32>) -> tensor<?x?xf32>
  %again = tensor.dim %p, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%again, %n) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p, %bias : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%x: f32, %b: f32, %o: f32):
    %s = arith.addf %x, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""
BUFFERS = """func.func @f(%A: memref<?x?xf16>, %B: memref<?x32xf16>, %C: memref<?x32xf32>) {
  linalg.matmul ins(%A, %B : memref<?x?xf16>, memref<?x32xf16>) outs(%C : memref<?x32xf32>)
  return
}
"""
BOTH = """func.func @f(%A: memref<?x?x32xf16>, %B: memref<?x32x32xf16>, %C: memref<?x?x32xf32>) {
  %a = bufferization.to_tensor %A restrict : memref<?x?x32xf16> to tensor<?x?x32xf16>
  %b = bufferization.to_tensor %B restrict : memref<?x32x32xf16> to tensor<?x32x32xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<?x?x32xf32> to tensor<?x?x32xf32>
  %p = linalg.batch_matmul ins(%a, %b : tensor<?x?x32xf16>, tensor<?x32x32xf16>) outs(%c : tensor<?x?x32xf32>)
      -> tensor<?x?x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %C
      : (tensor<?x?x32xf32>, memref<?x?x32xf32>) -> ()
  return
}
"""
TWO_PRODUCTS = """func.func @f(%A: memref<?x32xf16>, %B: memref<32x32xf16>, %C: memref<?x32xf32>) {
  linalg.matmul ins(%A, %B : memref<?x32xf16>, memref<32x32xf16>) outs(%C : memref<?x32xf32>)
  linalg.matmul ins(%A, %B : memref<?x32xf16>, memref<32x32xf16>) outs(%C : memref<?x32xf32>)
  return
}
"""
WARPS = {"block_m": 32, "block_n": 32, "block_k": 32, "warp_m": 16, "warp_n": 32}


@pytest.mark.parametrize(
    "text, sizes, problem",
    [
        (TENSORS, {"M": 64, "N": 32, "arg2.0": 32}, "C = f(AB), 64 x 32 x 32, "),
        (TENSORS, {"arg0.0": 64, "arg1.1": 96, "arg2.0": 96}, "C = f(AB), 64 x 96 x 32, "),
        (BUFFERS, {"M": 32, "K": 64}, "C = AB + C, 32 x 32 x 64, "),
        (BOTH, {"BATCH": 3, "M": 32}, "C = AB + C, 3 x 32 x 32 x 32, "),
    ],
)
def test_static_and_right(text: str, sizes: dict[str, int], problem: str) -> None:
    reports = []
    with mlir_context():
        static = bound_text(text, "payload.mlir", sizes, None)
        module = parse_payload(static, "payload.mlir")
        assert find_matmul(module).problem.describe().startswith(problem)
        assert not walk(module, "tensor.cast", "tensor.dim", "cf.assert")
        check_steps(static, "payload.mlir", Request("wmma", WARPS), reports.append)
    assert all(report.passed for report in reports), reports


# As front ends write views of tensors with dynamic dimensions; the type of the cast is filled in.
VIEWS = """func.func @f(%x: tensor<?x?x32xf16>, %w: tensor<32x16xf16>) -> tensor<?x?x16xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c16 = arith.constant 16 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x32xf16>
  %t = tensor.dim %x, %c1 : tensor<?x?x32xf16>
  %cast = tensor.cast %x : tensor<?x?x32xf16> to {cast}
  %m = arith.muli %b, %t : index
  %flat = tensor.from_elements %m, %c32 : tensor<2xindex>
  %rows = tensor.reshape %cast(%flat) : ({cast}, tensor<2xindex>) -> tensor<?x32xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%m) : tensor<?x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x16xf32>) -> tensor<?x16xf32>
  %p = linalg.matmul ins(%rows, %w : tensor<?x32xf16>, tensor<32x16xf16>) outs(%start : tensor<?x16xf32>)
      -> tensor<?x16xf32>
  %whole = tensor.from_elements %b, %t, %c16 : tensor<3xindex>
  %r = tensor.reshape %p(%whole) : (tensor<?x16xf32>, tensor<3xindex>) -> tensor<?x?x16xf32>
  return %r : tensor<?x?x16xf32>
}}
"""


def test_views_of_computed_shapes() -> None:
    """`tensor.reshape` becomes views; a cast to other extents than the sizes is refused, not dropped."""
    sizes = {"arg0.0": 3, "arg0.1": 5}
    with mlir_context():
        static = bound_text(VIEWS.format(cast="tensor<?x?x32xf16>"), "payload.mlir", sizes, None)
        module = parse_payload(static, "payload.mlir")
        assert not walk(module, "tensor.cast", "tensor.reshape")
        assert find_matmul(module).problem.describe().startswith("C = AB, 15 x 16 x 32, ")
        with pytest.raises(
            StepladderError, match=r"'tensor.cast' to tensor<\?x1x32xf16> of a tensor that is"
        ) as caught:
            bound_text(VIEWS.format(cast="tensor<?x1x32xf16>"), "payload.mlir", sizes, None)
    assert caught.value.location == "payload.mlir:8:11"


def test_shapes_of_static_arguments_are_computed() -> None:
    text = """func.func @f(%x: tensor<4x8xf32>) -> tensor<4x11xf32> {
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %n = arith.subi %c8, %c5 : index
  %s = tensor.extract_slice %x[0, %c5] [4, %n] [1, 1] : tensor<4x8xf32> to tensor<4x?xf32>
  %t = tensor.cast %x : tensor<4x8xf32> to tensor<4x?xf32>
  %r = tensor.concat dim(1) %s, %t : (tensor<4x?xf32>, tensor<4x?xf32>) -> tensor<4x11xf32>
  return %r : tensor<4x11xf32>
}
"""
    with mlir_context():
        assert "?" not in bound_text(text, "payload.mlir", {}, None)
        assert bound_text(BUFFERS, "payload.mlir", {}, None) == BUFFERS


def test_other_functions_stay() -> None:
    other = "func.func @g(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}\n"
    with mlir_context():
        module = parse_payload(other + BUFFERS, "payload.mlir")
        bind(module, {"M": 32, "K": 64})
        assert "@g(%arg0: tensor<?xf32>) -> tensor<?xf32>" in str(module)


CALLS = """func.func private @q(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  return %x : tensor<?x?xf32>
}
func.func private @p(%A: tensor<?x32xf16>, %B: tensor<32x8xf16>, %C: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %p = linalg.matmul ins(%A, %B : tensor<?x32xf16>, tensor<32x8xf16>) outs(%C : tensor<?x?xf32>) -> tensor<?x?xf32>
  %q = func.call @q(%p) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %q : tensor<?x?xf32>
}
func.func @f(%A: tensor<?x32xf16>, %B: tensor<32x8xf16>, %C: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = func.call @p(%A, %B, %C) : (tensor<?x32xf16>, tensor<32x8xf16>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""


def test_called_functions_are_bound_too() -> None:
    kept = CALLS.replace("@f", "@g").split("func.func @g")[1]
    with mlir_context():
        module = parse_payload(CALLS + "func.func @g" + kept, "payload.mlir")
        bind(module, {"arg0.0": 4, "arg2.0": 4, "arg2.1": 8}, "f")
        assert {symbol_of(op) for op in walk(module, "func.func")} == {"f", "g", "p", "q"}
        module = parse_payload(CALLS, "payload.mlir")
        bind(module, {"arg0.0": 4, "arg2.0": 4, "arg2.1": 8})
        assert find_matmul(module).problem.describe().startswith("C = AB + C, 4 x 8 x 32, ")


def test_errors_stand_where_the_payload_has_them() -> None:
    with mlir_context(), pytest.raises(StepladderError, match="must be in the form that normalize_payload") as caught:
        text = bound_text(TENSORS, "payload.mlir", {"M": 17, "N": 32, "arg2.0": 32}, None)
        check_steps(text, "payload.mlir", Request("wmma_upstream", WARPS), lambda _: None)
    assert caught.value.location == "payload.mlir:12:8"


@pytest.mark.parametrize(
    "text, sizes, message",
    [
        (BUFFERS, {"M": 32}, "arg0.1 has no size: it is memref<?x?xf16>"),
        (BUFFERS, {"M": 32, "X": 4}, "--bind X: unknown name"),
        (TWO_PRODUCTS, {"M": 32}, "--bind M: 2 products have such an extent"),
        (BUFFERS, {"M": 32, "arg3.0": 4}, "--bind arg3.0=4: no argument has this dimension"),
        (BUFFERS, {"arg1.1": 64}, "--bind arg1.1=64: dimension 1 of argument 1 is 32"),
        (BUFFERS, {"M": 32, "arg0.0": 64}, "--bind arg0.0=64: dimension 0 of argument 0 is 32"),
        (BUFFERS, {"arg0.0": 32, "arg0.1": 64, "arg1.0": 32, "arg2.0": 32}, "the sizes do not match the payload"),
        (TENSORS, {"M": 32, "N": 32, "arg2.0": 64}, "the sizes do not match|'cf.assert' beside|the shape of C"),
        (BUFFERS.replace("?x?xf16>", "?x?xf16, strided<[?, 1]>>"), {"M": 32, "K": 64}, "argument 0 is memref<"),
        (BUFFERS, {"M": 32, "K": 0}, "linalg.matmul has no iteration with these sizes"),
    ],
)
def test_refused(text: str, sizes: dict[str, int], message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError, match=message.replace("?", r"\?")) as caught:
        find_matmul(parse_payload(bound_text(text, "payload.mlir", sizes, None), "payload.mlir"))
    assert caught.value.status == BAD_INPUT
    assert caught.value.location.startswith("payload.mlir:")
    assert caught.value.notes


@pytest.mark.parametrize("size", ["passed", "element"])
def test_sizes_that_a_call_decides_are_refused(size: str) -> None:
    rows = "%n: index" if size == "passed" else "%sizes: tensor<1xindex>"
    computed = (
        "" if size == "passed" else "%c0 = arith.constant 0 : index\n %n = tensor.extract %sizes[%c0] : tensor<1xindex>"
    )
    text = f"""func.func @f(%x: tensor<32x64xf16>, %w: tensor<64x32xf16>, {rows}) -> tensor<?x32xf32> {{
      {computed}
      %s = tensor.extract_slice %x[0, 0] [%n, 64] [1, 1] : tensor<32x64xf16> to tensor<?x64xf16>
      %z = arith.constant 0.0 : f32
      %e = tensor.empty(%n) : tensor<?x32xf32>
      %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
      %m = linalg.matmul ins(%s, %w : tensor<?x64xf16>, tensor<64x32xf16>) outs(%f : tensor<?x32xf32>)
        -> tensor<?x32xf32>
      return %m : tensor<?x32xf32>
    }}
    """
    message = "tensor.extract_slice of a size that is not known before a call"
    with pytest.raises(StepladderError, match=message) as caught:
        stepladder.compile(text, target="sm_80", device="emulator")
    (note,) = caught.value.notes
    assert note.startswith("accepted: sizes that are constants, or follow from the shapes of arguments, with --bind")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    payload = tmp_path / "payload.mlir"
    payload.write_text(BUFFERS)
    command = ["explain", str(payload), "--pipeline", "wgmma", "--bind", "M=512", "--bind", "K=256", "--top", "1"]
    assert main(command) == 0
    assert "512 x 32 x 256" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([*command, "--bind", "M=256"])
    assert ended.value.code == 2
    assert "argument --bind: M is given twice, as 512 and as 256" in capsys.readouterr().err
