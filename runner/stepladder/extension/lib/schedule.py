"""What the ops that reorder a main loop share: the parts of its body, and moving ops with what they need."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.extension.lib.building import body_of
from stepladder.extension.lib.dialect import Refusal, is_workgroup_memory, producer
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk

MMA = ("gpu.subgroup_mma_compute", "nvgpu.mma.sync")
FRAGMENT_LOADS = (
    "gpu.subgroup_mma_load_matrix",
    "nvgpu.ldmatrix",
    "vector.load",
    "vector.transfer_read",
    "memref.load",
)
ASYNC_COPY = "nvgpu.device_async_copy"
ASYNC_GROUP = "nvgpu.device_async_create_group"
_ACCUMULATOR = 2  # operand number, in every MMA op


def terminator_of(loop):
    """Returns the `scf.yield` of an `scf.for`."""
    operations = body_of(loop).operations
    return operations[len(operations) - 1].operation


def move_with_operands(op, anchor) -> None:
    """Moves an op in front of `anchor`, and in front of it the producers of its operands that stand behind `anchor`."""
    for operand in op.operands:
        source = producer(operand)
        if source is not None and source.block == anchor.block and anchor.is_before_in_block(source):
            move_with_operands(source, anchor)
    op.move_before(anchor)


class Order:
    """Puts the ops of a block in a new order: each that is placed follows those placed before it and its operands."""

    def __init__(self, block):
        self._block = block
        self._operations = [op.operation for op in block.operations]
        self._terminator = self._operations.pop()
        self._placed: set = set()

    def place(self, op) -> None:
        """Places an op behind all placed so far, its operands in front of it."""
        if op in self._placed or op.block != self._block:
            return
        for operand in op.operands:
            source = producer(operand)
            if source is not None:
                self.place(source)
        op.move_before(self._terminator)
        self._placed.add(op)

    def place_rest(self) -> None:
        """Places what is left, in the order it had."""
        for op in self._operations:
            self.place(op)


@dataclass
class MainLoop:
    """A main loop: `products[s]` are the MMA ops of its k sub-step s, in order."""

    loop: object
    products: list[list]

    def fragment_loads(self) -> list[list]:
        """Returns, by sub-step, the loads of shared memory that its products are the first to read from, in order."""
        seen: list = []
        loads = []
        for products in self.products:
            start = len(seen)
            for product in products:
                for operand in list(product.operands)[:_ACCUMULATOR]:
                    self._collect_loads(operand, seen)
            loads.append(seen[start:])
        return loads

    def _collect_loads(self, value, found: list) -> None:
        source = producer(value)
        if source is None or source.block != body_of(self.loop) or source in found:
            return
        if source.name in FRAGMENT_LOADS and is_workgroup_memory(source.operands[0].type):
            found.append(source)
            return
        for operand in source.operands:
            self._collect_loads(operand, found)


def find_main_loop(payload) -> MainLoop | None:
    """Returns the one loop below `payload` that has MMA ops in its body, or None where there is none.

    Raises:
        Refusal: several such loops.
    """
    loops = [
        loop for loop in walk(payload, "scf.for") if any(op.operation.name in MMA for op in body_of(loop).operations)
    ]
    if len(loops) > 1:
        raise Refusal(loops[1], "more than one loop with matrix products")
    if not loops:
        return None
    products: list[list] = []
    order = {}
    for op in body_of(loops[0]).operations:
        if op.operation.name not in MMA:
            continue
        accumulator = op.operands[_ACCUMULATOR]
        level = 0 if isinstance(accumulator.owner, ir.Block) else order.get(accumulator.owner.operation, -1) + 1
        order[op.operation] = level
        if level == len(products):
            products.append([])
        products[level].append(op.operation)
    return MainLoop(loops[0], products)
