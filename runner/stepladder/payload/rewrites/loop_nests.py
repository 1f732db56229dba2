"""Nests of loops over elements of buffers, as front ends of C write matmuls, as linalg ops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_generic, create_named_op
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.slices import static_numbers
from stepladder.mlir.traverse import origin, producer, users_of, walk
from stepladder.payload.rewrites import merged_tiles

_LOOP, _LOAD, _STORE = "scf.for", "memref.load", "memref.store"
_BOUNDS = 3
_SCALARS = ("arith.", "math.")
_VIEWS = (*BUFFER_VIEWS, "memref.reinterpret_cast", "memref.subview", "memref.transpose", "memref.view")


def lower(function: ir.Operation) -> None:
    """Replaces nests of loops over elements of buffers by a linalg op for each store.

    Loops run from 0 to a constant by steps of 1, or over tiles and the elements of these (`merged_tiles`). Their bodies
    load and store elements at the counters of loops, and compute scalars of them; values that a loop carries are kept
    in buffers. A nest in which an element is read in another iteration than it is written in, but as what a sum begins
    from, stays.

    Args:
        function: a function on buffers; it is changed where there are such nests.
    """
    if len(function.regions[0].blocks) != 1:
        return
    for op in [item.operation for item in function.regions[0].blocks[0].operations]:
        if op.name == _LOOP and walk(op, _STORE):
            _replace(op)


@dataclass
class _Statement:
    """A store in a nest: the loops around it, outermost first, and the ops that compute what it stores."""

    store: ir.Operation
    loops: list[ir.Operation]
    ops: list[ir.Operation] = field(default_factory=list)

    @property
    def counters(self) -> list[ir.Value]:
        """The induction variables of the loops, outermost first."""
        return [_counter(loop) for loop in self.loops]

    @property
    def accesses(self) -> list[ir.Operation]:
        """The loads of what is stored, and the store."""
        return [*(op for op in self.ops if op.name == _LOAD), self.store]


def _counter(loop: ir.Operation) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[0]


def _extent(loop: ir.Operation) -> int:
    """Returns how often a loop runs; 0 for one with other bounds than from 0 to a constant by 1."""
    numbers = [producer(bound) for bound in list(loop.operands)[:_BOUNDS]]
    if any(item is None or item.name != "arith.constant" for item in numbers):
        return 0
    low, high, step = (ir.IntegerAttr(item.attributes["value"]).value for item in numbers if item is not None)
    return high if (low, step) == (0, 1) else 0


def _inner(loop: ir.Operation) -> list[ir.Operation]:
    return [item.operation for item in loop.regions[0].blocks[0].operations]


def _buffer(access: ir.Operation) -> ir.Value:
    return access.operands[_first(access) - 1]


def _indices(access: ir.Operation) -> list[ir.Value]:
    return list(access.operands)[_first(access) :]


def _first(access: ir.Operation) -> int:
    """Returns which operand of a load or a store is its first index."""
    return 1 if access.name == _LOAD else 2


def _is_of_elements(loop: ir.Operation) -> bool:
    """Returns whether a nest has loops with constant bounds, loads and stores at their counters, and scalar ops."""
    if not _extent(loop):
        return False
    for op in _inner(loop):
        if op.name == _LOOP:
            if not _is_of_elements(op):
                return False
        elif op.name in (_LOAD, _STORE):
            if _buffer(op).owner == loop.regions[0].blocks[0] or not _is_static(_buffer(op)):
                return False
        elif not _is_scalar(op) and op.name != "scf.yield":
            return False
    return True


def _is_scalar(op: ir.Operation) -> bool:
    """Returns whether an op computes with elements, and not with the counters of loops."""
    is_known = op.name.startswith(_SCALARS) and not len(op.regions)
    return is_known and not any(isinstance(value.type, ir.IndexType) for value in op.operands)


def _is_static(buffer: ir.Value) -> bool:
    type_ = ir.MemRefType(buffer.type)
    return type_.has_static_shape and type_.affine_map == ir.AffineMap.get_identity(type_.rank)


def _replace(nest: ir.Operation) -> None:
    """Replaces a nest, if it can be."""
    copy = nest.clone(ir.InsertionPoint(nest)).operation  # changes before it is known whether the nest stays
    merged_tiles.merge(copy)
    if not _is_of_elements(copy):
        copy.erase()
        return
    _carry_in_buffers(copy, [])
    statements = list(_statements(copy, []))
    order = {op: number for number, op in enumerate(walk(copy))}
    are_whole = not _overlaps(statements) and all(_is_whole(item, order) for item in statements)
    if not are_whole or not all(_may_part(*pair) for pair in itertools.combinations(statements, 2)):
        _drop(copy)
        return
    for item in statements:
        with ir.InsertionPoint(copy) as at, item.store.location:
            _create(item, at)
    copy.erase()
    nest.erase()


def _overlaps(statements: Sequence[_Statement]) -> bool:
    """Returns whether a nest accesses a buffer that it writes through another view of the same memory."""
    stored = {_buffer(item.store) for item in statements}
    accessed = {_buffer(access) for item in statements for access in item.accesses}
    homes = {buffer: origin(buffer, _VIEWS) for buffer in accessed}
    return any(
        homes[stored_buffer] == homes[accessed_buffer]
        for stored_buffer in stored
        for accessed_buffer in accessed
        if stored_buffer != accessed_buffer
    )


def _drop(copy: ir.Operation) -> None:
    """Erases a copy of a nest, and the buffers that were made for it."""
    allocations = {producer(_buffer(op)) for op in walk(copy, _STORE)}
    copy.erase()
    for alloc in allocations:
        if alloc is not None and alloc.name == "memref.alloc" and not users_of(alloc.results[0]):
            alloc.erase()


def _carry_in_buffers(loop: ir.Operation, outer: list[ir.Operation]) -> None:
    """Has a buffer with an element for each iteration of the outer loops hold what a loop carries."""
    for op in _inner(loop):
        if op.name == _LOOP:
            _carry_in_buffers(op, [*outer, loop])
    starts = list(loop.operands)[_BOUNDS:]
    if not starts:
        return
    body = loop.regions[0].blocks[0]
    end = _inner(loop)[-1]
    first = outer[0] if outer else loop
    shape, counters = [_extent(item) for item in outer], [_counter(item) for item in outer]
    segments: dict[str, ir.Attribute] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
    for number, start in enumerate(starts):
        type_ = ir.MemRefType.get(shape, start.type)
        with ir.InsertionPoint(first), loop.location:
            buffer = ir.Operation.create("memref.alloc", results=[type_], attributes=segments).results[0]
        with ir.InsertionPoint(loop), loop.location:
            ir.Operation.create(_STORE, operands=[start, buffer, *counters])
        argument, result = body.arguments[1 + number], loop.results[number]
        with ir.InsertionPoint.at_block_begin(body), loop.location:
            argument.replace_all_uses_with(ir.Operation.create(_LOAD, [start.type], [buffer, *counters]).results[0])
        last = end.operands[number]
        with ir.InsertionPoint(end), loop.location:
            ir.Operation.create(_STORE, operands=[last, buffer, *counters])
        with ir.InsertionPoint.after(loop), loop.location:
            result.replace_all_uses_with(ir.Operation.create(_LOAD, [start.type], [buffer, *counters]).results[0])


def _statements(loop: ir.Operation, outer: list[ir.Operation]) -> Iterator[_Statement]:
    """Yields the stores of a nest, in order."""
    loops = [*outer, loop]
    for op in _inner(loop):
        if op.name == _LOOP:
            yield from _statements(op, loops)
        elif op.name == _STORE:
            statement = _Statement(op, loops)
            _collect(op.operands[0], statement, loops[0])
            yield statement


def _collect(value: ir.Value, statement: _Statement, nest: ir.Operation) -> None:
    """Adds the ops of a nest that compute a value to a statement, in an order in which they may run."""
    source = producer(value)
    if source is None or source in statement.ops or not _is_in(source, nest):
        return
    if source.name != _LOAD:
        for operand in source.operands:
            _collect(operand, statement, nest)
    statement.ops.append(source)


def _is_in(op: ir.Operation | None, nest: ir.Operation) -> bool:
    while op is not None and op != nest:
        op = op.parent.operation if op.parent is not None else None
    return op is not None


def _is_whole(item: _Statement, order: dict[ir.Operation, int]) -> bool:
    """Returns whether a store is one linalg op: each loop runs along its element, or sums what it stores."""
    counters = item.counters
    store_indices, target = _indices(item.store), _buffer(item.store)
    if any(op.name == _LOOP for op in item.ops) or any(
        index not in counters for access in item.accesses for index in _indices(access)
    ):
        return False
    if any(len(set(_indices(access))) < len(_indices(access)) for access in item.accesses):
        return False
    own_loads = [op for op in item.accesses[:-1] if _buffer(op) == target]
    if any(_indices(op) != store_indices for op in own_loads) or (not own_loads and len(store_indices) < len(counters)):
        return False
    used_indices = {index for access in item.accesses for index in _indices(access)}
    if any(counter not in used_indices for counter in counters):
        return False
    # What is loaded is the same where the statement stores.
    nest = item.loops[0]
    for op in item.accesses[:-1]:
        accesses = [
            store
            for store in walk(nest, _STORE)
            if store != item.store and _buffer(store) == _buffer(op) and order[op] < order[store] < order[item.store]
        ]
        if accesses or (op.parent != item.store.parent and _buffer(op) in map(_buffer, walk(nest, _STORE))):
            return False
    return all(_fits(access, item) for access in item.accesses)


def _fits(access: ir.Operation, item: _Statement) -> bool:
    """Returns whether loops stay within a buffer."""
    extents = {_counter(loop): _extent(loop) for loop in item.loops}
    shape = ir.MemRefType(_buffer(access).type).shape
    return all(extents[index] <= size for index, size in zip(_indices(access), shape))


def _may_part(left: _Statement, right: _Statement) -> bool:
    """Returns whether all iterations of one statement may run before those of another: in the loops around both, each
    iteration has elements of its own of what either writes."""
    common = [_counter(loop) for loop in left.loops if loop in right.loops]
    buffers = {_buffer(left.store), _buffer(right.store)}
    shared = buffers & set(map(_buffer, left.accesses)) & set(map(_buffer, right.accesses))
    for buffer in shared:
        index_lists = [_indices(access) for access in (*left.accesses, *right.accesses) if _buffer(access) == buffer]
        for counter in common:
            places = {indices.index(counter) if counter in indices else None for indices in index_lists}
            if len(places) > 1 or None in places:
                return False
    return True


def _create(item: _Statement, at: ir.InsertionPoint) -> None:
    """Creates the linalg op of a statement, at an insertion point, which is the current one."""
    counters = item.counters
    target = _buffer(item.store)
    loads = [op for op in item.accesses[:-1] if _buffer(op) != target]
    maps = [_map(counters, _indices(op)) for op in (*loads, item.store)]
    views = [_view(op, item) for op in (*loads, item.store)]
    if all(op.name == "arith.constant" for op in item.ops):
        create_named_op("linalg.fill", [_outside(item, at)], views[0])
        return
    _, body = create_generic(views[:-1], views[-1:], maps)
    arguments = list(body.arguments)
    mapping: dict[ir.Value, ir.Value] = {op.results[0]: argument for op, argument in zip(loads, arguments)}
    mapping |= {op.results[0]: arguments[-1] for op in item.accesses[:-1] if _buffer(op) == target}
    ops = [op for op in item.ops if op.name != _LOAD]
    new_values = clone_ops(ops, mapping, ir.InsertionPoint(body))
    value = item.store.operands[0]
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=[new_values.get(value, value)])


def _outside(item: _Statement, at: ir.InsertionPoint) -> ir.Value:
    """Returns the constant that a statement stores, or a value from outside of its nest, for use at an insertion
    point."""
    value = item.store.operands[0]
    return clone_ops(item.ops, {}, at)[value] if item.ops else value


def _map(counters: Sequence[ir.Value], indices: Sequence[ir.Value]) -> ir.AffineMap:
    return ir.AffineMap.get(len(counters), 0, [ir.AffineExpr.get_dim(counters.index(index)) for index in indices])


def _view(access: ir.Operation, item: _Statement) -> ir.Value:
    """Returns the part of a buffer that loops run along."""
    extents = {_counter(loop): _extent(loop) for loop in item.loops}
    buffer = _buffer(access)
    type_ = ir.MemRefType(buffer.type)
    sizes = [extents[index] for index in _indices(access)]
    if sizes == list(type_.shape):
        return buffer
    strides = type_.get_strides_and_offset()[0]
    result = ir.MemRefType.get(sizes, type_.element_type, ir.StridedLayoutAttr.get(0, strides), type_.memory_space)
    attributes = static_numbers([0] * len(sizes), sizes)
    return ir.Operation.create("memref.subview", results=[result], operands=[buffer], attributes=attributes).results[0]
