"""Ablations: a pipeline with all its optimizations left out, and then one more of them at a time.

Each variant is the same pipeline with steps left out, never another code path: the difference between two variants is
the gain of the steps between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ablation:
    """An ablation of a pipeline.

    Attributes:
        pipeline: its name.
        variants: title -> the steps that are left out.
        settings: knob values that all variants share.
    """

    pipeline: str
    variants: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, int | str] = field(default_factory=dict)

    def settings_of(self, without: tuple[str, ...], knobs: Mapping[str, int | str]) -> dict[str, int | str]:
        """Returns the settings of a variant: those of `knobs` that a step left out does not imply."""
        settings = {**self.settings, **knobs}
        for step, knob in (
            ("multi_buffer", "stages"),
            ("pad_shared_memory", "padding"),
            ("make_persistent", "persistent_blocks"),
            ("form_clusters", "cluster_m"),
            ("form_clusters", "cluster_n"),
        ):
            if step in without:
                settings.pop(knob, None)
        return settings


def _variants(base: str, *added: tuple[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Returns variants from a first title and (title, steps added) in the order in which they are added."""
    steps = [steps for _, steps in added]
    titles = [base, *(title for title, _ in added)]
    return {title: tuple(step for later in steps[number:] for step in later) for number, title in enumerate(titles)}


# The order of CC'22, figure 8.
WMMA = Ablation(
    "wmma",
    _variants(
        "WMMA from global memory",
        ("+ C in registers", ("hoist_accumulators",)),
        ("+ tiles in shared memory", ("stage_in_shared_memory",)),
        ("+ padding", ("pad_shared_memory",)),
        ("+ vectorized copies", ("vectorize_copies",)),
        ("+ latency hiding", ("prefetch_to_registers",)),
        ("+ loads issued early", ("hoist_prefetch",)),
        ("+ two buffers", ("multi_buffer",)),
    ),
)

WMMA_ASYNCHRONOUS = Ablation(
    "wmma",
    _variants(
        "asynchronous copies, pipelined",
        ("+ rotated loop", ("rotate_loop",)),
        ("+ copies mapped cyclically", ("map_copies_cyclically",)),
        ("+ copies spread", ("interleave_copies",)),
        ("+ blocks rasterized", ("rasterize_blocks",)),
    ),
    {"prefetch": "cp_async"},
)

MMA_SYNC = Ablation(
    "mma_sync",
    _variants(
        "ldmatrix and mma.sync, copies pipelined",
        ("+ swizzle", ("swizzle_shared_memory",)),
        ("+ L1 bypassed", ("bypass_l1",)),
        ("+ ldmatrix of four tiles", ("merge_ldmatrix",)),
        ("+ rotated loop", ("rotate_loop",)),
        ("+ copies mapped cyclically", ("map_copies_cyclically",)),
        ("+ copies spread", ("interleave_copies",)),
        ("+ blocks rasterized", ("rasterize_blocks",)),
    ),
)

WGMMA = Ablation(
    "wgmma",
    _variants(
        "loads by a warpgroup of its own",
        ("+ products kept in flight", ("pipeline_wgmma",)),
        ("+ blocks rasterized", ("rasterize_blocks",)),
        ("+ blocks that stay", ("make_persistent",)),
        ("+ launches overlap", ("enable_dependent_launch",)),
        ("+ clusters, multicast", ("form_clusters", "multicast_tiles")),
    ),
)

ABLATIONS = {"wmma": WMMA, "wmma_asynchronous": WMMA_ASYNCHRONOUS, "mma_sync": MMA_SYNC, "wgmma": WGMMA}
