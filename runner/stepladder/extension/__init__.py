"""The Python-defined transform extension: the `tc` dialect, one op a module."""

from __future__ import annotations

from stepladder.extension.lib import dialect, warpgroup_ops  # noqa: F401  (an op registers itself when its module is imported)
from stepladder.extension.ops import (  # noqa: F401  (an op registers itself when its module is imported)
    convert_to_warpgroup_mma,
    direct_store_epilogue,
    enable_dependent_launch,
    form_clusters,
    hoist_prefetch,
    insert_barrier,
    interleave_copies,
    load_by_tma,
    lower_warpgroup_mma,
    make_persistent,
    mark_grid_constants,
    merge_ldmatrix,
    multicast_tiles,
    multistage_loads,
    normalize_payload,
    order_transposed_tiles,
    pack_shared_memory,
    pass_descriptors_by_value,
    pingpong_consumers,
    pipeline_wgmma,
    rasterize_blocks,
    reinterpret_elements,
    rotate_loop,
    shrink_tma_boxes,
    specialize_warps,
    split_k,
    stream_k_tail,
    tma_store_epilogue,
)
from stepladder.mlir.bindings import ir, set_dialect_module


def load() -> None:
    """Makes the `tc` dialect known to the current MLIR context; once a context."""
    dialect.Tc.load()
    set_dialect_module(dialect.Tc.DIALECT_NAMESPACE, dialect)
    dialect.attach_all(ir.Context.current)
