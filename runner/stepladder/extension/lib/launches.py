"""`gpu.launch`: its grid, block and cluster sizes, and adding operands to it."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.arithmetic import constant_value, index
from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.dialect import Refusal, Rewriter
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, walk

# Operand segments of gpu.launch: async dependencies; grid, block and cluster sizes, three each; dynamic shared memory.
GRID, BLOCK, CLUSTER, DYNAMIC_SIZE = 1, 4, 7, 10


def find_launch(payload: ir.Operation) -> ir.Operation:
    """Returns the one `gpu.launch` below `payload`.

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
