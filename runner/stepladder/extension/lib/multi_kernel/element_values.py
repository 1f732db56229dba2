"""What an iteration of a `linalg.generic` on buffers loads, computes and stores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stepladder.extension.lib.arithmetic import digits
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.element_bodies import compute_body, converted, load, operand_loops
from stepladder.extension.lib.epilogues.first_extrema import first_extremum_of
from stepladder.extension.lib.epilogues.folds import Fold, fold_of
from stepladder.extension.lib.multi_kernel.initial_values import initial_of
from stepladder.extension.lib.multi_kernel.thread_tiles import address_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import origin, producer, users_of


class ElementValues:
    """The values of a `linalg.generic`; ops are created at the current insertion point.

    Attributes:
        inputs, outputs: how many operands are read, and written.
        maps: the loops along the axes of each operand.
        sizes: iterations of each loop; extents: those that are computed.
        parallel, reduced: the loops that the results have, and those that they do not have.
        initializing: fills and copies that initialize the results.
        folds: how the outputs are reduced; None where one is not, or by another body than a fold.
        extremum: how they are reduced otherwise; None for other bodies.
        is_read: whether a result is in memory of the caller, or another op reads it.

    Args:
        generic: on buffers.

    Raises:
        Refusal: results of different loops, or indexing maps that are no projected permutations.
    """

    def __init__(self, generic: ir.Operation) -> None:
        self.generic = generic
        self.body = generic.regions[0].blocks[0]
        self.end = operations_of(self.body)[-1]
        self.outputs = len(self.end.operands)
        self.inputs = len(self.body.arguments) - self.outputs
        self.maps = [operand_loops(generic, map_) for map_ in indexing_maps(generic)]
        self.sizes = self._sizes(indexing_maps(generic)[0].n_dims)
        self.extents = self.sizes
        parallel_loops = {tuple(sorted(loop for loop in map_ if loop is not None)) for map_ in self.maps[self.inputs :]}
        if len(parallel_loops) != 1:
            raise Refusal(generic, "results of different loops; accepted: results of one shape")
        (self.parallel,) = parallel_loops
        self.reduced = [loop for loop in range(len(self.sizes)) if loop not in self.parallel]
        self.initial = [
            initial_of(generic, self.inputs + number, self.body.arguments[self.inputs + number])
            for number in range(self.outputs)
        ]
        self.is_read = [self._is_read(number) for number in range(self.outputs)]
        self.initializing = [op for initial in self.initial for op in initial.ops]
        self.folds = self._folds()
        self.extremum = first_extremum_of(generic) if self.reduced and self.folds is None else None

    def _sizes(self, loops: int) -> list[int]:
        sizes = [1] * loops
        for operand, map_ in zip(self.generic.operands, self.maps):
            for size, loop in zip(ir.MemRefType(operand.type).shape, map_):
                if loop is not None:
                    sizes[loop] = size
        return sizes

    def _folds(self) -> list[Fold] | None:
        """Returns how all outputs are reduced; None where none is, or by another body than a fold."""
        folds = [fold_of(self.generic, number) for number in range(self.outputs)]
        all_folds = [fold for fold in folds if fold is not None]
        return all_folds if self.reduced and len(all_folds) == len(folds) else None

    def _is_read(self, number: int) -> bool:
        """Returns whether a result is in memory of the caller, or another op than those that initialize it reads it."""
        root = origin(self.generic.operands[self.inputs + number], BUFFER_VIEWS)
        source = producer(root)
        if source is None or source.name != "memref.alloc":
            return True
        buffers = [root]
        for buffer in buffers:
            buffers += [view.results[0] for view in users_of(buffer) if view.name in BUFFER_VIEWS]
        others = (self.generic, *self.initial[number].ops)
        users = [user for buffer in buffers for user in users_of(buffer) if user.name not in BUFFER_VIEWS]
        return any(user not in others for user in users)

    def elements(self) -> int:
        """Returns how many elements a result has."""
        return math.prod(self.sizes[loop] for loop in self.parallel)

    def terms(self) -> int:
        """Returns how many iterations an element of a result takes."""
        return math.prod(self.sizes[loop] for loop in self.reduced)

    def values_of(self, loops: dict[int, ir.Value]) -> dict[ir.Value, ir.Value]:
        """Returns the values of the body that do not depend on the results so far, by those of the body.

        Args:
            loops: indices of the iteration.
        """
        return self.computed(loops, [None] * self.outputs, {})

    def indices(self, number: ir.Value, loops: Sequence[int]) -> dict[int, ir.Value]:
        """Returns the indices of loops in an iteration of the one loop that they are flattened to, row-major.

        Args:
            number: of the iteration.
            loops: that are flattened, the outermost first.
        """
        return dict(zip(loops, digits(number, [self.extents[loop] for loop in loops])))

    def start(self, number: int, loops: dict[int, ir.Value]) -> ir.Value | None:
        """Returns what an element of an output holds before the op.

        Args:
            number: of the output.
            loops: indices of the element.
        """
        initial = self.initial[number]
        if initial.buffer is not None:
            return load(initial.buffer, address_of(self.maps[self.inputs + number], loops))
        return initial.number

    def iteration(
        self,
        loops: dict[int, ir.Value],
        so_far: Sequence[ir.Value | None],
        count: int | None = None,
        loaded: Mapping[int, ir.Value] | None = None,
        known: Mapping[ir.Value, ir.Value] | None = None,
    ) -> list[ir.Value]:
        """Returns what the body yields in an iteration.

        Args:
            loops: indices of the iteration.
            so_far: the results so far.
            count: how many of the values are returned; all without it.
            loaded: elements of operands, by their index.
            known: values of the body, by those of the body.
        """
        values = self.computed(loops, so_far, loaded or {}, known)
        return [values.get(value, value) for value in self.end.operands][:count]

    def folded(
        self, loops: dict[int, ir.Value], so_far: Sequence[ir.Value], loaded: Mapping[int, ir.Value] | None = None
    ) -> list[ir.Value]:
        """Returns the results so far with the terms of an iteration.

        Args:
            loops, so_far, loaded: as for `iteration`.
        """
        assert self.folds is not None
        values = self.computed(loops, [None] * self.outputs, loaded or {})
        return [
            fold.folded(value, converted(fold.term_in(values), fold.type)) for fold, value in zip(self.folds, so_far)
        ]

    def computed(
        self,
        loops: dict[int, ir.Value],
        so_far: Sequence[ir.Value | None],
        loaded: Mapping[int, ir.Value],
        known: Mapping[ir.Value, ir.Value] | None = None,
    ) -> dict[ir.Value, ir.Value]:
        """Returns the values of the body in an iteration, by those of the body; without `so_far`, not those that depend
        on it. Elements that are not `loaded` are.

        Args:
            loops, so_far, loaded, known: as for `iteration`.
        """
        values: dict[ir.Value, ir.Value] = dict(known or {})
        for number, argument in enumerate(self.body.arguments):
            if number >= self.inputs:
                start = so_far[number - self.inputs]
                if start is not None:
                    values[argument] = start
            elif number in loaded:
                values[argument] = loaded[number]
            elif list(argument.uses):
                values[argument] = load(self.generic.operands[number], address_of(self.maps[number], loops))
        compute_body(self.body, values, loops)
        return values

    def store(self, results: Sequence[ir.Value], loops: dict[int, ir.Value]) -> None:
        """Stores an element of each result that is read.

        Args:
            results: the values.
            loops: indices of the element.
        """
        for number, value in enumerate(results):
            if not self.is_read[number]:
                continue
            place = self.inputs + number
            operands = [value, self.generic.operands[place], *address_of(self.maps[place], loops)]
            ir.Operation.create("memref.store", operands=operands)
