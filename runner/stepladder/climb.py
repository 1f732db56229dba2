"""Climbs: a pipeline with all its optimizations left out, and then one more of them at a time.

Each rung is the same pipeline with steps left out, never another code path, so that the difference between two rungs is
what the steps between them gain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Climb:
    """A climb: `rungs` maps titles to the steps that are left out; `settings` holds knobs that all rungs share."""

    pipeline: str
    rungs: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, int | str] = field(default_factory=dict)

    def settings_of(self, without: tuple[str, ...], knobs: Mapping[str, int | str]) -> dict[str, int | str]:
        """Returns the settings of a rung: a step that is left out decides its own knob."""
        settings = {**self.settings, **knobs}
        for step, knob in (("multi_buffer", "buffers"), ("pad_shared_memory", "padding"), ("persist_blocks", "blocks"),
                           ("form_clusters", "cluster_m"), ("form_clusters", "cluster_n")):
            if step in without:
                settings.pop(knob, None)
        return settings


def _rungs(base: str, *added: tuple[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Returns rungs from a first title and (title, steps added) in climbing order."""
    steps = [steps for _, steps in added]
    titles = [base, *(title for title, _ in added)]
    return {title: tuple(step for later in steps[number:] for step in later) for number, title in enumerate(titles)}


# The order of CC'22, figure 8.
WMMA = Climb("wmma", _rungs(
    "WMMA from global memory",
    ("+ C in registers", ("hoist_accumulators",)),
    ("+ tiles in shared memory", ("stage_in_shared_memory",)),
    ("+ padding", ("pad_shared_memory",)),
    ("+ vectorized copies", ("vectorize_copies",)),
    ("+ latency hiding", ("hide_latency",)),
    ("+ loads issued early", ("issue_loads_early",)),
    ("+ two buffers", ("multi_buffer",))))

WMMA_ASYNCHRONOUS = Climb("wmma", _rungs(
    "asynchronous copies, pipelined",
    ("+ rotated loop", ("rotate_loop",)),
    ("+ copies mapped cyclically", ("map_copies_cyclically",)),
    ("+ copies spread", ("spread_copies",)),
    ("+ blocks rasterized", ("rasterize_blocks",))), {"latency": "asynchronous"})

MMA_SYNC = Climb("mma_sync", _rungs(
    "ldmatrix and mma.sync, copies pipelined",
    ("+ swizzle", ("swizzle_shared_memory",)),
    ("+ L1 bypassed", ("bypass_l1",)),
    ("+ ldmatrix of four tiles", ("join_fragment_loads",)),
    ("+ rotated loop", ("rotate_loop",)),
    ("+ copies mapped cyclically", ("map_copies_cyclically",)),
    ("+ copies spread", ("spread_copies",)),
    ("+ blocks rasterized", ("rasterize_blocks",))))

WGMMA = Climb("wgmma", _rungs(
    "loads by a warpgroup of its own",
    ("+ products kept in flight", ("keep_products_in_flight",)),
    ("+ blocks rasterized", ("rasterize_blocks",)),
    ("+ blocks that stay", ("persist_blocks",)),
    ("+ launches overlap", ("overlap_launches",)),
    ("+ clusters, multicast", ("form_clusters", "multicast_tiles"))))

CLIMBS = {"wmma": WMMA, "wmma_asynchronous": WMMA_ASYNCHRONOUS, "mma_sync": MMA_SYNC, "wgmma": WGMMA}
