"""`tc.push_partial_sums`: makes blocks of a cluster send partial sums to the block that reduces them."""

import itertools

from stepladder.extension.lib import launches, memory, remote_memory, threads, tma, tma_pipeline
from stepladder.extension.lib.arithmetic import apply, boolean, constant_value, equal, index, integer
from stepladder.extension.lib.control_flow import create_if
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, llvm, memref, nvgpu, nvvm, scf
from stepladder.mlir.traverse import attributes_of, defining_op, users_of, walk


class PushPartialSums(Tc.Operation, name="push_partial_sums"):
    """Writes partial accumulators to the shared memory of the block of the cluster that reduces them.

    `tc.split_k` makes each block store its partial accumulator to its own shared memory, wait at the barrier of the
    cluster, read the slots that it reduces from all blocks, and wait again, so that no block exits while others read
    its memory. Here a block stores each slot to the block that reduces it, asynchronously (`st.async`). An mbarrier
    there counts the bytes: that block waits for it, and reads its own memory.

    A thread's own sums are those that it reduces itself: it stores them to the block's own memory, without a barrier.
    A block may write to another one once that has started. All threads arrive at the barrier of the cluster in the
    prologue, after the initialization of the mbarrier, and consumers wait for the others after the main loop. A block
    that has all sums exits: nothing else writes to its memory.

    Operands: a handle to any op with one `gpu.launch` below, whose stores to a workspace in shared memory, in register
        order, are lowered. Nothing is changed without such a workspace.
    Refuses: other uses of the workspace than stores of vectors to its slots, and loads from the blocks of the cluster.
    """

    target: Handle


_WORKSPACE = "split_k_workspace"
_ARRIVE, _WAIT, _MAPA = "nvvm.cluster.arrive", "nvvm.cluster.wait", "nvvm.mapa"
_DYNAMIC = -(2**31)  # an index of llvm.getelementptr that is an operand


class _Workspace:
    """The workspace of a block, which holds the slots that it reduces, of each block of the cluster.

    Args:
        alloc: of the workspace, a tile in register order.
        splits: blocks of the cluster.
        place: the op before which the addresses are created.
    """

    def __init__(self, alloc: ir.Operation, splits: int, place: ir.Operation) -> None:
        type_ = ir.MemRefType(alloc.results[0].type)
        self.slots, self.pitch = type_.shape
        self.splits, self.element, self.share = splits, type_.element_type, -(-self.slots // splits)
        with ir.InsertionPoint(alloc), alloc.location:
            tile_type = ir.MemRefType.get(
                [splits * self.share, self.pitch], self.element, memory_space=type_.memory_space
            )
            self.tile = memref.alloc(tile_type, [], [])
            for name, attribute in attributes_of(alloc).items():
                if name != "operandSegmentSizes":
                    defining_op(self.tile).attributes[name] = attribute
            self.barriers = nvgpu.mbarrier_create(types.mbarrier_group(1))
        with ir.InsertionPoint(place), place.location:
            self.split = threads.block_rank_in_cluster()
            address = memref.extract_aligned_pointer_as_index(self.tile)
            i64 = ir.IntegerType.get_signless(64)
            self.pointer = llvm.inttoptr(ir.Type.parse(remote_memory.SHARED), arith.index_cast(i64, address))
            self.barrier = remote_memory.mbarrier_pointer(self.barriers, index(0))

    def expect(self) -> None:
        """Creates the initialization of the mbarrier, which expects the sums of the other blocks, by one thread."""
        with create_if(equal(threads.thread_id(), index(0))):
            nvgpu.mbarrier_init(self.barriers, index(1), index(0))
            nvvm.fence_mbarrier_init()
            slots_left = apply(lambda split: split * -self.share + self.slots, threads.block_rank_in_cluster())
            own = arith.maxsi(arith.minsi(slots_left, index(self.share)), index(0))
            of_slot = self.pitch * types.byte_width(self.element) * (self.splits - 1)
            nvgpu.mbarrier_arrive_expect_tx(self.barriers, apply(lambda slots: slots * of_slot, own), index(0))

    def wait(self) -> None:
        """Creates the wait for the sums of the other blocks."""
        nvgpu.mbarrier_try_wait_parity(self.barriers, boolean(False), index(tma.TRY_WAIT_TICKS), index(0))

    def reducer(self, store: ir.Operation) -> int:
        """Returns the rank of the block that reduces what is stored.

        Args:
            store: a `vector.store` to the tile.

        Raises:
            Refusal: the slot is not a constant.
        """
        slot = constant_value(store.operands[2])
        if slot is None:
            raise Refusal(store, "expected partial sums in register order, whose slots are constants")
        return slot // self.share

    def send(self, stores: list[ir.Operation], reducer: int) -> None:
        """Creates the stores of some slots to the block that reduces them, after the stores to the block's own tile.

        Args:
            stores: the latter.
            reducer: rank of the block.
        """
        with ir.InsertionPoint(stores[-1]), stores[-1].location:
            is_own = equal(self.split, index(reducer))
            branch = scf.IfOp(is_own, has_else=True)
            with ir.InsertionPoint(branch.then_block):
                for store in stores:
                    value, _, slot, column = store.operands
                    memory.store_vector(value, self.tile, self._slot(slot), column)
                scf.yield_([])
            with ir.InsertionPoint(branch.else_block):
                remote_tile = remote_memory.address_in(integer(reducer, 32), self.pointer)
                barrier = remote_memory.address_in(integer(reducer, 32), self.barrier)
                for store in stores:
                    value, _, slot, column = store.operands
                    place = apply(lambda s, c: s * self.pitch + c, self._slot(slot), column)
                    remote_memory.store_async(value, self._element(remote_tile, place), barrier)
                scf.yield_([])

    def _slot(self, slot: ir.Value) -> ir.Value:
        """Returns where the reducing block has a slot of this block."""
        number = constant_value(slot)
        assert number is not None  # `reducer` has seen it
        return apply(lambda split: split * self.share + number % self.share, self.split)

    def receive(self, address: ir.Operation, split: int) -> ir.Value:
        """Returns where the block has what it read from the tile of a split, before the address there."""
        with ir.InsertionPoint(address), address.location:
            distance = apply(lambda s: (s * -1 + split) * (self.share * self.pitch), self.split)
            place = arith.index_cast(ir.IndexType.get(), address.operands[1])
            return self._element(self.pointer, arith.addi(place, distance))

    def _element(self, pointer: ir.Value, place: ir.Value) -> ir.Value:
        offset = arith.index_cast(ir.IntegerType.get_signless(64), place)
        return llvm.getelementptr(pointer.type, pointer, [offset], [_DYNAMIC], self.element, None)


@transform_op(PushPartialSums)
def push_partial_sums(payload: ir.Operation, op: PushPartialSums, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    allocs = [alloc for alloc in walk(launch, "memref.alloc") if _WORKSPACE in alloc.attributes]
    if not allocs:
        return
    alloc = allocs[0]
    stores = [store for store in walk(launch, "vector.store") if store.operands[1] == alloc.results[0]]
    arrivals, waits, maps = walk(launch, _ARRIVE), walk(launch, _WAIT), walk(launch, _MAPA)
    if not stores or len(arrivals) != 2 or len(waits) != 2:
        raise Refusal(launch, "expected stores of partial sums, and two barriers of the cluster behind them")
    workspace = _Workspace(alloc, launches.launch_sizes(launch, launches.CLUSTER)[0], stores[0])
    with ir.InsertionPoint(tma_pipeline.prologue_barrier(launch)), launch.location:
        workspace.expect()
        nvvm.cluster_arrive_relaxed()
    with ir.InsertionPoint(stores[0]), stores[0].location:
        nvvm.cluster_wait()
    for reducer, own in itertools.groupby(stores, workspace.reducer):
        workspace.send(list(own), reducer)
    for store in stores:
        rewriter.erase_op(store)
    for tile in maps:
        split = constant_value(tile.operands[1])
        assert split is not None  # tc.split_k maps the tiles of all blocks
        for address in users_of(tile.results[0]):
            rewriter.replace_op(address, [workspace.receive(address, split)])
        rewriter.erase_op(tile)
    with ir.InsertionPoint(arrivals[0]), arrivals[0].location:
        workspace.wait()
    for barrier in (*arrivals, *waits):
        rewriter.erase_op(barrier)
