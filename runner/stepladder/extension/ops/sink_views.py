"""`tc.sink_views`: moves the views that a launch reads into it, so that its kernel takes whole buffers."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import producer, walk

_VIEWS = (*BUFFER_VIEWS, "memref.subview", "memref.reinterpret_cast")


class SinkViews(Tc.Operation, name="sink_views"):
    """Clones the views of buffers that a `gpu.launch` reads from outside to its beginning.

    The kernel that the launch becomes has the buffers themselves as arguments. `gpu-launch-sink-index-computations` of
    upstream sinks constants and arithmetic alone.

    Operands: a handle to a module or a function.
    """

    target: Handle


@transform_op(SinkViews)
def sink_views(payload: ir.Operation, op: SinkViews, rewriter: Rewriter) -> None:
    """Rewrites the launches below `payload`; see the op."""
    for launch in walk(payload, "gpu.launch"):
        point = ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0])
        values: dict[ir.Value, ir.Value] = {}
        inside = walk(launch)
        for inner in inside:
            for place, operand in enumerate(inner.operands):
                if operand not in values and (chain := _outer_views(operand, launch)):
                    values |= clone_ops(chain, values, point)
                if operand in values:
                    inner.operands[place] = values[operand]


def _outer_views(value: ir.Value, launch: ir.Operation) -> list[ir.Operation]:
    """Returns the views that a value is made by outside of a launch, the first one first."""
    chain: list[ir.Operation] = []
    source = producer(value)
    while source is not None and source.name in _VIEWS and source.block == launch.block:
        chain.insert(0, source)
        source = producer(source.operands[0])
    return chain
