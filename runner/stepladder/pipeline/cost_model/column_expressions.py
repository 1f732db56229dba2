"""Expressions of a pipeline evaluated for thousands of knob settings at once.

`pipeline.expressions` evaluates an expression for one setting; here a name is a column, an array with one value a
setting, and an expression gives a column. The language is the same. A division that leaves a remainder is an error for
one setting only, so that every result carries a mask of the settings it is valid for.

An expression is compiled once a process, to nested functions. Most operands are single values, which Python's operators
take in a tenth of the time of NumPy's functions.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from stepladder.pipeline.cost_model.encoded_columns import Array
from stepladder.pipeline.expressions import ExpressionError, Value, evaluate, parse

Column = Array | Value
Mask = Array | bool
# A column, and for which settings it is valid: an array of bool, or one bool for all settings.
Valued = tuple[Column, Mask]
# An expression as a function of that which looks up names.
Compiled = Callable[[Callable[[str], Valued]], Valued]

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Column]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_DIVIDING: dict[type[ast.operator], Callable[[Any, Any], Column]] = {
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_NEGATE: Callable[[Any], Column] = operator.neg
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Mask]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@functools.cache
def compiled(text: str) -> Compiled:
    """Returns an expression as a function.

    Args:
        text: an expression, in the language of `pipeline.expressions`.

    Raises:
        ExpressionError: not an expression; the function raises it for a construct outside the language.
    """
    return _compile(parse(text))


def both(left: Mask, right: Mask) -> Mask:
    """Returns where both of two masks hold.

    Args:
        left, right: the masks.
    """
    if left is True:
        return right
    return left if right is True else np.logical_and(left, right)


def truth(value: Column) -> Mask:
    """Returns where a column is true; one bool for a single value.

    Args:
        value: the column.
    """
    return value.astype(bool, copy=False) if isinstance(value, Array) and value.ndim else bool(value)


def _compile(node: ast.expr) -> Compiled:
    return _COMPILERS.get(type(node), _one_value)(node)


def _constant(node: ast.Constant) -> Compiled:
    if not isinstance(node.value, (int, str)):
        return _one_value(node)
    valued = node.value, True
    return lambda named: valued


def _name(node: ast.Name) -> Compiled:
    name = node.id
    return lambda named: named(name)


def _unary(node: ast.UnaryOp) -> Compiled:
    operand = _compile(node.operand)

    def negative(named: Callable[[str], Valued]) -> Valued:
        value, valid = operand(named)
        return _NEGATE(value), valid

    def opposite(named: Callable[[str], Valued]) -> Valued:
        value, valid = operand(named)
        holds = truth(value)
        return ~holds if isinstance(holds, Array) else not holds, valid

    if isinstance(node.op, ast.USub):
        return negative
    return opposite if isinstance(node.op, ast.Not) else _one_value(node)


def _one_value(node: ast.expr) -> Compiled:
    """Evaluates what has no columns in it, such as a list of types, as one value for all settings."""

    def evaluate_once(named: Callable[[str], Valued]) -> Valued:
        names = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
        text = ast.unparse(node)
        values = {name: named(name)[0] for name in names}
        if any(isinstance(value, Array) and value.ndim for value in values.values()):
            raise ExpressionError(f"'{text}' cannot be evaluated for many settings at once")
        plain = {
            name: value.item() if isinstance(value, Array | np.generic) else value for name, value in values.items()
        }
        return evaluate(text, plain), True

    return evaluate_once


def _calculation(node: ast.BinOp) -> Compiled:
    op = type(node.op)
    left, right = _compile(node.left), _compile(node.right)
    calculate, is_arithmetic = _ARITHMETIC.get(op) or _DIVIDING.get(op), op in _ARITHMETIC

    def calculation(named: Callable[[str], Valued]) -> Valued:
        (first, first_valid), (second, second_valid) = left(named), right(named)
        if isinstance(first, (str, list)) or isinstance(second, (str, list)):
            raise ExpressionError(f"'{ast.unparse(node)}' calculates with something other than numbers")
        if calculate is None:
            raise ExpressionError(f"'{ast.unparse(node)}' is outside the expression language")
        valid = both(first_valid, second_valid)
        if is_arithmetic:
            return calculate(first, second), valid
        divides = second != 0
        safe = second if divides is True else np.where(divides, second, 1)
        result = calculate(first, safe)
        if op is ast.Div:
            divides = divides & (result * safe == first)
        return result, valid if np.all(divides) else both(valid, divides)

    return calculation


def _join(node: ast.BoolOp) -> Compiled:
    """Evaluates `and` or `or`: operands after one that decides are not evaluated, so they cannot be invalid."""
    is_and, operands = isinstance(node.op, ast.And), [_compile(operand) for operand in node.values]

    def join(named: Callable[[str], Valued]) -> Valued:
        joined: Mask = is_and
        valid: Mask = True
        for operand in operands:
            value, operand_valid = operand(named)
            if operand_valid is not True:
                is_decided = np.logical_not(joined) if is_and else np.asarray(joined)
                valid = np.logical_and(valid, np.logical_or(is_decided, operand_valid))
            holds = truth(value)
            if not isinstance(holds, Array):
                if holds is not is_and:
                    return holds, valid
            elif isinstance(joined, Array):
                joined = joined & holds if is_and else joined | holds
            else:
                joined = holds
        return joined, valid

    return join


def _choice(node: ast.IfExp) -> Compiled:
    condition, if_true, if_false = map(_compile, (node.test, node.body, node.orelse))

    def choice(named: Callable[[str], Valued]) -> Valued:
        test, valid = condition(named)
        if not (isinstance(test, Array) and test.ndim):
            value, value_valid = (if_true if test else if_false)(named)
            return value, both(valid, value_valid)
        (first, first_valid), (second, second_valid) = if_true(named), if_false(named)
        if first_valid is not True or second_valid is not True:
            valid = both(valid, np.where(test, first_valid, second_valid))
        return np.where(test, first, second), valid

    return choice


def _comparison(node: ast.Compare) -> Compiled:
    sides_of_node = (node.left, *node.comparators)
    if any(isinstance(side, ast.List | ast.Tuple) for side in sides_of_node) or not all(
        type(op) in _COMPARISONS for op in node.ops
    ):
        return _membership(node)
    compare, *others = [_COMPARISONS[type(op)] for op in node.ops]
    left, right, *further = map(_compile, sides_of_node)
    single = _one_value(node)  # for names of lists

    def comparison(named: Callable[[str], Valued]) -> Valued:
        (first, first_valid), (second, second_valid) = left(named), right(named)
        if isinstance(first, list) or isinstance(second, list):
            return single(named)
        value, valid = compare(first, second), both(first_valid, second_valid)
        for compare_next, side in zip(others, further):
            third, third_valid = side(named)
            if isinstance(third, list):
                return single(named)
            value, valid = both(value, compare_next(second, third)), both(valid, third_valid)
            second = third
        return value, valid

    return comparison


def _membership(node: ast.Compare) -> Compiled:
    """Evaluates `in` and `not in` with a list of values on the right; else what has no columns in it."""
    op, right = node.ops[0], node.comparators[0]
    is_alone = len(node.ops) == 1 and isinstance(op, ast.In | ast.NotIn)
    if not is_alone or not isinstance(right, ast.List) or isinstance(node.left, ast.List | ast.Tuple):
        return _one_value(node)
    left, elements, is_in = _compile(node.left), list(map(_compile, right.elts)), isinstance(op, ast.In)

    def membership(named: Callable[[str], Valued]) -> Valued:
        item, valid = left(named)
        is_member: Mask = False
        for element in elements:
            is_member = is_member | (item == element(named)[0])
        return is_member if is_in else is_member ^ True, valid

    return membership


# The function that compiles a kind of node.
_COMPILERS: dict[type[ast.expr], Callable[..., Compiled]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _calculation,
    ast.UnaryOp: _unary,
    ast.BoolOp: _join,
    ast.IfExp: _choice,
    ast.Compare: _comparison,
}
