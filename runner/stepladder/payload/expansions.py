"""Functions and forms as ops that all that follows computes: epilogues, kernels without a matmul, references."""

from __future__ import annotations

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import element_of
from stepladder.payload import (
    bit_counts,
    bit_views,
    boolean_products,
    branches,
    computed_factors,
    computed_slices,
    counted_loops,
    gathers,
    global_constants,
    grouped_loops,
    index_tensors,
    integer_factors,
    loop_nests,
    lowered_ops,
    parallel_loops,
    placed_numbers,
    propagated_extrema,
    returned_buffers,
    scatters,
    selected_extrema,
    shape_folding,
    sign_bits,
    sliding_windows,
    subtracted_products,
    sunk_numbers,
    tosa,
    unrolled_loops,
)

_BY_UPSTREAM = ("fpowi", "clampf")
# Ops that depend on the extents of tensors, and conditions that may.
_FOLDED = ("scf.if", "tensor.dim", "tensor.reshape")
# How many operands of parts of buffers and tensors are no offsets and sizes.
_PARTS = {"memref.subview": 1, "memref.reinterpret_cast": 1, "tensor.extract_slice": 1, "tensor.insert_slice": 2}
# Bits of the integers of which kernels have a function that computes magnitudes.
_MAGNITUDE_BITS = 32
# Predicates of arith.cmpf.
_OEQ, _OGE, _OLT, _UNO = 1, 3, 4, 14
# The least normal values, by type.
_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


def expand(function: ir.Operation) -> None:
    """Replaces functions by others.

    Ops of TOSA become linalg ops (`payload.tosa`). Powers with constant integers become multiplications, clamps
    extrema, tests for values that are not finite comparisons, a sine and cosine two ops, roundings towards zero
    those down and up, and magnitudes of integers of other than 32 bits the larger of a value and its negative, and
    counts of bits sums (`payload.bit_counts`). A sum of products by `math.fma` becomes one of products and sums,
    and `tensor.splat` a `linalg.fill`. Loops of `affine` become those of `scf`, parallel ones sequential
    (`payload.parallel_loops`), those with a counter bounded (`payload.counted_loops`), those over elements of
    buffers linalg ops (`payload.loop_nests`), and regions that run anyway, also by conditions on extents, go.
    Results of branches are chosen by others (`payload.branches`). Loops around parts at computed offsets become
    their iterations (`payload.unrolled_loops`). Insertions of scalars and paddings by computed ones become linalg
    ops (`payload.placed_numbers`), scalars are computed where they are read (`payload.sunk_numbers`), packings and
    convolutions become views and contractions (`payload.lowered_ops`, `payload.sliding_windows`), and gathers and
    scatters linalg ops (`payload.gathers`, `payload.scatters`). Factors that contractions compute are computed
    before (`payload.computed_factors`), and loops that quotients are read of become two (`payload.grouped_loops`).
    Selections of the larger value are extrema (`payload.selected_extrema`, `payload.propagated_extrema`).
    Contractions that subtract become sums that an elementwise op subtracts (`payload.subtracted_products`), and
    products of booleans those of integers (`payload.boolean_products`), and integers that contractions multiply in
    floating point are converted before (`payload.integer_factors`). Casts of bits that change signs become
    magnitudes and negatives (`payload.sign_bits`), and arguments whose bits others are have the type of these
    (`payload.bit_views`). Buffers of the caller that a function writes are not returned
    (`payload.returned_buffers`), and constants of the module are those of the function
    (`payload.global_constants`).

    Args:
        function: a function; it is changed where there are such ops.
    """
    tosa.lower(function)
    global_constants.inline(function)
    if walk(function, *(f"math.{name}" for name in _BY_UPSTREAM)):
        passmanager.PassManager.parse(f"{function.name}(math-expand-ops{{ops={','.join(_BY_UPSTREAM)}}})").run(function)
    if walk(function, "affine.for", "affine.parallel"):
        passmanager.PassManager.parse(f"{function.name}(lower-affine)").run(function)
    if walk(function, "scf.execute_region", "scf.index_switch"):  # by constants
        passmanager.PassManager.parse(f"{function.name}(canonicalize)").run(function)
    if _depends_on_extents(function):
        shape_folding.fold(function)
    returned_buffers.drop(function)
    counted_loops.make_bounded(function)
    parallel_loops.make_sequential(function)
    loop_nests.lower(function)
    branches.select(function)
    unrolled_loops.unroll(function)
    index_tensors.store(function)
    placed_numbers.lower(function)
    computed_slices.lower(function)
    sunk_numbers.sink(function)
    lowered_ops.lower(function)
    gathers.lower(function)
    scatters.lower(function)
    computed_factors.separate(function)
    grouped_loops.split(function)
    sliding_windows.gather(function)
    subtracted_products.separate(function)
    boolean_products.count(function)
    integer_factors.convert(function)
    selected_extrema.fold(function)
    propagated_extrema.separate(function)
    bit_counts.lower(function)
    sign_bits.replace(function)
    bit_views.retype(function)
    for op in walk(function, "math.trunc"):
        _expand_truncation(op)
    for op in walk(function, "math.isfinite", "math.isinf", "math.isnan", "math.isnormal"):
        _expand_test(op)
    for op in walk(function, "math.sincos"):
        _expand_sincos(op)
    for op in walk(function, "math.fma"):
        _expand_fma(op)
    for op in walk(function, "tensor.splat"):
        _expand_splat(op)
    for op in walk(function, "math.absi"):
        element = element_of(op.results[0].type)
        if isinstance(element, ir.IntegerType) and element.width != _MAGNITUDE_BITS:
            _expand_magnitude(op)


def _depends_on_extents(function: ir.Operation) -> bool:
    """Tells whether a function on static tensors has ops that their extents decide, or constants, outside of loops."""
    if len(function.regions[0].blocks) != 1:
        return False
    block = function.regions[0].blocks[0]
    types = [argument.type for argument in block.arguments]
    is_static = all(not isinstance(type_, ir.ShapedType) or type_.has_static_shape for type_ in types)
    ops = [op.operation for op in block.operations]
    return is_static and any(
        op.name in _FOLDED or len(op.operands) > _PARTS.get(op.name, len(op.operands)) for op in ops
    )


def _created(name: str, result: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(name, results=[result], operands=list(operands), attributes=attributes).results[0]


def _constant(type_: ir.Type, number: float) -> ir.Value:
    """Creates a scalar, or a splat tensor of it."""
    element = element_of(type_)
    value = ir.FloatAttr.get(element, number) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
    filled = ir.DenseElementsAttr.get_splat(type_, value) if isinstance(type_, ir.ShapedType) else value
    return _created("arith.constant", type_, value=filled)


def _compared(predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
    type_ = ir.IntegerType.get_signless(1)
    if isinstance(left.type, ir.RankedTensorType):
        type_ = ir.RankedTensorType.get(left.type.shape, type_)
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return _created("arith.cmpf", type_, left, right, predicate=number)


def _replace(op: ir.Operation, *values: ir.Value) -> None:
    for result, value in zip(op.results, values):
        result.replace_all_uses_with(value)
    op.erase()


def _expand_truncation(op: ir.Operation) -> None:
    """Replaces a rounding towards zero, which the conversion to NVVM lacks, by one up below zero, and else down."""
    (value,), type_ = op.operands, op.results[0].type
    with ir.InsertionPoint(op), op.location:
        is_below = _compared(_OLT, value, _constant(type_, 0.0))
        up, down = _created("math.ceil", type_, value), _created("math.floor", type_, value)
        whole = _created("arith.select", type_, is_below, up, down)
    _replace(op, whole)


def _expand_test(op: ir.Operation) -> None:
    (value,) = op.operands
    with ir.InsertionPoint(op), op.location:
        if op.name == "math.isnan":
            found = _compared(_UNO, value, value)
        else:
            size = _created("math.absf", value.type, value)
            infinity = _constant(value.type, float("inf"))
            found = _compared(_OEQ if op.name == "math.isinf" else _OLT, size, infinity)
            if op.name == "math.isnormal":
                least = _constant(value.type, _NORMAL[str(element_of(value.type))])
                found = _created("arith.andi", found.type, found, _compared(_OGE, size, least))
    _replace(op, found)


def _expand_sincos(op: ir.Operation) -> None:
    (value,) = op.operands
    with ir.InsertionPoint(op), op.location:
        both = [_created(name, value.type, value) for name in ("math.sin", "math.cos")]
    _replace(op, *both)


def _expand_fma(op: ir.Operation) -> None:
    """Replaces a product and sum that adds to what a reduction has summed so far; others are rounded once."""
    parent, (left, right, total) = op.parent, op.operands
    if parent is None or "reduction" not in str(parent.attributes.get("iterator_types", "")):
        return
    arguments = parent.regions[0].blocks[0].arguments
    if total != arguments[len(arguments) - 1]:
        return
    with ir.InsertionPoint(op), op.location:
        product = _created("arith.mulf", total.type, left, right)
        new = _created("arith.addf", total.type, total, product)
    _replace(op, new)


def _expand_splat(op: ir.Operation) -> None:
    type_ = op.results[0].type
    if len(op.operands) > 1:  # with dynamic dimensions
        return
    with ir.InsertionPoint(op), op.location:
        empty = _created("tensor.empty", type_)
        filled = create_named_op("linalg.fill", [op.operands[0]], empty).results[0]
    _replace(op, filled)


def _expand_magnitude(op: ir.Operation) -> None:
    (value,), type_ = op.operands, op.results[0].type
    with ir.InsertionPoint(op), op.location:
        negative = _created("arith.subi", type_, _constant(type_, 0), value)
        larger = _created("arith.maxsi", type_, value, negative)
    _replace(op, larger)
