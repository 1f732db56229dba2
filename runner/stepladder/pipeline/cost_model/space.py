"""All knob settings that a pipeline accepts for a problem, as columns.

Knobs are bound one after the other. A requirement of a step is checked for all settings at once, as soon as the knobs
that it depends on are bound, so that refused settings are not combined with values of further knobs. It is checked once
for each combination of these knobs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.pipeline.cost_model.columns import Columns
from stepladder.pipeline.cost_model.encoded_columns import Array, Coded
from stepladder.pipeline.expressions import Scope, Value


@dataclass(frozen=True)
class Rule:
    """A requirement of a step: an expression, and the condition under which the step runs; None for always."""

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


# Elements of what a rule gives, from which on it is evaluated for settings that differ in its own knobs only, if these
# are fewer by such a factor.
_MANY, _FEWER = 1 << 14, 2


@dataclass(frozen=True)
class Proposal:
    """Values to try for a knob that takes any number.

    Args:
        knobs: that they depend on, bound before it.
        values: what to try for each of some settings.
    """

    knobs: tuple[str, ...]
    values: Callable[[Columns], Sequence[Array]]


@dataclass(frozen=True)
class Search:
    """Which knobs are searched, and in which order.

    Args:
        order: knobs, bound in this order.
        most: a knob of which each setting gets the largest value that the pipeline accepts, since less is never faster.
            It is bound last.
        proposals: knob that takes any number -> the values to try.
        values: knob -> its value in all settings, which is bound before `order`.
        useful: expressions that a setting is dropped for if they do not hold: such settings make the same kernel as
            another one, or one that is never faster.
    """

    order: tuple[str, ...]
    most: str
    proposals: Mapping[str, Proposal]
    values: Mapping[str, int | str]
    useful: tuple[str, ...]


def _expand(
    columns: Columns, name: str, values: Sequence[int | str], ready: Ready, *, is_first_enough: bool = False
) -> Columns:
    """Returns every setting with every value of one more knob that rules accept. Rules are checked once for settings
    that differ in other knobs than those that the rules depend on.

    Args:
        columns: the settings.
        name: of the knob.
        values: of the knob.
        ready: the rules that can be checked once the knob is bound.
        is_first_enough: a setting gets the first of the values that it can have.
    """
    if not ready.rules and not is_first_enough:
        return _with_each(columns, name, values)
    groups, combination = columns.grouped(ready.knobs)
    is_accepted = _accepted(groups, name, values, ready)
    if is_first_enough:  # the value of a setting is that of the first True
        is_accepted &= np.cumsum(is_accepted, axis=0) == 1
    value_numbers = np.flatnonzero(is_accepted.any(axis=1))
    if len(value_numbers) == 1 or len(values) == 1:  # one value for all settings needs no column
        only = int(value_numbers[0]) if len(value_numbers) else 0
        result = columns.bound(name, values[only])
        return result if is_accepted[only].all() else result.take(is_accepted[only][combination])
    places = [np.flatnonzero(keep[combination]) for keep in is_accepted]
    codes = np.repeat(np.arange(len(values)), [len(place) for place in places])
    return columns.take(np.concatenate(places)).bound(name, Coded(np.asarray(values), codes))


def _with_each(columns: Columns, name: str, values: Sequence[int | str]) -> Columns:
    """Returns every setting with every value of one more knob."""
    if len(values) == 1:  # one value for all settings needs no column
        return columns.bound(name, values[0])
    codes = np.repeat(np.arange(len(values)), columns.count)
    taken = columns.take(np.tile(np.arange(columns.count), len(values)))
    return taken.bound(name, Coded(np.asarray(values), codes))


def _accepted(columns: Columns, name: str, values: Sequence[int | str], ready: Ready) -> Array:
    """Returns for each value of a knob which settings rules accept with it; see `_expand`. The values are a column of
    their own, so that what does not depend on the knob is evaluated once for all of them."""
    column = np.asarray(values)[:, np.newaxis] if len(values) > 1 else values[0]
    candidates, count = columns.with_knob(name, column, ready.derived), len(values)
    if count * columns.count < _MANY:
        return _all_satisfied(candidates, ready.rules, (count, columns.count))
    is_accepted, others = np.ones((count, columns.count), bool), []
    for knobs, rules in ready.by_knobs.items():
        groups, combination = columns.grouped(knobs)
        if groups.count * _FEWER > columns.count:
            others += rules
            continue
        few = groups.with_knob(name, column, ready.derived)
        is_accepted &= _all_satisfied(few, rules, (count, groups.count))[:, combination]
    return is_accepted & _all_satisfied(candidates, others, is_accepted.shape)


def _expand_proposed(columns: Columns, name: str, proposal: Proposal, ready: Ready) -> Columns:
    """Returns every setting with every value of one more knob that is proposed for it and that rules accept; values
    that are proposed twice count once. The other arguments are those of `_expand`."""
    groups, combination = columns.grouped({*ready.knobs, *proposal.knobs})
    proposed = np.stack(proposal.values(groups))
    is_accepted = _all_satisfied(groups.with_knob(name, proposed, ready.derived), ready.rules, proposed.shape)
    for number in range(1, len(proposed)):
        is_accepted[number] &= (proposed[:number] != proposed[number]).all(axis=0)
    places = [np.flatnonzero(keep[combination]) for keep in is_accepted]
    column = Coded.of(np.concatenate([values[combination[place]] for values, place in zip(proposed, places)]))
    return columns.take(np.concatenate(places)).bound(name, column)


def _all_satisfied(columns: Columns, rules: Sequence[Rule], shape: tuple[int, ...]) -> Array:
    keep = np.ones(shape, bool)
    for rule in rules:
        keep &= _satisfied(columns, rule)
    return keep


@dataclass(frozen=True)
class Ready:
    """Rules that can be checked once a knob is bound.

    Args:
        by_knobs: the rules by the knobs that they depend on, but the knob itself.
        derived: the derived names that depend on the knob.
    """

    by_knobs: Mapping[frozenset[str], Sequence[Rule]]
    derived: Collection[str]

    @functools.cached_property
    def rules(self) -> list[Rule]:
        """Returns all of the rules."""
        return [rule for rules in self.by_knobs.values() for rule in rules]

    @functools.cached_property
    def knobs(self) -> frozenset[str]:
        """Returns the knobs that any of the rules depends on, but the knob itself."""
        return frozenset().union(*self.by_knobs)


def _schedule(order: Sequence[str], space: Space, requirements: Sequence[Rule], scope: Scope) -> dict[str, Ready]:
    """Returns for each knob the rules that can be checked once it is bound, after those before it in the order."""
    places = {name: place for place, name in enumerate(order)}
    by_last: dict[str, dict[frozenset[str], list[Rule]]] = {name: {} for name in order}
    for rule in requirements:
        roots = (*scope.roots(rule.requires), *scope.roots(rule.runs_if or "1"))
        needed = frozenset(root for root in roots if root in places)
        last = max(needed, key=places.__getitem__, default=order[0])
        by_last[last].setdefault(needed - {last}, []).append(rule)
    dependents = _dependent(space, scope)
    return {name: Ready(by_knobs, dependents.get(name, ())) for name, by_knobs in by_last.items()}


def _satisfied(columns: Columns, rule: Rule) -> Array | bool:
    runs = rule.runs_if is None or columns.evaluate(rule.runs_if).holds()
    if runs is False or (isinstance(runs, Array) and not runs.any()):
        return True
    meets = columns.evaluate(rule.requires).holds()
    return meets | ~runs if isinstance(runs, Array) else meets


def _options(space: Space, name: str, fixed: Mapping[str, int | str], search: Search) -> Sequence[int | str]:
    if name in fixed:
        return [fixed[name]]
    if name in search.values:
        return [search.values[name]]
    if name in search.order or name == search.most:
        return space.options[name] or [space.defaults[name]]
    return [space.defaults[name]]


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
    usable = [(rule, roots) for rule, roots in useful if all(root in facts or root in space.options for root in roots)]
    free = [rule for rule, roots in usable if not fixed.keys() & set(roots)]
    for helpful in ([rule for rule, _ in usable], free, []):
        columns = _bound(space, facts, fixed, search, [*space.rules, *helpful], scope)
        if columns.count:
            break
    return columns


def _bound(
    space: Space,
    facts: Mapping[str, Value],
    fixed: Mapping[str, int | str],
    search: Search,
    requirements: Sequence[Rule],
    scope: Scope,
) -> Columns:
    order = [name for name in search.order if name in space.options and name not in search.values]
    other_knobs = [name for name in space.options if name not in order and name != search.most]
    if search.most in space.options:
        order.append(search.most)
    columns = Columns(facts, space.derived, 1)
    for name, ready in _schedule([*other_knobs, *order], space, requirements, scope).items():
        if name in search.proposals and name not in fixed:
            columns = _expand_proposed(columns, name, search.proposals[name], ready)
            continue
        values = _options(space, name, fixed, search)
        is_most = name == search.most
        if is_most:
            values = sorted((int(value) for value in values), reverse=True)
        columns = _expand(columns, name, values, ready, is_first_enough=is_most)
    return columns


def _dependent(space: Space, scope: Scope) -> dict[str, set[str]]:
    """Returns, by knob, the derived names that depend on it."""
    dependents: dict[str, set[str]] = {}
    for name, text in space.derived.items():
        for root in scope.roots(text):
            dependents.setdefault(root, set()).add(name)
    return dependents
