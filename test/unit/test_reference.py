"""Reference programs: exported from linalg, computed without MLIR, and what a bundle's numbers are compared with."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import make_manifest, make_problem
from stepladder.cli import main as cli
from stepladder.emulator.core.emulation import Emulation
from stepladder.payload import reference_export
from stepladder.payload.matmul import find_matmul
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.runtime import reference_operations
from stepladder.runtime.bundle import parse_reference, read_bundle, write_bundle
from stepladder.runtime.errors import FAILED, OK, StepladderError
from stepladder.runtime.reference import REFERENCE, Program, matmul_program
from stepladder.verify import arrays
from stepladder.verify.reference_evaluation import Evaluation
from stepladder.verify.scalar_operations import ARITHMETIC, PREDICATES

# Functions by what is in them; all values are small integers, or compared with a tolerance.
FUNCTIONS = {
    "batches": """func.func @f(%A: tensor<3x4x5xf16>, %B: tensor<3x5x6xf16>, %C: tensor<3x4x6xf32>)
    -> tensor<3x4x6xf32> {
  %p = linalg.batch_matmul ins(%A, %B : tensor<3x4x5xf16>, tensor<3x5x6xf16>)
    outs(%C : tensor<3x4x6xf32>) -> tensor<3x4x6xf32>
  return %p : tensor<3x4x6xf32> }""",
    "contraction of five loops": """#a = affine_map<(b, i, j, k, l) -> (k, b, i, l)>
#b = affine_map<(b, i, j, k, l) -> (l, j, b, k)>
#c = affine_map<(b, i, j, k, l) -> (j, i, b)>
func.func @f(%A: tensor<2x3x4x5xf32>, %B: tensor<5x6x3x2xf32>, %C: tensor<6x4x3xf32>) -> tensor<6x4x3xf32> {
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction",
    "reduction"]} ins(%A, %B : tensor<2x3x4x5xf32>, tensor<5x6x3x2xf32>) outs(%C : tensor<6x4x3xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %v = arith.mulf %x, %y : f32
    %w = arith.addf %z, %v : f32
    linalg.yield %w : f32 } -> tensor<6x4x3xf32>
  return %p : tensor<6x4x3xf32> }""",
    "largest of rows, and their sum": """func.func @f(%A: tensor<7x9xf32>, %M: tensor<7xf32>)
    -> (tensor<7xf32>, tensor<7xf32>) {
  %m = linalg.reduce ins(%A : tensor<7x9xf32>) outs(%M : tensor<7xf32>) dimensions = [1]
    (%x: f32, %y: f32) { %v = arith.maximumf %x, %y : f32 linalg.yield %v : f32 }
  %s = linalg.reduce { arith.addf } ins(%A : tensor<7x9xf32>) outs(%M : tensor<7xf32>) dimensions = [1]
  return %m, %s : tensor<7xf32>, tensor<7xf32> }""",
    "two outputs": """#m = affine_map<(i, j) -> (i, j)>
func.func @f(%A: tensor<4x5xf32>, %B: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  %p:2 = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      outs(%A, %B : tensor<4x5xf32>, tensor<4x5xf32>) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    %d = arith.subf %x, %y : f32
    linalg.yield %s, %d : f32, f32 } -> (tensor<4x5xf32>, tensor<4x5xf32>)
  return %p#0, %p#1 : tensor<4x5xf32>, tensor<4x5xf32> }""",
    "shapes": """func.func @f(%A: tensor<4x6x8xf32>, %O: tensor<5x4x3xf32>) -> tensor<5x4x3xf32> {
  %c = tensor.collapse_shape %A [[0, 1], [2]] : tensor<4x6x8xf32> into tensor<24x8xf32>
  %s = tensor.extract_slice %c[1, 2] [20, 3] [1, 2] : tensor<24x8xf32> to tensor<20x3xf32>
  %e = tensor.expand_shape %s [[0, 1], [2]] output_shape [4, 5, 3] : tensor<20x3xf32> into tensor<4x5x3xf32>
  %t = linalg.transpose ins(%e : tensor<4x5x3xf32>) outs(%O : tensor<5x4x3xf32>) permutation = [1, 0, 2]
  return %t : tensor<5x4x3xf32> }""",
    "a row of a slice": """func.func @f(%A: tensor<4x6xf32>, %O: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %s = tensor.extract_slice %A[2, 0] [1, 6] [1, 1] : tensor<4x6xf32> to tensor<6xf32>
  %b = linalg.broadcast ins(%s : tensor<6xf32>) outs(%O : tensor<4x6xf32>) dimensions = [0]
  return %b : tensor<4x6xf32> }""",
    "integers that wrap": """func.func @f(%A: tensor<6x7xi8>, %B: tensor<6x7xi8>) -> tensor<6x7xi8> {
  %c = arith.constant 77 : i8
  %m = linalg.map ins(%A, %B : tensor<6x7xi8>, tensor<6x7xi8>) outs(%B : tensor<6x7xi8>) (%x: i8, %y: i8, %o: i8) {
    %v = arith.muli %x, %c : i8
    %w = arith.muli %v, %c : i8
    %t = arith.subi %w, %y : i8
    %u = arith.extui %t : i8 to i32
    %k = arith.extsi %y : i8 to i32
    %q = arith.subi %u, %k : i32
    %r = arith.trunci %q : i32 to i8
    linalg.yield %r : i8 }
  return %m : tensor<6x7xi8> }""",
    "truth values as numbers of one bit": """func.func @f(%A: tensor<6x7xi8>, %B: tensor<6x7xi8>) -> tensor<6x7xi8> {
  %n = arith.constant 3 : i8
  %m = linalg.map ins(%A, %B : tensor<6x7xi8>, tensor<6x7xi8>) outs(%B : tensor<6x7xi8>) (%x: i8, %y: i8, %o: i8) {
    %p = arith.cmpi sgt, %x, %y : i8
    %q = arith.cmpi slt, %x, %n : i8
    %a = arith.addi %p, %q : i1
    %b = arith.muli %p, %q : i1
    %c = arith.maxsi %p, %q : i1
    %d = arith.cmpi slt, %p, %q : i1
    %e = arith.trunci %x : i8 to i1
    %f = arith.extui %a : i1 to i8
    %g = arith.extsi %b : i1 to i8
    %h = arith.select %c, %f, %g : i8
    %i = arith.select %d, %h, %n : i8
    %j = arith.select %e, %i, %y : i8
    linalg.yield %j : i8 }
  return %m : tensor<6x7xi8> }""",
    "coordinates and choices": """#m = affine_map<(i, j) -> (i, j)>
func.func @f(%A: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %n = arith.constant 0.0 : f32
  %p = linalg.generic {indexing_maps = [#m], iterator_types = ["parallel", "parallel"]} outs(%A : tensor<16x24xf32>) {
  ^bb0(%x: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %t = arith.cmpi sle, %j, %i : index
    %r = arith.cmpf ugt, %x, %n : f32
    %k = arith.index_cast %j : index to i32
    %l = arith.sitofp %k : i32 to f32
    %u = arith.select %r, %x, %l : f32
    %v = arith.select %t, %u, %n : f32
    linalg.yield %v : f32 } -> tensor<16x24xf32>
  return %p : tensor<16x24xf32> }""",
    "softmax": """func.func @f(%A: tensor<16x9xf32>, %B: tensor<16x9xf32>) -> tensor<16x9xf32> {
  %s = linalg.softmax dimension(1) ins(%A : tensor<16x9xf32>) outs(%B : tensor<16x9xf32>) -> tensor<16x9xf32>
  return %s : tensor<16x9xf32> }""",
    "joined": """func.func @f(%A: tensor<3x8xf32>, %B: tensor<4x8xf32>) -> tensor<9x8xf32> {
  %n = arith.constant 7.0 : f32
  %c = tensor.concat dim(0) %A, %B : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<7x8xf32>
  %p = tensor.pad %c low[2, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %n : f32
  } : tensor<7x8xf32> to tensor<9x8xf32>
  %d = arith.mulf %p, %p : tensor<9x8xf32>
  return %d : tensor<9x8xf32> }""",
    "inserted": """func.func @f(%A: tensor<4xf32>, %B: tensor<5x9xf32>) -> tensor<5x9xf32> {
  %p = tensor.insert_slice %A into %B[3, 1] [1, 4] [1, 2] : tensor<4xf32> into tensor<5x9xf32>
  return %p : tensor<5x9xf32> }""",
    "loop": """func.func @f(%A: tensor<4xf32>, %B: tensor<8x4xf32>) -> tensor<4xf32> {
  %b = arith.constant 1 : index
  %e = arith.constant 8 : index
  %s = arith.constant 3 : index
  %p = scf.for %i = %b to %e step %s iter_args(%x = %A) -> (tensor<4xf32>) {
    %y = tensor.extract_slice %B[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %z = linalg.sub ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%A : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  }
  return %p : tensor<4xf32> }""",
    "softmax-like": """#m = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
func.func @f(%A: tensor<16x9xf32>, %S: tensor<16xf32>) -> tensor<16x9xf32> {
  %z = arith.constant 0.0 : f32
  %e = linalg.exp ins(%A : tensor<16x9xf32>) outs(%A : tensor<16x9xf32>) -> tensor<16x9xf32>
  %f = linalg.fill ins(%z : f32) outs(%S : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.reduce { arith.addf } ins(%e : tensor<16x9xf32>) outs(%f : tensor<16xf32>) dimensions = [1]
  %p = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<16x9xf32>, tensor<16xf32>) outs(%A : tensor<16x9xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %v = arith.divf %x, %y : f32
    %w = math.erf %v : f32
    %t = math.tanh %w : f32
    linalg.yield %t : f32 } -> tensor<16x9xf32>
  return %p : tensor<16x9xf32> }""",
    "elements by indices": """#m = affine_map<(i, j) -> (i, j)>
func.func @f(%I: tensor<6x3xi64>, %T: tensor<4x3xf32>, %O: tensor<6x3xf32>) -> tensor<6x3xf32> {
  %n = arith.constant 3 : i64
  %p = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%I : tensor<6x3xi64>) outs(%O : tensor<6x3xf32>) {
  ^bb0(%x: i64, %o: f32):
    %u = arith.cmpi ult, %x, %n : i64 %r = arith.select %u, %x, %n : i64
    %i = arith.index_cast %r : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %T[%i, %j] : tensor<4x3xf32>
    linalg.yield %v : f32 } -> tensor<6x3xf32>
  return %p : tensor<6x3xf32> }""",
    "whether all or any": """#m = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
#v = affine_map<(i) -> (i)>
func.func @f(%A: tensor<9x3xf32>, %B: tensor<9xi1>, %C: tensor<9xi1>, %O: tensor<9xi8>) -> tensor<9xi8> {
  %n = arith.constant 0.0 : f32
  %some = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%A : tensor<9x3xf32>) outs(%B : tensor<9xi1>) {
  ^bb0(%x: f32, %o: i1):
    %p = arith.cmpf ogt, %x, %n : f32
    %q = arith.ori %p, %o : i1
    linalg.yield %q : i1 } -> tensor<9xi1>
  %all = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%A : tensor<9x3xf32>) outs(%C : tensor<9xi1>) {
  ^bb0(%x: f32, %o: i1):
    %p = arith.cmpf ogt, %x, %n : f32
    %q = arith.andi %o, %p : i1
    linalg.yield %q : i1 } -> tensor<9xi1>
  %both = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%some, %all : tensor<9xi1>, tensor<9xi1>) outs(%O : tensor<9xi8>) {
  ^bb0(%x: i1, %y: i1, %o: i8):
    %p = arith.extui %x : i1 to i8
    %q = arith.extsi %y : i1 to i8
    %s = arith.subi %p, %q : i8
    linalg.yield %s : i8 } -> tensor<9xi8>
  return %both : tensor<9xi8> }""",
    "buffers": """func.func @f(%A: memref<4x5xf32>, %B: memref<4x5xf32>, %C: memref<4x5xf32>) {
  %t = memref.alloc() : memref<4x5xf32>
  linalg.add ins(%A, %B : memref<4x5xf32>, memref<4x5xf32>) outs(%t : memref<4x5xf32>)
  memref.copy %B, %C : memref<4x5xf32> to memref<4x5xf32>
  linalg.mul ins(%t, %C : memref<4x5xf32>, memref<4x5xf32>) outs(%B : memref<4x5xf32>)
  return }""",
}


def exported(text: str) -> Program:
    with mlir_context():
        return reference_export.export(parse_payload(text, "payload.mlir"), {})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forms(name: str) -> None:
    """The numbers of the emulator, which runs the same ops element by element, whole and row by row."""
    text = FUNCTIONS[name]
    with mlir_context():
        emulation = Emulation(parse_payload(text, "payload.mlir"))
        inputs = emulation.random_inputs(0)
        if name not in ("softmax", "softmax-like", "coordinates and choices"):
            inputs = [np.round(array.astype(np.float32)).astype(array.dtype) for array in inputs]
        outcome = emulation.run(inputs)
    program = parse_reference(exported(text).to_text().encode(), REFERENCE)
    evaluation = Evaluation(program, dict(enumerate(inputs)), arrays.NumPyArrays())
    pairs = [
        (argument.after, held)
        for argument, held in zip(program.arguments, outcome.arguments)
        if argument.after is not None
    ]
    pairs += [(result.value, held) for result, held in zip(program.results, outcome.results)]
    assert len(pairs) == (2 if name in ("two outputs", "largest of rows, and their sum", "buffers") else 1)
    for value, held in pairs:
        np.testing.assert_allclose(evaluation.whole(value), held.astype(np.float64), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            evaluation.rows(value, slice(1, 3)), held[1:3].astype(np.float64), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize(
    "body, message",
    [
        (
            "%u = tensor.empty() : tensor<4x5x2xindex> "
            "%p = tensor.gather %A[%u] gather_dims([0, 1]) : (tensor<4x5xf32>, tensor<4x5x2xindex>) -> tensor<4x5xf32>",
            "'tensor.gather'",
        ),
        (
            "%u = arith.constant 0 : index %d = arith.constant 1 : index %m = arith.constant 1000000000 : index "
            "%p = scf.for %i = %u to %m step %d iter_args(%x = %A) -> (tensor<4x5xf32>) { "
            "scf.yield %x : tensor<4x5xf32> }",
            "a loop of 1000000000 iterations",
        ),
        (
            "%u = arith.constant 0 : index %v = tensor.extract %A[%u, %u] : tensor<4x5xf32> "
            "%c = arith.fptosi %v : f32 to i32 %i = arith.index_cast %c : i32 to index "
            "%p = tensor.insert_slice %A into %A[0, 0] [4, 5] [%i, 1] : tensor<4x5xf32> into tensor<4x5xf32>",
            "'tensor.extract'",
        ),
        (
            "%p = tensor.insert_slice %A into %A[3, 0] [4, 5] [-1, 1] : tensor<4x5xf32> into tensor<4x5xf32>",
            r"a slice with strides \[-1, 1\], of which one is below 1",
        ),
        (
            "%d = tensor.rank %A : tensor<4x5xf32> %p = scf.for %i = %d to %d step %d iter_args(%x = %A) "
            "-> (tensor<4x5xf32>) { scf.yield %x : tensor<4x5xf32> }",
            "'tensor.rank'",
        ),
        (
            "%p = linalg.map ins(%A : tensor<4x5xf32>) outs(%A : tensor<4x5xf32>) (%x: f32, %o: f32) "
            "{ %v = arith.fptosi %x : f32 to i32 %l, %h = arith.mulsi_extended %v, %v : i32 "
            "%w = arith.sitofp %h : i32 to f32 linalg.yield %w : f32 }",
            "'arith.mulsi_extended' in a linalg op",
        ),
        (
            "%p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, 0)>], "
            'iterator_types = ["reduction", "reduction"]} ins(%A : tensor<4x5xf32>) outs(%A : tensor<4x5xf32>) { '
            "^bb0(%x: f32, %o: f32): %v = arith.addf %x, %o : f32 linalg.yield %v : f32 } -> tensor<4x5xf32>",
            "loops run over a part of an operand",
        ),
        (
            "%e = tensor.empty() : tensor<4xf32> %s = linalg.reduce ins(%A : tensor<4x5xf32>) outs(%e : tensor<4xf32>) "
            "dimensions = [1] (%x: f32, %o: f32) { %v = arith.divf %x, %o : f32 linalg.yield %v : f32 } "
            "%p = linalg.broadcast ins(%s : tensor<4xf32>) outs(%A : tensor<4x5xf32>) dimensions = [1]",
            "a reduction whose last op does not fold",
        ),
        (
            "%e = tensor.empty() : tensor<4xf32> %s = linalg.reduce ins(%A : tensor<4x5xf32>) outs(%e : tensor<4xf32>) "
            "dimensions = [1] (%x: f32, %o: f32) { %u = arith.mulf %x, %o : f32 %v = arith.addf %u, %o : f32 "
            "linalg.yield %v "
            ": f32 } %p = linalg.broadcast ins(%s : tensor<4xf32>) outs(%A : tensor<4x5xf32>) dimensions = [1]",
            "a reduction that reads the result so far",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused(body: str, message: str) -> None:
    text = (
        "func.func @f(%A: tensor<4x5xf32>) -> tensor<4x5xf32> {\n%n = arith.constant 0.0 : f32\n"
        f"{body}\nreturn %p : tensor<4x5xf32> }}"
    )
    with pytest.raises(StepladderError, match=f"{message}.* has no reference computation") as caught:
        exported(text)
    assert caught.value.location.startswith("payload.mlir:3")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"accumulate": False},
        {"a_layout": "column"},
        {"b_layout": "column"},
        {"inputs": "i8", "acc_type": "i32", "c_type": "i32"},
        {"c_type": "f16", "accumulate": False},
    ],
)
def test_program_of_a_problem(fields: dict[str, bool | str]) -> None:
    """What stands in for a missing reference computes what the payload of the same problem does."""
    problem = make_problem(24, 40, 56, **fields)
    text = matmul_text(
        24,
        40,
        56,
        a_type=problem.a_type,
        b_type=problem.b_type,
        acc_type=problem.acc_type,
        c_type=problem.c_type,
        accumulate=problem.accumulate,
        a_layout=problem.a_layout,
        b_layout=problem.b_layout,
    )
    with mlir_context():
        module = parse_payload(text, "payload.mlir")
        program = reference_export.export(module, find_matmul(module).roles)
        inputs = Emulation(module).random_inputs(0)
    assert program.roles == matmul_program(problem).roles
    got, expected = (
        Evaluation(each, dict(enumerate(inputs)), arrays.NumPyArrays()).whole(each.output("c"))
        for each in (matmul_program(problem), program)
    )
    np.testing.assert_array_equal(got, expected)


RELU, SCALE = (
    "%n = arith.constant 0.0 : f32 %v = arith.maximumf %x, %n : f32",
    "%n = arith.constant 0.5 : f32 %v = arith.mulf %x, %n : f32",
)


def with_epilogue(text: str, body: str) -> str:
    """A payload of buffers between which there are tensors, with an elementwise op on C's product."""
    op = (
        "  %after = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], "
        'iterator_types = ["parallel", "parallel"]} ins(%product : tensor<64x64xf32>) outs(%c : '
        f"tensor<64x64xf32>) {{\n  ^bb0(%x: f32, %y: f32): {body} linalg.yield %v : f32 }} -> tensor<64x64xf32>\n"
    )
    before, store, behind = text.partition("  bufferization.materialize")
    return before + op + store + behind.replace(" %product", " %after", 1)


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize("body", [RELU, SCALE])
@pytest.mark.parametrize("pipeline", ["wgmma", "mma_sync"])
def test_run_sees_a_removed_epilogue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, pipeline: str
) -> None:
    """The kernel and the manifest are those of the matmul alone, the reference that of the whole payload."""
    knobs = {"block_m": 64, "block_n": 64, "block_k": 32}
    knobs |= {"consumer_warpgroups": 1} if pipeline == "wgmma" else {"warp_m": 32, "warp_n": 32}
    plain = matmul_text(64, 64, 64, accumulate=False)
    whole = with_epilogue(plain, body)
    with mlir_context():
        made = build(plain, "payload.mlir", Request(pipeline, knobs))
        roles, dumps = made.run.matmul.roles, made.run.dumps()
        references = [reference_export.export(parse_payload(text, "payload.mlir"), roles) for text in (plain, whole)]
    statuses = []
    for reference in references:
        write_bundle(tmp_path / "bundle", made.manifest, b"", "", dumps, reference=reference)
        statuses.append(cli.main(["run", str(tmp_path / "bundle"), "--backend", "emulator"]))
    assert statuses == [OK, FAILED]
    said = capsys.readouterr().out
    assert said.count("exact: PASS") == said.count("exact: FAIL") == said.count("random: FAIL") == 1


def test_bundles_without_a_reference_are_compared_with_the_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bundle(tmp_path / "bundle", make_manifest(), b"", "", {})
    read = read_bundle(tmp_path / "bundle")
    assert read.reference is None
    assert read.expected() == matmul_program(read.manifest.problem)
    assert f"bundle' has no {REFERENCE}" in capsys.readouterr().err


def test_what_checks_numbers_imports_no_mlir() -> None:
    script = (
        "import sys, stepladder.verify.check, stepladder.runtime.bundle, stepladder.cli.commands.run\n"
        "sys.exit(any('mlir' in name for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0


def test_every_op_that_is_exported_is_evaluated() -> None:
    assert set(ARITHMETIC) == reference_operations.ARITHMETIC
    assert {name: set(numbers) for name, numbers in PREDICATES.items()} == {
        name: set(numbers) for name, numbers in reference_operations.PREDICATES.items()
    }
