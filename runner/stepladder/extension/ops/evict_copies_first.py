"""`tc.evict_copies_first`: gives copies of threads to shared memory the L2 hint `evict_first`."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.tma import EVICT_FIRST
from stepladder.mlir.bindings import ir, llvm, nvvm
from stepladder.mlir.tensor_maps import COPIED_ONCE
from stepladder.mlir.traverse import walk


class EvictCopiesFirst(Tc.Operation, name="evict_copies_first"):
    """Gives copies by `cp.async` the cache hint `evict_first`, in inline PTX, as NVVM's op has no operand for it.

    Whether copies read whole lines, each of them once, is known from the attribute of the op that creates the
    descriptor of C on the host. The hint is a 64-bit constant, as for `tc.evict_first`.

    Operands: a handle to any op with launches and their lowered kernels below.
    Refuses: a copy of fewer bytes than 16, or of a size that is only known at run time.
    """

    target: Handle


_COPY = "nvvm.cp.async.shared.global"
_BYTES = 16
_TEXT = f"cp.async.cg.shared.global.L2::cache_hint [{{$r0}}], [{{$r1}}], {_BYTES}, {{$r2}};"


@transform_op(EvictCopiesFirst)
def evict_copies_first(payload: ir.Operation, op: EvictCopiesFirst, rewriter: Rewriter) -> None:
    """Rewrites the copies below `payload`; see the op."""
    if not any(COPIED_ONCE in maker.attributes for maker in walk(payload, "nvgpu.tma.create.descriptor")):
        return
    for copy in walk(payload, _COPY):
        size = ir.IntegerAttr(copy.attributes["size"]).value
        if size != _BYTES or len(copy.operands) != 2:
            raise Refusal(copy, f"expected a copy of {_BYTES} bytes")
        with ir.InsertionPoint(copy), copy.location:
            policy = llvm.mlir_constant(ir.IntegerAttr.get(ir.IntegerType.get_signless(64), EVICT_FIRST))
            nvvm.inline_ptx([], [*copy.operands, policy], [], _TEXT, memory_clobber=True)
        rewriter.erase_op(copy)
