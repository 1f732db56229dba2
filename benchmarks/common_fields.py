"""Cases of a result without repetition: the values that most cases have once, and in each case those that differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

Case = dict[str, Any]


def divide(cases: dict[str, Case], kept: Iterable[str] = ()) -> tuple[Case, dict[str, Case]]:
    """Divides cases into what most of them have and what is their own; `join` is its inverse.

    Args:
        cases: by name; values that are dictionaries are divided in the same way.
        kept: fields that each case keeps, such as what was measured.

    Returns:
        The most frequent value of each field that all cases have, and the cases without the fields that have it.
    """
    fields = [name for name in next(iter(cases.values()), {}) if name not in kept]
    usual: Case = {}
    differences = {name: dict(case) for name, case in cases.items()}
    for field in fields:
        if not all(field in case for case in cases.values()):
            continue
        values = {name: case[field] for name, case in cases.items()}
        if all(isinstance(value, dict) for value in values.values()):
            usual[field], parts = divide(values)
            for name, part in parts.items():
                differences[name][field] = part
        else:
            ((text, _),) = Counter(map(json.dumps, values.values())).most_common(1)
            usual[field] = json.loads(text)
        for name, case in differences.items():
            if case[field] == ({} if isinstance(values[name], dict) else usual[field]):
                del case[field]
    return usual, differences


def join(usual: Case, fields: Case) -> Case:
    """Returns a case with the values that it shares with most others.

    Args:
        usual: what most cases have.
        fields: what is the case's own.
    """
    case = usual | fields
    for field, value in usual.items():
        if isinstance(value, dict) and isinstance(fields.get(field, {}), dict):
            case[field] = join(value, fields.get(field, {}))
    return case
