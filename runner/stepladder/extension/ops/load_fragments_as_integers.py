"""`tc.load_fragments_as_integers`: loads fragments of 8-bit floating point as i8, and casts them."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir, memref
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.mlir.types import bit_width


class LoadFragmentsAsIntegers(Tc.Operation, name="load_fragments_as_integers"):
    """Makes each `nvgpu.ldmatrix` of 8-bit floating point load i8, from a `memref.view` of i8, and casts the result.

    Upstream lowers fragments of fp8 to registers of i8 in `nvgpu.mma.sync`, and in `nvgpu.ldmatrix` does not.

    Operands: a handle to any op; loads of other types stay as they are.
    Refuses: a load from something else than a `memref.view` of the shared memory of a block.
    """

    target: Handle


_BITS = 8


@transform_op(LoadFragmentsAsIntegers)
def load_fragments_as_integers(payload: ir.Operation, op: LoadFragmentsAsIntegers, rewriter: Rewriter) -> None:
    """Rewrites the loads below `payload`; see the op."""
    i8 = ir.IntegerType.get_signless(_BITS)
    views: dict[ir.Value, ir.Value] = {}
    for load in walk(payload, "nvgpu.ldmatrix"):
        type_ = ir.VectorType(load.results[0].type)
        if bit_width(type_.element_type) != _BITS or isinstance(type_.element_type, ir.IntegerType):
            continue
        tile, *indices = load.operands
        if tile not in views:
            view = producer(tile)
            if view is None or view.name != "memref.view":
                raise Refusal(load, "expected a tile that is a memref.view of the shared memory of a block")
            tile_type = ir.MemRefType(tile.type)
            with ir.InsertionPoint(view), view.location:
                integers = ir.MemRefType.get(tile_type.shape, i8, tile_type.layout, tile_type.memory_space)
                views[tile] = memref.view(integers, view.operands[0], view.operands[1], list(view.operands)[2:])
        with ir.InsertionPoint(load), load.location:
            load_of_integers = ir.Operation.create(
                "nvgpu.ldmatrix",
                results=[ir.VectorType.get(type_.shape, i8)],
                operands=[views[tile], *indices],
                attributes=attributes_of(load),
            )
            cast = arith.bitcast(type_, load_of_integers.results[0])
        rewriter.replace_op(load, [cast])
