"""All knob settings that a pipeline accepts for a problem, as columns.

Knobs are bound one after the other. A requirement of a step is checked for all settings at once, as soon as the knobs
that it depends on are bound, so that refused settings are not combined with values of further knobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


def _expand(columns: Columns, name: str, values: Sequence[int | str | Array]) -> Columns:
    """Returns every setting with every value of one more knob, values that are proposed twice once."""
    if len(values) == 1 and not isinstance(values[0], np.ndarray):  # one value for all settings needs no column
        return Columns({**columns.values, name: values[0]}, columns.derived, columns.count)
    proposed = [np.broadcast_to(np.asarray(value), (columns.count,)) for value in values]
    fresh = [np.ones(columns.count, bool)]
    for number, column in enumerate(proposed[1:], 1):
        same = [column == other for other in proposed[:number]] if isinstance(values[number], np.ndarray) else []
        fresh.append(~np.logical_or.reduce(same) if same else fresh[0])
    chosen = np.concatenate([np.flatnonzero(keep) for keep in fresh])
    column = np.concatenate([values_[keep] for values_, keep in zip(proposed, fresh)])
    return Columns({**columns.take(chosen).values, name: column}, columns.derived, len(chosen))


class _Rules:
    """Rules that are still to be checked, each with the knobs it depends on."""

    def __init__(self, rules: Sequence[Rule], scope: Scope, knobs: set[str]) -> None:
        self.pending = [
            (rule, (set(scope.roots(rule.requires)) | set(scope.roots(rule.runs_if or "1"))) & knobs) for rule in rules
        ]
        self.bound: set[str] = set()
        self.checked = 0

    def accepted(self, columns: Columns, name: str | None) -> Columns:
        """Returns the settings that satisfy what can be checked once knob `name` is bound too."""
        if name is not None:
            self.bound.add(name)
        ready = [rule for rule, needed in self.pending if needed <= self.bound]
        self.pending = [(rule, needed) for rule, needed in self.pending if not needed <= self.bound]
        for rule in ready:
            self.checked += 1
            keep = _satisfied(columns, rule)
            if not keep.all():
                columns = columns.take(keep)
        return columns


def _satisfied(columns: Columns, rule: Rule) -> Array:
    holds = columns.evaluate(rule.requires).holds(columns.count)
    if rule.runs_if is not None:
        holds = holds | ~columns.evaluate(rule.runs_if).holds(columns.count)
    return holds


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
    rules = _Rules(requirements, scope, set(space.options))
    columns = Columns(facts, space.derived, 1)
    for name in [*others, *order]:
        columns = _expand(columns, name, _options(space, columns, name, fixed, search))
        columns = rules.accepted(columns, name)
    if search.most not in space.options:
        return rules.accepted(columns, None)
    values = _options(space, columns, search.most, fixed, search)
    return _largest(
        columns,
        search.most,
        sorted((int(value) for value in values), reverse=True),
        [rule for rule, _ in rules.pending],
    )


def _largest(columns: Columns, name: str, values: Sequence[int], rules: Sequence[Rule]) -> Columns:
    """Returns every setting with the largest value of one more knob that it can have; drops those that have none."""
    found: list[Columns] = []
    for value in values:
        if found and not columns.count:
            break
        attempt = Columns({**columns.values, name: np.full(columns.count, value)}, columns.derived, columns.count)
        keep = np.ones(columns.count, bool)
        for rule in rules:
            keep = keep & _satisfied(attempt, rule)
        found.append(attempt.take(keep))
        columns = columns.take(~keep)
    kept = [part for part in found if part.count] or found[:1]
    names = [key for key, value in kept[0].values.items() if isinstance(value, np.ndarray)]
    joined = {key: np.concatenate([part.values[key] for part in kept]) for key in names}
    return Columns({**kept[0].values, **joined}, columns.derived, sum(part.count for part in kept))
