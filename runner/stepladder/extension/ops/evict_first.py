"""`tc.evict_first`: gives loads of data that a kernel reads once the L2 hint `evict_first`."""

import math

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.tma import EVICT_FIRST
from stepladder.mlir.bindings import ir, llvm
from stepladder.mlir.tensor_maps import READ_ONCE
from stepladder.mlir.traverse import attributes_of, origin, symbol_of, walk


class EvictFirst(Tc.Operation, name="evict_first"):
    """Gives the TMA loads of matrices that are read once, or else of the largest ones, the cache hint `evict_first`.

    Which parameters of a kernel are descriptors of such matrices is known from the ops that create them on the host:
    from their attribute, or else from the shapes of the matrices. The hint is a 64-bit constant, the policy that
    `createpolicy.fractional.L2::evict_first` makes for a number of sixteenths of the lines, which their addresses tell.

    Operands: a handle to any op with launches and their lowered kernels below. Attributes: kept, 0 to 15 sixteenths of
    the lines without the hint.
    """

    target: Handle
    kept: ir.IntegerAttr


_LOAD = "nvvm.cp.async.bulk.tensor.shared.cluster.global"
_SEGMENTS = "operandSegmentSizes"
# Of a load, the segment of operands with the hint; of a launch, that with the kernel's operands.
_HINT, _OPERANDS = 6, 11
# Where a policy has the sixteenths of the lines that it is for, beyond the first: all of them in `EVICT_FIRST`. Source:
# what ptxas makes of createpolicy.fractional.L2::evict_first with fractions of 0.0625 to 1.
_FURTHER = 52
_CASTS = ("builtin.unrealized_conversion_cast", "memref.cast")


def _segments(op: ir.Operation) -> list[int]:
    return list(ir.DenseI32ArrayAttr(op.attributes[_SEGMENTS]))


def _parameters_to_hint(launch: ir.Operation, parameters: list[int]) -> list[int]:
    """Returns which parameters of the kernel are descriptors of matrices that are read once; where none are, those of
    the largest matrices that it loads.

    Args:
        launch: of the kernel.
        parameters: its parameters that are descriptors of matrices that it loads.
    """
    sizes = _segments(launch)
    first = sum(sizes[:_OPERANDS])
    operands = list(launch.operands)[first : first + sizes[_OPERANDS]]
    owners = {number: origin(operands[number], _CASTS[:1]).owner for number in parameters}
    makers = {number: owner.operation for number, owner in owners.items() if not isinstance(owner, ir.Block)}
    if once := [number for number, maker in makers.items() if READ_ONCE in maker.attributes]:
        return once
    matrices = {number: origin(maker.operands[0], _CASTS).type for number, maker in makers.items()}
    elements = {number: math.prod(ir.MemRefType(type_).shape) for number, type_ in matrices.items()}
    return [number for number, count in elements.items() if count == max(elements.values())]


def _hint(load: ir.Operation, kept_sixteenths: int, rewriter: Rewriter) -> None:
    """Replaces a load by one with the hint, for all but some sixteenths of the lines."""
    sizes, operands = _segments(load), list(load.operands)
    place = sum(sizes[:_HINT])
    with ir.InsertionPoint(load), load.location:
        policy = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), EVICT_FIRST - (kept_sixteenths << _FURTHER))
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
        arguments = list(kernel.regions[0].blocks[0].arguments)
        loads = walk(kernel, _LOAD)
        loaded_parameters = [
            number for number, argument in enumerate(arguments) if any(argument == x.operands[1] for x in loads)
        ]
        parameters = [arguments[number] for number in _parameters_to_hint(launch, loaded_parameters)]
        for load in loads:
            if load.operands[1] in parameters:
                _hint(load, op.kept.value, rewriter)
