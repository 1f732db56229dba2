"""`tc.evict_first`: lets the L2 cache give up first what kernels read once."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.tma import EVICT_FIRST
from stepladder.mlir.bindings import ir, llvm
from stepladder.mlir.tensor_maps import READ_ONCE
from stepladder.mlir.traverse import attributes_of, origin, symbol_of, walk


class EvictFirst(Tc.Operation, name="evict_first"):
    """Gives the TMA loads of matrices that are read once the cache hint `evict_first`.

    Which parameters of a kernel are descriptors of such matrices is known from the attribute of the ops that create
    them on the host. The hint is a 64-bit constant, the policy that `createpolicy.fractional.L2::evict_first` makes for
    all of the data.

    Operands: a handle to any op with launches and their lowered kernels below.
    """

    target: Handle


_LOAD = "nvvm.cp.async.bulk.tensor.shared.cluster.global"
_SEGMENTS = "operandSegmentSizes"
# Of a load, the segment of operands with the hint; of a launch, that with the kernel's operands.
_HINT, _OPERANDS = 6, 11


def _segments(op: ir.Operation) -> list[int]:
    return list(ir.DenseI32ArrayAttr(op.attributes[_SEGMENTS]))


def _parameters_read_once(launch: ir.Operation) -> list[int]:
    """Returns which parameters of the kernel are descriptors of matrices that are read once."""
    sizes = _segments(launch)
    first = sum(sizes[:_OPERANDS])
    operands = list(launch.operands)[first : first + sizes[_OPERANDS]]
    makers = [origin(operand, ("builtin.unrealized_conversion_cast",)).owner for operand in operands]
    return [
        number
        for number, maker in enumerate(makers)
        if not isinstance(maker, ir.Block) and READ_ONCE in maker.operation.attributes
    ]


def _hint(load: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces a load by one with the hint."""
    sizes, operands = _segments(load), list(load.operands)
    place = sum(sizes[:_HINT])
    with ir.InsertionPoint(load), load.location:
        policy = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), EVICT_FIRST)
        operands[place : place + sizes[_HINT]] = [llvm.mlir_constant(policy)]
        sizes[_HINT] = 1
        attributes = {**attributes_of(load), _SEGMENTS: ir.DenseI32ArrayAttr.get(sizes)}
        ir.Operation.create(load.name, operands=operands, attributes=attributes)
    rewriter.erase_op(load)


@transform_op(EvictFirst)
def evict_first(payload: ir.Operation, op: EvictFirst, rewriter: Rewriter) -> None:
    """Rewrites the loads of the kernels below `payload`; see the op."""
    kernels = {symbol_of(kernel): kernel for kernel in walk(payload, "llvm.func")}
    for launch in walk(payload, "gpu.launch_func"):
        *_, name = ir.SymbolRefAttr(launch.attributes["kernel"]).value
        kernel = kernels[name]
        parameters = [kernel.regions[0].blocks[0].arguments[number] for number in _parameters_read_once(launch)]
        for load in walk(kernel, _LOAD):
            if load.operands[1] in parameters:
                _hint(load, rewriter)
