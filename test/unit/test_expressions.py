"""The expression language: what it allows is what Python computes, and everything else is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.pipeline.expressions import (
    ExpressionError,
    Scope,
    UnknownName,
    equation,
    evaluate,
    names,
)

NAMES = {"block_m": 128, "warp_m": 64, "k": 48, "one": 1, "none": 0, "c_type": "f32"}
NUMBERS = [name for name, value in NAMES.items() if isinstance(value, int)]

# Arithmetic over small numbers and names, and truth values over it, as text.
atoms = st.one_of(st.integers(-300, 300).map(lambda number: f"({number})"), st.sampled_from(NUMBERS))
numbers = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "/"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        inner.map(lambda text: f"(-{text})"),
    ),
    max_leaves=8,
)
truths = st.recursive(
    st.one_of(
        st.tuples(numbers, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), numbers).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.sampled_from(
            [
                "c_type == 'f32'",
                "c_type in ['f16', 'f32']",
                "c_type not in ['f16']",
                "1 < one + 1 < 3",
                "block_m in [64, 128]",
            ]
        ),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda text: f"(not {text})"),
    ),
    max_leaves=6,
)
choices = st.tuples(numbers, truths, numbers).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})")


class Exact(int):
    """An integer whose division is the language's: exact, or an error."""

    def _made(self, value: int) -> Exact:
        return Exact(value) if value is not NotImplemented else value

    def __add__(self, other: Exact) -> Exact:
        return self._made(int.__add__(self, other))

    def __sub__(self, other: Exact) -> Exact:
        return self._made(int.__sub__(self, other))

    def __mul__(self, other: Exact) -> Exact:
        return self._made(int.__mul__(self, other))

    def __floordiv__(self, other: Exact) -> Exact:
        return self._made(int.__floordiv__(self, other))

    def __mod__(self, other: Exact) -> Exact:
        return self._made(int.__mod__(self, other))

    def __neg__(self) -> Exact:
        return self._made(int.__neg__(self))

    def __truediv__(self, other: Exact) -> Exact:
        if int.__mod__(self, other):
            raise ZeroDivisionError("a remainder")
        return Exact(int.__floordiv__(self, other))


def by_python(text: str) -> int | str | None:
    """Returns what Python's eval makes of an expression, or None where a division goes wrong."""
    exact = re.sub(r"(?<![\w'])(\d+)", r"Exact(\1)", text)
    scope = {name: Exact(value) if isinstance(value, int) else value for name, value in NAMES.items()}
    try:
        return eval(exact, {"Exact": Exact}, scope)
    except ZeroDivisionError:
        return None


@given(st.one_of(numbers, truths, choices))
def test_agrees_with_python(text: str) -> None:
    expected = by_python(text)
    if expected is None:
        with pytest.raises(ExpressionError):
            evaluate(text, NAMES)
    else:
        assert evaluate(text, NAMES) == expected


@given(st.lists(numbers, max_size=4))
def test_lists(texts: list[str]) -> None:
    expected = [by_python(text) for text in texts]
    if None not in expected:
        assert evaluate(f"[{', '.join(texts)}]", NAMES) == expected


@pytest.mark.parametrize(
    "text",
    [
        "1 if one",
        "1 if sice else 2",
        "1 / 0 if one else 2",
        "2 if none else 7 / 2",
        "max(1, 2)",
        "block_m.real",
        "[1, 2][0]",
        "lambda: 1",
        "{1: 2}",
        "{1}",
        "f'{one}'",
        "1.5",
        "1j",
        "None",
        "b'x'",
        "...",
        "2 ** 3",
        "1 << 2",
        "1 & 2",
        "1 | 2",
        "1 ^ 2",
        "~1",
        "+1",
        "1 @ 2",
        "(x := 1)",
        "*one",
        "[x for x in [1]]",
        "one is one",
        "__import__('os')",
        "print",
        "",
        " ",
        "one;",
        "one = 1",
        "1 +",
        "(1",
        "one two",
        "'a' + 'b'",
        "'a' * 3",
        "[1] * 3",
        "-'a'",
        "'%d' % 3",
        "1 < 'a'",
        "1 in 2",
        "'a' < [1]",
        "1 / 0",
        "1 // 0",
        "1 % 0",
        "7 / 2",
        "\0",
        "(" * 3000 + "1" + ")" * 3000,
        "-" * 5000 + "1",
    ],
)
def test_refuses_everything_else(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, NAMES)
    assert str(caught.value)


# All characters but surrogates, as of `st.text`, which computes them from an encoding first.
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_is_a_value_or_an_expression_error(text: str) -> None:
    try:
        value = evaluate(text, NAMES)
    except ExpressionError:
        return
    assert isinstance(value, int | str | list)


def test_only_the_branch_that_is_taken_is_evaluated() -> None:
    assert evaluate("1 if block_m == 128 else 1 / 0", NAMES) == 1
    assert evaluate("sice if none else 2", NAMES) == 2


def test_unknown_name() -> None:
    with pytest.raises(UnknownName) as caught:
        evaluate("block_m * sice", NAMES)
    assert caught.value.name == "sice"


@pytest.mark.parametrize(
    "text",
    [
        "0 if block_m == 128 else 1 if warp_m == 64 else 2",
        "3 if k else 0 if one == 1 or none else 2 if block_m > 64 and k else 1",
        "0 if one else 1 if none else 0",
        "1 if block_m - 128 else 2",
        "k % 3",
    ],
)
def test_equations_hold_where_the_value_is_that(text: str) -> None:
    for block_m in (64, 128):
        for one in (0, 1):
            for k in (0, 1):
                scope = Scope({**NAMES, "block_m": block_m, "one": one, "k": k}, {})
                for value in range(4):
                    assert bool(evaluate(equation(text, value), scope)) == (evaluate(text, scope) == value)


def test_equations_have_the_conditions_of_a_chain() -> None:
    chain = "0 if block_m == 128 else 1 if one or none else 2"
    assert equation(chain, 1) == "not (block_m == 128) and (one or none)"
    assert equation(chain, 2) == "not (block_m == 128) and not (one or none)"
    assert equation("k % 3", 2) == "(k % 3) == 2"


def test_names_in_order_of_first_use() -> None:
    assert names("b + a * (b - c) < a") == ["b", "a", "c"]


class TestScope:
    def scope(self) -> Scope:
        return Scope({"a": 2, "b": 3}, {"sum": "a + b", "twice": "sum * 2", "never": "a / b"})

    def test_derived_names(self) -> None:
        scope = self.scope()
        assert scope["twice"] == 10
        assert "twice" in scope and "c" not in scope
        assert set(scope) == {"a", "b", "sum", "twice", "never"} and len(scope) == 5

    def test_derived_names_are_only_evaluated_when_asked_for(self) -> None:
        assert evaluate("sum", self.scope()) == 5
        with pytest.raises(ExpressionError, match="2 / 3 is not an integer"):
            self.scope()["never"]

    def test_replace_evaluates_anew(self) -> None:
        scope = self.scope()
        assert scope["twice"] == 10
        assert scope.replace(a=4)["twice"] == 14
        assert scope["twice"] == 10

    def test_roots(self) -> None:
        assert self.scope().roots("twice + b") == ["a", "b"]

    @pytest.mark.parametrize("name", ["a", "b"])
    def test_a_circle_is_an_error(self, name: str) -> None:
        scope = Scope({}, {"a": "b + 1", "b": "a + 1"})
        assert scope.roots(name) == []
        with pytest.raises(ExpressionError, match="derived from itself"):
            scope[name]
