"""`tc.push_partial_sums`: makes blocks of a cluster send partial sums to the block that reduces them."""

from stepladder.extension.lib import launches, pipeline, threads
from stepladder.extension.lib.arithmetic import apply, constant_value
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir, llvm, memref, nvvm
from stepladder.mlir.traverse import attributes_of, defining_op, origin, users_of, walk


class PushPartialSums(Tc.Operation, name="push_partial_sums"):
    """Writes partial accumulators to the shared memory of the block of the cluster that reduces them.

    `tc.split_k` makes each block store its partial accumulator to its own shared memory, wait at the barrier of the
    cluster, read the rows that it reduces from all blocks, and wait again, so that no block exits while others read its
    memory. Here a block stores each row to the block that reduces it, waits once, and reads its own memory.

    A block may write to another one once that has started. All threads arrive at the barrier in the prologue, and
    consumers wait for the others behind the main loop.

    Operands: a handle to any op with one `gpu.launch` below, whose stores to a workspace in shared memory are lowered.
        Nothing is changed without such a workspace.
    Refuses: other uses of the workspace than stores at its rows and columns, and loads from the blocks of the cluster.
    """

    target: Handle


_WORKSPACE = "split_k_workspace"
_ARRIVE, _WAIT, _MAPA = "nvvm.cluster.arrive", "nvvm.cluster.wait", "nvvm.mapa"
_STORES = ("memref.store", "vector.store")
_SHARED, _SHARED_OF_CLUSTER = "!llvm.ptr<3>", "!llvm.ptr<7>"
_DYNAMIC = -(2**31)  # an index of llvm.getelementptr that is an operand


class _Workspace:
    """The workspace of a block, which holds the rows that it reduces, of each block of the cluster.

    Args:
        alloc: of the workspace, a tile and its padding.
        splits: blocks of the cluster.
        place: in front of what the address of the workspace is created.
    """

    def __init__(self, alloc: ir.Operation, splits: int, place: ir.Operation) -> None:
        type_ = ir.MemRefType(alloc.results[0].type)
        rows, self.pitch = type_.shape
        self.element, self.rows = type_.element_type, -(-rows // splits)
        with ir.InsertionPoint(alloc), alloc.location:
            whole = ir.MemRefType.get([splits * self.rows, self.pitch], self.element, memory_space=type_.memory_space)
            tile = memref.alloc(whole, [], [])
            for name, attribute in attributes_of(alloc).items():
                if name != "operandSegmentSizes":
                    defining_op(tile).attributes[name] = attribute
        with ir.InsertionPoint(place), place.location:
            self.split = threads.block_rank_in_cluster()
            address = memref.extract_aligned_pointer_as_index(tile)
            i64 = ir.IntegerType.get_signless(64)
            self.pointer = llvm.inttoptr(ir.Type.parse(_SHARED), arith.index_cast(i64, address))

    def send(self, store: ir.Operation) -> None:
        """Creates the store to the block that reduces a row, in front of a store to the block's own tile."""
        value, _, row, column = store.operands
        with ir.InsertionPoint(store), store.location:
            block = apply(lambda r: ir.AffineExpr.get_floor_div(r, self.rows), row)
            block = arith.index_cast(ir.IntegerType.get_signless(32), block)
            own = apply(
                lambda s, r, c: (s * self.rows + ir.AffineExpr.get_mod(r, self.rows)) * self.pitch + c,
                self.split,
                row,
                column,
            )
            target = nvvm.mapa(ir.Type.parse(_SHARED_OF_CLUSTER), self.pointer, block)
            llvm.store(value, self._element(target, own))

    def receive(self, address: ir.Operation, split: int) -> ir.Value:
        """Returns where the block has what it read from the tile of a split, in front of the address there."""
        with ir.InsertionPoint(address), address.location:
            distance = apply(lambda s: (s * -1 + split) * (self.rows * self.pitch), self.split)
            place = arith.index_cast(ir.IndexType.get(), address.operands[1])
            return self._element(self.pointer, arith.addi(place, distance))

    def _element(self, pointer: ir.Value, place: ir.Value) -> ir.Value:
        offset = arith.index_cast(ir.IntegerType.get_signless(64), place)
        return llvm.getelementptr(pointer.type, pointer, [offset], [_DYNAMIC], self.element, None)


def _stores_to(launch: ir.Operation, alloc: ir.Operation) -> list[ir.Operation]:
    """Returns the stores to the workspace of a block."""
    tile = alloc.results[0]
    return [store for store in walk(launch, *_STORES) if origin(store.operands[1], ("memref.subview",)) == tile]


@transform_op(PushPartialSums)
def push_partial_sums(payload: ir.Operation, op: PushPartialSums, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    allocs = [alloc for alloc in walk(launch, "memref.alloc") if _WORKSPACE in alloc.attributes]
    if not allocs:
        return
    alloc, stores = allocs[0], _stores_to(launch, allocs[0])
    arrivals, waits, maps = walk(launch, _ARRIVE), walk(launch, _WAIT), walk(launch, _MAPA)
    if not stores or len(arrivals) != 2 or len(waits) != 2:
        raise Refusal(launch, "expected stores of partial sums, and two barriers of the cluster behind them")
    with ir.InsertionPoint(pipeline.prologue_barrier(launch)), launch.location:
        nvvm.cluster_arrive_relaxed()
    with ir.InsertionPoint(stores[0]), stores[0].location:
        nvvm.cluster_wait()
    workspace = _Workspace(alloc, launches.launch_sizes(launch, launches.CLUSTER)[0], stores[0])
    for store in stores:
        workspace.send(store)
        rewriter.erase_op(store)
    for tile in maps:
        split = constant_value(tile.operands[1])
        assert split is not None  # tc.split_k maps the tiles of all blocks
        for address in users_of(tile.results[0]):
            rewriter.replace_op(address, [workspace.receive(address, split)])
        rewriter.erase_op(tile)
    for barrier in (arrivals[1], waits[1]):
        rewriter.erase_op(barrier)
