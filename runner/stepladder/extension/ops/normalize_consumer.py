"""`tc.normalize_consumer`: rewrites the elementwise op on a product in the form that the epilogues compute."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.elementwise import zeros_of
from stepladder.extension.lib.outlined_producers import is_in_producer
from stepladder.extension.lib.workspaces import is_workspace
from stepladder.mlir.bindings import arith, bufferization, ir
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.traverse import attributes_of, producer, users_of, walk
from stepladder.mlir.windows import division_of
from stepladder.payload.facts import MATMULS


class NormalizeConsumer(Tc.Operation, name="normalize_consumer"):
    """Brings the `linalg.generic` ops that consume a matmul, or a batch, to the form that the epilogues compute.

    In this form one op makes all results: the product is its first operand, or both of a pair are its first two;
    its destinations are C and the results beside it, and what C held before is read from the destination. Scalars that
    are arguments of the function are operands too, and not values from outside of the body. Ops that
    two results, or an op and C, are made of are computed once. A product that starts from a tensor instead of zeros
    starts from zeros, and the consumer adds the tensor: the epilogue reads each of its elements once, as it does
    the other operands. Where fusion has folded all ops to the product, the consumer copies it.

    Operands: a handle to the module, whose one function is in the normal form (`tc.normalize_payload`).
    Refuses: ops between the product and the results that are not elementwise; a product that is read in another order
        than C is written; results that fusion has folded to others that do not depend on the product.
    """

    target: Handle


def _buffer_of(value: ir.Value) -> ir.Value | None:
    """Returns the buffer that a tensor is read from."""
    source = producer(value)
    return source.operands[0] if source is not None and source.name == "bufferization.to_tensor" else None


def _destination_tensor(old: ir.Operation, store: ir.Operation) -> ir.Value:
    """Returns the tensor that C's buffer is read and written through: fusion drops it where it is not read.

    Where the batch of C has several strides, C is not read, and the tensor is an empty one."""
    buffer = store.operands[1]
    type_ = ir.MemRefType(buffer.type)
    with ir.InsertionPoint(old), old.location:
        if (division := division_of(store)) is not None:
            return ir.Operation.create("tensor.empty", results=[division.operands[0].type]).results[0]
        tensor = ir.RankedTensorType.get(type_.shape, type_.element_type)
        return bufferization.to_tensor(tensor, buffer, restrict=True, writable=True)


class _Consumer:
    """The new consumer.

    Args:
        sums: the product, or both of a pair.
        destinations: the tensors of C and of the results beside it.
    """

    def __init__(self, sums: Sequence[ir.Value], destinations: list[ir.Value]) -> None:
        self.destinations = destinations
        self.identity = ir.AffineMap.get_identity(ir.ShapedType(sums[0].type).rank)
        self.operands = list(sums)
        self.maps = [self.identity] * len(sums)

    def place(self, operand: ir.Value, map_: ir.AffineMap) -> int | None:
        """Returns which input an operand is; None for C, which is read from the destination."""
        buffer = _buffer_of(operand)
        if buffer is not None and buffer == _buffer_of(self.destinations[0]) and map_ == self.identity:
            return None
        for place, (own_operand, known_map) in enumerate(zip(self.operands, self.maps)):
            if own_operand == operand and known_map == map_:
                return place
        self.operands.append(operand)
        self.maps.append(map_)
        return len(self.operands) - 1

    def place_number(self, number: ir.Value) -> int | None:
        """Returns the index of the input that a scalar is."""
        return self.place(number, ir.AffineMap.get(self.identity.n_dims, 0, []))

    def add_number(self) -> None:
        """Adds a scalar that nothing reads: canonicalization erases an op of one map that copies an operand."""
        type_ = ir.ShapedType(self.operands[0].type).element_type
        self.place_number(arith.constant(type_, 0 if isinstance(type_, ir.IntegerType) else 0.0))

    def create(self) -> tuple[ir.Operation, ir.Block]:
        """Returns the op, at the insertion point, and the block of its body, which is empty."""
        maps = [*self.maps, *[self.identity] * len(self.destinations)]
        return create_generic(self.operands, self.destinations, maps)


def _is_product(operand: "int | _Inlined | None") -> bool:
    """Returns whether what is read is the product itself, or a copy of it."""
    if not isinstance(operand, _Inlined):
        return operand == 0
    *inner, end = operations_of(operand.op.regions[0].blocks[0])
    value = end.operands[operand.result]
    return (
        not inner
        and isinstance(value.owner, ir.Block)
        and _is_product(operand.reads[ir.BlockArgument(value).arg_number])
    )


def _composed(map_: ir.AffineMap, outer: ir.AffineMap) -> ir.AffineMap:
    """Returns the map of an operand of an op, of which the map of the result is `outer`."""
    results = [outer.results[item.position] if isinstance(item, ir.AffineDimExpr) else item for item in map_.results]
    return ir.AffineMap.get(outer.n_dims, 0, results)


@dataclass
class _Inlined:
    """An old consumer as it is read, by `map_`, in the new one.

    Attributes:
        op: the old consumer.
        result: which of its results is read: fusion leaves some with several.
        reads: by index of an argument of its body, the new input, what another op makes, or None for C.
        numbers: the new input for a scalar from outside of its body, an argument of the function.
    """

    op: ir.Operation
    result: int
    reads: "dict[int, int | _Inlined | None]"
    numbers: dict[ir.Value, int | None]


def _numbers_of(op: ir.Operation) -> list[ir.Value]:
    """Returns the arguments of the function that the body of an op takes from outside: scalars."""
    body = op.regions[0].blocks[0]
    values = [operand for inner in operations_of(body) for operand in inner.operands]
    return [value for value in values if isinstance(value.owner, ir.Block) and value.owner != body]


class _Inliner:
    """Puts the bodies of the old consumers into that of the new one, each as often as it is read by another map.

    Args:
        consumer: the new one.
        old: the old ones.
    """

    def __init__(self, consumer: _Consumer, old: list[ir.Operation]) -> None:
        self.consumer = consumer
        self.old = old
        self._inlined: dict[tuple[ir.Value, str], _Inlined] = {}
        self._emitted: dict[int, ir.Value] = {}

    def read(self, value: ir.Value, map_: ir.AffineMap) -> int | _Inlined | None:
        """Returns what a tensor is in the new consumer."""
        op = producer(value)
        if op is None or op not in self.old:
            return self.consumer.place(value, map_)
        key = value, str(map_)
        if key not in self._inlined:
            maps = [_composed(ir.AffineMapAttr(item).value, map_) for item in op.attributes["indexing_maps"]]
            self._inlined[key] = _Inlined(
                op,
                ir.OpResult(value).result_number,
                {
                    argument.arg_number: self.read(operand, operand_map)
                    for argument, operand, operand_map in zip(op.regions[0].blocks[0].arguments, op.operands, maps)
                    if list(argument.uses)
                },
                {number: self.consumer.place_number(number) for number in _numbers_of(op)},
            )
        return self._inlined[key]

    def emit(self, source: int | _Inlined | None, arguments: dict[int | None, ir.Value]) -> ir.Value:
        """Creates the ops that make a value, at the insertion point; returns it.

        Args:
            source: of the value, as `read` returns it.
            arguments: of the new body, by index of the input; C's is None's.
        """
        if not isinstance(source, _Inlined):
            return arguments[source]
        if id(source) in self._emitted:
            return self._emitted[id(source)]
        values = {number: arguments[place] for number, place in source.numbers.items()}
        body = source.op.regions[0].blocks[0]
        for argument in body.arguments:
            if argument.arg_number in source.reads:
                values[argument] = self.emit(source.reads[argument.arg_number], arguments)
        *inner, end = operations_of(body)
        for op in inner:
            copy = ir.Operation.create(
                op.name,
                results=[result.type for result in op.results],
                operands=[values.get(operand, operand) for operand in op.operands],
                attributes=attributes_of(op),
                loc=op.location,
            )
            values |= zip(op.results, copy.results)
        body_result = end.operands[source.result]
        self._emitted[id(source)] = values.get(body_result, body_result)
        return self._emitted[id(source)]


def _stores(payload: ir.Operation) -> list[ir.Operation]:
    """Returns the ops that store the results: that of C, whose buffer is read or is the first argument, first, and
    those to workspaces, which reductions read, last."""
    stores = walk(payload, "bufferization.materialize_in_destination")
    stores.sort(key=_place_of)
    if len(stores) < 2:
        return stores
    return sorted(stores, key=lambda store: not _is_read(_argument_of(store.operands[1])))


def _place_of(store: ir.Operation) -> tuple[bool, int]:
    """Returns what orders a store: whether it is to a workspace, and else the index of the argument."""
    buffer = _argument_of(store.operands[1])
    return (True, 0) if is_workspace(buffer) else (False, ir.BlockArgument(buffer).arg_number)


def _argument_of(buffer: ir.Value) -> ir.Value:
    """Returns the argument, or the workspace, that a buffer is a view of."""
    view = producer(buffer)
    while view is not None and not is_workspace(buffer):
        buffer = view.operands[0]
        view = producer(buffer)
    return buffer


def _is_read(buffer: ir.Value) -> bool:
    """Returns whether a tensor of a buffer is more than what results start from."""
    return any(_is_read_by(use) for op in users_of(buffer) for result in op.results for use in result.uses)


def _is_read_by(use: ir.OpOperand) -> bool:
    op = use.owner.operation
    if op.name in MATMULS:
        return True
    if op.name == "bufferization.to_tensor" or op.name.startswith("memref."):
        return any(_is_read_by(inner) for result in op.results for inner in result.uses)
    return op.name == "linalg.generic" and bool(list(op.regions[0].blocks[0].arguments[use.operand_number].uses))


def _maker(store: ir.Operation) -> ir.Operation:
    """Returns the op that takes what the ops on the product make: a store, or the division of a batch before it."""
    return division_of(store) or store


def _is_from_zeros(matmul: ir.Operation) -> bool:
    """Returns whether a product starts from zeros, and not from a tensor."""
    begins = producer(matmul.operands[2])
    return begins is not None and begins.name == "linalg.fill"


def _summand(matmul: ir.Operation, consumer: _Consumer) -> int | None:
    """Returns which input of the new consumer a product starts from; None for C."""
    return consumer.place(matmul.operands[2], consumer.identity)


@transform_op(NormalizeConsumer)
def normalize_consumer(payload: ir.Operation, op: NormalizeConsumer, rewriter: Rewriter) -> None:
    """Rewrites the consumers of the one matmul, or of a pair, below `payload`; see the op."""
    matmuls = walk(payload, *MATMULS)
    generics = [generic for generic in walk(payload, "linalg.generic") if not is_in_producer(generic)]
    stores = _stores(payload)
    if stores and not matmuls:
        raise Refusal(stores[0], "expected results that depend on a product; fusion has folded those of this function")
    if len(matmuls) not in (1, 2) or not stores:
        return
    sums = [matmul.results[0] for matmul in matmuls]
    is_after_generics = len(stores) == 1 and bool(generics)
    last = generics[-1] if is_after_generics else walk(payload, "bufferization.materialize_in_destination")[-1]
    for store in stores:
        maker = producer(_maker(store).operands[0])
        if maker is None or (maker not in generics and maker not in matmuls):
            raise Refusal(store, f"expected elementwise ops between {matmuls[0].name} and what is stored")

    # Which input of the new consumer, or C (None), each argument of the old bodies is.
    consumer = _Consumer(sums, [_destination_tensor(last, store) for store in stores])
    inliner = _Inliner(consumer, generics)
    reads = [inliner.read(_maker(store).operands[0], consumer.identity) for store in stores]
    if any(operand in sums for operand in consumer.operands[len(sums) :]):
        raise Refusal(last, "reads a product in another order than it writes C")
    summands = {place: _summand(matmul, consumer) for place, matmul in enumerate(matmuls) if not _is_from_zeros(matmul)}
    for matmul in matmuls:
        begins = producer(matmul.operands[2])
        if begins is None or not _is_from_zeros(matmul) or _buffer_of(begins.operands[1]) is not None:
            with ir.InsertionPoint(matmul), matmul.location:
                matmul.operands[2] = zeros_of(matmul)

    with ir.InsertionPoint(last), last.location:
        if not summands and all(map(_is_product, reads)):
            consumer.add_number()
        generic, block = consumer.create()
    values: dict[int | None, ir.Value] = dict(enumerate(block.arguments))
    values[None] = block.arguments[len(consumer.operands)]
    with ir.InsertionPoint(block), last.location:
        for place, summand in summands.items():
            add = arith.addi if isinstance(values[place].type, ir.IntegerType) else arith.addf
            values[place] = add(values[place], values[summand])
        results = [inliner.emit(read, values) for read in reads]
        ir.Operation.create("linalg.yield", operands=results)
    for place, store in reversed(list(enumerate(stores))):
        division = _maker(store)
        division.operands[0] = generic.results[place]
        if not is_after_generics:
            store.move_after(generic)
            if division != store:
                division.move_after(generic)
    for old in reversed(generics):
        rewriter.erase_op(old)
