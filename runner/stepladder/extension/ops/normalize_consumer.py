"""`tc.normalize_consumer`: brings the elementwise op on a product to the form that the epilogues compute."""

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.elementwise import zeros_of
from stepladder.mlir.bindings import arith, bufferization, ir
from stepladder.mlir.traverse import defining_op, producer, walk
from stepladder.payload.facts import MATMULS


class NormalizeConsumer(Tc.Operation, name="normalize_consumer"):
    """Brings the one `linalg.generic` that consumes a matmul, or a batch, to the form that the epilogues compute.

    In this form the product is its first operand, its destination is C, and what C held before is read from the
    destination. A product that starts from a tensor instead of zeros starts from zeros, and the consumer adds the
    tensor: the epilogue reads each of its elements once, as it does the other operands.

    Operands: a handle to the module, whose one function is in the normal form (`tc.normalize_payload`).
    Refuses: elementwise ops that were not fused into one.
    """

    target: Handle


def _buffer_of(value: ir.Value) -> ir.Value | None:
    """Returns the buffer that a tensor is read from."""
    source = producer(value)
    return source.operands[0] if source is not None and source.name == "bufferization.to_tensor" else None


def _destination_tensor(old: ir.Operation, buffer: ir.Value) -> ir.Value:
    """Returns the tensor that C's buffer is read and written through: fusion drops it where it is not read."""
    type_ = ir.MemRefType(buffer.type)
    with ir.InsertionPoint(old), old.location:
        tensor = ir.RankedTensorType.get(type_.shape, type_.element_type)
        return bufferization.to_tensor(tensor, buffer, restrict=True, writable=True)


class _Consumer:
    """The new consumer.

    Args:
        sums: the product.
        c: C's tensor.
    """

    def __init__(self, sums: ir.Value, c: ir.Value) -> None:
        self.c = c
        self.identity = ir.AffineMap.get_identity(ir.ShapedType(sums.type).rank)
        self.operands = [sums]
        self.maps = [self.identity]

    def place(self, operand: ir.Value, map_: ir.AffineMap) -> int | None:
        """Returns which input an operand is; None for C, which is read from the destination."""
        buffer = _buffer_of(operand)
        if buffer is not None and buffer == defining_op(self.c).operands[0] and map_ == self.identity:
            return None
        for place, (known, known_map) in enumerate(zip(self.operands, self.maps)):
            if known == operand and known_map == map_:
                return place
        self.operands.append(operand)
        self.maps.append(map_)
        return len(self.operands) - 1

    def create(self) -> tuple[ir.Operation, ir.Block]:
        """Returns the op, at the insertion point, and the block of its body, which is empty."""
        iterator = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        maps = [ir.AffineMapAttr.get(map_) for map_ in (*self.maps, self.identity)]
        generic = ir.Operation.create(
            "linalg.generic",
            results=[self.c.type],
            operands=[*self.operands, self.c],
            attributes={
                "indexing_maps": ir.ArrayAttr.get(maps),
                "iterator_types": ir.ArrayAttr.get([iterator] * self.identity.n_dims),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(self.operands), 1]),
            },
            regions=1,
        )
        types = [ir.ShapedType(operand.type).element_type for operand in generic.operands]
        block = generic.regions[0].blocks.append(*types, arg_locs=[generic.location] * len(types))
        return generic, block


@transform_op(NormalizeConsumer)
def normalize_consumer(payload: ir.Operation, op: NormalizeConsumer, rewriter: Rewriter) -> None:
    """Rewrites the consumer of the one matmul below `payload`; see the op."""
    matmuls, generics = walk(payload, *MATMULS), walk(payload, "linalg.generic")
    if len(matmuls) != 1 or not generics:
        return
    if len(generics) != 1:
        raise Refusal(
            generics[0], f"{len(generics)} elementwise ops are left of those on the product: they must fuse into one"
        )
    (matmul,), (old,) = matmuls, generics
    store = walk(payload, "bufferization.materialize_in_destination")[0]
    sums = matmul.results[0]
    if sums not in list(old.operands) or store.operands[0] != old.results[0]:
        raise Refusal(old, f"expected one elementwise op between {matmul.name} and C")

    # Which input of the new consumer, or C (None), each argument of the old body is.
    consumer = _Consumer(sums, _destination_tensor(old, store.operands[1]))
    body = old.regions[0].blocks[0]
    maps = [ir.AffineMapAttr(attribute).value for attribute in old.attributes["indexing_maps"]]
    places = {
        argument.arg_number: consumer.place(operand, map_)
        for argument, operand, map_ in zip(body.arguments, old.operands, maps)
        if list(argument.uses)
    }
    start = matmul.operands[2]
    begins = producer(start)
    is_from_zeros = begins is not None and begins.name == "linalg.fill"
    summand = None if is_from_zeros else consumer.place(start, consumer.identity)
    if begins is None or not is_from_zeros or _buffer_of(begins.operands[1]) is not None:
        with ir.InsertionPoint(matmul), matmul.location:
            matmul.operands[2] = zeros_of(matmul)

    with ir.InsertionPoint(old), old.location:
        generic, block = consumer.create()
    arguments: list[ir.Value] = list(block.arguments)
    values = dict(enumerate(arguments))
    if not is_from_zeros:
        with ir.InsertionPoint(block), old.location:
            add = arith.addi if isinstance(arguments[0].type, ir.IntegerType) else arith.addf
            values[0] = add(arguments[0], arguments[-1 if summand is None else summand])
    for argument in body.arguments:
        if argument.arg_number in places:
            place = places[argument.arg_number]
            argument.replace_all_uses_with(arguments[-1] if place is None else values[place])
    for inner in operations_of(body):
        block.append(inner)
    old.results[0].replace_all_uses_with(generic.results[0])
    rewriter.erase_op(old)
