"""`tc.load_in_place`: loads an operand whose dimensions are in another order from where it is, without a copy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib import launches, tma
from stepladder.extension.lib.arithmetic import apply, index
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.index_ranges import divisor_of
from stepladder.extension.lib.workspaces import PERMUTATION, is_workspace
from stepladder.mlir import types
from stepladder.mlir.bindings import ir, memref, nvgpu
from stepladder.mlir.traverse import defining_op, users_of, walk
from stepladder.mlir.windows import window


class LoadInPlace(Tc.Operation, name="load_in_place"):
    """Replaces TMA loads of a workspace, to which a kernel copies a buffer in another order, by loads of the buffer.

    A descriptor of the buffer has a dimension for each of its axes, in the order of the copy, and a box as many
    elements of each as one of the copy has. The preceding kernel, its launch and the workspace go.

    Where TMA cannot load all boxes in this way, the kernel stays: more than five axes, rows or an innermost axis that
    TMA does not take, a box whose extent neither divides an inner axis nor is a multiple of it, or with rows of several
    axes, and one that may begin elsewhere than at a multiple of its extent.

    Operands: a handle to the module, with one `gpu.launch`.
    """

    target: Handle


_MAX_AXES = 5  # of a descriptor
# Operands of a load before its coordinates: tile, barriers, descriptor.
_BEFORE = 3


@dataclass(frozen=True)
class _Copy:
    """A copy by a preceding kernel.

    Attributes:
        launch: of the kernel.
        source: the buffer that it reads.
        workspace: that it writes.
        shape: of the workspace, as the kernel sees it.
        strides: of the source, in this order of its axes.
    """

    launch: ir.Operation
    source: ir.Value
    workspace: ir.Value
    shape: list[int]
    strides: list[int]


def _copies(payload: ir.Operation) -> list[_Copy]:
    """Returns the copies of buffers to workspaces in another order."""
    copies = []
    for launch in walk(payload, "gpu.launch_func"):
        if PERMUTATION not in launch.attributes:
            continue
        source, target = list(launch.operands)[-2:]
        view = defining_op(target)
        workspace = view.operands[0] if view.name in ("memref.expand_shape", "memref.collapse_shape") else target
        if not is_workspace(workspace):
            continue
        type_ = ir.MemRefType(source.type)
        if type_.affine_map != ir.AffineMap.get_identity(type_.rank):
            continue
        strides, _ = type_.get_strides_and_offset()
        order = ir.DenseI64ArrayAttr(launch.attributes[PERMUTATION])
        shape = list(ir.MemRefType(target.type).shape)
        copies.append(_Copy(launch, source, workspace, shape, [strides[axis] for axis in order]))
    return copies


def _grouped(sizes: Sequence[int], shape: Sequence[int]) -> list[list[int]] | None:
    """Returns the extents that each dimension of a shape consists of; None where its dimensions do not divide so."""
    remaining, groups = list(sizes), []
    for extent in shape:
        group: list[int] = []
        while remaining and math.prod(group) < extent:
            group.append(remaining.pop(0))
        if not group or math.prod(group) != extent:
            return None
        groups.append(group)
    return None if remaining else groups


def _divided_box(extent: int, group: Sequence[int]) -> list[int] | None:
    """Returns the box in the axes of a dimension; None where it is none of whole inner axes."""
    if len(group) < 2:
        return [extent] * len(group)
    box: list[int] = []
    for size in reversed(group[1:]):
        own = min(extent, size)
        if size % own or extent % own:
            return None
        box.insert(0, own)
        extent //= own
    return [extent, *box]  # beyond the outermost axis, TMA fills zeros


def _coordinates(value: ir.Value, group: Sequence[int]) -> list[ir.Value]:
    """Returns the coordinates of an index of a dimension in its axes, the innermost first."""
    coordinates: list[ir.Value] = []
    below = 1
    for place, size in enumerate(reversed(group)):
        is_outermost = place == len(group) - 1

        def digit(
            x: ir.AffineExpr, below: int = below, size: int = size, is_last: bool = is_outermost
        ) -> ir.AffineExpr:
            quotient = ir.AffineExpr.get_floor_div(x, below) if below > 1 else x
            return quotient if is_last else ir.AffineExpr.get_mod(quotient, size)

        coordinates.append(value if len(group) == 1 else apply(digit, value))
        below *= size
    return coordinates


@dataclass(frozen=True)
class _Loads:
    """The loads by a descriptor, and how they divide into axes of the source.

    Attributes:
        create: the op that creates the descriptor.
        loads: by it.
        groups: the extents that each dimension of the workspace's matrix consists of.
        boxes: in each of these.
    """

    create: ir.Operation
    loads: list[ir.Operation]
    groups: list[list[int]]
    boxes: list[list[int]]


def _plan(copy: _Copy, launch: ir.Operation) -> list[_Loads] | None:
    """Returns the loads of a copy, if all of its uses are loads that TMA can do from the source; else None."""
    element = ir.MemRefType(copy.source.type).element_type
    width = types.byte_width(element)
    if len(copy.shape) > _MAX_AXES or copy.strides[-1] != 1:
        return None
    if any(stride * width % tma.PITCH_ALIGNMENT for stride in copy.strides[:-1]):
        return None
    writers = {copy.launch, *(user for user in users_of(copy.workspace) if user.name == "memref.expand_shape")}
    plans = []
    for cast in users_of(copy.workspace):
        if cast in writers:
            continue
        if cast.name != "memref.cast":
            return None
        groups = _grouped(copy.shape, ir.MemRefType(copy.workspace.type).shape)
        for create in users_of(cast.results[0]):
            loads = [load for load in walk(launch, tma.LOAD) if load.operands[2] == create.results[0]]
            if any(user.name == tma.STORE for user in users_of(create.results[0])) or groups is None:
                return None
            box = types.tensor_map_box(create.results[0].type)
            boxes = [_divided_box(extent, group) for extent, group in zip(box, groups)]
            if boxes[-1] is None or boxes[-1][-1] != box[-1]:
                return None  # a row of a box is of the innermost axis
            for load in loads:
                inner_first = list(load.operands)[_BEFORE : _BEFORE + len(box)]
                for extent, group, begin in zip(reversed(box), reversed(groups), inner_first):
                    if len(group) > 1 and divisor_of(begin) % extent:
                        return None
            plans.append(_Loads(create, loads, groups, [item for item in boxes if item is not None]))
            if len(plans[-1].boxes) != len(boxes):
                return None
    return plans


def _spread(tile: ir.Value, boxes: Sequence[Sequence[int]]) -> ir.Value:
    """Returns a tile in shared memory with a dimension for each axis of a box, at the insertion point."""
    type_ = ir.MemRefType(tile.type)
    strides, offset = type_.get_strides_and_offset()
    shape, layout, reassociation = [], [], []
    for box, stride in zip(boxes, strides):
        reassociation.append(list(range(len(shape), len(shape) + len(box))))
        shape += box
        layout += [stride * math.prod(box[place + 1 :]) for place in range(len(box))]
    if len(shape) == type_.rank:
        return tile
    result = ir.MemRefType.get(shape, type_.element_type, ir.StridedLayoutAttr.get(offset, layout), type_.memory_space)
    return memref.expand_shape(result, tile, reassociation, [], shape)


def _load_from_source(copy: _Copy, plan: _Loads, rewriter: Rewriter) -> None:
    """Replaces a descriptor of a workspace by one of the source, and its loads."""
    element = ir.MemRefType(copy.source.type).element_type
    box = [extent for axis in plan.boxes for extent in axis]
    type_ = types.tensor_map_of_box(box, element, types.tensor_map_swizzle(plan.create.results[0].type))
    with tma.before_descriptor(plan.create):
        view = window(copy.source, 0, copy.shape, copy.strides)
        unranked_view = memref.cast(ir.UnrankedMemRefType.get(element, None), view)
        location = tma.location_of_descriptor(copy.source)
        descriptor = nvgpu.tma_create_descriptor(type_, unranked_view, [index(extent) for extent in box], loc=location)
    rank = len(plan.groups)
    for load in plan.loads:
        tile, barriers, _, *further_operands = load.operands
        coordinates, (stage, *masks) = further_operands[:rank], further_operands[rank:]
        with ir.InsertionPoint(load), load.location:
            digits = [_coordinates(coordinate, group) for coordinate, group in zip(coordinates, reversed(plan.groups))]
            nvgpu.tma_async_load(
                _spread(tile, plan.boxes),
                barriers,
                descriptor,
                [digit for axis in digits for digit in axis],
                stage,
                multicast_mask=masks[0] if masks else None,
            )
        rewriter.erase_op(load)
    rewriter.replace_op(plan.create, [descriptor])


def _remove(copy: _Copy, payload: ir.Operation, rewriter: Rewriter) -> None:
    """Erases a preceding kernel, its launch and its workspace."""
    name = ir.SymbolRefAttr(copy.launch.attributes["kernel"]).value[0]
    rewriter.erase_op(copy.launch)
    for module in walk(payload, "gpu.module"):
        if ir.StringAttr(module.attributes["sym_name"]).value == name:
            rewriter.erase_op(module)
    for view in users_of(copy.workspace):
        rewriter.erase_op(view)
    rewriter.erase_op(defining_op(copy.workspace))


@transform_op(LoadInPlace)
def load_in_place(payload: ir.Operation, op: LoadInPlace, rewriter: Rewriter) -> None:
    """Rewrites the loads of the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    for copy in _copies(payload):
        plans = _plan(copy, launch)
        if plans is None:
            continue
        for plan in plans:
            _load_from_source(copy, plan, rewriter)
        _remove(copy, payload, rewriter)
