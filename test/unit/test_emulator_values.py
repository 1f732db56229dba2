"""What single ops of the emulator compute, beside exact arithmetic and NumPy: on numbers, in lanes, on vectors."""

import functools
import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from stepladder.emulator import dialects
from stepladder.emulator.core import types
from stepladder.emulator.core.groups import Group
from stepladder.emulator.core.machine import Machine
from stepladder.emulator.core.program import build
from stepladder.emulator.memory import memory
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import StepladderError

FEW = settings(max_examples=examples(40), deadline=None)
FORMATS = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64}


@functools.lru_cache(maxsize=64)
def program(text: str):
    with ir.Context(), ir.Location.unknown():
        types.forget()
        return build(ir.Module.parse(text))


def run(text: str, *arguments, lanes: int = 0, mask=None):
    """Runs @f on the host, or in so many threads of one block; returns its results and what memrefs hold then.

    Arrays for memrefs become memory; others are values as they are, with lanes in front or without.
    """
    code = program(text)
    function = code.functions["f"]
    machine = Machine(code)
    values, views = [], []
    for argument, type_ in zip(arguments, function.argument_types, strict=True):
        if isinstance(type_, types.Buffer):
            argument = memory.contiguous(machine.heap.array(argument), type_.element, argument.shape)
            views.append(argument)
        values.append(argument)
    if lanes:
        group = Group(machine, 0, "a block", np.zeros((1, 3), int), (lanes, 1, 1))
        env = [None] * len(code.slot_types)
        for slot, value in zip(function.arguments, values):
            env[slot] = value
        group.start(function.code, env)
        if mask is not None:
            group.ready[0].narrow(mask)
        with np.errstate(all="ignore"):
            group.run()
        results = group.state["returned"]
    else:
        results = machine.call(function, values)
    assert not list(machine.findings), [finding.render() for finding in machine.findings]
    return [*results, *map(memory.content, views)]


def function(arguments: dict, body: str, results: str) -> str:
    """Returns @f with these arguments (name -> type), this body, and `%r` returned with this type."""
    inside = ", ".join(f"%{name}: {type_}" for name, type_ in arguments.items())
    return f"func.func @f({inside}) -> ({results}) {{\n{body}\nreturn %r : {results}\n}}"


def bits(array):
    array = np.asarray(array)
    return array.view(f"u{array.dtype.itemsize}")


def same(left, right):
    """Whether two arrays have the same elements, where not a number is like itself and zeros have their signs."""
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind in "biu":
        return np.array_equal(left, right)
    nan = np.isnan(left) & np.isnan(right)
    return bool((nan | (bits(left) == bits(right))).all())


def everywhere(op, type_, result, *operands):
    """Runs an op on numbers, lanes and vectors, checks that all agree, and returns the results as an array.

    Args:
        op: with {} for its operands, such as "arith.addi {} : i8"; the type's name becomes a vector's.
        operands: arrays of one size.
    """
    count = len(operands[0])
    names = "abc"[: len(operands)]
    wide = f"vector<{count}x{type_}>"

    def text(of, to, op):
        return function(dict.fromkeys(names, of), "%r = " + op.format(", ".join(f"%{name}" for name in names)), to)

    scalar = text(type_, result, f"{op} : {type_}" if type_ == result or "cmp" in op else f"{op} : {type_} to {result}")
    (in_lanes,) = run(scalar, *operands, lanes=count)
    numbers = [
        run(
            scalar, *[operand[number].item() if operand.dtype.kind in "bi" else operand[number] for operand in operands]
        )[0]
        for number in range(min(count, 8))
    ]
    to = f"vector<{count}x{result}>"
    vector = text(wide, to, f"{op} : {wide}" if type_ == result or "cmp" in op else f"{op} : {wide} to {to}")
    (in_vector,) = run(vector, *operands)
    assert same(in_lanes, in_vector)
    assert same(np.array(numbers, in_lanes.dtype), in_lanes[:8])
    if in_lanes.dtype.kind in "bi":
        assert all(type(number) in (int, bool) for number in numbers)
    return in_lanes


# Integers.


def wrapped(value, width):
    return (value + (1 << width - 1)) % (1 << width) - (1 << width - 1)


def cut(left, right):
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


SIGNED = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "maxsi": max,
    "minsi": min,
    "divsi": cut,
    "remsi": lambda a, b: a - b * cut(a, b),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
}
UNSIGNED = {
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "ceildivui": lambda a, b: -(-a // b),
    "maxui": max,
    "minui": min,
}
SHIFTS = {"shli": lambda a, b: a << b, "shrsi": lambda a, b: a >> b}


@pytest.mark.parametrize("type_", INTEGERS)
@given(data=st.data())
@settings(max_examples=examples(4), deadline=None)
def test_integers_wrap_and_divide_as_their_width_says(type_, data):
    dtype = np.dtype(INTEGERS[type_])
    width = dtype.itemsize * 8
    least, most = -(1 << width - 1), (1 << width - 1) - 1
    number = st.one_of(
        st.sampled_from([least, least + 1, -1, 0, 1, most]), st.integers(least, most), st.integers(-9, 9)
    )
    left = data.draw(st.lists(number, min_size=8, max_size=8))
    right = data.draw(st.lists(number.filter(bool), min_size=8, max_size=8))
    amounts = data.draw(st.lists(st.integers(0, width - 1), min_size=8, max_size=8))
    mask = (1 << width) - 1
    for name, model in {**SIGNED, **UNSIGNED, **SHIFTS, "shrui": lambda a, b: (a & mask) >> b}.items():
        second = amounts if name.startswith("sh") else right
        read = mask if name in UNSIGNED else -1
        result = everywhere(f"arith.{name} {{}}", type_, type_, np.array(left, dtype), np.array(second, dtype))
        wanted = [wrapped(model(a & read, b & read), width) for a, b in zip(left, second)]
        assert result.tolist() == wanted, name


COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@pytest.mark.parametrize(
    "predicate", ["eq", "ne", *(sign + name for sign in "su" for name in ("lt", "le", "gt", "ge"))]
)
def test_integers_compare_with_and_without_sign(predicate):
    left, right = map(np.array, zip(*itertools.product(np.array([-128, -1, 0, 1, 127], np.int8), repeat=2)))
    result = everywhere(f"arith.cmpi {predicate}, {{}}", "i8", "i1", left, right)
    if predicate[0] == "u":
        left, right = left.view(np.uint8), right.view(np.uint8)
    wanted = [eval(f"a {COMPARE[predicate[-2:]]} b") for a, b in zip(left.tolist(), right.tolist())]
    assert result.tolist() == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("addi", [0, 1, 1, 0]),
        ("subi", [0, 1, 1, 0]),
        ("muli", [0, 0, 0, 1]),
        ("andi", [0, 0, 0, 1]),
        ("ori", [0, 1, 1, 1]),
        ("xori", [0, 1, 1, 0]),
        ("maxsi", [0, 0, 0, 1]),
        ("maxui", [0, 1, 1, 1]),
    ],
)
def test_single_bits(name, wanted):
    left, right = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert everywhere(f"arith.{name} {{}}", "i1", "i1", left, right).tolist() == [bool(number) for number in wanted]


def test_odd_widths_wrap():
    left, right = np.array([7, -8, 5], np.int8), np.array([1, -1, 5], np.int8)
    assert everywhere("arith.addi {}", "i4", "i4", left, right).tolist() == [-8, 7, -6]
    assert everywhere("arith.maxui {}", "i4", "i4", left, right).tolist() == [7, -1, 5]
    assert everywhere("arith.shrui {}", "i4", "i4", left, np.array([1, 1, 1], np.int8)).tolist() == [3, 4, 2]


@pytest.mark.parametrize(
    ("op", "of", "to", "values", "wanted"),
    [
        ("arith.extsi", "i1", "i32", [0, 1], [0, -1]),
        ("arith.extui", "i1", "i32", [0, 1], [0, 1]),
        ("arith.extsi", "i8", "i32", [-128, 127], [-128, 127]),
        ("arith.extui", "i8", "i32", [-128, -1], [128, 255]),
        ("arith.trunci", "i32", "i8", [128, 255, 257], [-128, -1, 1]),
        ("arith.trunci", "i32", "i1", [2, 3], [0, 1]),
        ("arith.index_cast", "index", "i32", [2**31, -1], [-(2**31), -1]),
        ("arith.index_cast", "i8", "index", [-1], [-1]),
        ("arith.index_castui", "i8", "index", [-1], [255]),
        ("arith.index_castui", "i1", "index", [1], [1]),
        ("arith.fptosi", "f32", "i32", [2.9, -2.9], [2, -2]),
        ("arith.fptoui", "f32", "i8", [255.9, 3.0], [-1, 3]),
        ("arith.fptoui", "f64", "i64", [2.0**63, 5.5], [-(2**63), 5]),
        ("arith.fptosi", "bf16", "i8", [-1.5], [-1]),
        ("arith.sitofp", "i1", "f32", [1], [-1.0]),
        ("arith.uitofp", "i1", "f32", [1], [1.0]),
        ("arith.sitofp", "i32", "f16", [2049, 2051, -70000], [2048.0, 2052.0, -math.inf]),
        ("arith.uitofp", "i8", "f16", [-1], [255.0]),
        ("arith.sitofp", "i64", "f32", [2**24 + 1, 2**24 + 3], [2.0**24, 2.0**24 + 4]),
        # Between two bf16, nearer to the upper one: by way of f32 it would be a tie.
        ("arith.sitofp", "i64", "bf16", [2**40 + 2**32 + 1, 2**40 + 2**32], [2.0**40 + 2.0**33, 2.0**40]),
        ("arith.uitofp", "i64", "f8E5M2", [2**15, 3], [32768.0, 3.0]),
        ("arith.uitofp", "i64", "f64", [-1], [2.0**64]),
    ],
)
def test_conversions(op, of, to, values, wanted):
    dtype = {"i1": bool, **INTEGERS, **FORMATS}
    result = everywhere(f"{op} {{}}", of, to, np.array(values).astype(dtype[of]))
    assert same(result, np.array(wanted).astype(dtype[to]))


def test_bitcasts_keep_the_bits():
    halves = np.array([0x3C00, 0x8000], np.uint16).view(np.int16)
    assert same(everywhere("arith.bitcast {}", "i16", "f16", halves), np.array([1, -0.0], np.float16))
    assert same(everywhere("arith.bitcast {}", "i16", "bf16", halves), halves.view(ml_dtypes.bfloat16))
    assert everywhere("arith.bitcast {}", "f32", "i32", np.array([-2.0], np.float32)).tolist() == [-0x4000_0000]


@FEW
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_extended_sums_and_products_lose_nothing(left, right):
    for lanes in (0, 2):
        a, b = (np.array([left, 3]), np.array([right, 5])) if lanes else (left, right)
        for sign, read in (("s", -1), ("u", 2**64 - 1)):
            low, high = run(
                "func.func @f(%a: i64, %b: i64) -> (i64, i64) {\n"
                f"%l, %h = arith.mul{sign}i_extended %a, %b : i64\nreturn %l, %h : i64, i64 }}",
                a,
                b,
                lanes=lanes,
            )
            low, high = (int(part[0]) if lanes else part for part in (low, high))
            assert (high << 64) + (low & 2**64 - 1) in {
                (left & read) * (right & read),
                wrapped((left & read) * (right & read), 128),
            }
        total, carry = run(
            "func.func @f(%a: i64, %b: i64) -> (i64, i1) {\n"
            "%l, %h = arith.addui_extended %a, %b : i64, i1\nreturn %l, %h : i64, i1 }",
            a,
            b,
            lanes=lanes,
        )
        exact = (left & 2**64 - 1) + (right & 2**64 - 1)
        assert (int(np.ravel(total)[0]) & 2**64 - 1, bool(np.ravel(carry)[0])) == (exact & 2**64 - 1, exact >= 2**64)


def test_only_active_threads_must_not_divide_by_zero():
    text = function({"a": "i32", "b": "i32"}, "%r = arith.divsi %a, %b : i32", "i32")
    left, right = np.array([7, 7], np.int32), np.array([2, 0], np.int32)
    (result,) = run(text, left, right, lanes=2, mask=np.array([True, False]))
    assert result[0] == 3
    with pytest.raises(StepladderError, match="arith.divsi divides by zero") as caught:
        run(text, left, right, lanes=2)
    assert caught.value.location
    with pytest.raises(StepladderError, match="divides by zero"):
        run(text, 1, 0)


# Floating-point numbers.


@functools.lru_cache
def all_finite(name: str) -> np.ndarray:
    """Returns the finite numbers of a format of 8 or 16 bits, in order."""
    dtype = np.dtype(FORMATS[name])
    unsigned = np.dtype(f"u{dtype.itemsize}")
    numbers = np.arange(1 << dtype.itemsize * 8, dtype=np.uint32).astype(unsigned).view(dtype)
    with np.errstate(invalid="ignore"):
        return np.unique(numbers[np.isfinite(numbers)].astype(np.float64))


def nearest(exact: Fraction, name: str) -> float:
    """Returns the number of a format that is nearest, the even one of two; of a number within its range."""
    numbers = all_finite(name)
    place = int(np.searchsorted(numbers, float(exact)))
    near = [float(number) for number in numbers[max(place - 2, 0) : place + 2]]
    dtype = FORMATS[name]
    return min(near, key=lambda number: (abs(Fraction(number) - exact), int(bits(dtype(number))) & 1))


NARROW = [name for name in FORMATS if name not in ("f32", "f64")]


@pytest.mark.parametrize("name", NARROW)
@given(data=st.data())
@settings(max_examples=examples(6), deadline=None)
def test_arithmetic_is_rounded_once_to_the_type(name, data):
    numbers = all_finite(name)
    place = st.integers(0, len(numbers) - 1)
    dtype = FORMATS[name]
    left, right = (
        np.array([numbers[number] for number in data.draw(st.lists(place, min_size=12, max_size=12))]).astype(dtype)
        for _ in range(2)
    )
    most = Fraction(float(numbers[-1]))
    for op, model in (
        ("addf", Fraction.__add__),
        ("subf", Fraction.__sub__),
        ("mulf", Fraction.__mul__),
        ("divf", Fraction.__truediv__),
    ):
        result = everywhere(f"arith.{op} {{}}", name, name, left, right)
        for a, b, got in zip(left.tolist(), right.tolist(), result.tolist()):
            a, b = float(a), float(b)
            if op == "divf" and b == 0:
                continue
            exact = model(Fraction(a), Fraction(b))
            if abs(exact) <= most:
                assert float(got) == nearest(exact, name), (op, a, b)


@pytest.mark.parametrize("name", NARROW)
@given(data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_float64_is_rounded_once_to_narrow_types(name, data):
    numbers = all_finite(name)
    place = data.draw(st.integers(0, len(numbers) - 2))
    tie = (numbers[place] + numbers[place + 1]) / 2
    exponent = data.draw(st.integers(-52, -20))
    value = tie * (1 + data.draw(st.sampled_from([-1, 0, 1])) * 2.0**exponent)
    result = everywhere("arith.truncf {}", "f64", name, np.array([value]))
    assert float(result[0]) == nearest(Fraction(value), name)


def test_rounding_at_the_ends():
    assert same(
        everywhere("arith.truncf {}", "f32", "f16", np.array([65519, 65520, 2.0**-25, 1e-8], np.float32)),
        np.array([65504, np.inf, 0, 0], np.float16),
    )
    assert same(
        everywhere("arith.truncf {}", "f32", "f8E4M3FN", np.array([464, 465, -1e9], np.float32)),
        np.array([448, np.nan, np.nan]).astype(FORMATS["f8E4M3FN"]),
    )
    assert same(
        everywhere("arith.truncf {}", "f32", "tf32", np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11], np.float32)),
        np.array([1, 1 + 2.0**-9], np.float32),
    )
    assert same(
        everywhere("arith.extf {}", "bf16", "f32", np.array([1.5, np.nan], FORMATS["bf16"])),
        np.array([1.5, np.nan], np.float32),
    )


SPECIAL = np.array(list(itertools.product([-np.inf, -1.5, -0.0, 0.0, 1.0, np.inf, np.nan], repeat=2)))


@pytest.mark.parametrize("name", FORMATS)
def test_least_and_greatest_of_special_numbers(name):
    left, right = (SPECIAL[:, side].astype(FORMATS[name]) for side in (0, 1))
    for op, of_two, ignores in (
        ("minimumf", min, False),
        ("maximumf", max, False),
        ("minnumf", min, True),
        ("maxnumf", max, True),
    ):
        result = everywhere(f"arith.{op} {{}}", name, name, left, right)
        for a, b, got in zip(left.astype(float), right.astype(float), result.astype(float)):
            if np.isnan(a) or np.isnan(b):
                other = b if np.isnan(a) else a
                assert np.isnan(got) if not ignores or np.isnan(other) else got == other
            else:
                wanted = of_two(a, b, key=lambda number: (number, math.copysign(1, number)))
                assert got == wanted and (ignores or math.copysign(1, got) == math.copysign(1, wanted))


@pytest.mark.parametrize(
    "predicate", ["false", *(kind + name for kind in "ou" for name in COMPARE), "ord", "uno", "true"]
)
def test_floats_compare_where_they_are_numbers(predicate):
    left, right = (SPECIAL[:, side].astype(np.float32) for side in (0, 1))
    result = everywhere(f"arith.cmpf {predicate}, {{}}", "f32", "i1", left, right)
    for a, b, got in zip(left.tolist(), right.tolist(), result.tolist()):
        unordered = math.isnan(a) or math.isnan(b)
        match predicate:
            case "false" | "true":
                wanted = predicate == "true"
            case "ord" | "uno":
                wanted = unordered == (predicate == "uno")
            case _:
                wanted = predicate[0] == "u" if unordered else eval(f"a {COMPARE[predicate[1:]]} b")
        assert got == wanted, (a, b)


def test_floats_beside_numpy():
    left, right = np.array([5.5, -5.5, 1e30], np.float32), np.array([2, 2, 7], np.float32)
    assert same(everywhere("arith.remf {}", "f32", "f32", left, right), np.fmod(left, right))
    assert same(
        everywhere("arith.negf {}", "f32", "f32", np.array([0.0, np.inf], np.float32)),
        np.array([-0.0, -np.inf], np.float32),
    )
    assert same(
        everywhere("arith.divf {}", "f32", "f32", np.array([1, 0, -1], np.float32), np.zeros(3, np.float32)),
        np.array([np.inf, np.nan, -np.inf], np.float32),
    )


FUNCTIONS = {
    "absf": abs,
    "ceil": math.ceil,
    "cos": math.cos,
    "erf": math.erf,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "log2": math.log2,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "trunc": math.trunc,
    "roundeven": round,
    "exp2": lambda x: 2.0**x,
    "round": lambda x: math.floor(x + 0.5),
}


@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
def test_functions_are_rounded_once(name):
    values = np.array([0.5, 1.5, 2.5, 3.25, 0.1, 7.0]).astype(FORMATS[name])
    for op, model in FUNCTIONS.items():
        result = everywhere(f"math.{op} {{}}", name, name, values)
        assert same(result, np.array([model(float(value)) for value in values]).astype(FORMATS[name])), op


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
@given(data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_fma_is_rounded_once(name, data):
    width = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[name]
    number = st.floats(-128, 128, width=32 if name == "bf16" else width)
    dtype = FORMATS[name]
    a, b, c = (np.array([data.draw(number)]).astype(dtype) for _ in range(3))
    if data.draw(st.booleans()):
        c = (-(a.astype(np.float64) * b.astype(np.float64))).astype(dtype)  # what is left is small
    exact = Fraction(float(a[0])) * Fraction(float(b[0])) + Fraction(float(c[0]))
    result = float(everywhere("math.fma {}", name, name, a, b, c)[0])
    if name in NARROW:
        assert abs(exact) > float(all_finite(name)[-1]) or result == nearest(exact, name)
    elif name == "f64":
        assert result == float(exact)
    else:
        around = [float(np.nextafter(np.float32(result), np.float32(way))) for way in (-np.inf, np.inf)]
        error = abs(Fraction(result) - exact)
        assert all(error <= abs(Fraction(other) - exact) for other in around if math.isfinite(other))


def test_bits_and_powers_of_integers():
    values = np.array([0, 1, -1, 40], np.int32)
    assert everywhere("math.ctpop {}", "i32", "i32", values).tolist() == [0, 1, 32, 2]
    assert everywhere("math.ctlz {}", "i32", "i32", values).tolist() == [32, 31, 0, 26]
    assert everywhere("math.cttz {}", "i32", "i32", values).tolist() == [32, 0, 0, 3]
    assert everywhere("math.absi {}", "i32", "i32", np.array([-(2**31), -3], np.int32)).tolist() == [-(2**31), 3]
    assert everywhere(
        "math.ipowi {}", "i8", "i8", np.array([3, -1, 2], np.int8), np.array([5, -3, -1], np.int8)
    ).tolist() == [wrapped(3**5, 8), -1, 0]


def test_select_takes_what_each_lane_says():
    vectors = function(
        {"c": "i1", "a": "vector<2xf16>", "b": "vector<2xf16>"},
        "%r = arith.select %c, %a, %b : vector<2xf16>",
        "vector<2xf16>",
    )
    ones, twos = np.ones(2, np.float16), np.full(2, 2, np.float16)
    assert run(vectors, np.array([True, False]), ones, twos, lanes=2)[0].tolist() == [[1, 1], [2, 2]]
    assert run(vectors, True, ones, twos)[0].tolist() == [1, 1]
    numbers = function({"c": "i1", "a": "i8", "b": "i8"}, "%r = arith.select %c, %a, %b : i8", "i8")
    (result,) = run(numbers, np.array([True, False]), 3, 4, lanes=2)
    assert result.dtype == np.int8 and result.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("arith.constant -3 : i8", -3),
        ("arith.constant true", True),
        ("arith.constant 0.1 : f16", np.float16(0.1)),
        ("arith.constant dense<[1, -2]> : vector<2xi16>", np.array([1, -2], np.int16)),
        ("arith.constant dense<[true, false]> : vector<2xi1>", np.array([True, False])),
        ("arith.constant dense<0.5> : vector<2x2xbf16>", np.full((2, 2), 0.5, ml_dtypes.bfloat16)),
        ("arith.constant dense<[1.5, 2.0]> : vector<2xbf16>", np.array([1.5, 2], ml_dtypes.bfloat16)),
        ("arith.constant dense<[[1], [2]]> : tensor<2x1xindex>", np.array([[1], [2]])),
    ],
)
def test_constants(text, wanted):
    (result,) = run(function({}, f"%r = {text}", text.rsplit(" : ")[-1] if " : " in text else "i1"))
    assert type(result) is type(wanted) and same(result, wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("index.add %a, %b", 4),
        ("index.sub %b, %a", -10),
        ("index.divs %b, %a", 0),
        ("index.floordivs %b, %a", -1),
        ("index.ceildivs %a, %b", -2),
        ("index.rems %b, %a", -3),
        ("index.divu %b, %a", (2**64 - 3) // 7),
        ("index.maxu %a, %b", -3),
        ("index.maxs %a, %b", 7),
        ("index.shl %a, %a", 896),
        ("index.shru %b, %a", 2**57 - 1),
        ("index.shrs %b, %a", -1),
        ("index.xor %a, %b", -6),
    ],
)
def test_index_arithmetic(text, wanted):
    code = function({"a": "index", "b": "index"}, f"%r = {text}", "index")
    assert run(code, 7, -3)[0] == wanted
    assert run(code, np.array([7, 7]), -3, lanes=2)[0].tolist() == [wanted] * 2
    compare = function({"a": "index", "b": "index"}, "%r = index.cmp ult(%a, %b)", "i1")
    assert run(compare, 7, -3)[0] is True


# Affine maps.


@st.composite
def expressions(draw, depth=3):
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
def test_affine_maps_beside_python(drawn, numbers):
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


def test_indices_are_cut_and_joined():
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
        "vector.extract_strided_slice %a {offsets = [1], sizes = [2], strides = [1]} : vector<4x3xf32> to vector<2x3xf32>",
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
def test_vectors_beside_numpy(text, model):
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


def test_positions_may_differ_between_lanes():
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


def test_small_vector_ops():
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
def contractions(draw):
    """Draws a contraction: letters of both factors and of the sums, and the sizes of loops."""
    loops = draw(st.permutations("abcde"))
    count = draw(st.integers(1, 5))
    where = ["lr", *(draw(st.sampled_from(["lrt", "lt", "rt", "lr"])) for _ in range(count - 1))]
    parts = [
        "".join(draw(st.permutations([loop for loop, places in zip(loops, where) if part in places]))) for part in "lrt"
    ]
    return parts, {loop: draw(st.integers(1, 3)) for loop in loops[:count]}


def vector_type(letters, sizes, element):
    return f"vector<{''.join(f'{sizes[letter]}x' for letter in letters)}{element}>"


@FEW
@given(
    contractions(),
    st.sampled_from([("f16", "f32"), ("i8", "i32"), ("f32", "f32"), ("bf16", "bf16")]),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.sampled_from(["add", "add", "max"]),
)
def test_contractions_beside_einsum(drawn, formats, in_lanes, kind):
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


# Transfers.


@st.composite
def transfers(draw):
    """Draws the shape of a memory, a vector on it, which of its dimensions that shows, starts, bounds, and a mask."""
    shape = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))]
    axes = [*axes, None] if draw(st.booleans()) else list(axes)
    axes = draw(st.permutations(axes))
    sizes = [draw(st.integers(1, 4)) for _ in axes]
    starts = [[draw(st.integers(0, size - 1)) for size in shape] for _ in range(2)]
    masked = draw(st.booleans())
    return shape, axes, sizes, starts, masked


def transfer_text(op, shape, axes, sizes, masked):
    dims = ", ".join(f"d{axis}" for axis in range(len(shape)))
    results = ", ".join("0" if axis is None else f"d{axis}" for axis in axes)
    vector = f"vector<{'x'.join(map(str, sizes))}xi32>"
    buffer = f"memref<{'x'.join('?' * len(shape))}xi32>"
    taken = sorted(axis for axis in axes if axis is not None)
    mask = f"vector<{''.join(f'{sizes[axes.index(axis)]}x' for axis in taken)}i1>"
    starts = ", ".join(f"%i{axis}" for axis in range(len(shape)))
    bounds = ", ".join("true" if axis is None else "false" for axis in axes)
    attributes = f"{{permutation_map = affine_map<({dims}) -> ({results})>, in_bounds = [{bounds}]}}"
    arguments = {"m": buffer, **{f"i{axis}": "index" for axis in range(len(shape))}}
    with_mask = ", %k" if masked else ""
    arguments |= {"k": mask} if masked else {}
    if op == "read":
        return function(
            arguments,
            f"%p = arith.constant -7 : i32\n%r = vector.transfer_read %m[{starts}], %p{with_mask} "
            f"{attributes} : {buffer}, {vector}",
            vector,
        )
    inside = ", ".join(f"%{name}: {type_}" for name, type_ in {**arguments, "v": vector}.items())
    return (
        f"func.func @f({inside}) {{\nvector.transfer_write %v, %m[{starts}]{with_mask} {attributes} : {vector}, "
        f"{buffer}\nreturn }}"
    )


def elements_of(shape, axes, sizes, start, mask):
    """Yields the place in the vector and in the memory of all elements, the latter None where nothing is touched."""
    taken = sorted(axis for axis in axes if axis is not None)
    for place in np.ndindex(*sizes):
        at = list(start)
        for number, axis in zip(place, axes):
            if axis is not None:
                at[axis] += number
        inside = all(number < size for number, size in zip(at, shape))
        if mask is not None:
            inside &= bool(mask[tuple(place[axes.index(axis)] for axis in taken)])
        yield place, tuple(at) if inside else None


@FEW
@given(transfers())
def test_transfers_read_what_is_inside(drawn):
    shape, axes, sizes, starts, masked = drawn
    content = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    taken = sorted(axis for axis in axes if axis is not None)
    mask = np.random.default_rng(0).random([sizes[axes.index(axis)] for axis in taken]) < 0.5 if masked else None
    code = transfer_text("read", shape, axes, sizes, masked)
    wanted = np.full((2, *sizes), -7, np.int32)
    for lane, start in enumerate(starts):
        for place, at in elements_of(shape, axes, sizes, start, mask):
            if at is not None:
                wanted[(lane, *place)] = content[at]
    masks = [mask] * masked
    assert same(run(code, content, *np.array(starts).T, *masks, lanes=2)[0], wanted)
    assert same(run(code, content, *starts[0], *masks)[0], wanted[0])


@FEW
@given(transfers())
def test_transfers_write_what_is_inside(drawn):
    shape, axes, sizes, starts, masked = drawn
    if None in axes:
        return
    taken = sorted(axes)
    mask = np.random.default_rng(0).random([sizes[axes.index(axis)] for axis in taken]) < 0.5 if masked else None
    code = transfer_text("write", shape, axes, sizes, masked)
    vector = np.arange(1, 1 + math.prod(sizes), dtype=np.int32).reshape(sizes)
    wanted = np.zeros(shape, np.int32)
    for place, at in elements_of(shape, axes, sizes, starts[0], mask):
        if at is not None:
            wanted[at] = vector[place]
    arguments = [np.zeros(shape, np.int32), *starts[0], *[mask] * masked]
    assert same(run(code, *arguments, vector)[0], wanted)
    same_lanes = np.stack([vector, vector])
    assert same(run(code, *arguments, same_lanes, lanes=2)[0], wanted)


def test_transfers_on_tensors():
    tensor = np.arange(12, dtype=np.float32).reshape(3, 4)
    code = function(
        {"t": "tensor<3x4xf32>", "i": "index"},
        "%p = arith.constant -1.0 : f32\n%v = vector.transfer_read %t[%i, %i], %p : tensor<3x4xf32>, "
        "vector<2x2xf32>\n%z = arith.constant 0 : index\n"
        "%r = vector.transfer_write %v, %t[%z, %z] : vector<2x2xf32>, tensor<3x4xf32>",
        "tensor<3x4xf32>",
    )
    wanted = tensor.copy()
    wanted[:2, :2] = [[10, 11], [-1, -1]]
    assert same(run(code, tensor, 2)[0], wanted)
    assert tensor[0, 0] == 0


def test_loads_and_stores():
    code = (
        "func.func @f(%m: memref<4x4xf32>, %i: index, %k: vector<2xi1>) {\n"
        "%z = arith.constant 0 : index\n%v = vector.load %m[%i, %z] : memref<4x4xf32>, vector<2xf32>\n"
        "%w = vector.maskedload %m[%i, %z], %k, %v : memref<4x4xf32>, vector<2xi1>, vector<2xf32> into vector<2xf32>\n"
        "%s = arith.addf %v, %w : vector<2xf32>\n%two = arith.constant 2 : index\n"
        "vector.maskedstore %m[%i, %two], %k, %s : memref<4x4xf32>, vector<2xi1>, vector<2xf32>\n"
        "vector.store %v, %m[%i, %z] : memref<4x4xf32>, vector<2xf32>\nreturn }"
    )
    content = np.arange(16, dtype=np.float32).reshape(4, 4)
    wanted = content.copy()
    wanted[1:3, 3] = 2 * content[1:3, 1]
    assert same(run(code, content, np.array([1, 2]), np.array([False, True]), lanes=2)[0], wanted)
    code = function(
        {"m": "memref<8xi32>", "x": "vector<3xindex>", "k": "vector<3xi1>", "v": "vector<3xi32>"},
        "%z = arith.constant 1 : index\n%r = vector.gather %m[%z][%x], %k, %v : memref<8xi32>, "
        "vector<3xindex>, vector<3xi1>, vector<3xi32> into vector<3xi32>",
        "vector<3xi32>",
    )
    result = run(
        code,
        np.arange(8, dtype=np.int32),
        np.array([6, 99, 0]),
        np.array([True, False, True]),
        np.full(3, -1, np.int32),
    )[0]
    assert result.tolist() == [7, -1, 1]


# Structured ops.


@st.composite
def generics(draw):
    """Draws a `linalg.generic` with two inputs: letters of the operands, sizes, and which loops reduce."""
    count = draw(st.integers(1, 4))
    loops = "abcd"[:count]
    output = "".join(draw(st.permutations(loops))[: draw(st.integers(0, count))])
    inputs = ["".join(draw(st.permutations(loops))[: draw(st.integers(0, count))]) for _ in range(2)]
    known = set(output).union(*inputs)
    loops = [loop for loop in loops if loop in known]
    return inputs, output, {loop: draw(st.integers(1, 4)) for loop in loops}


def shaped(kind, letters, sizes, element):
    return f"{kind}<{''.join(f'{sizes[letter]}x' for letter in letters)}{element}>"


@FEW
@given(generics(), st.sampled_from(["tensor", "memref"]), st.sampled_from(["i32", "f32"]))
def test_generics_beside_einsum(drawn, kind, element):
    inputs, output, sizes = drawn
    if not sizes:
        return
    dims = {loop: f"d{number}" for number, loop in enumerate(sizes)}
    maps = ", ".join(
        f"affine_map<({', '.join(dims.values())}) -> ({', '.join(dims[loop] for loop in letters)})>"
        for letters in (*inputs, output)
    )
    iterators = ", ".join('"parallel"' if loop in output else '"reduction"' for loop in sizes)
    a, b, c = (shaped(kind, letters, sizes, element) for letters in (*inputs, output))
    suffix = element[0]
    body = (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} ins(%a, %b : {a}, {b}) "
        f"outs(%c : {c}) {{ ^bb0(%x: {element}, %y: {element}, %z: {element}):\n"
        f"%p = arith.mul{suffix} %x, %y : {element}\n%s = arith.sub{suffix} %z, %p : {element}\n"
        f"linalg.yield %s : {element} }}"
    )
    if kind == "tensor":
        code = function({"a": a, "b": b, "c": c}, f"%r = {body} -> {c}", c)
    else:
        code = f"func.func @f(%a: {a}, %b: {b}, %c: {c}) {{ {body}\nreturn }}"
    generator = np.random.default_rng(2)
    operands = [
        generator.integers(-4, 5, [sizes[loop] for loop in letters]).astype({**FORMATS, **INTEGERS}[element])
        for letters in (*inputs, output)
    ]
    # A loop that no input goes over subtracts the same again.
    ones = "".join(loop for loop in sizes if loop not in inputs[0] + inputs[1])
    wanted = operands[2] - np.einsum(
        f"{inputs[0]},{inputs[1]},{ones}->{output}",
        *operands[:2],
        np.ones([sizes[loop] for loop in ones], operands[0].dtype),
    )
    assert same(run(code, *operands)[-1], wanted.astype(operands[2].dtype))


NAMED = [
    ("matmul", ["5x3", "3x4"], "5x4", lambda a, b, c: c + a @ b),
    ("batch_matmul", ["2x5x3", "2x3x4"], "2x5x4", lambda a, b, c: c + a @ b),
    ("matvec", ["5x3", "3"], "5", lambda a, b, c: c + a @ b),
    ("vecmat", ["3", "3x4"], "4", lambda a, b, c: c + a @ b),
    ("batch_matvec", ["2x5x3", "2x3"], "2x5", lambda a, b, c: c + np.einsum("zij,zj->zi", a, b)),
    ("dot", ["7", "7"], "", lambda a, b, c: c + a @ b),
    ("copy", ["5x3"], "5x3", lambda a, c: a),
    ("add", ["5x3", "5x3"], "5x3", lambda a, b, c: a + b),
    ("sub", ["5x3", "5x3"], "5x3", lambda a, b, c: a - b),
    ("mul", ["5x3", "5x3"], "5x3", lambda a, b, c: a * b),
    ("max", ["5x3", "5x3"], "5x3", lambda a, b, c: np.maximum(a, b)),
    ("min", ["5x3", "5x3"], "5x3", lambda a, b, c: np.minimum(a, b)),
    ("negf", ["5x3"], "5x3", lambda a, c: -a),
    ("square", ["5x3"], "5x3", lambda a, c: a * a),
    ("conv_1d", ["9", "3"], "7", lambda a, b, c: c + np.correlate(a, b)),
    ("transpose", ["5x3"], "3x5", lambda a, c: a.T),
    ("broadcast", ["3"], "5x3", lambda a, c: np.broadcast_to(a, (5, 3))),
    ("reduce", ["5x3"], "3", lambda a, c: c + a.sum(axis=0)),
]
CLAUSES = {"transpose": " permutation = [1, 0]", "broadcast": " dimensions = [0]", "reduce": " dimensions = [0]"}


@pytest.mark.parametrize("kind", ["tensor", "memref"])
@pytest.mark.parametrize(("name", "inputs", "output", "model"), NAMED, ids=[case[0] for case in NAMED])
def test_named_ops_beside_numpy(name, inputs, output, model, kind):
    shapes = [*inputs, output]
    types_ = [f"{kind}<{shape + 'x' if shape else ''}f32>" for shape in shapes]
    ins = f"ins({', '.join('%' + letter for letter in 'ab'[: len(inputs)])} : {', '.join(types_[:-1])})"
    body = f"linalg.{name} {'{ arith.addf } ' if name == 'reduce' else ''}{ins} outs(%c : {types_[-1]})"
    body += CLAUSES.get(name, f" -> {types_[-1]}" if kind == "tensor" else "")
    arguments = dict(zip([*"ab"[: len(inputs)], "c"], types_))
    code = (
        function(arguments, f"%r = {body}", types_[-1])
        if kind == "tensor"
        else f"func.func @f({', '.join(f'%{key}: {type_}' for key, type_ in arguments.items())}) {{ {body}\nreturn }}"
    )
    generator = np.random.default_rng(3)
    operands = [
        generator.integers(-4, 5, [int(size) for size in shape.split("x") if size]).astype(np.float32)
        for shape in shapes
    ]
    assert same(run(code, *operands)[-1], np.asarray(model(*operands), np.float32))


def test_sums_are_rounded_in_order():
    code = function(
        {"a": "tensor<1x4xf16>", "b": "tensor<4x1xf16>", "c": "tensor<1x1xf16>"},
        "%r = linalg.matmul ins(%a, %b : tensor<1x4xf16>, tensor<4x1xf16>) outs(%c : tensor<1x1xf16>) "
        "-> tensor<1x1xf16>",
        "tensor<1x1xf16>",
    )
    ones = np.ones((4, 1), np.float16)
    assert run(code, np.array([[2048, 1, 1, 1]], np.float16), ones, np.zeros((1, 1), np.float16))[0] == 2048
    assert run(code, np.array([[1, 1, 1, 2048]], np.float16), ones, np.zeros((1, 1), np.float16))[0] == 2052


def test_matmul_is_wide_enough_for_its_sums_and_knows_its_layout():
    transposed = (
        "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
        "affine_map<(m, n, k) -> (m, n)>]"
    )
    types_ = ["tensor<3x8xf16>", "tensor<5x8xf16>", "tensor<3x5xf32>"]
    code = function(
        dict(zip("abc", types_)),
        f"%r = linalg.matmul {transposed} ins(%a, %b : {types_[0]}, {types_[1]}) outs(%c : {types_[2]}) -> {types_[2]}",
        types_[2],
    )
    generator = np.random.default_rng(4)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in ((3, 8), (5, 8)))
    wanted = np.zeros((3, 5), np.float32)
    for k in range(8):
        wanted += a[:, k, None].astype(np.float32) * b[:, k].astype(np.float32)
    assert same(run(code, a, b, np.zeros((3, 5), np.float32))[0], wanted)


def test_fill_index_and_several_outputs():
    code = function(
        {"c": "tensor<2x3xf16>", "x": "f16"},
        "%r = linalg.fill ins(%x : f16) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>",
        "tensor<2x3xf16>",
    )
    assert same(run(code, np.zeros((2, 3), np.float16), np.float16(3))[0], np.full((2, 3), 3, np.float16))
    code = (
        "func.func @f(%a: tensor<2x3xindex>, %b: tensor<2x3xindex>) -> (tensor<2x3xindex>, tensor<2x3xindex>) {\n"
        "%r:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], "
        'iterator_types = ["parallel", "parallel"]} outs(%a, %b : tensor<2x3xindex>, tensor<2x3xindex>) {\n'
        "^bb0(%x: index, %y: index):\n%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n"
        "%s = arith.subi %i, %j : index\nlinalg.yield %s, %i : index, index } "
        "-> (tensor<2x3xindex>, tensor<2x3xindex>)\nreturn %r#0, %r#1 : tensor<2x3xindex>, tensor<2x3xindex> }"
    )
    nothing = np.zeros((2, 3), np.int64)
    differences, rows = run(code, nothing, nothing)
    i, j = np.indices((2, 3))
    assert same(differences, i - j) and same(rows, i)


TILES = """
func.func @f(%a: memref<8x4xf32>, %b: memref<4x8xf32>, %c: memref<8x8xf32>, %i: index, %j: index) {
  %x = memref.subview %a[%i, 0] [4, 4] [1, 1] : memref<8x4xf32> to memref<4x4xf32, strided<[4, 1], offset: ?>>
  %y = memref.subview %b[0, %j] [4, 4] [1, 1] : memref<4x8xf32> to memref<4x4xf32, strided<[8, 1], offset: ?>>
  %z = memref.subview %c[%i, %j] [4, 4] [1, 1] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1], offset: ?>>
  linalg.matmul ins(%x, %y : memref<4x4xf32, strided<[4, 1], offset: ?>>, memref<4x4xf32, strided<[8, 1], offset: ?>>)
    outs(%z : memref<4x4xf32, strided<[8, 1], offset: ?>>)
  return
}
"""


def test_a_warp_adds_its_product_once():
    generator = np.random.default_rng(5)
    a, b, c = (generator.integers(-4, 5, shape).astype(np.float32) for shape in ((8, 4), (4, 8), (8, 8)))
    warp = np.arange(128) // 32
    assert same(run(TILES, a, b, c, warp // 2 * 4, warp % 2 * 4, lanes=128)[-1], c + a @ b)


def test_what_no_thread_has_to_itself_a_block_does_once():
    code = """
    func.func @f(%a: memref<4x4xf32>, %c: memref<4x4xf32>) {
      linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
      linalg.add ins(%a, %c : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
      return
    }"""
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert same(run(code, a, a, lanes=96)[-1], a + a + a @ a)


def test_threads_may_have_tiles_of_different_sizes():
    code = """
    func.func @f(%a: memref<5xi32>, %c: memref<5xi32>, %i: index, %n: index) {
      %x = memref.subview %a[%i] [%n] [1] : memref<5xi32> to memref<?xi32, strided<[1], offset: ?>>
      %z = memref.subview %c[%i] [%n] [1] : memref<5xi32> to memref<?xi32, strided<[1], offset: ?>>
      linalg.copy ins(%x : memref<?xi32, strided<[1], offset: ?>>) outs(%z : memref<?xi32, strided<[1], offset: ?>>)
      return
    }"""
    a = np.arange(1, 6, dtype=np.int32)
    copied = run(code, a, np.zeros(5, np.int32), np.array([0, 2, 4]), np.array([2, 2, 1]), lanes=3)[-1]
    assert same(copied, a)


# Tensors.


@pytest.mark.parametrize(
    ("body", "result", "model"),
    [
        (
            "%r = tensor.extract_slice %t[%i, 0] [1, 3] [1, 2] : tensor<4x6xf32> to tensor<3xf32>",
            "tensor<3xf32>",
            lambda t: t[2, 0:6:2],
        ),
        (
            "%r = tensor.extract_slice %t[1, %i] [%i, 1] [1, 1] : tensor<4x6xf32> to tensor<?x1xf32>",
            "tensor<?x1xf32>",
            lambda t: t[1:3, 2:3],
        ),
        (
            (
                "%s = tensor.extract_slice %t[0, 0] [2, 1] [1, 1] : tensor<4x6xf32> to tensor<2xf32>\n"
                "%r = tensor.insert_slice %s into %t[2, 5] [2, 1] [1, 1] : tensor<2xf32> into tensor<4x6xf32>"
            ),
            "tensor<4x6xf32>",
            lambda t: np.c_[t[:, :5], np.r_[t[:2, 5], t[:2, 0]]],
        ),
        (
            (
                "%z = arith.constant 9.0 : f32\n%r = tensor.pad %t low[1, 0] high[0, %i] {\n^bb0(%x: index, %y: index):\n"
                "tensor.yield %z : f32 } : tensor<4x6xf32> to tensor<5x?xf32>"
            ),
            "tensor<5x?xf32>",
            lambda t: np.pad(t, ((1, 0), (0, 2)), constant_values=9),
        ),
        ("%r = tensor.collapse_shape %t [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>", "tensor<24xf32>", np.ravel),
        (
            (
                "%d = tensor.cast %t : tensor<4x6xf32> to tensor<?x6xf32>\n%r = tensor.expand_shape %d [[0, 1], [2]] "
                "output_shape [%i, 2, 6] : tensor<?x6xf32> into tensor<?x2x6xf32>"
            ),
            "tensor<?x2x6xf32>",
            lambda t: t.reshape(2, 2, 6),
        ),
        (
            "%r = tensor.concat dim(1) %t, %t : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>",
            "tensor<4x12xf32>",
            lambda t: np.c_[t, t],
        ),
        (
            (
                "%r = tensor.generate %i {\n^bb0(%x: index, %y: index):\n%e = tensor.extract %t[%x, %y] : tensor<4x6xf32>\n"
                "tensor.yield %e : f32 } : tensor<?x3xf32>"
            ),
            "tensor<?x3xf32>",
            lambda t: t[:2, :3],
        ),
        (
            "%e = tensor.extract %t[%i, %i] : tensor<4x6xf32>\n%r = tensor.insert %e into %t[%o, %o] : tensor<4x6xf32>",
            "tensor<4x6xf32>",
            lambda t: np.r_[[np.r_[t[2, 2], t[0, 1:]]], t[1:]],
        ),
        (
            "%e = tensor.extract %t[%i, %i] : tensor<4x6xf32>\n%r = tensor.from_elements %e, %e : tensor<2xf32>",
            "tensor<2xf32>",
            lambda t: np.array([t[2, 2]] * 2),
        ),
        (
            (
                "%e = tensor.empty() : tensor<2x3x2x2xf32>\n%r = linalg.pack %t outer_dims_perm = [0, 1] inner_dims_pos = [1, 0] "
                "inner_tiles = [2, 2] into %e : tensor<4x6xf32> -> tensor<2x3x2x2xf32>"
            ),
            "tensor<2x3x2x2xf32>",
            lambda t: t.reshape(2, 2, 3, 2).transpose(0, 2, 3, 1),
        ),
        (
            (
                "%e = tensor.empty() : tensor<2x3x2x2xf32>\n%p = linalg.pack %t inner_dims_pos = [0, 1] inner_tiles = [2, 2] into "
                "%e : tensor<4x6xf32> -> tensor<2x3x2x2xf32>\n%r = linalg.unpack %p inner_dims_pos = [0, 1] inner_tiles = [2, 2] "
                "into %t : tensor<2x3x2x2xf32> -> tensor<4x6xf32>"
            ),
            "tensor<4x6xf32>",
            lambda t: t,
        ),
    ],
)
def test_tensors_beside_numpy(body, result, model):
    code = function({"t": "tensor<4x6xf32>", "i": "index", "o": "index"}, body, result)
    tensor = np.arange(24, dtype=np.float32).reshape(4, 6)
    before = tensor.copy()
    assert same(run(code, tensor, 2, 0)[0], np.ascontiguousarray(model(before)))
    assert same(tensor, before)


def test_empty_tensors_are_poison_and_slices_stay_inside():
    (result,) = run(function({}, "%r = tensor.empty() : tensor<2xbf16>", "tensor<2xbf16>"))
    assert np.isnan(result).all()
    assert np.isnan(run(function({}, "%r = ub.poison : f32", "f32"))[0])
    code = function(
        {"t": "tensor<4xf32>", "i": "index"},
        "%r = tensor.extract_slice %t[%i] [3] [1] : tensor<4xf32> to tensor<3xf32>",
        "tensor<3xf32>",
    )
    with pytest.raises(StepladderError, match="tensor.extract_slice goes beyond the 4 elements of dimension 0"):
        run(code, np.zeros(4, np.float32), 2)


def test_between_tensors_and_memory():
    code = """
    func.func @f(%m: memref<2x3xf32>, %n: memref<2x3xf32>) {
      %t = bufferization.to_tensor %m restrict : memref<2x3xf32> to tensor<2x3xf32>
      %b = bufferization.to_buffer %t read_only : tensor<2x3xf32> to memref<2x3xf32, strided<[?, ?], offset: ?>>
      %u = bufferization.to_tensor %b restrict : memref<2x3xf32, strided<[?, ?], offset: ?>> to tensor<2x3xf32>
      %s = linalg.add ins(%t, %u : tensor<2x3xf32>, tensor<2x3xf32>) outs(%t : tensor<2x3xf32>) -> tensor<2x3xf32>
      bufferization.materialize_in_destination %s in restrict writable %n : (tensor<2x3xf32>, memref<2x3xf32>) -> ()
      return
    }"""
    m = np.arange(6, dtype=np.float32).reshape(2, 3)
    before, after = run(code, m, np.zeros_like(m))
    assert same(before, m) and same(after, 2 * m)


def test_ops_that_are_not_known_are_located():
    code = function(
        {"c": "tensor<4xf32>"},
        "%r = linalg.softmax dimension(0) ins(%c : tensor<4xf32>) outs(%c : tensor<4xf32>) -> tensor<4xf32>",
        "tensor<4xf32>",
    )
    with pytest.raises(StepladderError, match="does not know linalg.softmax") as caught:
        run(code, np.zeros(4, np.float32))
    assert caught.value.location
