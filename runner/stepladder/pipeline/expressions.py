"""Expressions over knobs: how attribute-only parameters follow them.

Upstream transform ops take many parameters only as attributes. Such an op carries a discardable dictionary `knobs` that
maps an attribute's name to an expression over knob names:

    transform.memref.multibuffer %tiles {factor = 2 : i64, skip_analysis, knobs = {factor = "stages"}}

The literal in the attribute is the value for the default knobs, so the text runs unchanged in a stock mlir-opt; the
runner evaluates the expression for the knobs at hand and overwrites the literal. The language is a small part of
Python's expressions: integers, strings, names, + - * / % and //, comparisons, `and`, `or`, `not`, `in`,
`x if c else y`, lists. `/` divides
exactly: a remainder is an error, since a tile that does not divide is a mistake and never a rounding.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Mapping

Value = int | bool | str | list


class ExpressionError(Exception):
    """An expression that cannot be evaluated; the message names the part and the reason."""


class UnknownName(ExpressionError):
    """An expression that uses an undefined name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown name '{name}'")
        self.name = name


def _exact(left: int, right: int) -> int:
    if right == 0 or left % right:
        raise ExpressionError(f"{left} / {right} is not an integer")
    return left // right


_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.Div: _exact,
    ast.FloorDiv: operator.floordiv,
}
_COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


# A ranking evaluates the same few hundred expressions again and again; nothing changes the trees.
@functools.lru_cache(maxsize=4096)
def parse(text: str) -> ast.expr:
    """Returns the tree of an expression.

    Args:
        text: an expression.

    Raises:
        ExpressionError: not an expression.
    """
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"'{text}' is not an expression: {error.msg}") from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionError("not an expression") from None


def _calculate(node: ast.BinOp | ast.UnaryOp, operation: Callable[..., Value], *operands: Value) -> Value:
    """Applies an arithmetic operator, which takes only numbers."""
    if not all(isinstance(operand, int) for operand in operands):
        raise ExpressionError(f"'{ast.unparse(node)}' calculates with something other than numbers")
    try:
        return operation(*operands)
    except ZeroDivisionError:
        raise ExpressionError(f"'{ast.unparse(node)}' divides by zero") from None


def _compare(node: ast.Compare, operation: Callable[[Value, Value], bool], left: Value, right: Value) -> bool:
    try:
        return operation(left, right)
    except TypeError:
        raise ExpressionError(f"'{ast.unparse(node)}' compares a number with a text or a list") from None


def equation(text: str, value: int) -> str:
    """Returns an expression that is true where another one has a value.

    Args:
        text: an expression; where it is a chain of `number if condition else ...`, the result has the conditions.
        value: a number.
    """
    with contextlib.suppress(ExpressionError):
        node, terms, found = parse(text), [], []
        while isinstance(node, ast.IfExp) and isinstance(node.body, ast.Constant):
            if node.body.value == value:
                found.append([*terms, _term(node.test)])
            terms.append(f"not ({ast.unparse(node.test)})")
            node = node.orelse
        if isinstance(node, ast.Constant) and node.value == value:
            found.append(terms)
        if isinstance(node, ast.Constant) and len(found) == 1 and terms:
            return " and ".join(found[0])
    return f"({text}) == {value}"


def _term(node: ast.expr) -> str:
    """Returns the text of a condition that others are joined to by `and`."""
    text = ast.unparse(node)
    return text if isinstance(node, ast.Name | ast.Compare | ast.Constant) else f"({text})"


def names(text: str) -> list[str]:
    """Returns the names that an expression uses, in order of first use.

    Args:
        text: an expression.

    Raises:
        ExpressionError: not an expression.
    """
    return list(_names(text))


@functools.lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    name_nodes = (node for node in ast.walk(parse(text)) if isinstance(node, ast.Name))
    return tuple(dict.fromkeys(node.id for node in sorted(name_nodes, key=lambda node: (node.lineno, node.col_offset))))


def evaluate(text: str, values: Mapping[str, Value]) -> Value:
    """Returns the value of an expression.

    Args:
        text: the expression.
        values: the names it may use.

    Raises:
        UnknownName: a name that `values` lacks.
        ExpressionError: not an expression, a construct outside the language, or a division that leaves a remainder.
    """

    def visit(node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=int() | str() as value):
                return value
            case ast.Name(id=name):
                if name not in values:
                    raise UnknownName(name)
                return values[name]
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [visit(element) for element in elements]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _calculate(node, _BINARY[type(op)], visit(left), visit(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _calculate(node, lambda value: -value, visit(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not visit(operand)
            case ast.BoolOp(op=op, values=operands):
                results = (bool(visit(operand)) for operand in operands)
                return all(results) if isinstance(op, ast.And) else any(results)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return visit(body) if visit(test) else visit(orelse)
            case ast.Compare(left=left, ops=ops, comparators=comparators) if all(type(op) in _COMPARE for op in ops):
                sides = [visit(left), *map(visit, comparators)]
                return all(_compare(node, _COMPARE[type(op)], a, b) for op, a, b in zip(ops, sides, sides[1:]))
        raise ExpressionError(f"'{ast.unparse(node)}' is outside the expression language")

    try:
        return visit(parse(text))
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply") from None


@functools.lru_cache(maxsize=64)
def _known_roots(derived: tuple[tuple[str, str], ...]) -> dict[str, tuple[str, ...]]:
    """Returns the roots of expressions by their text (`Scope.roots`), as far as they were asked for; they depend on the
    derived names alone, which a process has few sets of."""
    return {}


class Scope(Mapping):
    """Knob values together with the names derived from them, evaluated when first asked for.

    Args:
        values: knobs and facts.
        derived: name -> expression over knobs, facts and other derived names.
    """

    def __init__(self, values: Mapping[str, Value], derived: Mapping[str, str]) -> None:
        self._values = dict(values)
        self._derived = dict(derived)
        self._open: list[str] = []
        self._roots: dict[str, tuple[str, ...]] | None = None

    def __getitem__(self, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        if name not in self._derived:
            raise UnknownName(name)
        if name in self._open:
            raise ExpressionError(f"'{name}' is derived from itself")
        self._open.append(name)
        try:
            self._values[name] = evaluate(self._derived[name], self)
        finally:
            self._open.pop()
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._derived

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._values, *self._derived]))

    def __len__(self) -> int:
        return len(set(self._values) | set(self._derived))

    def __bool__(self) -> bool:
        return True

    def replace(self, **changes: Value) -> Scope:
        """Returns a scope with some knobs changed and everything derived evaluated anew.

        Args:
            changes: values by the names of knobs; others keep theirs.
        """
        plain = {name: value for name, value in self._values.items() if name not in self._derived}
        return Scope({**plain, **changes}, self._derived)

    def roots(self, text: str) -> list[str]:
        """Returns the knobs and facts an expression depends on, through derived names.

        Args:
            text: an expression.

        Raises:
            ExpressionError: not an expression.
        """
        if self._roots is None:
            self._roots = _known_roots(tuple(self._derived.items()))
        if text not in self._roots:
            self._roots[text] = self._find_roots(text)
        return list(self._roots[text])

    def _find_roots(self, text: str) -> tuple[str, ...]:
        roots: dict[str, None] = {}
        visited: set[str] = set()  # a name derived from itself is an error of `evaluate`, and no endless loop here
        pending = names(text)
        while pending:
            name = pending.pop(0)
            if name not in self._derived:
                roots[name] = None
            elif name not in visited:
                visited.add(name)
                pending = names(self._derived[name]) + pending
        return tuple(roots)
