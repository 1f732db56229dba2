"""Reference programs of many instructions that read each other's results, and of bodies with many ops."""

import numpy as np
import pytest

from stepladder.payload import reference_export
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.reference import Program
from stepladder.verify.arrays import NumPyArrays
from stepladder.verify.reference_evaluation import DEPTH, Evaluation

TYPE = "tensor<3xf32>"


def exported(text: str) -> Program:
    with mlir_context():
        return reference_export.export(parse_payload(text, "deep.mlir"), {})


def chain(count: int) -> str:
    """A function of that many ops, each half of the value before it and of the one before that."""
    ops = [f"  %v1 = linalg.add ins(%A, %A : {TYPE}, {TYPE}) outs(%O : {TYPE}) -> {TYPE}"]
    for number in range(2, count):
        last, other = f"%v{number - 1}", f"%v{number - 2}" if number > 2 else "%A"
        ops += [
            f"  %s{number} = linalg.add ins({last}, {other} : {TYPE}, {TYPE}) outs(%O : {TYPE}) -> {TYPE}",
            f"  %v{number} = linalg.mul ins(%s{number}, %H : {TYPE}, {TYPE}) outs(%O : {TYPE}) -> {TYPE}",
        ]
    return "\n".join(
        [
            f"func.func @f(%A: {TYPE}, %H: {TYPE}) -> {TYPE} {{",
            f"  %O = tensor.empty() : {TYPE}",
            *ops,
            f"  return %v{count - 1} : {TYPE} }}",
        ]
    )


def body(count: int) -> str:
    """A function of one op, which adds that often."""
    lines = [f"    %s{number} = arith.addf %s{number - 1}, %x : f32" for number in range(1, count)]
    return "\n".join(
        [
            "#m = affine_map<(i) -> (i)>",
            f"func.func @f(%A: {TYPE}) -> {TYPE} {{",
            f"  %O = tensor.empty() : {TYPE}",
            '  %r = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel"]}',
            f"    ins(%A : {TYPE}) outs(%O : {TYPE}) {{",
            "  ^bb0(%x: f32, %o: f32):",
            "    %s0 = arith.addf %x, %x : f32",
            *lines,
            f"    linalg.yield %s{count - 1} : f32 }} -> {TYPE}",
            f"  return %r : {TYPE} }}",
        ]
    )


@pytest.mark.parametrize("count", [DEPTH // 2 + 2, 8 * DEPTH])
def test_a_deep_program_is_computed(count: int) -> None:
    start = np.array([1.0, -2.0, 0.5], np.float32)
    program = exported(chain(count))
    values = [start.astype(np.float64), 2.0 * start]
    for _ in range(2, count):
        values.append((values[-1] + values[-2]) * 0.5)
    evaluation = Evaluation(program, {0: start, 1: np.full(3, 0.5, np.float32)}, NumPyArrays())
    (_, result), *_ = program.outputs()
    assert np.array_equal(evaluation.part(result, (slice(1, 3),)), values[-1][1:])
    assert np.array_equal(evaluation.whole(result), values[-1])


def test_a_body_of_many_ops_is_computed() -> None:
    program = exported(body(700))
    (_, result), *_ = program.outputs()
    found = Evaluation(program, {0: np.array([1.0, 2.0, 3.0], np.float32)}, NumPyArrays()).whole(result)
    assert found.tolist() == [701.0, 1402.0, 2103.0]
