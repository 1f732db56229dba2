"""Random functions of contractions and other ops: exact on the emulator, or refused with one message.

STEPLADDER_TEST_SEED=S draws others; STEPLADDER_RANDOM_FUNCTIONS=N of them, 300 with STEPLADDER_TEST_PROFILE=random.
"""

import os
import random
from collections.abc import Callable

import numpy as np
import pytest

import stepladder
from combinations import combinations
from conftest import PROFILE
from exact_values import ExactWriter, Function, tensor
from random_functions import drawn_function, drawn_kernel
from stepladder.runtime.errors import StepladderError

SEED = int(os.environ.get("STEPLADDER_TEST_SEED", "0"))
COUNT = int(os.environ.get("STEPLADDER_RANDOM_FUNCTIONS", 300 if PROFILE == "random" else 4))
PARTS = 2
SETTINGS = (
    *({"target": "sm_90a"},) * 3,
    {"target": "sm_90a", "groups": True},
    {"target": "sm_90a", "pipeline": "mma_sync"},
    {"target": "sm_80"},
    {"target": "sm_80", "pipeline": "wmma"},
)

pytestmark = pytest.mark.usefixtures("needs_ptxas")


def differences(function: Function, **settings: object) -> list[int]:
    """Returns the numbers of the results that are not as NumPy has them."""
    compiled = stepladder.compile(function.text, device="emulator", **settings)
    found = compiled(*function.arguments)
    results = list(found) if isinstance(found, tuple) else [found]
    assert len(results) == len(function.wanted)
    pairs = enumerate(zip(results, function.wanted))
    return [number for number, (got, wanted) in pairs if not np.array_equal(got, wanted)]


@pytest.mark.parametrize("drawn", [drawn_function, drawn_kernel])
@pytest.mark.parametrize("part", range(PARTS))
def test_exact_or_refused_with_one_message(part: int, drawn: Callable[[int], Function]) -> None:
    refused = []
    for number in range(part, COUNT, PARTS):
        seed = SEED * 1_000_003 + number
        function, settings = drawn(seed), random.Random(seed).choice(SETTINGS)
        try:
            assert not differences(function, **settings), f"{seed} with {settings}\n{function.text}"
        except StepladderError as error:
            assert "\n" not in error.message and "raised" not in error.message, f"{error.message}\n{function.text}"
            assert "faults" not in error.message, f"{error.render()}\n{function.text}"
            refused.append(error.message)
    if PROFILE == "random":
        assert len(refused) < COUNT // PARTS // 2, refused


def batch_of_vectors(types: tuple[str, str], target: tuple[int, ...]) -> Function:
    """Returns products of a batch of matrices with a vector each, whose integers are converted to f32.

    Args:
        types: of the elements of matrices and vectors.
        target: axes b, m and k of the matrices, in the order that they have in memory.
    """
    writer = ExactWriter(random.Random(0), ())
    matrices = writer.argument([(3, 8, 16)[axis] for axis in target], types[0])
    vectors = writer.argument([3, 16], types[1])
    letters = "".join("bmk"[axis] for axis in target)
    held = np.einsum(f"{letters},bk->bm", matrices.held, vectors.held).astype(np.float64)
    convert = {"i8": "arith.sitofp", "f16": "arith.extf"}
    body = [
        f"%a = {convert[types[0]]} %x0 : {types[0]} to f32",
        f"%b = {convert[types[1]]} %x1 : {types[1]} to f32",
        "%p = arith.mulf %a, %b : f32",
        "%r = arith.addf %o, %p : f32",
    ]
    inputs = [(matrices, ", ".join(letters)), (vectors, "b, k")]
    sums = writer.generic(inputs, "bmk", ("bm", "f32"), body, held, "sums", outs=writer.filled([3, 8], "f32"))
    arguments = ", ".join(f"{value.name}: {value.type}" for value in writer.arguments)
    lines = "\n  ".join([*writer.lines, f"return {sums.name} : {sums.type}"])
    dtypes = {"i8": np.int8, "f16": np.float16}
    return Function(
        f"func.func @f({arguments}) -> {tensor([3, 8], 'f32')} {{\n  {lines}\n}}\n",
        [value.held.astype(dtypes[type_]) for value, type_ in zip(writer.arguments, types)],
        [held.astype(np.float32)],
        [],
    )


@pytest.mark.parametrize(
    "types, order, target",
    combinations([("i8", "i8"), ("i8", "f16"), ("f16", "i8")], [(0, 1, 2), (1, 0, 2)], ["sm_90a", "sm_80"]),
)
def test_integers_of_a_batch_of_matrices_and_vectors(
    types: tuple[str, str], order: tuple[int, ...], target: str
) -> None:
    """They are converted in the kernel that computes the sums: no matrix unit does."""
    assert not differences(batch_of_vectors(types, order), target=target)
