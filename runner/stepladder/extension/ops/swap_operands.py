"""`tc.swap_operands`: computes the transpose of C, with A and B swapped."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.epilogues.elementwise import is_elementwise
from stepladder.extension.lib.transposes import transpose
from stepladder.mlir.bindings import bufferization, ir
from stepladder.mlir.linalg_ops import indexing_maps, product_name, with_swapped_loops
from stepladder.mlir.traverse import attributes_of, defining_op, producer, walk
from stepladder.mlir.types import offset_of, strides_of
from stepladder.payload.facts import MATMULS


class SwapOperands(Tc.Operation, name="swap_operands"):
    """Replaces C = AB by C^T = B^T A^T: the matmul reads B first and A second, and writes a transposed view of C.

    No matrix is copied. The indexing maps of the matmul express that A and B are stored transposed, and the view of C
    is a `memref.transpose`, whose rows have a stride of one element. The ops between the matmul and C, which initialize
    the accumulator and compute the results, are transposed as well: the loops of an elementwise op are swapped, so
    that it reads a bias of rows along columns, and a matrix in transposed order, from the same buffers as before.

    Operands: a handle to the module, which has one function in the form that `tc.normalize_payload` creates, with
        elementwise ops as `tc.normalize_consumer` leaves them.
    Refuses: no result, or one that is not stored as a row-major matrix; an op between the matmul and the results that
        is neither a fill, nor an elementwise `linalg.generic` whose results have its shape.
    """

    target: Handle


def _is_row_major(type_: ir.MemRefType) -> bool:
    """Returns whether a buffer is a matrix of dense rows that do not overlap, or a batch of these, one stride apart."""
    strides = strides_of(type_)
    if type_.rank not in (2, 3) or strides is None or offset_of(type_) is None:
        return False
    pitch, step = strides[-2:]
    return step == 1 and pitch is not None and (type_.shape[-2] == 1 or pitch >= type_.shape[-1])


def _transposed_view(store: ir.Operation) -> ir.Value:
    """Returns the transposed view of the row-major matrix that an op writes, maybe with a pitch between its rows, at
    the current insertion point."""
    buffer = store.operands[1]
    type_ = ir.MemRefType(buffer.type)
    if not _is_row_major(type_):
        raise Refusal(store, f"expected a row-major C, found {type_}")
    return transpose(buffer)


def _transposed_type(type_: ir.Type) -> ir.RankedTensorType:
    tensor = ir.RankedTensorType(type_)
    *batch, rows, columns = tensor.shape
    return ir.RankedTensorType.get([*batch, columns, rows], tensor.element_type)


def _indexing_maps(maps: list[ir.AffineMap]) -> dict[str, ir.Attribute]:
    return {"indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])}


def _swap_factors(body: ir.Block) -> None:
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
        views: by store, the transposed view of the buffer that it writes.
        created: by op, its transposed counterpart, producers first.

    Args:
        stores: the ops that write the results.
    """

    def __init__(self, stores: list[ir.Operation]) -> None:
        self.views = {store: _transposed_view(store) for store in stores}
        self.transposes: dict[ir.Operation, ir.Operation] = {}
        self._stores = stores

    def value(self, value: ir.Value) -> ir.Value:
        """Returns the transpose of a tensor that an op makes."""
        op = producer(value)
        if op is None:
            raise Refusal(self._stores[0], "expected a result that a matmul computes")
        if op not in self.transposes:
            transposed_op = self._op(op)
            self.transposes[op] = transposed_op
        return self.transposes[op].results[ir.OpResult(value).result_number]

    def _op(self, op: ir.Operation) -> ir.Operation:
        view = self._view_of(op)
        if view is not None:
            type_ = _transposed_type(op.results[0].type)
            return defining_op(
                bufferization.to_tensor(type_, view, restrict=True, writable="writable" in op.attributes)
            )
        if op.name == "tensor.empty" and not op.operands:
            return self._created(op, [])
        if op.name == "linalg.fill":
            return self._created(op, [op.operands[0], self.value(op.operands[1])])
        if op.name in MATMULS:
            a, b, start = op.operands
            map_a, map_b, map_c = indexing_maps(op)
            batches = map_c.n_dims - 3
            maps = [*(with_swapped_loops(map_, batches) for map_ in (map_b, map_a)), map_c]
            product = self._created(op, [b, a, self.value(start)], _indexing_maps(maps), name=product_name(op, maps))
            _swap_factors(product.regions[0].blocks[0])
            return product
        if op.name == "linalg.generic" and is_elementwise(op, ir.RankedTensorType(op.results[0].type).rank):
            return self._elementwise(op)
        raise Refusal(op, "expected a matmul, a fill or an elementwise op between the operands and C")

    def _view_of(self, op: ir.Operation) -> ir.Value | None:
        """Returns the transposed view of the buffer that an op reads, where a result is stored there."""
        if op.name != "bufferization.to_tensor":
            return None
        return next((view for store, view in self.views.items() if store.operands[1] == op.operands[0]), None)

    def _elementwise(self, op: ir.Operation) -> ir.Operation:
        """Returns an elementwise op with swapped loops: the product and the results are transposed, and the other
        operands are read from where they are."""
        maps = indexing_maps(op)
        batches = maps[0].n_dims - 2
        is_transposed = [number == 0 or number >= len(maps) - len(op.results) for number in range(len(maps))]
        operands = [self.value(operand) if own else operand for operand, own in zip(op.operands, is_transposed)]
        new_maps = [map_ if own else with_swapped_loops(map_, batches) for map_, own in zip(maps, is_transposed)]
        return self._created(op, operands, _indexing_maps(new_maps))

    def _created(
        self,
        op: ir.Operation,
        operands: list[ir.Value],
        changes: dict[str, ir.Attribute] | None = None,
        *,
        name: str = "",
    ) -> ir.Operation:
        """Returns an op like another one on other operands, to which the region of that one is moved; it has the same
        name unless `name` is given."""
        new_op = ir.Operation.create(
            name or op.name,
            results=[_transposed_type(result.type) for result in op.results],
            operands=operands,
            attributes={**attributes_of(op), **(changes or {})},
            regions=len(op.regions),
            loc=op.location,
        )
        for old, new in zip(op.regions, new_op.regions):
            old.blocks[0].append_to(new)
        return new_op


@transform_op(SwapOperands)
def swap_operands(payload: ir.Operation, op: SwapOperands, rewriter: Rewriter) -> None:
    """Rewrites the one function below `payload`; see the op."""
    stores = walk(payload, "bufferization.materialize_in_destination")
    if not stores:
        raise Refusal(payload, "expected a bufferization.materialize_in_destination, found none")
    with ir.InsertionPoint(stores[0]), stores[0].location:
        transposer = _Transposer(stores)
        results = [transposer.value(store.operands[0]) for store in stores]
    for store, result in zip(stores, results):
        with ir.InsertionPoint(store), store.location:
            bufferization.materialize_in_destination(
                None, result, transposer.views[store], restrict=True, writable=True
            )
        rewriter.erase_op(store)
    for item in reversed(transposer.transposes):
        if not any(list(value.uses) for value in item.results):
            rewriter.erase_op(item)
