"""Ablations: a pipeline without its optimizations, and with one more of them in each variant.

Every variant is the same pipeline with steps left out, so that the difference between two variants is the gain of the
steps between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ablation:
    """The variants of a pipeline.

    Attributes:
        pipeline: the name of the pipeline.
        variants: title -> steps that are left out, the variant with the fewest optimizations first.
        settings: knobs that all variants share.
    """

    pipeline: str
    variants: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, int | str] = field(default_factory=dict)

    def settings_of(self, without: tuple[str, ...], knobs: Mapping[str, int | str]) -> dict[str, int | str]:
        """Returns the settings of a variant.

        Args:
            without: the steps that the variant leaves out.
            knobs: settings of the kernel; those that a left-out step would read are dropped.
        """
        settings = {**self.settings, **knobs}
        for step, knob in (
            ("multi_buffer", "stages"),
            ("pad_shared_memory", "padding"),
            ("make_persistent", "persistent_blocks"),
            ("enable_dependent_launch", "dependent_launch"),
            ("form_clusters", "cluster_m"),
            ("form_clusters", "cluster_n"),
        ):
            if step in without:
                settings.pop(knob, None)
        return settings


def _variants(base: str, *added: tuple[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Returns variants from the title of the first one and (title, added steps) of each later one."""
    steps = [steps for _, steps in added]
    titles = [base, *(title for title, _ in added)]
    return {title: tuple(step for later in steps[number:] for step in later) for number, title in enumerate(titles)}


# The order of CC'22, figure 8.
WMMA = Ablation(
    "wmma",
    _variants(
        "WMMA from global memory",
        ("+ accumulators in registers", ("hoist_accumulators",)),
        ("+ tiles in shared memory", ("stage_in_shared_memory",)),
        ("+ padding", ("pad_shared_memory",)),
        ("+ vectorized copies", ("vectorize_copies",)),
        ("+ register prefetch", ("prefetch_to_registers",)),
        ("+ hoisted prefetch", ("hoist_prefetch",)),
        ("+ double buffering", ("multi_buffer",)),
    ),
)

WMMA_ASYNCHRONOUS = Ablation(
    "wmma",
    _variants(
        "multistage cp.async",
        ("+ rotated loop", ("rotate_loop",)),
        ("+ cyclic copy mapping", ("map_copies_cyclically",)),
        ("+ interleaved copies", ("interleave_copies",)),
        ("+ threadblock rasterization", ("rasterize_blocks",)),
    ),
    {"prefetch": "cp_async"},
)

MMA_SYNC = Ablation(
    "mma_sync",
    _variants(
        "ldmatrix, mma.sync, multistage cp.async",
        ("+ swizzled shared memory", ("swizzle_shared_memory",)),
        ("+ L1 bypass", ("bypass_l1",)),
        ("+ ldmatrix.x4", ("merge_ldmatrix",)),
        ("+ rotated loop", ("rotate_loop",)),
        ("+ cyclic copy mapping", ("map_copies_cyclically",)),
        ("+ interleaved copies", ("interleave_copies",)),
        ("+ threadblock rasterization", ("rasterize_blocks",)),
    ),
)

WGMMA = Ablation(
    "wgmma",
    _variants(
        "warp-specialized",
        ("+ pipelined wgmma", ("pipeline_wgmma",)),
        ("+ threadblock rasterization", ("rasterize_blocks",)),
        ("+ persistent", ("make_persistent",)),
        ("+ programmatic dependent launch", ("enable_dependent_launch",)),
        ("+ cluster multicast", ("form_clusters", "multicast_tiles")),
    ),
)

ABLATIONS = {"wmma": WMMA, "wmma_asynchronous": WMMA_ASYNCHRONOUS, "mma_sync": MMA_SYNC, "wgmma": WGMMA}
