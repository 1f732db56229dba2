"""`tc.outline_consumer`: moves the elementwise op on a product to a function of its own."""

from stepladder.extension.lib import memory
from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.elementwise import MARK
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, defining_op, producer, walk


class OutlineConsumer(Tc.Operation, name="outline_consumer"):
    """Moves the `linalg.generic` that consumes a warp's product to a private function, and calls it in its place.

    The function takes the block's tile of the product and the row and the column at which the warp's begins, and then
    the other operands of the op, and returns the last, the tiles that the op writes. In the launch, the tile has no
    view, behind which upstream's hoisting of transfers expects accesses to the accumulators, and no arithmetic on
    numbers, at which `convert-vector-to-gpu` fails.
    `tc.compute_on_fragments` and `tc.map_consumer_to_lanes` replace the call.

    Operands: a handle to the module.
    Refuses: more than one op with the attribute `operand_c`; a product that is no tile in shared memory; a body that
        takes a value from outside that is no constant.
    """

    target: Handle


@transform_op(OutlineConsumer)
def outline_consumer(payload: ir.Operation, op: OutlineConsumer, rewriter: Rewriter) -> None:
    """Outlines the consumer below `payload`; see the op."""
    found = [generic for generic in walk(payload, "linalg.generic") if MARK in generic.attributes]
    if not found:
        return
    if len(found) > 1:
        raise Refusal(found[1], "expected one elementwise op on the product")
    (generic,) = found
    _sink_constants(generic)
    sums = generic.operands[0]
    tile, view = memory.shared_tile_of(generic, sums), defining_op(sums)
    with ir.InsertionPoint(generic), generic.location:
        begin = [index(0), index(0)] if view == tile else memory.offsets_of(view)
    operands = [tile.results[0], *begin, *list(generic.operands)[1:]]
    name = memory.unique_symbol(payload, "consumer")
    types = [operand.type for operand in operands]
    outputs = len(generic.regions[0].blocks[0].operations[-1].operands)
    with ir.InsertionPoint.at_block_begin(payload.regions[0].blocks[0]), generic.location:
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "sym_visibility": ir.StringAttr.get("private"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, types[-outputs:])),
                MARK: ir.UnitAttr.get(),
            },
            regions=1,
        )
        block = function.regions[0].blocks.append(*types, arg_locs=[generic.location] * len(types))
        with ir.InsertionPoint(block):
            own, row, column, *others = block.arguments
            extents = ir.MemRefType(sums.type).shape
            part = memory.subview(own, [row, column], extents)
            # C's tile, as the op would return on tensors: `erase_dead_alloc_and_stores` takes a call without a result
            # for one that does not read its operands.
            end = ir.Operation.create("func.return", operands=others[-outputs:])
    with ir.InsertionPoint(generic), generic.location:
        ir.Operation.create(
            "func.call",
            results=types[-outputs:],
            operands=operands,
            attributes={"callee": ir.FlatSymbolRefAttr.get(name), MARK: ir.UnitAttr.get()},
        )
    generic.move_before(end)
    for position, operand in enumerate([part, *others]):
        generic.operands[position] = operand
    if view != tile and not list(sums.uses):
        rewriter.erase_op(view)


def _sink_constants(generic: ir.Operation) -> None:
    """Copies the constants that the body takes from outside into it."""
    body = generic.regions[0].blocks[0]
    for inner in operations_of(body):
        for position, value in enumerate(inner.operands):
            source = producer(value)
            if source is None or source.block == body:
                continue
            if source.name != "arith.constant":
                raise Refusal(generic, "the body takes a value from outside that is no constant")
            with ir.InsertionPoint(inner), inner.location:
                inner.operands[position] = ir.Operation.create(
                    source.name, results=[value.type], attributes=attributes_of(source)
                ).results[0]
