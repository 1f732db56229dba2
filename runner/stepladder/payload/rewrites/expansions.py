"""Rewrites a function to ops that epilogues, kernels without a matmul and reference programs compute."""

from __future__ import annotations

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.traverse import walk
from stepladder.payload.rewrites import (
    bit_counts,
    bit_views,
    boolean_products,
    branches,
    computed_factors,
    computed_slices,
    counted_loops,
    exponential_sums,
    filled_slices,
    gathers,
    global_constants,
    grouped_loops,
    index_tensors,
    inserted_scalars,
    integer_factors,
    integer_powers,
    joined_terms,
    loop_nests,
    lowered_ops,
    masked_folds,
    parallel_loops,
    propagated_extrema,
    read_elements,
    repeated_parts,
    returned_buffers,
    scalar_functions,
    scaled_factors,
    scatters,
    selected_extrema,
    shape_folding,
    sign_bits,
    sliding_windows,
    subtracted_products,
    sunk_scalars,
    tosa,
    truncated_sums,
    unit_axes,
    unit_reductions,
    unit_strides,
    unpacked_parts,
    unrolled_loops,
)

# Ops of `math` that upstream's pass expands: powers with constant integers, and clamps.
_BY_UPSTREAM = ("fpowi", "clampf")
# Ops that depend on the extents of tensors, and conditions that may.
_FOLDED = ("scf.if", "tensor.dim", "tensor.reshape")
# Arithmetic on indices: unrolled loops fold it, bodies of linalg ops compute it.
_OF_INDICES = ("affine.apply", "affine.max", "affine.min")
# How many operands of parts of buffers and tensors are no offsets and sizes.
_PARTS = {"memref.subview": 1, "memref.reinterpret_cast": 1, "tensor.extract_slice": 1, "tensor.insert_slice": 2}

# In the order in which they run. The docstring of each module describes its rewrite.
_REWRITES = (
    # Buffers and control flow: what is left is straight-line code, and loops that MLIR's analyses bound.
    returned_buffers.drop,
    counted_loops.make_bounded,
    parallel_loops.make_sequential,
    loop_nests.lower,
    branches.select,
    unrolled_loops.unroll,
    branches.select,  # those of iterations
    # Scalars, slices and indexed accesses become linalg ops.
    index_tensors.store,
    inserted_scalars.lower,
    unit_strides.normalize,
    filled_slices.forward,
    unit_axes.expand,
    unit_reductions.fold,
    computed_slices.lower,
    sunk_scalars.sink,
    lowered_ops.lower,
    read_elements.replace,
    gathers.lower,
    scatters.lower,
    repeated_parts.repeat,
    unpacked_parts.join,
    joined_terms.join,
    masked_folds.separate,
    exponential_sums.separate,
    # Contractions multiply and add elements that they read, indexed by their loops.
    computed_factors.separate,
    grouped_loops.split,
    sliding_windows.gather,
    subtracted_products.separate,
    boolean_products.count,
    truncated_sums.narrow,
    scaled_factors.hoist,
    integer_factors.convert,
    # Functions of elements, and of their bits.
    selected_extrema.fold,
    propagated_extrema.separate,
    integer_powers.expand,
    bit_counts.lower,
    sign_bits.replace,
    bit_views.retype,
    scalar_functions.expand,
)


def expand(function: ir.Operation) -> None:
    """Replaces ops that pipelines do not take by ops that they take.

    TOSA, powers, clamps, `affine` and conditions by constants are lowered by upstream's passes; the other rewrites are
    those of this package, in the order of `_REWRITES`.

    Args:
        function: a function; it is changed where there are such ops.
    """
    tosa.lower(function)
    global_constants.inline(function)
    if walk(function, *(f"math.{name}" for name in _BY_UPSTREAM)):
        _run_pass(function, f"math-expand-ops{{ops={','.join(_BY_UPSTREAM)}}}")
    if walk(function, "affine.for", "affine.parallel") or any(map(_is_in_a_body, walk(function, *_OF_INDICES))):
        _run_pass(function, "lower-affine")
    if walk(function, "scf.execute_region", "scf.index_switch"):  # by constants
        _run_pass(function, "canonicalize")
    if _depends_on_extents(function):
        shape_folding.fold(function)
    for rewrite in _REWRITES:
        rewrite(function)


def _run_pass(function: ir.Operation, name: str) -> None:
    passmanager.PassManager.parse(f"{function.name}({name})").run(function)


def _is_in_a_body(op: ir.Operation) -> bool:
    """Returns whether an op is in the body of a linalg op, or of one that computes each element of a tensor."""
    return op.parent is not None and op.parent.name.startswith(("linalg.", "tensor."))


def _depends_on_extents(function: ir.Operation) -> bool:
    """Returns whether a function on static tensors has ops that their extents decide, or constants, outside loops."""
    if len(function.regions[0].blocks) != 1:
        return False
    block = function.regions[0].blocks[0]
    types = [argument.type for argument in block.arguments]
    is_static = all(not isinstance(type_, ir.ShapedType) or type_.has_static_shape for type_ in types)
    ops = [op.operation for op in block.operations]
    return is_static and any(
        op.name in _FOLDED or len(op.operands) > _PARTS.get(op.name, len(op.operands)) for op in ops
    )
