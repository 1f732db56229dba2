"""What ops on integers, bits and indices compute in the emulator, beside exact arithmetic."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from emulator_ops import COMPARE, FEW, FORMATS, INTEGERS, everywhere, function, run, same
from stepladder.runtime.errors import StepladderError

# Integers.


def wrapped(value: int, width: int) -> int:
    return (value + (1 << width - 1)) % (1 << width) - (1 << width - 1)


def cut(left: int, right: int) -> int:
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
def test_integers_wrap_and_divide_as_their_width_says(type_: str, data: st.DataObject) -> None:
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


@pytest.mark.parametrize(
    "predicate", ["eq", "ne", *(sign + name for sign in "su" for name in ("lt", "le", "gt", "ge"))]
)
def test_integers_compare_with_and_without_sign(predicate: str) -> None:
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
def test_single_bits(name: str, wanted: list[int]) -> None:
    left, right = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert everywhere(f"arith.{name} {{}}", "i1", "i1", left, right).tolist() == [bool(number) for number in wanted]


def test_odd_widths_wrap() -> None:
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
def test_conversions(op: str, of: str, to: str, values: list[float], wanted: list[float]) -> None:
    dtype = {"i1": bool, **INTEGERS, **FORMATS}
    result = everywhere(f"{op} {{}}", of, to, np.array(values).astype(dtype[of]))
    assert same(result, np.array(wanted).astype(dtype[to]))


def test_bitcasts_keep_the_bits() -> None:
    halves = np.array([0x3C00, 0x8000], np.uint16).view(np.int16)
    assert same(everywhere("arith.bitcast {}", "i16", "f16", halves), np.array([1, -0.0], np.float16))
    assert same(everywhere("arith.bitcast {}", "i16", "bf16", halves), halves.view(ml_dtypes.bfloat16))
    assert everywhere("arith.bitcast {}", "f32", "i32", np.array([-2.0], np.float32)).tolist() == [-0x4000_0000]


@FEW
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_extended_sums_and_products_lose_nothing(left: int, right: int) -> None:
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


def test_only_active_threads_must_not_divide_by_zero() -> None:
    text = function({"a": "i32", "b": "i32"}, "%r = arith.divsi %a, %b : i32", "i32")
    left, right = np.array([7, 7], np.int32), np.array([2, 0], np.int32)
    (result,) = run(text, left, right, lanes=2, mask=np.array([True, False]))
    assert result[0] == 3
    with pytest.raises(StepladderError, match=r"arith.divsi divides by zero") as caught:
        run(text, left, right, lanes=2)
    assert caught.value.location
    with pytest.raises(StepladderError, match="divides by zero"):
        run(text, 1, 0)


def test_bits_and_powers_of_integers() -> None:
    values = np.array([0, 1, -1, 40], np.int32)
    assert everywhere("math.ctpop {}", "i32", "i32", values).tolist() == [0, 1, 32, 2]
    assert everywhere("math.ctlz {}", "i32", "i32", values).tolist() == [32, 31, 0, 26]
    assert everywhere("math.cttz {}", "i32", "i32", values).tolist() == [32, 0, 0, 3]
    assert everywhere("math.absi {}", "i32", "i32", np.array([-(2**31), -3], np.int32)).tolist() == [-(2**31), 3]
    assert everywhere(
        "math.ipowi {}", "i8", "i8", np.array([3, -1, 2], np.int8), np.array([5, -3, -1], np.int8)
    ).tolist() == [wrapped(3**5, 8), -1, 0]


def test_select_takes_what_each_lane_says() -> None:
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
def test_constants(text: str, wanted: bool | int | np.generic | np.ndarray) -> None:
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
def test_index_arithmetic(text: str, wanted: int) -> None:
    code = function({"a": "index", "b": "index"}, f"%r = {text}", "index")
    assert run(code, 7, -3)[0] == wanted
    assert run(code, np.array([7, 7]), -3, lanes=2)[0].tolist() == [wanted] * 2
    compare = function({"a": "index", "b": "index"}, "%r = index.cmp ult(%a, %b)", "i1")
    assert run(compare, 7, -3)[0] is True
