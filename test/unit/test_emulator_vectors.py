"""What affine maps and ops on vectors compute in the emulator, beside Python and NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator_ops import FEW, FORMATS, INTEGERS, function, run, same

# Affine maps.


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> tuple[str, str]:
    """Draws an affine expression over d0, d1 and s0: its text, and Python's for the same."""
    kind = draw(st.integers(0, 6 if depth else 1))
    if kind == 0:
        name = draw(st.sampled_from(["d0", "d1", "s0"]))
        return name, name
    if kind == 1:
        number = draw(st.integers(-7, 7))
        return str(number), f"({number})"
    left, python = draw(expressions(depth - 1))
    if kind == 2:
        right, other = draw(expressions(depth - 1))
        return f"({left} + {right})", f"({python} + {other})"
    number = draw(st.integers(1, 6))
    return {
        3: (f"({left} * {number})", f"({python} * {number})"),
        4: (f"({left} mod {number})", f"({python} % {number})"),
        5: (f"({left} floordiv {number})", f"({python} // {number})"),
        6: (f"({left} ceildiv {number})", f"(-(-{python} // {number}))"),
    }[kind]


@FEW
@given(st.lists(expressions(), min_size=1, max_size=3), st.lists(st.integers(-50, 50), min_size=9, max_size=9))
def test_affine_maps_beside_python(drawn: list[tuple[str, str]], numbers: list[int]) -> None:
    operands = np.array(numbers).reshape(3, 3)
    wanted = [
        [eval(python, {"d0": d0, "d1": d1, "s0": s0}) for _, python in drawn] for d0, d1, s0 in operands.T.tolist()
    ]
    for op, choose in (("min", min), ("max", max), ("apply", lambda results: results[0])):
        results = ", ".join(text for text, _ in drawn[: 1 if op == "apply" else None])
        code = function(
            dict.fromkeys("abc", "index"),
            f"%r = affine.{op} affine_map<(d0, d1)[s0] -> ({results})>(%a, %b)[%c]",
            "index",
        )
        (got,) = run(code, *operands, lanes=3)
        assert np.broadcast_to(got, 3).tolist() == [choose(row) for row in wanted]
        assert run(code, *operands[:, 0].tolist())[0] == choose(wanted[0])


def test_indices_are_cut_and_joined() -> None:
    code = (
        "func.func @f(%i: index, %n: index) -> (index, index, index, index) {\n"
        "%a, %b, %c = affine.delinearize_index %i into (7, %n, 4) : index, index, index\n"
        "%j = affine.linearize_index disjoint [%a, %b, %c] by (7, %n, 4) : index\n"
        "return %a, %b, %c, %j : index, index, index, index }"
    )
    assert run(code, 50, 5) == [2, 2, 2, 50]
    results = run(code, np.array([50, 19]), np.array([5, 5]), lanes=2)
    assert [result.tolist() for result in results] == [[2, 0], [2, 4], [2, 3], [50, 19]]


# Vectors.


SHAPES = [  # op with %a (and %b), types of these, type of the result, NumPy's for it
    ("vector.broadcast %a : vector<3xf32> to vector<2x3xf32>", lambda a: np.broadcast_to(a, (2, 3))),
    ("vector.broadcast %a : vector<2x1xf32> to vector<2x3xf32>", lambda a: np.broadcast_to(a, (2, 3))),
    ("vector.broadcast %a : f32 to vector<2x3xf32>", lambda a: np.full((2, 3), a)),
    ("vector.shape_cast %a : vector<2x6xf32> to vector<3x4xf32>", lambda a: a.reshape(3, 4)),
    ("vector.transpose %a, [2, 0, 1] : vector<2x3x4xf32> to vector<4x2x3xf32>", lambda a: a.transpose(2, 0, 1)),
    ("vector.extract %a[1] : vector<3xf32> from vector<2x3xf32>", lambda a: a[1]),
    ("vector.extract %a[1, 2] : f32 from vector<2x3xf32>", lambda a: a[1, 2]),
    ("vector.insert %a, %b[1] : vector<3xf32> into vector<2x3xf32>", lambda a, b: np.stack([b[0], a])),
    ("vector.insert %a, %b[0, 1] : f32 into vector<1x2xf32>", lambda a, b: np.array([[b[0, 0], a]])),
    (
        "vector.extract_strided_slice %a {offsets = [1], sizes = [2], strides = [1]} : vector<4x3xf32> "
        "to vector<2x3xf32>",
        lambda a: a[1:3],
    ),
    (
        (
            "vector.extract_strided_slice %a {offsets = [1, 0], sizes = [2, 2], strides = [1, 1]} "
            ": vector<4x3xf32> to vector<2x2xf32>"
        ),
        lambda a: a[1:3, :2],
    ),
    (
        "vector.insert_strided_slice %a, %b {offsets = [1, 1], strides = [1]} : vector<2xf32> into vector<3x4xf32>",
        lambda a, b: np.stack([b[0], np.r_[b[1, :1], a, b[1, 3:]], b[2]]),
    ),
    ("vector.shuffle %a, %b [0, 3, 1] : vector<2xf32>, vector<2xf32>", lambda a, b: np.array([a[0], b[1], a[1]])),
    ("vector.interleave %a, %b : vector<2xf32> -> vector<4xf32>", lambda a, b: np.array([a[0], b[0], a[1], b[1]])),
    ("vector.from_elements %a, %b, %a, %b : vector<2x2xf32>", lambda a, b: np.array([[a, b], [a, b]])),
    ("vector.fma %a, %a, %b : vector<4xf32>", lambda a, b: a * a + b),
    ("vector.reduction <add>, %a, %b : vector<4xf32> into f32", lambda a, b: (((b + a[0]) + a[1]) + a[2]) + a[3]),
    ("vector.reduction <minimumf>, %a : vector<4xf32> into f32", np.min),
    (
        "vector.multi_reduction <add>, %a, %b [0, 2] : vector<2x3x2xf32> to vector<3xf32>",
        lambda a, b: b + a.sum(axis=(0, 2)),
    ),
    ("vector.multi_reduction <maxnumf>, %a, %b [0, 1] : vector<2x3xf32> to f32", lambda a, b: max(a.max(), b)),
]


def operand_types(text: str) -> dict:
    """Returns the types of an op's %a and %b, found in its text."""
    found = text[text.index(" : ") + 3 :]
    match text.split()[0]:
        case "vector.insert" | "vector.insert_strided_slice":
            return dict(zip("ab", found.split(" into ")))
        case "vector.extract":
            return {"a": found.split(" from ")[1]}
        case "vector.shuffle":
            return dict(zip("ab", found.split(", ")))
        case "vector.interleave":
            return dict.fromkeys("ab", found.split(" -> ")[0])
        case "vector.from_elements":
            return dict.fromkeys("ab", "f32")
        case "vector.fma":
            return dict.fromkeys("ab", found)
        case "vector.reduction":
            return {"a": found.split(" into ")[0]} | ({"b": "f32"} if "%b" in text else {})
        case "vector.multi_reduction":
            return dict(zip("ab", found.split(" to ")))
    return {"a": found.split(" to ")[0]}


def shape_of(type_: str) -> tuple:
    return tuple(map(int, type_[type_.index("<") + 1 :].split("x")[:-1])) if "<" in type_ else ()


def result_type(text: str) -> str:
    if text.startswith("vector.shuffle"):
        return "vector<3xf32>"
    found = text[text.index(" : ") + 3 :]
    return (
        found.split(" from ")[0]
        if " from " in found
        else next((found.split(word)[1] for word in (" to ", " into ", " -> ") if word in found), found)
    )


@pytest.mark.parametrize(("text", "model"), SHAPES, ids=[text.split(" : ")[0] for text, _ in SHAPES])
def test_vectors_beside_numpy(text: str, model: Callable[..., object]) -> None:
    arguments = operand_types(text)
    code = function(arguments, f"%r = {text}", result_type(text))
    generator = np.random.default_rng(0)
    count = 3
    lanes = [generator.integers(-8, 8, (count, *shape_of(type_))).astype(np.float32) for type_ in arguments.values()]
    wanted = np.stack([np.asarray(model(*[array[lane] for array in lanes]), np.float32) for lane in range(count)])
    assert same(run(code, *lanes, lanes=count)[0], wanted)
    assert same(run(code, *[array[0] for array in lanes])[0], wanted[0])
    if len(lanes) == 2:  # one that is the same for all lanes, and one that is not
        mixed = np.stack([np.asarray(model(lanes[0][0], lanes[1][lane]), np.float32) for lane in range(count)])
        assert same(run(code, lanes[0][0], lanes[1], lanes=count)[0], mixed)


def test_positions_may_differ_between_lanes() -> None:
    vector = np.arange(12, dtype=np.float32).reshape(3, 4)
    code = function(
        {"a": "vector<3x4xf32>", "i": "index"}, "%r = vector.extract %a[1, %i] : f32 from vector<3x4xf32>", "f32"
    )
    assert run(code, vector, np.array([0, 3, 99]), lanes=3, mask=np.array([True, True, False]))[0][:2].tolist() == [
        4,
        7,
    ]
    assert run(code, vector, 2)[0] == 6
    code = function(
        {"a": "vector<3x4xf32>", "i": "index", "x": "f32"},
        "%r = vector.insert %x, %a[%i, 0] : f32 into vector<3x4xf32>",
        "vector<3x4xf32>",
    )
    (result,) = run(code, vector, np.array([0, 2]), np.float32(-1), lanes=2)
    assert result[0, 0, 0] == result[1, 2, 0] == -1 and (result == -1).sum() == 2


def test_small_vector_ops() -> None:
    assert run(
        function({"a": "vector<4xf16>"}, "%r = vector.bitcast %a : vector<4xf16> to vector<2xi32>", "vector<2xi32>"),
        np.array([1, 0, 0, 1], np.float16),
    )[0].tolist() == [0x3C00, 0x3C00 << 16]
    code = (
        "func.func @f(%a: vector<2x2xf32>) -> (f32, f32) {\n"
        "%x:4 = vector.to_elements %a : vector<2x2xf32>\nreturn %x#1, %x#2 : f32, f32 }"
    )
    assert run(code, np.array([[1, 2], [3, 4]], np.float32)) == [2, 3]
    mask = function(
        {"n": "index"},
        "%m = arith.constant 1 : index\n%r = vector.create_mask %n, %m : vector<3x2xi1>",
        "vector<3x2xi1>",
    )
    assert run(mask, 2)[0].tolist() == [[True, False], [True, False], [False, False]]
    assert run(mask, np.array([0, 3]), lanes=2)[0].sum(axis=(1, 2)).tolist() == [0, 3]
    assert run(function({}, "%r = vector.step : vector<3xindex>", "vector<3xindex>"))[0].tolist() == [0, 1, 2]
    code = (
        "func.func @f(%a: vector<4xi8>) -> (vector<2xi8>, vector<2xi8>) {\n"
        "%x, %y = vector.deinterleave %a : vector<4xi8> -> vector<2xi8>\nreturn %x, %y : vector<2xi8>, vector<2xi8> }"
    )
    assert [part.tolist() for part in run(code, np.arange(4, dtype=np.int8))] == [[0, 2], [1, 3]]
    masked = function(
        {"m": "vector<4xi1>", "a": "vector<4xi32>"},
        "%r = vector.mask %m { vector.reduction <maxui>, %a : vector<4xi32> into i32 } : vector<4xi1> -> i32",
        "i32",
    )
    assert run(masked, np.array([True, True, False, True]), np.array([3, 5, -1, 4], np.int32))[0] == 5


@st.composite
def contractions(draw: st.DrawFn) -> tuple[list[str], dict[str, int]]:
    """Draws a contraction: letters of both factors and of the sums, and the sizes of loops."""
    loops = draw(st.permutations("abcde"))
    count = draw(st.integers(1, 5))
    where = ["lr", *(draw(st.sampled_from(["lrt", "lt", "rt", "lr"])) for _ in range(count - 1))]
    parts = [
        "".join(draw(st.permutations([loop for loop, places in zip(loops, where) if part in places]))) for part in "lrt"
    ]
    return parts, {loop: draw(st.integers(1, 3)) for loop in loops[:count]}


def vector_type(letters: str, sizes: dict[str, int], element: str) -> str:
    return f"vector<{''.join(f'{sizes[letter]}x' for letter in letters)}{element}>"


@FEW
@given(
    contractions(),
    st.sampled_from([("f16", "f32"), ("i8", "i32"), ("f32", "f32"), ("bf16", "bf16")]),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.sampled_from(["add", "add", "max"]),
)
def test_contractions_beside_einsum(
    drawn: tuple[list[str], dict[str, int]], formats: tuple[str, str], in_lanes: list[bool], kind: str
) -> None:
    parts, sizes = drawn
    loops = sorted(sizes)
    elements = (formats[0], formats[0], formats[1])
    kind = {"add": "add", "max": "maxsi" if formats[1] == "i32" else "maxnumf"}[kind]
    letters = {loop: f"d{number}" for number, loop in enumerate(loops)}
    maps = [
        f"affine_map<({', '.join(letters.values())}) -> ({', '.join(letters[loop] for loop in part)})>"
        for part in parts
    ]
    iterators = ", ".join('"parallel"' if loop in parts[2] else '"reduction"' for loop in loops)
    types_ = [vector_type(part, sizes, element) if part else element for part, element in zip(parts, elements)]
    code = function(
        dict(zip("abc", types_)),
        f"%r = vector.contract {{indexing_maps = [{', '.join(maps)}], iterator_types = [{iterators}], "
        f"kind = #vector.kind<{kind}>}} %a, %b, %c : {types_[0]}, {types_[1]} into {types_[2]}",
        types_[2],
    )
    generator = np.random.default_rng(1)
    dtypes = [{**FORMATS, **INTEGERS}[element] for element in elements]
    count = 2
    operands = [
        generator.integers(-3, 4, (count,) * lanes + tuple(sizes[loop] for loop in part)).astype(dtype)
        for part, dtype, lanes in zip(parts, dtypes, in_lanes)
    ]
    (got,) = run(code, *[operand if operand.ndim else operand[()] for operand in operands], lanes=count)
    wide = [
        np.broadcast_to(operand.astype(float), (count, *operand.shape[lanes:]))
        for operand, lanes in zip(operands, in_lanes)
    ]
    if kind == "add":
        wanted = wide[2] + np.einsum(f"z{parts[0]},z{parts[1]}->z{parts[2]}", wide[0], wide[1])
    else:
        products = np.einsum(f"z{parts[0]},z{parts[1]}->z{parts[2]}{''.join(set(sizes) - set(parts[2]))}", *wide[:2])
        wanted = np.maximum(wide[2], products.reshape(*wide[2].shape, -1).max(axis=-1))
    got = np.broadcast_to(np.asarray(got).astype(float), wanted.shape)
    assert np.array_equal(got, wanted)
