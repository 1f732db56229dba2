"""The Python-defined transform extension: the `tc` dialect, one op a module."""

from __future__ import annotations

from stepladder.bindings import ir
from stepladder.extension import (  # noqa: F401  (an op registers itself when its module is imported)
    alternate_tiles,
    convert_to_warpgroup_mma,
    dialect,
    fit_boxes,
    form_clusters,
    insert_barrier,
    issue_loads_ahead,
    issue_loads_early,
    join_fragment_loads,
    keep_products_in_flight,
    load_by_tma,
    lower_warpgroup_mma,
    mark_grid_constants,
    multicast_tiles,
    normalize_payload,
    order_transposed_tiles,
    overlap_launches,
    pack_shared_memory,
    pass_descriptors_by_value,
    persist_blocks,
    rasterize_blocks,
    reinterpret_elements,
    rotate_loop,
    share_last_tiles,
    specialize_warps,
    split_reduction,
    spread_copies,
    store_by_tma,
    store_from_registers,
    warpgroup_ops,
)


def load() -> None:
    """Makes the `tc` dialect known to the current MLIR context; once a context."""
    dialect.Tc.load()
    dialect.attach_all(ir.Context.current)
