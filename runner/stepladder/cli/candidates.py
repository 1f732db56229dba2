"""Knob settings that the cost model ranks, as rows of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.pipeline.cost_model.ranking import Candidate

# Knob values of kernels that do not use a feature; tables leave them out.
_NEUTRAL: dict[str, int | str] = {
    "cluster_m": 1,
    "cluster_n": 1,
    "split_k": 1,
    "schedule": "cooperative",
    "tile_scheduler": "data_parallel",
    "split_k_workspace": "cluster",
    "persistent_blocks": 0,
    "split_f32": "kernels",
    "min_blocks_per_sm": 1,
    "launch_trigger": "early",
    "stagger": 0,
    "kept_weights": 0,
    "swap_operands": False,
}


def knobs_text(knobs: Mapping[str, int | str]) -> str:
    """Returns the knobs of a setting but those of features that its kernel does not use.

    Args:
        knobs: of the setting.
    """
    return " ".join(_short(name, value) for name, value in knobs.items() if not _neutral(name, value))


def candidate_row(number: int, candidate: Candidate) -> dict[str, object]:
    """Returns a row with the knobs of a setting, and its predicted time term by term, in us.

    Args:
        number: of the row.
        candidate: the setting.
    """
    from stepladder.pipeline.cost_model.ranking import LIMITS, PARTS

    times = {name: f"{candidate.times[name]:.1f}" for name in (*PARTS, *LIMITS) if name in candidate.times}
    return {
        "": number,
        "knobs": knobs_text(candidate.knobs),
        "total": f"{candidate.microseconds:.1f}",
        "waves": f"{candidate.waves:.2f}",
        **times,
        "bound": candidate.bound,
    }


def _neutral(name: str, value: int | str) -> bool:
    return _NEUTRAL.get(name) == value


def _short(name: str, value: int | str) -> str:
    from stepladder.pipeline.definition import value_text

    return f"{name}={value_text(value)}"
