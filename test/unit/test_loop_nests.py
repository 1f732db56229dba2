"""Nests of loops over elements of buffers, as front ends of C write matmuls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import stepladder
from combinations import combinations
from stepladder.mlir.traverse import walk
from stepladder.payload.rewrites import expansions
from stepladder.pipeline.context import mlir_context, parse_payload

pytestmark = pytest.mark.usefixtures("needs_ptxas")

SHAPES = {"A": (16, 8), "B": (8, 12), "C": (16, 12), "D": (16, 12), "T": (12, 16), "S": (16, 12, 8)}
A, B, C = "A[i,k]", "B[k,j]", "C[i,j]"


def access(place: str) -> tuple[str, str, str]:
    """Returns the name, the indices and the type of `A[i,k]`."""
    name, indices = place[0], place[2:-1].split(",")
    extents = "x".join(map(str, SHAPES[name]))
    return name, ", ".join(f"%{index}" for index in indices), f"memref<{extents}xf32>"


def load(value: str, place: str) -> str:
    name, indices, type_ = access(place)
    return f"%{value} = affine.load %{name}[{indices}] : {type_}\n"


def store(value: str, place: str) -> str:
    name, indices, type_ = access(place)
    return f"affine.store %{value}, %{name}[{indices}] : {type_}\n"


def adds(place: str = C) -> str:
    """Returns the ops that add a product of A and B to an element."""
    ops = "%p = arith.mulf %a, %b : f32\n%s = arith.addf %p, %c : f32\n"
    return load("a", A) + load("b", B) + load("c", place) + ops + store("s", place)


def loops(bounds: str, body: str) -> str:
    """Returns a nest of loops, such as those of `i16 j12`, around ops."""
    head = "".join(f"affine.for %{bound[0]} = 0 to {bound[1:]} {{\n" for bound in bounds.split())
    return head + body + "}\n" * len(bounds.split())


def function(body: str, names: str = "ABC") -> str:
    arguments = ", ".join(f"%{name}: {access(f'{name}[]')[2]}" for name in names)
    return f"func.func @f({arguments}) {{\n%zero = arith.constant 0.0 : f32\n{body}return\n}}\n"


CARRIED = f"""%r = affine.for %k = 0 to 8 iter_args(%x = %zero) -> (f32) {{
{load("a", A)}{load("b", B)}%p = arith.mulf %a, %b : f32
%s = arith.addf %x, %p : f32
affine.yield %s : f32
}}
"""
SCALED = f"""%two = arith.constant 2.0 : f32
%t = arith.mulf %r, %two : f32
{load("c", C)}%u = arith.addf %t, %c : f32
%v = arith.maximumf %u, %zero : f32
"""
HALVED = f"{load('c', C)}%half = arith.constant 0.5 : f32\n%h = arith.mulf %c, %half : f32\n{store('h', C)}"
PART = (slice(0, 8), slice(0, 8))


def part(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    c = c.copy()
    c[PART] += (a @ b)[PART]
    return c


CASES: dict[str, tuple[str, Callable[..., np.ndarray]]] = {
    "adds": (function(loops("i16 j12 k8", adds())), lambda a, b, c: c + a @ b),
    "loops in another order": (function(loops("k8 i16 j12", adds())), lambda a, b, c: c + a @ b),
    "from zeros": (function(loops("i16 j12", store("zero", C) + loops("k8", adds()))), lambda a, b, c: a @ b),
    "carried": (function(loops("i16 j12", CARRIED + store("r", C))), lambda a, b, c: a @ b),
    "epilogue": (
        function(loops("i16 j12", CARRIED + SCALED + store("v", C))),
        lambda a, b, c: np.maximum(2 * (a @ b) + c, 0),
    ),
    "scaled before": (
        function(loops("i16", loops("j12", HALVED) + loops("k8 j12", adds()))),
        lambda a, b, c: c / 2 + a @ b,
    ),
    "transposed": (function(loops("i16 j12 k8", adds("T[j,i]")), "ABT"), lambda a, b, c: c + (a @ b).T),
    "part": (function(loops("i8 j8 k8", adds())), part),
    "largest": (
        function(loops("i16 j12 k8", adds().replace("mulf", "addf").replace("addf %p", "maximumf %p"))),
        lambda a, b, c: np.maximum(c, (a[:, :, None] + b[None]).max(1)),
    ),
}


def called(text: str, arrays: Sequence[np.ndarray], target: str) -> np.ndarray:
    kernel = stepladder.compile(text, target=target, device="emulator")
    result = arrays[-1].copy()
    inputs = kernel.signature.inputs if isinstance(kernel, stepladder.Kernel) else kernel.inputs
    if isinstance(kernel, stepladder.Kernel) or len(inputs) < len(arrays):
        kernel(*arrays[:-1], out=result)
    else:
        kernel(*arrays[:-1], result)
    return result


@pytest.mark.parametrize("name, target", combinations(CASES, ("sm_80", "sm_90a")))
def test_nests(name: str, target: str) -> None:
    text, exact = CASES[name]
    rng = np.random.default_rng(0)
    shapes = [SHAPES[letter] for letter in ("ABT" if name == "transposed" else "ABC")]
    arrays = [rng.integers(-2, 3, shape).astype(np.float32) for shape in shapes]
    np.testing.assert_array_equal(called(text, arrays, target), exact(*arrays))


def test_a_nest_with_its_epilogue_is_one_kernel() -> None:
    kernel = stepladder.compile(CASES["epilogue"][0], target="sm_90a", device="emulator")
    assert isinstance(kernel, stepladder.Kernel)
    assert kernel.manifest.problem.consumers == ("arith.mulf", "arith.addf", "arith.maximumf")


@pytest.mark.parametrize(
    ("names", "nest"),
    [
        ("ABCS", loops("i16 j12 k8", adds() + load("d", C) + store("d", "S[i,j,k]"))),  # sums so far
        ("ABC", loops("i16 j12 k8", load("a", A) + store("a", C))),  # of the last iteration
        ("C", loops("k3 i16 j12", load("c", C) + "%s = arith.addf %c, %c : f32\n" + store("s", C))),
        ("CD", loops("i16 j12", load("c", C) + store("zero", C) + store("c", "D[i,j]"))),  # what C held before
        ("C", loops("i12 j12", load("c", "C[j,i]") + store("c", C))),  # in place, at other elements
    ],
    ids=["sums so far", "last iteration", "repeated", "read before", "in place"],
)
def test_iterations_that_depend_on_others_are_refused(names: str, nest: str) -> None:
    with pytest.raises(stepladder.StepladderError) as refused:
        stepladder.compile(function(nest, names), target="sm_80", device="emulator")
    assert "no linalg.matmul in the payload, but 'scf.for'" in refused.value.message
    assert "accepted: loops over elements from 0 to constants by 1" in refused.value.notes[0]


def test_a_buffer_that_a_nest_writes_through_another_view_is_refused() -> None:
    views = """%V = memref.collapse_shape %C [[0, 1]] : memref<16x12xf32> into memref<192xf32>
%W = memref.expand_shape %V [[0, 1]] output_shape [16, 12] : memref<192xf32> into memref<16x12xf32>
"""
    body = views + loops("i12 j12", load("c", "C[j,i]").replace("%C", "%W") + store("c", C))
    with pytest.raises(stepladder.StepladderError, match=r"'scf\.for'"):
        stepladder.compile(function(body, "C"), target="sm_80", device="emulator")


def tiled(heads: Sequence[str], inner: str = "") -> str:
    """Returns a nest of loops with these heads; `#` is the map from a counter to itself."""
    text = "".join(f"affine.for {head.replace('#', 'affine_map<(d) -> (d)>')} {{\n" for head in heads)
    return text + inner + loops("j12", adds()) + "}\n" * len(heads)


TILES = {
    "a rest": (
        "%t = 0 to 16 step 6",
        "%u = 0 to 8 step 4",
        "%i = #(%t) to min affine_map<(d) -> (d + 6, 16)>(%t)",
        "%k = #(%u) to affine_map<(d) -> (d + 4)>(%u)",
    ),
    "numbers of tiles": (
        "%t = 0 to 4",
        "%k = 0 to 8",
        "%i = affine_map<(d) -> (d * 4)>(%t) to affine_map<(d) -> (d * 4 + 4)>(%t)",
    ),
    "two levels": (
        "%t = 0 to 16 step 8",
        "%u = #(%t) to affine_map<(d) -> (d + 8)>(%t) step 4",
        "%k = 0 to 8",
        "%i = #(%u) to affine_map<(d) -> (d + 4)>(%u)",
    ),
}
STEPS_OF_4 = ("%t = 0 to 16 step 4", "%k = 0 to 8")
NO_TILES = {
    "elements between tiles": (*STEPS_OF_4, "%i = #(%t) to affine_map<(d) -> (d + 3)>(%t)"),
    "tiles that overlap": (*STEPS_OF_4, "%i = #(%t) to affine_map<(d) -> (d + 5)>(%t)"),
    "tiles that begin later": (*STEPS_OF_4, "%i = affine_map<(d) -> (d + 1)>(%t) to affine_map<(d) -> (d + 5)>(%t)"),
}


def left_in(text: str) -> tuple[int, list[str]]:
    """Returns how many loops a function has after its rewrite, and the types of its linalg ops' outputs."""
    with mlir_context():
        module = parse_payload(text, "tiles.mlir")
        (body,) = walk(module, "func.func")
        expansions.expand(body)
        outputs = [str(op.operands[len(op.operands) - 1].type) for op in walk(body, "linalg.generic")]
        return len(walk(body, "scf.for")), outputs


@pytest.mark.parametrize("name", TILES)
def test_loops_over_tiles_and_their_elements(name: str) -> None:
    assert left_in(function(tiled(TILES[name]))) == (0, ["memref<16x12xf32>"])


@pytest.mark.parametrize("name", NO_TILES)
def test_other_loops_whose_bounds_depend_on_a_counter(name: str) -> None:
    assert left_in(function(tiled(NO_TILES[name])))[1] == []


def test_what_runs_once_a_tile_does_not_run_for_each_element() -> None:
    doubled = f"{load('d', C)}%e = arith.addf %d, %d : f32\n{store('e', C)}".replace("%i", "0")
    elements = "affine.for %i = affine_map<(d) -> (d)>(%t) to affine_map<(d) -> (d + 4)>(%t) {\n"
    body = "affine.for %t = 0 to 16 step 4 {\n" + loops("j12", doubled + elements + loops("k8", adds()) + "}\n") + "}\n"
    assert left_in(function(body))[1] == []
