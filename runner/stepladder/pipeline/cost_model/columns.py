"""Knob settings as columns, thousands at once: each knob is an array with one value a setting."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stepladder.pipeline.cost_model.column_expressions import Column, Mask, Valued, both, compiled, truth
from stepladder.pipeline.cost_model.encoded_columns import TABLE, Array, Coded, numbered
from stepladder.pipeline.expressions import UnknownName, Value


class Result(NamedTuple):
    """A column, and for which settings it is valid; `valid` is True where it is for all.

    Args:
        value: an array with one value a setting, or one value for all of them.
        valid: an array of bool, or one bool for all settings.
    """

    value: Column
    valid: Mask = True

    def holds(self) -> Mask:
        """Returns whether the expression is valid and true: for each setting, or one bool for all of them."""
        return both(truth(self.value), self.valid)


# Python's operators take arrays too, and single values, which most operands are, in a tenth of the time of NumPy's.
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
        self._results: dict[str, Valued] = {}
        self._without: Columns | None = None
        self._dependent: Collection[str] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values or name in self.derived

    @functools.cached_property
    def _varying(self) -> dict[str, Coded | Array]:
        """The values that are columns."""
        return {name: value for name, value in self.values.items() if isinstance(value, Coded | Array)}

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
        return self._named(name)[0]

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

    def is_in(self, name: str, numbers: Sequence[int]) -> Array:
        """Returns which settings have one of some numbers as the value of a knob.

        Args:
            name: of the knob.
            numbers: the values.
        """
        value = self.values.get(name)
        if isinstance(value, Coded):
            return np.isin(value.options, numbers)[value.codes]
        return np.isin(self.floats(name), numbers)

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
        varying = {name: value for name, value in self._varying.items() if name in names}
        for value in varying.values():
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
        some = Columns(values, self.derived, self.count)
        some._varying = varying
        return some.take(first_rows), combination

    def take(self, rows: Array) -> Columns:
        """Returns the settings that a mask or an array of indices chooses.

        Args:
            rows: an array of bool, one a setting, or of indices of settings.
        """
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        varying = {name: value.take(rows) for name, value in self._varying.items()}
        taken = Columns({**self.values, **varying}, self.derived, len(rows))
        taken._varying = varying
        return taken

    def bound(self, name: str, value: Column | Coded) -> Columns:
        """Returns the settings with a knob.

        Args:
            name: of the knob.
            value: one for all settings, or one a setting.
        """
        columns = Columns({**self.values, name: value}, self.derived, self.count)
        columns._varying = {other: column for other, column in self._varying.items() if other != name}
        if isinstance(value, Coded | Array):
            columns._varying[name] = value
        return columns

    def with_knob(self, name: str, value: Column, dependent: Collection[str]) -> Columns:
        """Returns the settings with one more knob. What does not depend on it is evaluated once for all its values.

        Args:
            name: of the knob.
            value: one for all settings, or an array of a row for each value of the knob.
            dependent: the derived names that depend on the knob.
        """
        columns = self.bound(name, value)
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
        return Result(*compiled(text)(self._named))

    def _named(self, name: str) -> Valued:
        if name in self.values:
            value = self.values[name]
            return value.values if isinstance(value, Coded) else value, True
        if name not in self.derived:
            raise UnknownName(name)
        if self._without is not None and name not in self._dependent:
            return self._without._named(name)
        if name not in self._results:
            self._results[name] = 0, False  # what a name derived from itself finds
            self._results[name] = compiled(self.derived[name])(self._named)
        return self._results[name]
