"""linalg: the loops of a structured op, and how they go over its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.emulator.core.fibers import Unsupported
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.dialects.affine import compiled, dimensions_of
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import FAILED, StepladderError


@dataclass
class Operand:
    """How the loops go over an operand.

    Attributes:
        number: among the op's operands.
        of_loops: from the coordinates of loops to those of an element.
        loops: those that it depends on.
        sizes: (dimension, loop) where one is the other.
        is_used: whether the body reads it.
        is_permuted: whether each dimension is another loop, so that its elements in the loops' order are a view.
    """

    number: int
    of_loops: Callable[..., tuple]
    loops: set[int]
    sizes: list[tuple[int, int]]
    is_used: bool
    is_permuted: bool

    def by_loops(self, array: np.ndarray, count: int) -> np.ndarray:
        """Returns a permuted operand's content (L, ...) as a view with one dimension for each loop.

        Args:
            array: the content.
            count: number of loops; the view has size 1 for those that the operand does not depend on.
        """
        axes = {loop: axis for axis, loop in self.sizes}
        present = sorted(axes)
        ordered = array.transpose(0, *(1 + axes[loop] for loop in present))
        return ordered[(slice(None), *(slice(None) if loop in axes else None for loop in range(count)))]


class Loops:
    """The loops of an op.

    Attributes:
        count: how many.
        operands: of all operands that have a shape or are a scalar, inputs first.
        outputs: those that are written.
        reductions: loops that run in order, the outermost first.
        indices: the body's `linalg.index` ops.
        captured: slots of scalars from outside that the body uses.
    """

    def __init__(self, op: Instruction) -> None:
        maps = op.attributes["maps"]
        body = op.regions[0]
        self.count = maps[0].n_dims
        used_slots = {slot for inner in body.code for slot in inner.operands} | set(body.yields)
        own_slots = {slot for inner in body.code for slot in inner.results} | set(body.arguments)
        self.captured = used_slots - own_slots
        self.indices = [inner for inner in body.code if inner.name == "linalg.index"]
        for inner in body.code:
            inner.cache["in_loops"] = True
        self.operands = [
            Operand(
                number,
                compiled(map_),
                {loop for expression in map_.results for loop in dimensions_of(expression)},
                [
                    (axis, expression.position)
                    for axis, expression in enumerate(map_.results)
                    if isinstance(expression, ir.AffineDimExpr)
                ],
                slot in used_slots,
                _is_permutation(map_),
            )
            for number, (map_, slot) in enumerate(zip(maps, body.arguments))
        ]
        self.outputs = self.operands[len(self.operands) - len(body.yields) :]
        output_loops = set().union(*(operand.loops for operand in self.outputs))
        self.reductions = [loop for loop in range(self.count) if loop not in output_loops]
        if any(operand.loops != output_loops for operand in self.outputs):
            raise Unsupported(op, "with outputs that different loops go over")

    def sizes(self, op: Instruction, shapes: Sequence[Sequence[int]]) -> list[int]:
        """Returns how often each loop runs.

        Args:
            op: for the error.
            shapes: of the operands.

        Raises:
            StepladderError: operands whose sizes do not fit.
        """
        sizes: list[int | None] = [None] * self.count
        for operand in self.operands:
            for axis, loop in operand.sizes:
                size = shapes[operand.number][axis]
                if sizes[loop] not in (None, size):
                    raise StepladderError(
                        f"{op.name} has operands whose sizes do not fit: {sizes[loop]} and {size} for loop {loop}",
                        location=op.location,
                        status=FAILED,
                    )
                sizes[loop] = size
        return [size for size in sizes if size is not None]


def _is_permutation(map_: ir.AffineMap) -> bool:
    """Whether the results of a map are dimensions, each another one."""
    positions = [
        expression.position if isinstance(expression, ir.AffineDimExpr) else None for expression in map_.results
    ]
    return None not in positions and len(set(positions)) == len(positions)
