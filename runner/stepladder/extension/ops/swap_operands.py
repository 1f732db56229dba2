"""`tc.swap_operands`: computes the transpose of C, with A and B exchanged."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.memory import transpose
from stepladder.mlir.bindings import bufferization, ir
from stepladder.mlir.traverse import attributes_of, defining_op, producer, walk


class SwapOperands(Tc.Operation, name="swap_operands"):
    """Replaces C = AB by C^T = B^T A^T: the matmul reads B first and A second, and writes a transposed view of C.

    No matrix is copied. The indexing maps of the matmul express that A and B are stored transposed, and the view of C
    is a `memref.transpose`, whose rows have a stride of one element. The ops between the matmul and C, which initialize
    the accumulator and round it, are transposed as well.

    Operands: a handle to the module, which has one function in the form that `tc.normalize_payload` creates.
    Refuses: another number of results than one; an op between the matmul and C that is neither a fill, nor a rounding
        by a `linalg.generic` with identity maps.
    """

    target: Handle


def _transposed_view(store: ir.Operation, buffer: ir.Value) -> ir.Value:
    """Returns the transposed view of the row-major matrix that an op writes, at the current insertion point."""
    type_ = ir.MemRefType(buffer.type)
    if type_.get_strides_and_offset() != ([type_.shape[1], 1], 0):
        raise Refusal(store, f"expected a row-major C, found {type_}")
    return transpose(buffer)


def _transposed_type(type_: ir.Type) -> ir.RankedTensorType:
    tensor = ir.RankedTensorType(type_)
    return ir.RankedTensorType.get(list(reversed(tensor.shape)), tensor.element_type)


def _with_exchanged_loops(map_: ir.AffineMap) -> ir.AffineMap:
    """Returns an indexing map of the matmul with the loops over m and n exchanged."""
    m, n, k = (ir.AffineExpr.get_dim(number) for number in range(3))
    return ir.AffineMap.get(3, 0, [n if loop == m else m if loop == n else k for loop in map_.results])


def _matmul_maps(matmul: ir.Operation) -> list[ir.AffineMap]:
    """Returns the indexing maps of A, B and C, over the loops m, n and k."""
    if "indexing_maps" in matmul.attributes:
        return [ir.AffineMapAttr(attribute).value for attribute in matmul.attributes["indexing_maps"]]
    m, n, k = (ir.AffineExpr.get_dim(number) for number in range(3))
    return [ir.AffineMap.get(3, 0, results) for results in ([m, k], [k, n], [m, n])]


def _is_elementwise(generic: ir.Operation) -> bool:
    maps = [ir.AffineMapAttr(attribute).value for attribute in generic.attributes["indexing_maps"]]
    return all(map_ == ir.AffineMap.get_identity(2) for map_ in maps)


def _exchange_factors(body: ir.Block) -> None:
    """Exchanges the first two arguments of a matmul's body where their types differ, as those of its operands do."""
    a, b, sums = list(body.arguments)
    if a.type == b.type:
        return
    for old, type_ in ((b, b.type), (a, a.type), (sums, sums.type)):
        old.replace_all_uses_with(body.add_argument(type_, old.location))
    for _ in range(3):
        body.erase_argument(0)


class _Transposer:
    """Creates the transposed ops, at the current insertion point.

    Attributes:
        view: the transposed view of C.
        replaced: the ops that have a transposed counterpart, producers first.

    Args:
        store: the op that writes the result to C.
    """

    def __init__(self, store: ir.Operation) -> None:
        self.buffer = store.operands[1]
        self.view = _transposed_view(store, self.buffer)
        self._store = store
        self.replaced: list[ir.Operation] = []

    def value(self, value: ir.Value) -> ir.Value:
        """Returns the transpose of a tensor."""
        op = producer(value)
        if op is None:
            raise Refusal(self._store, "expected a result that a matmul computes")
        created = self._op(op)
        if op not in self.replaced:
            self.replaced.append(op)
        return created

    def _op(self, op: ir.Operation) -> ir.Value:
        if op.name == "bufferization.to_tensor" and op.operands[0] == self.buffer:
            return bufferization.to_tensor(
                _transposed_type(op.results[0].type), self.view, restrict=True, writable="writable" in op.attributes
            )
        if op.name == "tensor.empty" and not op.operands:
            return self._created(op, [])
        if op.name == "linalg.fill":
            return self._created(op, [op.operands[0], self.value(op.operands[1])])
        if op.name == "linalg.matmul":
            a, b, start = op.operands
            map_a, map_b, map_c = _matmul_maps(op)
            result = ir.AffineMap.get(3, 0, list(reversed(map_c.results)))
            maps = [_with_exchanged_loops(map_) for map_ in (map_b, map_a, result)]
            attribute: ir.Attribute = ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])
            created = self._created(op, [b, a, self.value(start)], {"indexing_maps": attribute})
            _exchange_factors(defining_op(created).regions[0].blocks[0])
            return created
        if op.name == "linalg.generic" and len(op.operands) == 2 and _is_elementwise(op):
            return self._created(op, [self.value(operand) for operand in op.operands])
        raise Refusal(op, "expected a matmul, a fill or a rounding between the operands and C")

    def _created(
        self, op: ir.Operation, operands: list[ir.Value], changed: dict[str, ir.Attribute] | None = None
    ) -> ir.Value:
        """Creates an op like another one on other operands, and moves its region; returns the result."""
        created = ir.Operation.create(
            op.name,
            results=[_transposed_type(op.results[0].type)],
            operands=operands,
            attributes={**attributes_of(op), **(changed or {})},
            regions=len(op.regions),
            loc=op.location,
        )
        for old, new in zip(op.regions, created.regions):
            old.blocks[0].append_to(new)
        return created.results[0]


@transform_op(SwapOperands)
def swap_operands(payload: ir.Operation, op: SwapOperands, rewriter: Rewriter) -> None:
    """Rewrites the one function below `payload`; see the op."""
    stores = walk(payload, "bufferization.materialize_in_destination")
    if len(stores) != 1:
        raise Refusal(payload, f"expected one bufferization.materialize_in_destination, found {len(stores)}")
    store = stores[0]
    with ir.InsertionPoint(store), store.location:
        transposer = _Transposer(store)
        result = transposer.value(store.operands[0])
        bufferization.materialize_in_destination(None, result, transposer.view, restrict=True, writable=True)
    rewriter.erase_op(store)
    for replaced in reversed(transposer.replaced):
        if not any(list(value.uses) for value in replaced.results):
            rewriter.erase_op(replaced)
