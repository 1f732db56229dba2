"""Transform ops written in Python: the `tc` dialect, with one op per module, and the interface of plug-ins.

`__all__` is the interface that plug-ins may rely on; docs/extending.md shows its use. The modules of the ops are not
part of it.
"""

from __future__ import annotations

from stepladder.extension.lib import dialect, warpgroup_ops
from stepladder.extension.lib.dialect import (
    Dialect,
    Handle,
    HandleResult,
    Refusal,
    Tc,
    load,
    transform_op,
)
from stepladder.extension.ops import (
    approximate_math,
    compute_on_fragments,
    convert_to_warpgroup_mma,
    direct_store_epilogue,
    distribute_elements,
    distribute_tiles,
    enable_dependent_launch,
    extend_integers,
    flush_denormals,
    form_clusters,
    hoist_allocas,
    hoist_prefetch,
    insert_barrier,
    interleave_copies,
    load_by_tma,
    load_fragments_as_integers,
    lower_masked_copies,
    lower_warpgroup_mma,
    make_persistent,
    map_consumer_to_lanes,
    map_masked_copies,
    map_repacking_to_threads,
    mark_grid_constants,
    matmul_to_tiles,
    merge_ldmatrix,
    multicast_tiles,
    multiply_as_3xtf32,
    multistage_loads,
    normalize_consumer,
    normalize_payload,
    order_transposed_tiles,
    outline_consumer,
    outline_elementwise,
    outline_masked_consumer,
    outline_matmuls,
    pack_shared_memory,
    pass_descriptors_by_value,
    pass_pointers,
    pingpong_consumers,
    pipeline_wgmma,
    plan_workspace,
    prefetch_tiles,
    rasterize_blocks,
    recognize_matmul,
    reinterpret_elements,
    repack_operands,
    rotate_loop,
    separate_accumulation,
    set_min_blocks_per_sm,
    shrink_tma_boxes,
    specialize_warps,
    split_into_tf32,
    split_k,
    stream_k_tail,
    swap_operands,
    tiles_to_shared_memory,
    tiles_to_xegpu,
    tma_store_epilogue,
    transpose_operands,
)
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.mlir.types import is_workgroup_memory

__all__ = [
    "Dialect",
    "Handle",
    "HandleResult",
    "Refusal",
    "Tc",
    "attributes_of",
    "ir",
    "is_workgroup_memory",
    "load",
    "producer",
    "transform_op",
    "walk",
]
