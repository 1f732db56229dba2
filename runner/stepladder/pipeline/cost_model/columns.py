"""Expressions of a pipeline evaluated for thousands of knob settings at once.

`pipeline.expressions` evaluates an expression for one setting; here each knob is a column, an array with one value a
setting, and an expression gives a column. The language is the same. A division that leaves a remainder is an error for
one setting only, so that every result carries a mask of the settings it is valid for.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np

from stepladder.pipeline.cost_model.encoded_columns import TABLE, Array, Coded, numbered
from stepladder.pipeline.expressions import (
    ExpressionError,
    UnknownName,
    Value,
    evaluate,
)

Column = Array | Value
# Columns with one value a setting, not one for all.
_VARYING = (Coded, Array)


class Result(NamedTuple):
    """A column, and for which settings it is valid; `valid` is True where it is for all.

    Args:
        value: an array with one value a setting, or one value for all of them.
        valid: an array of bool, or one bool for all settings.
    """

    value: Column
    valid: Array | bool = True

    def holds(self, shape: tuple[int, ...]) -> Array:
        """Returns, for each setting, whether the expression is valid and true.

        Args:
            shape: that of the columns: the number of settings, after that of the values of a knob that has a row each.

        Returns:
            An array of bool.
        """
        value = np.asarray(self.value, bool)
        value = value if self.valid is True else value & np.asarray(self.valid, bool)
        return value if value.shape == shape else np.broadcast_to(value, shape)


_ARITHMETIC: dict[type[ast.operator], Callable[[Column, Column], Array]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
}
_DIVIDING: dict[type[ast.operator], Callable[[Array, Array], Array]] = {
    ast.Div: np.floor_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Column, Column], Array]] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}


def _both(left: Array | bool, right: Array | bool) -> Array | bool:
    if left is True:
        return right
    return left if right is True else np.logical_and(left, right)


@functools.cache
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"'{text}' is not an expression: {error.msg}") from None


@functools.cache
def _is_of_numbers_and_words(node: ast.Compare) -> bool:
    """Returns whether a comparison, of a tree from `_parse`, is by operators of single values."""
    return all(type(op) in _COMPARISONS for op in node.ops) and not any(
        isinstance(side, (ast.List, ast.Tuple)) for side in (node.left, *node.comparators)
    )


class Columns:
    """Knobs as columns, facts as single values, and the names derived from both, evaluated when first asked for.

    Args:
        values: knobs and facts: an array or a coded column with one value a setting, or one value for all settings.
        derived: name -> expression.
        count: the number of settings.
    """

    def __init__(self, values: Mapping[str, Column | Coded], derived: Mapping[str, str], count: int) -> None:
        self.values = dict(values)
        self.derived = derived
        self.count = count
        self._results: dict[str, Result] = {}
        self._without: Columns | None = None
        self._dependent: Collection[str] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values or name in self.derived

    @functools.cached_property
    def _varying(self) -> list[str]:
        """The names of the values that are columns."""
        return [name for name, value in self.values.items() if isinstance(value, _VARYING)]

    def column(self, name: str, default: Column | None = None) -> Column:
        """Returns the values of a knob, a fact or a derived name; `default` where there is no such name.

        Args:
            name: of a knob, a fact or a derived name.
            default: for pipelines that lack it.

        Raises:
            UnknownName: there is no such name, and no default.
        """
        if name not in self and default is not None:
            return default
        return self._named(name).value

    def floats(self, name: str, default: float | None = None) -> Array:
        """Returns a column of numbers as floating-point numbers. Raises UnknownName as `column`.

        Args:
            name: of a knob, a fact or a derived name.
            default: for pipelines that lack it.
        """
        if name not in self and default is not None:
            return np.asarray(default, float)
        value = self.values.get(name)
        return value.floats if isinstance(value, Coded) else np.asarray(self.column(name), float)

    def equals(self, name: str, word: str, default: str) -> Array:
        """Returns which settings have a word as the value of a knob.

        Args:
            name: of the knob.
            word: the value.
            default: for pipelines that lack the knob.
        """
        value = self.values.get(name)
        if isinstance(value, Coded):
            return (value.options == word)[value.codes]
        return np.asarray(np.asarray(self.column(name, default)) == word)

    def value(self, name: str, index: int) -> Value:
        """Returns the value of a knob or a fact of one setting.

        Args:
            name: of the knob or fact.
            index: of the setting.
        """
        value = self.values[name]
        if isinstance(value, Coded):
            return value.options[value.codes[index]].item()
        return value[index].item() if isinstance(value, Array) else value

    def grouped(self, names: Collection[str]) -> tuple[Columns, Array]:
        """Returns one setting of each combination of values of some knobs, without the other knobs, and for each
        setting its combination: what depends on these knobs alone is evaluated for few settings.

        Args:
            names: of knobs; those with one value for all settings, or none yet, make no difference.
        """
        key, most = np.zeros(self.count, np.int64), 1
        for value in (self.values[name] for name in sorted(names) if name in self.values):
            if not isinstance(value, _VARYING):
                continue
            coded = value if isinstance(value, Coded) else Coded.of(value)
            if most * len(coded.options) > TABLE:
                groups, key = numbered(key, most)
                most = len(groups)
            key, most = key * len(coded.options) + coded.codes, most * len(coded.options)
            if most > TABLE:
                groups, key = np.unique(key, return_inverse=True)
                most = len(groups)
        groups, combination = numbered(key, most)
        first_rows = np.empty(len(groups), np.int64)
        first_rows[combination] = np.arange(self.count)
        values = dict(self.values)
        for name in self._varying:
            if name not in names:
                del values[name]
        return Columns(values, self.derived, self.count).take(first_rows), combination

    def take(self, rows: Array) -> Columns:
        """Returns the settings that a mask or an array of indices chooses.

        Args:
            rows: an array of bool, one a setting, or of indices of settings.
        """
        values = dict(self.values)
        for name in self._varying:
            value = values[name]
            if isinstance(value, Coded):
                values[name] = value.take(rows)
            elif isinstance(value, Array):
                values[name] = value[rows]
        count = int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows)
        taken = Columns(values, self.derived, count)
        taken._varying = self._varying
        return taken

    def with_knob(self, name: str, value: Column | Coded, dependent: Collection[str]) -> Columns:
        """Returns the settings with one more knob. What does not depend on it is evaluated once for all its values.

        Args:
            name: of the knob.
            value: one for all settings, or one a setting.
            dependent: the derived names that depend on the knob.
        """
        columns = Columns({**self.values, name: value}, self.derived, self.count)
        columns._without, columns._dependent = self, dependent
        return columns

    def evaluate(self, text: str) -> Result:
        """Returns the value of an expression for every setting.

        Args:
            text: an expression, in the language of `pipeline.expressions`.

        Raises:
            UnknownName: a name that is neither a knob, a fact nor derived.
            ExpressionError: not an expression, or a construct outside the language.
        """
        return self._visit(_parse(text))

    def _named(self, name: str) -> Result:
        if name in self.values:
            value = self.values[name]
            return Result(value.values if isinstance(value, Coded) else value)
        if name not in self.derived:
            raise UnknownName(name)
        if self._without is not None and name not in self._dependent:
            return self._without._named(name)
        if name not in self._results:
            self._results[name] = Result(0, False)  # what a name derived from itself finds
            self._results[name] = self.evaluate(self.derived[name])
        return self._results[name]

    def _visit(self, node: ast.expr) -> Result:
        visit = _VISITS.get(type(node), Columns._one_value)
        return visit(self, node)

    def _constant(self, node: ast.Constant) -> Result:
        return Result(node.value) if isinstance(node.value, (int, str)) else self._one_value(node)

    def _unary(self, node: ast.UnaryOp) -> Result:
        if isinstance(node.op, ast.USub):
            result = self._visit(node.operand)
            return Result(np.negative(result.value), result.valid)
        if isinstance(node.op, ast.Not):
            result = self._visit(node.operand)
            return Result(np.logical_not(result.value), result.valid)
        return self._one_value(node)

    def _one_value(self, node: ast.expr) -> Result:
        """Evaluates what has no columns in it, such as a list of types, as one value for all settings."""
        names = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
        values = {name: self._named(name).value for name in names}
        if any(isinstance(value, Array) and value.ndim for value in values.values()):
            raise ExpressionError(f"'{ast.unparse(node)}' cannot be evaluated for many settings at once")
        plain = {
            name: value.item() if isinstance(value, Array | np.generic) else value for name, value in values.items()
        }
        return Result(evaluate(ast.unparse(node), plain))

    def _calculate(self, node: ast.BinOp) -> Result:
        op, left, right = node.op, self._visit(node.left), self._visit(node.right)
        valid = _both(left.valid, right.valid)
        if isinstance(left.value, (str, list)) or isinstance(right.value, (str, list)):
            raise ExpressionError(f"'{ast.unparse(node)}' calculates with something other than numbers")
        if type(op) in _ARITHMETIC:
            return Result(_ARITHMETIC[type(op)](left.value, right.value), valid)
        if type(op) not in _DIVIDING:
            raise ExpressionError(f"'{ast.unparse(node)}' is outside the expression language")
        dividend, divisor = np.asarray(left.value), np.asarray(right.value)
        if isinstance(right.value, int) and right.value and not isinstance(op, ast.Div):
            return Result(_DIVIDING[type(op)](dividend, divisor), valid)
        divides = divisor != 0
        safe = np.where(divides, divisor, 1)
        if isinstance(op, ast.Div):
            divides = divides & (dividend % safe == 0)
        return Result(_DIVIDING[type(op)](dividend, safe), valid if divides.all() else _both(valid, divides))

    def _join(self, node: ast.BoolOp) -> Result:
        """Evaluates `and` or `or`: operands after one that decides are not evaluated, so they cannot be invalid."""
        is_and = isinstance(node.op, ast.And)
        value: Array | bool = is_and
        valid: Array | bool = True
        for number, operand in enumerate(node.values):
            result = self._visit(operand)
            if result.valid is not True:
                is_decided = np.logical_not(value) if is_and else np.asarray(value)
                valid = np.logical_and(valid, np.logical_or(is_decided, result.valid))
            operand_value = np.asarray(result.value, bool)
            value = (np.logical_and if is_and else np.logical_or)(value, operand_value) if number else operand_value
            if not value.ndim and bool(value) is not is_and:
                break
        return Result(value, valid)

    def _choose(self, node: ast.IfExp) -> Result:
        test = self._visit(node.test)
        if not (isinstance(test.value, Array) and test.value.ndim):
            result = self._visit(node.body if test.value else node.orelse)
            return Result(result.value, _both(test.valid, result.valid))
        first, second = self._visit(node.body), self._visit(node.orelse)
        valid = test.valid
        if first.valid is not True or second.valid is not True:
            valid = _both(valid, np.where(test.value, first.valid, second.valid))
        return Result(np.where(test.value, first.value, second.value), valid)

    def _compare(self, node: ast.Compare) -> Result:
        if not _is_of_numbers_and_words(node):
            return self._membership(node)
        sides = [self._visit(node.left), *map(self._visit, node.comparators)]
        if any(isinstance(side.value, list) for side in sides):
            return self._one_value(node)
        value: Array | bool = True
        valid: Array | bool = True
        for op, first, second in zip(node.ops, sides, sides[1:]):
            value = _both(value, _COMPARISONS[type(op)](first.value, second.value))
            valid = _both(valid, _both(first.valid, second.valid))
        return Result(value, valid)

    def _membership(self, node: ast.Compare) -> Result:
        """Evaluates `in` and `not in` with a list of values on the right; else what has no columns in it."""
        left, ops, comparators = node.left, node.ops, node.comparators
        if (
            len(ops) == 1
            and isinstance(ops[0], ast.In | ast.NotIn)
            and isinstance(comparators[0], ast.List)
            and not isinstance(left, ast.List | ast.Tuple)
        ):
            item = self._visit(left)
            is_member: Array | bool = False
            for element in comparators[0].elts:
                is_member = np.logical_or(is_member, np.equal(item.value, self._visit(element).value))
            return Result(is_member if isinstance(ops[0], ast.In) else np.logical_not(is_member), item.valid)
        return self._one_value(node)


# The method that evaluates a kind of node.
_VISITS: dict[type[ast.expr], Callable[..., Result]] = {
    ast.Constant: Columns._constant,
    ast.Name: lambda columns, node: columns._named(node.id),
    ast.BinOp: Columns._calculate,
    ast.UnaryOp: Columns._unary,
    ast.BoolOp: Columns._join,
    ast.IfExp: Columns._choose,
    ast.Compare: Columns._compare,
}
