"""Launches: grid, block and cluster sizes of a `gpu.launch`, adding operands to it, and launches of new kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepladder.extension.lib.arithmetic import constant_value, index
from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.mlir.bindings import gpu, ir
from stepladder.mlir.traverse import attributes_of, walk

# Operand segments of gpu.launch: async dependencies; grid, block and cluster sizes, three each; dynamic shared memory.
GRID, BLOCK, CLUSTER, DYNAMIC_SIZE = 1, 4, 7, 10


def find_launch(payload: ir.Operation) -> ir.Operation:
    """Returns the one `gpu.launch` below `payload`.

    Args:
        payload: a module or a function.

    Raises:
        Refusal: there is none, or there are several.
    """
    launches = walk(payload, "gpu.launch")
    if len(launches) != 1:
        raise Refusal(payload, f"expected one gpu.launch, found {len(launches)}")
    return launches[0]


def _segments(launch: ir.Operation) -> list[int]:
    return list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))


def launch_sizes(launch: ir.Operation, segment: int) -> list[int]:
    """Returns the three extents of a launch's GRID, BLOCK or CLUSTER; (1, 1, 1) for a launch without clusters.

    Args:
        launch: a `gpu.launch`.
        segment: GRID, BLOCK or CLUSTER.

    Raises:
        Refusal: an extent that is not constant.
    """
    segments = _segments(launch)
    if not segments[segment]:
        return [1, 1, 1]
    start = sum(segments[:segment])
    sizes: list[int] = []
    for operand in launch.operands[start : start + 3]:
        size = constant_value(operand)
        if size is None:
            raise Refusal(launch, "the sizes of the launch are not constant")
        sizes.append(size)
    return sizes


def set_launch_sizes(launch: ir.Operation, segment: int, sizes: Sequence[int]) -> None:
    """Sets the three extents of a launch's GRID or BLOCK to constants.

    Args:
        launch: a `gpu.launch`.
        segment: GRID or BLOCK.
        sizes: x, y and z.
    """
    start = sum(_segments(launch)[:segment])
    with ir.InsertionPoint(launch), launch.location:
        for axis, size in enumerate(sizes):
            launch.operands[start + axis] = index(size)


def add_launch_operands(
    launch: ir.Operation, segment: int, values: Sequence[ir.Value], rewriter: Rewriter
) -> ir.Operation:
    """Replaces a launch by one with operands in a segment that is empty; returns the new one.

    Args:
        launch: the `gpu.launch`.
        segment: CLUSTER or DYNAMIC_SIZE.
        values: the operands, defined before the launch.
        rewriter: of the transform op.
    """
    segments = _segments(launch)
    operands = list(launch.operands)
    operands[sum(segments[:segment]) : sum(segments[:segment])] = values
    if segment == CLUSTER:
        segments[CLUSTER : CLUSTER + 3] = [1, 1, 1]
    else:
        segments[segment] = 1
    attributes = attributes_of(launch)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
    with ir.InsertionPoint(launch), launch.location:
        new = ir.Operation.create(
            "gpu.launch",
            results=[result.type for result in launch.results],
            operands=operands,
            attributes=attributes,
            regions=1,
        )
    block = body_of(launch)
    block.append_to(new.regions[0])
    if segment == CLUSTER:  # the ids and sizes of clusters are six more block arguments
        for _ in range(6):
            block.add_argument(ir.IndexType.get(), launch.location)
    for old, fresh in zip(launch.results, new.results):
        old.replace_all_uses_with(fresh)
    rewriter.erase_op(launch)
    return new


def launch_kernel(
    function: ir.Operation,
    name: str,
    sizes: tuple[int, int],
    operands: Sequence[ir.Value],
    emit: Callable[[Sequence[ir.Value], int], None],
    marks: Sequence[str] = (),
) -> ir.Operation:
    """Returns the launch of a new kernel in a `gpu.module` of its own, created at the insertion point.

    Args:
        function: host function that launches it, at the top level of a module.
        name: of the kernel, and of the `gpu.module`.
        sizes: blocks of the grid, and threads of a block, along x.
        operands: that the kernel takes.
        emit: creates its body, given its parameters and the threads of a block, at the insertion point.
        marks: names of unit attributes of the kernel.
    """
    module = function.parent
    assert module is not None  # by contract
    blocks, threads = sizes
    types = [operand.type for operand in operands]
    module.attributes["gpu.container_module"] = ir.UnitAttr.get()
    with ir.InsertionPoint(module.regions[0].blocks[0]):
        holder = ir.Operation.create("gpu.module", attributes={"sym_name": ir.StringAttr.get(name)}, regions=1)
    with ir.InsertionPoint(holder.regions[0].blocks.append()):
        kernel = ir.Operation.create(
            "gpu.func",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                "kernel": ir.UnitAttr.get(),
                "known_block_size": ir.DenseI32ArrayAttr.get([threads, 1, 1]),
                "known_grid_size": ir.DenseI32ArrayAttr.get([blocks, 1, 1]),
                **{mark: ir.UnitAttr.get() for mark in marks},
            },
            regions=1,
        )
    locations = [function.location] * len(types)
    body = kernel.regions[0].blocks.append(*types, arg_locs=locations)
    with ir.InsertionPoint(body):
        emit(list(body.arguments), threads)
        gpu.return_([])
    extents = [index(size) for size in (blocks, 1, 1, threads, 1, 1)]
    return ir.Operation.create(
        "gpu.launch_func",
        operands=[*extents, *operands],
        attributes={
            "kernel": ir.SymbolRefAttr.get([name, name]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, *[1] * 6, 0, 0, 0, 0, len(operands), 0]),
        },
    )
