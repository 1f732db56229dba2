"""`tc.plan_workspace`: places the intermediate buffers of a function in one workspace."""

from collections.abc import Mapping
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.placed_parts import Placed, bytes_of, erase_views, placed_parts, set_layout
from stepladder.extension.lib.multi_kernel.stages import group_of, one_function
from stepladder.extension.lib.workspaces import create_workspace
from stepladder.mlir.bindings import ir
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import callee_of, origin, producer, symbol_of, users_of, walk
from stepladder.mlir.windows import span_of, window
from stepladder.payload.front.rewrite import reshaped
from stepladder.runtime.element_types import BUFFER_TYPES, element_type

# Bytes that the address of a buffer is a multiple of.
ALIGNMENT = 256
# MLIR's names of the element types that buffers of kernels have.
_ELEMENTS = tuple(BUFFER_TYPES)
_USES = ("func.call", "memref.copy")


@dataclass
class _Buffer:
    """An intermediate buffer: its `memref.alloc`, its bytes, the positions of the first and last op that use it, and
    its position."""

    alloc: ir.Operation
    size: int
    first: int
    last: int
    offset: int = 0


class PlanWorkspace(Tc.Operation, name="plan_workspace"):
    """Replaces the buffers that a function allocates by views of one workspace.

    A buffer is live from the call that writes it to the last call that reads it. Buffers that are live at one time are
    apart; others may share bytes. The largest buffers are placed first, each at the lowest offset that is free, a
    multiple of 256 bytes.

    A buffer that is returned in another shape is the result's.

    Kernels write the parts of a tensor that a stage assembles (`assemble_parts`) in their positions in its buffer, or
    in a result of the function, and the call of the stage is erased: the buffer is live from the first write of a part
    on. Columns are views with a pitch, which the argument of their kernel's function has too. Where a part has no
    buffer of its own, such as one that is a result, the call stays, and its kernel copies.

    Operands: a handle to a module with one public function on buffers. Refuses buffers that are used otherwise than by
    calls and copies, and of sizes that are not static.
    """

    target: Handle


@transform_op(PlanWorkspace)
def plan_workspace(payload: ir.Operation, op: PlanWorkspace, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    body = one_function(payload).regions[0].blocks[0]
    _write_results(body, rewriter)
    parts = placed_parts(payload, rewriter)
    places = _places(payload, body)
    buffers = {
        item: _buffer(item, places, parts) for item in places if item.name == "memref.alloc" and item not in parts
    }
    homes: dict[ir.Value, tuple[ir.Value, int]] = {}
    if buffers:
        size = _place(list(buffers.values()))
        byte = ir.IntegerType.get_signless(8)
        first = operations_of(body)[0]
        with ir.InsertionPoint(first), first.location:
            workspace = create_workspace(ir.MemRefType.get([size], byte))
        homes = {buffer.alloc.results[0]: (workspace, buffer.offset) for buffer in buffers.values()}
    for alloc, part in parts.items():
        home = homes.get(part.buffer)
        base, begin = (bytes_of(part.buffer, body), 0) if home is None else home
        homes[alloc.results[0]] = base, begin + part.begin
    stages = {symbol_of(item): item for item in walk(payload, "func.func")}
    for alloc in [*buffers, *parts]:
        base, begin = homes[alloc.results[0]]
        strides = parts[alloc].strides if alloc in parts else None
        type_ = ir.MemRefType(alloc.results[0].type)
        with ir.InsertionPoint(alloc), alloc.location:
            if strides is None:
                view = ir.Operation.create("memref.view", results=[type_], operands=[base, index(begin)])
                rewriter.replace_op(alloc, view.results)
                continue
            span = ir.MemRefType.get([span_of(type_, 0, strides)], type_.element_type)
            columns = ir.Operation.create("memref.view", results=[span], operands=[base, index(begin)])
            window_of_columns = window(columns.results[0], 0, type_.shape, strides)
        calls = [(use.owner.operation, use.operand_number) for use in alloc.results[0].uses]
        rewriter.replace_op(alloc, [window_of_columns])
        for call, place in calls:
            set_layout(call, place, stages[callee_of(call)])


def _write_results(body: ir.Block, rewriter: Rewriter) -> None:
    """Has kernels write the results that are returned in another shape, of which bufferization makes copies."""
    for copy in (item for item in operations_of(body) if item.name == "memref.copy"):
        source, target = copy.operands
        root = origin(source, BUFFER_VIEWS)
        alloc = producer(root)
        if source == root or alloc is None or alloc.name != "memref.alloc" or producer(target) is not None:
            continue
        location = copy.location
        rewriter.erase_op(copy)
        with ir.InsertionPoint.at_block_begin(body), location:
            view = reshaped(target, list(ir.MemRefType(alloc.results[0].type).shape))
        erase_views([alloc], rewriter)
        rewriter.replace_op(alloc, [view])


def _places(payload: ir.Operation, body: ir.Block) -> dict[ir.Operation, int]:
    """Returns the positions of ops in the order of launches: the calls of a group are one launch, in which each may run
    before each other one. Between them there are allocations alone."""
    groups = {symbol_of(function): group_of(function) for function in walk(payload, "func.func")}
    places: dict[ir.Operation, int] = {}
    last: int | None = None
    place = 0
    for item in operations_of(body):
        if item.name == "func.call":
            group = groups[callee_of(item)]
            place += group is None or group != last
            last = group
        elif item.name in _USES:
            place, last = place + 1, None
        places[item] = place
    return places


def _buffer(alloc: ir.Operation, places: dict[ir.Operation, int], parts: Mapping[ir.Operation, Placed]) -> _Buffer:
    """Returns a buffer with its lifetime, which is that of what is placed in it too."""
    type_ = ir.MemRefType(alloc.results[0].type)
    if not type_.has_static_shape:
        raise Refusal(alloc, f"a buffer of type {type_}; accepted: static sizes")
    if str(type_.element_type) not in _ELEMENTS:
        raise Refusal(
            alloc, f"a value of {type_.element_type} between kernels; accepted element types: {', '.join(_ELEMENTS)}"
        )
    size = element_type(str(type_.element_type)).bytes
    for extent in type_.shape:
        size *= extent
    user_places: list[int] = []
    views = [alloc.results[0], *(part.results[0] for part, place in parts.items() if place.buffer == alloc.results[0])]
    for view in views:  # grows in the loop
        for user in users_of(view):
            if user.name in BUFFER_VIEWS:
                views.append(user.results[0])
            elif user.name in _USES and user in places:
                user_places.append(places[user])
            else:
                raise Refusal(user, f"'{user.name}' of a buffer of the function; accepted: calls and copies")
    return _Buffer(alloc, size, min(user_places), max(user_places))


def _place(buffers: list[_Buffer]) -> int:
    """Gives each buffer its offset; returns the bytes of the workspace."""
    placed_buffers: list[_Buffer] = []
    for buffer in sorted(buffers, key=lambda item: (-item.size, item.first)):
        others = sorted(
            (item for item in placed_buffers if item.first <= buffer.last and buffer.first <= item.last),
            key=lambda item: item.offset,
        )
        for other in others:
            if buffer.offset + buffer.size <= other.offset:
                break
            buffer.offset = max(buffer.offset, -(-(other.offset + other.size) // ALIGNMENT) * ALIGNMENT)
        placed_buffers.append(buffer)
    return max(item.offset + item.size for item in placed_buffers)
