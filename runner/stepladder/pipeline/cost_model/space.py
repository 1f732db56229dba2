"""All knob settings that a pipeline accepts for a problem, as columns.

Knobs are bound one after the other. A requirement of a step is checked for all settings at once, as soon as the knobs
that it depends on are bound, so that refused settings are not combined with values of further knobs. What does not
depend on the last knob is evaluated once for all its values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.pipeline.cost_model.columns import Array, Columns
from stepladder.pipeline.expressions import Scope, Value


@dataclass(frozen=True)
class Rule:
    """What a step requires: an expression, and when the step runs, as an expression; None for always."""

    requires: str
    runs_if: str | None = None


@dataclass(frozen=True)
class Space:
    """The knobs of a pipeline, as plain data.

    Args:
        steps: names of its steps that are not left out.
        options: knob -> values that it may have; empty for a knob that takes any number.
        defaults: knob -> value.
        derived: name -> expression.
        rules: what its steps require.
    """

    steps: tuple[str, ...]
    options: dict[str, tuple[int | str, ...]]
    defaults: dict[str, int | str]
    derived: dict[str, str]
    rules: tuple[Rule, ...]


# Values of a knob that takes any number, for settings in which the knobs before it are bound.
Proposal = Callable[[Columns], Sequence[Array]]


@dataclass(frozen=True)
class Search:
    """Which knobs are searched, and in which order.

    Args:
        order: knobs, bound in this order.
        most: a knob of which each setting gets the largest value that the pipeline accepts, since less is never faster.
            It is bound last.
        proposals: knob that takes any number -> the values to try.
        useful: expressions that a setting is dropped for if they do not hold: such settings make the same kernel as
            another one, or one that is never faster.
    """

    order: tuple[str, ...]
    most: str
    proposals: Mapping[str, Proposal]
    useful: tuple[str, ...]


# Up to so many settings with all values of a knob, it is faster to check all of them together than value by value.
_FEW = 4000


def _expand(
    columns: Columns,
    name: str,
    values: Sequence[int | str | Array],
    rules: Sequence[Rule],
    dependent: Collection[str],
    *,
    is_first_enough: bool = False,
) -> Columns:
    """Returns every setting with every value of one more knob that rules accept; values proposed twice count once.

    Args:
        columns: the settings.
        name: of the knob.
        values: of the knob: one for all settings, or one a setting.
        rules: that can be checked once the knob is bound.
        dependent: the derived names that depend on the knob.
        is_first_enough: a setting gets the first of the values that it can have.
    """
    if columns.count * len(values) <= _FEW and len(values) > 1 and not is_first_enough:
        places = [np.flatnonzero(_is_fresh(columns, values, number)) for number in range(len(values))]
        values = [np.concatenate([_column(columns, value)[own] for value, own in zip(values, places)])]
        columns = columns.take(np.concatenate(places))
    chosen: list[Array] = []
    bound: list[Array] = []
    taken = np.zeros(columns.count, bool)
    for number, value in enumerate(values):
        keep = _is_fresh(columns, values, number) & ~taken
        attempt = columns.with_knob(name, value, dependent)
        for rule in rules:
            if keep.any():
                keep = keep & _satisfied(attempt, rule)
        if len(values) == 1 and not isinstance(value, np.ndarray):  # one value for all settings needs no column
            return Columns(attempt.values, columns.derived, columns.count) if keep.all() else attempt.take(keep)
        if is_first_enough:
            taken |= keep
        chosen.append(np.flatnonzero(keep))
        bound.append(_column(columns, value)[chosen[-1]])
        if taken.all():
            break
    places = np.concatenate(chosen)
    return Columns({**columns.take(places).values, name: np.concatenate(bound)}, columns.derived, len(places))


def _column(columns: Columns, value: int | str | Array) -> Array:
    return np.broadcast_to(np.asarray(value), (columns.count,))


def _is_fresh(columns: Columns, values: Sequence[int | str | Array], number: int) -> Array:
    """Returns for which settings a proposed value is none of those before it."""
    fresh = np.ones(columns.count, bool)
    if isinstance(values[number], np.ndarray):
        for other in values[:number]:
            fresh = fresh & (_column(columns, values[number]) != _column(columns, other))
    return fresh


class _Rules:
    """Rules that are still to be checked, each with the knobs it depends on."""

    def __init__(self, rules: Sequence[Rule], scope: Scope, knobs: set[str]) -> None:
        self.pending = [
            (rule, (set(scope.roots(rule.requires)) | set(scope.roots(rule.runs_if or "1"))) & knobs) for rule in rules
        ]
        self.bound: set[str] = set()

    def bind(self, name: str) -> list[Rule]:
        """Returns the rules that can be checked once knob `name` is bound too, each once."""
        self.bound.add(name)
        ready = [rule for rule, needed in self.pending if needed <= self.bound]
        self.pending = [(rule, needed) for rule, needed in self.pending if not needed <= self.bound]
        return ready


def _satisfied(columns: Columns, rule: Rule) -> Array:
    if rule.runs_if is None:
        return columns.evaluate(rule.requires).holds(columns.count)
    runs = columns.evaluate(rule.runs_if).holds(columns.count)
    return columns.evaluate(rule.requires).holds(columns.count) | ~runs if runs.any() else ~runs


def _options(
    space: Space, columns: Columns, name: str, fixed: Mapping[str, int | str], search: Search
) -> Sequence[int | str | Array]:
    if name in fixed:
        return [fixed[name]]
    if name not in search.order and name != search.most:
        return [space.defaults[name]]
    if space.options[name]:
        return space.options[name]
    return search.proposals[name](columns) if name in search.proposals else [space.defaults[name]]


def feasible(space: Space, facts: Mapping[str, Value], fixed: Mapping[str, int | str], search: Search) -> Columns:
    """Returns the settings that a pipeline accepts for a problem.

    Settings of no use are dropped unless there would be no other, which the values that are given may lead to.

    Args:
        space: the pipeline.
        facts: the problem's and the target's, by the names that expressions use.
        fixed: knobs whose value is given.
        search: which knobs are searched.
    """
    scope = Scope({**facts, **space.defaults}, space.derived)
    useful = [(Rule(text), scope.roots(text)) for text in search.useful]
    known = [(rule, roots) for rule, roots in useful if all(root in facts or root in space.options for root in roots)]
    free = [rule for rule, roots in known if not fixed.keys() & set(roots)]
    for helpful in ([rule for rule, _ in known], free, []):
        found = _bound(space, facts, fixed, search, [*space.rules, *helpful], scope)
        if found.count:
            break
    return found


def _bound(
    space: Space,
    facts: Mapping[str, Value],
    fixed: Mapping[str, int | str],
    search: Search,
    requirements: Sequence[Rule],
    scope: Scope,
) -> Columns:
    order = [name for name in search.order if name in space.options]
    others = [name for name in space.options if name not in order and name != search.most]
    if search.most in space.options:
        order.append(search.most)
    rules = _Rules(requirements, scope, set(space.options))
    dependent = _dependent(space, scope)
    columns = Columns(facts, space.derived, 1)
    for name in [*others, *order]:
        values = _options(space, columns, name, fixed, search)
        is_most = name == search.most
        if is_most:
            values = sorted((int(value) for value in values), reverse=True)
        columns = _expand(columns, name, values, rules.bind(name), dependent.get(name, ()), is_first_enough=is_most)
    return columns


def _dependent(space: Space, scope: Scope) -> dict[str, set[str]]:
    """Returns, by knob, the derived names that depend on it."""
    found: dict[str, set[str]] = {}
    for name, text in space.derived.items():
        for root in scope.roots(text):
            found.setdefault(root, set()).add(name)
    return found
