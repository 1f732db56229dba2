"""Reordering of a main loop: its MMA ops by k sub-step, and moving ops together with their operands."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.extension.lib.control_flow import body_of, operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, walk
from stepladder.mlir.types import is_workgroup_memory

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


def comes_before(op: ir.Operation, anchor: ir.Operation) -> bool:
    """Returns whether what an op results in is known before `anchor`: the op comes before it, or is around it.

    Args:
        op: in the block of `anchor` or one around it, or below an op of these blocks.
        anchor: any op.
    """
    while op.parent is not None:  # the outermost op has no block
        if op.block == anchor.block:
            return op != anchor and op.is_before_in_block(anchor)
        op = op.parent.operation
    return True


def move_with_operands(op: ir.Operation, anchor: ir.Operation) -> None:
    """Moves an op before `anchor`, and before it the producers of its operands that come after `anchor`.

    Args:
        op: the one that is moved, of the same block as `anchor` or below an op of that block.
        anchor: an op on which `op` does not depend.
    """
    for operand in op.operands:
        source = producer(operand)
        if source is not None and not comes_before(source, anchor):
            move_with_operands(source, anchor)
    op.move_before(anchor)


class BlockSchedule:
    """Reorders the ops of a block: each scheduled op follows its operands and all ops scheduled before it."""

    def __init__(self, block: ir.Block) -> None:
        self._block = block
        self._operations = operations_of(block)
        self._terminator = self._operations.pop()
        self._scheduled: set[ir.Operation] = set()

    def append(self, op: ir.Operation) -> None:
        """Schedules an op after all scheduled ops, its operands before it.

        Args:
            op: any op; one of another block, or scheduled already, changes nothing.
        """
        if op in self._scheduled or op.block != self._block:
            return
        for operand in op.operands:
            source = producer(operand)
            if source is not None:
                self.append(source)
        op.move_before(self._terminator)
        self._scheduled.add(op)

    def append_rest(self) -> None:
        """Schedules the remaining ops, in their original order."""
        for op in self._operations:
            self.append(op)


@dataclass
class MainLoop:
    """A main loop: `mmas[s]` are the MMA ops of its k sub-step s, in order."""

    loop: ir.Operation
    mmas: list[list[ir.Operation]]

    def fragment_loads(self) -> list[list[ir.Operation]]:
        """Returns, for each sub-step, the loads from shared memory that its MMA ops are the first to use, in order."""
        all_loads: list[ir.Operation] = []
        loads: list[list[ir.Operation]] = []
        for mmas in self.mmas:
            start = len(all_loads)
            for mma in mmas:
                for operand in list(mma.operands)[:_ACCUMULATOR]:
                    self._collect_loads(operand, all_loads)
            loads.append(all_loads[start:])
        return loads

    def _collect_loads(self, value: ir.Value, loads: list[ir.Operation]) -> None:
        source = producer(value)
        if source is None or source.block != body_of(self.loop) or source in loads:
            return
        if source.name in FRAGMENT_LOADS and is_workgroup_memory(source.operands[0].type):
            loads.append(source)
            return
        for operand in source.operands:
            self._collect_loads(operand, loads)


def find_main_loop(payload: ir.Operation) -> MainLoop | None:
    """Returns the one loop below `payload` with MMA ops in its body, or None where there is none.

    Args:
        payload: a module, a function or a launch.

    Raises:
        Refusal: several such loops.
    """
    loops = [loop for loop in walk(payload, "scf.for") if any(op.name in MMA for op in operations_of(body_of(loop)))]
    if len(loops) > 1:
        raise Refusal(loops[1], "more than one loop with MMA ops")
    if not loops:
        return None
    mmas: list[list[ir.Operation]] = []
    steps: dict[ir.Operation, int] = {}
    for op in operations_of(body_of(loops[0])):
        if op.name not in MMA:
            continue
        # Accumulators chain the sub-steps: an MMA op is one sub-step after the op that produces its accumulator.
        source = producer(op.operands[_ACCUMULATOR])
        step = 0 if source is None else steps.get(source, -1) + 1
        steps[op] = step
        if step == len(mmas):
            mmas.append([])
        mmas[step].append(op)
    return MainLoop(loops[0], mmas)
