"""The climb: the WMMA pipeline with all optimizations left out, and then one more of them at a time.

Each rung is the same pipeline with steps left out, never another code path, so that the difference between two rungs is
what the step between them gains. The order is that of CC'22, figure 8.
"""

from __future__ import annotations

PIPELINE = "wmma"

_LATENCY = ("hide_latency", "issue_loads_early", "multi_buffer")
_COPIES = ("pad_shared_memory", "vectorize_copies", *_LATENCY)

# Title -> the steps that are left out.
RUNGS: dict[str, tuple[str, ...]] = {
    "WMMA from global memory": ("stage_in_shared_memory", "hoist_accumulators", *_COPIES),
    "+ C in registers": ("stage_in_shared_memory", *_COPIES),
    "+ tiles in shared memory": _COPIES,
    "+ padding": ("vectorize_copies", *_LATENCY),
    "+ vectorized copies": _LATENCY,
    "+ latency hiding": ("issue_loads_early", "multi_buffer"),
    "+ loads issued early": ("multi_buffer",),
    "+ two buffers": (),
}
