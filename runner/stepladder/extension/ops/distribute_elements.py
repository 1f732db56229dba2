"""`tc.distribute_elements`: maps a linalg op on buffers to threads, an element of the result each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import apply, digits, equal, index, less_than
from stepladder.extension.lib.control_flow import create_if, operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.folds import Fold, fold_of
from stepladder.mlir.bindings import ir, scf
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.traverse import origin, walk

_WARP = 32
_SMALLEST = 16  # bits of a floating-point type that a thread computes in
_MOVES = ("arith.constant", "arith.select")
_VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast")


class DistributeElements(Tc.Operation, name="distribute_elements"):
    """Rewrites the `linalg.generic` on buffers of a function to loops over blocks and threads (`scf.forall`).

    A thread computes an element of each result. Where the op reduces the innermost axis of an input, a warp does: its
    lanes fold every 32nd value, so that they read neighbours, and then their results. Sums of 16-bit floating-point
    numbers are f32, and rounded once. Buffers that a fill or a copy initializes are not written before the result.

    Operands: a handle to a module with one function. Attributes: `threads`, of a block, a multiple of 32. Refuses a
    function with more ops than that, indexing maps that are not projected permutations, arithmetic and casts of fp8,
    and a result of one iteration that another one reads.
    """

    target: Handle
    threads: ir.IntegerAttr


@transform_op(DistributeElements)
def distribute_elements(payload: ir.Operation, op: DistributeElements, rewriter: Rewriter) -> None:
    """Rewrites the one `linalg.generic` below `payload`; see the op."""
    generics = walk(payload, "linalg.generic")
    if len(generics) != 1:
        raise Refusal(payload, f"expected one linalg.generic, found {len(generics)}")
    generic = generics[0]
    others = [
        item
        for item in operations_of(generic.block)
        if not item.name.startswith(("arith.", "memref.")) and item.name not in ("linalg.fill", "func.return")
    ]
    if others != [generic]:
        raise Refusal(next(item for item in others if item != generic), "an op beside the one linalg.generic")
    _check_types(generic)
    nest = _Nest(generic, rewriter)
    with ir.InsertionPoint(generic), generic.location:
        nest.write(op.threads.value)
    rewriter.erase_op(generic)
    for item in nest.initializing:
        rewriter.erase_op(item)


def _check_types(generic: ir.Operation) -> None:
    """Refuses arithmetic and casts of fp8: LLVM has neither; elements may be copied."""
    for op in walk(generic):
        if not op.name.startswith(("arith.", "math.")) or op.name in _MOVES:
            continue
        for value in (*op.operands, *op.results):
            if isinstance(value.type, ir.FloatType) and value.type.width < _SMALLEST:
                raise Refusal(
                    op, f"'{op.name}' of {value.type} outside of a matmul; accepted: f16, bf16, f32, f64 and integers"
                )


@dataclass
class _Initial:
    """What an output holds before: a number, or the elements of a buffer; neither where it is not initialized."""

    number: ir.Value | None = None
    buffer: ir.Value | None = None


class _Nest:
    """The loops of a `linalg.generic`, and what they compute; ops are created at the current insertion point."""

    def __init__(self, generic: ir.Operation, rewriter: Rewriter) -> None:
        self.generic = generic
        self.body = generic.regions[0].blocks[0]
        self.end = operations_of(self.body)[-1]
        self.outputs = len(self.end.operands)
        self.inputs = len(self.body.arguments) - self.outputs
        self.maps = [_loops(generic, map_) for map_ in indexing_maps(generic)]
        self.sizes = self._sizes(indexing_maps(generic)[0].n_dims)
        kept = {tuple(sorted(loop for loop in map_ if loop is not None)) for map_ in self.maps[self.inputs :]}
        if len(kept) != 1:
            raise Refusal(generic, "results of different loops; accepted: results of one shape")
        (self.parallel,) = kept
        self.reduced = [loop for loop in range(len(self.sizes)) if loop not in self.parallel]
        self.initializing: list[ir.Operation] = []
        self.initial = [self._initial(number) for number in range(self.outputs)]
        self.folds = self._folds()

    def _sizes(self, loops: int) -> list[int]:
        sizes = [1] * loops
        for operand, map_ in zip(self.generic.operands, self.maps):
            for size, loop in zip(ir.MemRefType(operand.type).shape, map_):
                if loop is not None:
                    sizes[loop] = size
        return sizes

    def _initial(self, number: int) -> _Initial:
        """Returns what an output holds before the op, of which the last fill or copy says it."""
        root = origin(self.generic.operands[self.inputs + number], _VIEWS)
        found = _Initial()
        for item in operations_of(self.generic.block):
            if item == self.generic:
                break
            if item.name in ("linalg.fill", "memref.copy") and origin(item.operands[1], _VIEWS) == root:
                is_whole = item.operands[1] == self.generic.operands[self.inputs + number]
                if item.name == "memref.copy" and not is_whole:
                    raise Refusal(item, "a copy to another view of the result")
                found = (
                    _Initial(number=item.operands[0])
                    if item.name == "linalg.fill"
                    else _Initial(buffer=item.operands[0])
                )
                self.initializing.append(item)
        is_read = bool(list(self.body.arguments[self.inputs + number].uses))
        if is_read and found.number is None and found.buffer is None:
            raise Refusal(self.generic, "the op reads a result that nothing initializes")
        return found

    def _folds(self) -> list[Fold] | None:
        """Returns how all outputs are reduced; None where none is, or by another body than a fold."""
        folds = [fold_of(self.generic, number) for number in range(self.outputs)]
        found = [fold for fold in folds if fold is not None]
        return found if self.reduced and len(found) == len(folds) else None

    def _is_for_warps(self) -> bool:
        """Tells whether the lanes of a warp reduce an element: where the reduction runs along neighbours in memory, of
        types that lanes exchange."""
        if self.folds is None or math.prod(self.sizes[loop] for loop in self.reduced) < _WARP:
            return False
        if any(not isinstance(fold.type, ir.F32Type) and str(fold.type) != "i32" for fold in self.folds):
            return False
        largest = max(self.maps[: self.inputs], key=len, default=[])
        return bool(largest) and largest[-1] == self.reduced[-1]

    def write(self, threads: int) -> None:
        """Creates the loops in place of the op."""
        is_for_warps = self._is_for_warps()
        elements = math.prod(self.sizes[loop] for loop in self.parallel)
        per_block = threads // _WARP if is_for_warps else threads
        block = _forall(-(-elements // per_block), "block")
        with ir.InsertionPoint(operations_of(block.owner)[-1]):
            thread = _forall(threads, "thread")
            with ir.InsertionPoint(operations_of(thread.owner)[-1]):
                lane = apply(lambda t: t % _WARP, thread) if is_for_warps else None
                place = apply(lambda t: ir.AffineExpr.get_floor_div(t, _WARP), thread) if is_for_warps else thread
                element = apply(lambda b, t: b * per_block + t, block, place)
                with create_if(less_than(element, index(elements))):
                    self._element(element, lane)

    def _element(self, element: ir.Value, lane: ir.Value | None) -> None:
        """Computes an element of each result."""
        loops: dict[int, ir.Value] = self._indices(element, self.parallel)
        if not self.reduced:
            starts = [self._start(number, loops) for number in range(self.outputs)]
            self._store(self._iteration(loops, starts, len(self.end.operands)), loops)
            return
        folds = self.folds
        starts = [self._start(number, loops) for number in range(self.outputs)]
        assert all(start is not None for start in starts)  # a reduction reads what it begins from
        begin = [fold.neutral() for fold in folds] if folds is not None else [item for item in starts if item]
        count = math.prod(self.sizes[loop] for loop in self.reduced)
        loop = scf.ForOp(lane or index(0), index(count), index(1 if lane is None else _WARP), begin)
        with ir.InsertionPoint(loop.body):
            inner = {**loops, **self._indices(loop.induction_variable, self.reduced)}
            so_far = list(loop.inner_iter_args)
            scf.yield_(self._folded(inner, so_far) if folds is not None else self._iteration(inner, so_far))
        results: list[ir.Value] = list(loop.results_)
        if folds is None:
            self._store(results, loops)
            return
        if lane is not None:
            results = [_over_lanes(fold, value) for fold, value in zip(folds, results)]
        results = [
            _cast(fold.folded(_cast(start, fold.type), value), fold.op.results[0].type)
            for fold, start, value in zip(folds, starts, results)
        ]
        if lane is None:
            self._store(results, loops)
            return
        with create_if(equal(lane, index(0))):
            self._store(results, loops)

    def _indices(self, number: ir.Value, loops: Sequence[int]) -> dict[int, ir.Value]:
        """Returns the indices of loops in an iteration of the one loop that they are flattened to, row-major."""
        return dict(zip(loops, digits(number, [self.sizes[loop] for loop in loops])))

    def _address(self, place: int, loops: dict[int, ir.Value]) -> list[ir.Value]:
        return [index(0) if loop is None else loops[loop] for loop in self.maps[place]]

    def _start(self, number: int, loops: dict[int, ir.Value]) -> ir.Value | None:
        """Returns what an element of an output holds before the op."""
        initial = self.initial[number]
        if initial.buffer is not None:
            return _load(initial.buffer, self._address(self.inputs + number, loops))
        return initial.number

    def _iteration(
        self, loops: dict[int, ir.Value], so_far: Sequence[ir.Value | None], count: int | None = None
    ) -> list[ir.Value]:
        """Returns what the body yields in an iteration."""
        values = self._computed(loops, so_far)
        return [values.get(value, value) for value in self.end.operands][:count]

    def _folded(self, loops: dict[int, ir.Value], so_far: Sequence[ir.Value]) -> list[ir.Value]:
        """Returns the results so far with the terms of an iteration."""
        assert self.folds is not None
        values = self._computed(loops, [None] * self.outputs)
        return [
            fold.folded(value, _cast(values.get(fold.term, fold.term), fold.type))
            for fold, value in zip(self.folds, so_far)
        ]

    def _computed(self, loops: dict[int, ir.Value], so_far: Sequence[ir.Value | None]) -> dict[ir.Value, ir.Value]:
        """Returns the values of the body in an iteration, by those of the body; without `so_far`, not those that depend
        on it."""
        values: dict[ir.Value, ir.Value] = {}
        for number, argument in enumerate(self.body.arguments):
            if number >= self.inputs:
                start = so_far[number - self.inputs]
                if start is not None:
                    values[argument] = start
            elif list(argument.uses):
                values[argument] = _load(self.generic.operands[number], self._address(number, loops))
        skipped: set[ir.Value] = {value for value in self.body.arguments[self.inputs :] if value not in values}
        for item in operations_of(self.body)[:-1]:
            if item.name == "linalg.index":
                values[item.results[0]] = loops[ir.IntegerAttr(item.attributes["dim"]).value]
                continue
            if any(operand in skipped for operand in item.operands):
                skipped.update(item.results)
                continue
            copy = item.clone().operation
            for place, operand in enumerate(item.operands):
                copy.operands[place] = values.get(operand, operand)
            values.update(zip(item.results, copy.results))
        return values

    def _store(self, results: Sequence[ir.Value], loops: dict[int, ir.Value]) -> None:
        for number, value in enumerate(results):
            place = self.inputs + number
            operands = [value, self.generic.operands[place], *self._address(place, loops)]
            ir.Operation.create("memref.store", operands=operands)


def _loops(generic: ir.Operation, map_: ir.AffineMap) -> list[int | None]:
    """Returns the loops along the axes of an operand; None where the coordinate is 0."""
    found: list[int | None] = []
    for item in map_.results:
        if isinstance(item, ir.AffineDimExpr):
            found.append(item.position)
        elif isinstance(item, ir.AffineConstantExpr) and item.value == 0:
            found.append(None)
        else:
            raise Refusal(generic, f"the indexing map {map_}; accepted: projected permutations")
    return found


def _load(buffer: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    type_ = ir.MemRefType(buffer.type).element_type
    return ir.Operation.create("memref.load", results=[type_], operands=[buffer, *indices]).results[0]


def _cast(value: ir.Value | None, type_: ir.Type) -> ir.Value:
    """Returns a floating-point value in a type that is wider or narrower, or the same."""
    assert value is not None
    if value.type == type_:
        return value
    name = "arith.extf" if isinstance(type_, ir.F32Type) else "arith.truncf"
    return ir.Operation.create(name, results=[type_], operands=[value]).results[0]


def _over_lanes(fold: Fold, value: ir.Value) -> ir.Value:
    """Returns the values of the lanes of a warp folded: all lanes have the result."""
    i32 = ir.IntegerType.get_signless(32)

    def number(value: int) -> ir.Value:
        attribute = ir.IntegerAttr.get(i32, value)
        return ir.Operation.create("arith.constant", results=[i32], attributes={"value": attribute}).results[0]

    width, distance = number(_WARP), _WARP // 2
    while distance:
        shuffled = ir.Operation.create(
            "gpu.shuffle",
            results=[fold.type, ir.IntegerType.get_signless(1)],
            operands=[value, number(distance), width],
            attributes={"mode": ir.Attribute.parse("#gpu<shuffle_mode xor>")},
        )
        value = fold.folded(value, shuffled.results[0])
        distance //= 2
    return value


def _forall(count: int, kind: str) -> ir.BlockArgument:
    """Creates a parallel loop over blocks or threads; returns its index."""
    none, one = ir.DenseI64ArrayAttr.get([0]), ir.DenseI64ArrayAttr.get([1])
    loop = ir.Operation.create(
        "scf.forall",
        attributes={
            "staticLowerBound": none,
            "staticUpperBound": ir.DenseI64ArrayAttr.get([count]),
            "staticStep": one,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0, 0]),
            "mapping": ir.ArrayAttr.get([ir.Attribute.parse(f"#gpu.{kind}<x>")]),
        },
        regions=1,
    )
    block = loop.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[ir.Location.current])
    with ir.InsertionPoint(block):
        end = ir.Operation.create("scf.forall.in_parallel", regions=1)
    end.regions[0].blocks.append()
    return block.arguments[0]
