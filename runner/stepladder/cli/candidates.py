"""Knob settings that the cost model ranks, as rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.pipeline.cost_model.ranking import Candidate

# Knob values of kernels that do not use a feature; tables and lists of chosen knobs leave them out.
_NEUTRAL: dict[str, tuple[int | str, ...]] = {
    "cluster_m": (1,),
    "cluster_n": (1,),
    "split_k": (1,),
    "schedule": ("cooperative",),
    "tile_scheduler": ("data_parallel",),
    "split_k_workspace": ("cluster",),
    "persistent_blocks": (0,),
    "split_f32": ("kernels",),
    "min_blocks_per_sm": (0, 1),
    "launch_trigger": ("early",),
    "stagger": (0,),
    "kept_weights": (0,),
    "swap_operands": (False,),
    "prefetch_steps": (0,),
    "early_weights": (False,),
    "elect_producer": (False,),
    "allow_tf32": (False,),
    "fast_accum": (True,),
    "producers": ("kernels",),
}


def is_neutral(name: str, value: int | str) -> bool:
    """Returns whether a knob has the value of kernels that do not use its feature.

    Args:
        name: of the knob.
        value: of the knob.
    """
    return value in _NEUTRAL.get(name, ())


def knobs_text(knobs: Mapping[str, int | str]) -> str:
    """Returns the knobs of a setting but those of features that its kernel does not use.

    Args:
        knobs: of the setting.
    """
    return " ".join(_short(name, value) for name, value in knobs.items() if not is_neutral(name, value))


def candidate_rows(candidates: Sequence[Candidate]) -> tuple[str, list[dict[str, object]]]:
    """Returns the knobs that all settings share, and a row for each setting: its predicted time term by term, in us,
    and its other knobs.

    Args:
        candidates: the settings, of one pipeline, in the order of their rows.
    """
    shared = dict(candidates[0].knobs) if len(candidates) > 1 else {}
    for candidate in candidates:
        shared = {name: value for name, value in shared.items() if candidate.knobs.get(name) == value}
    return knobs_text(shared), [_row(number, candidate, shared) for number, candidate in enumerate(candidates, 1)]


def _row(number: int, candidate: Candidate, shared: Mapping[str, int | str]) -> dict[str, object]:
    from stepladder.pipeline.cost_model.ranking import LIMITS, PARTS

    knobs = {name: value for name, value in candidate.knobs.items() if name not in shared}
    times = {name: f"{candidate.times[name]:.1f}" for name in (*PARTS, *LIMITS) if name in candidate.times}
    return {
        "": number,
        "total": f"{candidate.microseconds:.1f}",
        "waves": f"{candidate.waves:.2f}",
        **times,
        "bound": candidate.bound,
        "knobs": knobs_text(knobs),
    }


def _short(name: str, value: int | str) -> str:
    from stepladder.pipeline.definition import value_text

    return f"{name}={value_text(value)}"
