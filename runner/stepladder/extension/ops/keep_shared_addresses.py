"""`tc.keep_shared_addresses`: addresses in a block's shared memory are those of the cluster too."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir, llvm
from stepladder.mlir.traverse import walk


class KeepSharedAddresses(Tc.Operation, name="keep_shared_addresses"):
    """Takes addresses in a block's own shared memory as addresses in that of its cluster, without a cast.

    The window of `.shared::cta` is contained in that of `.shared::cluster`, so that the address stays. LLVM lowers the
    `llvm.addrspacecast` between them by way of a generic address.

    Operands: a handle to ops with kernels of the LLVM dialect below them.
    """

    target: Handle


_SHARED, _SHARED_OF_CLUSTER = "!llvm.ptr<3>", "!llvm.ptr<7>"


@transform_op(KeepSharedAddresses)
def keep_shared_addresses(payload: ir.Operation, op: KeepSharedAddresses, rewriter: Rewriter) -> None:
    """Rewrites the kernels below `payload`; see the op."""
    for cast in walk(payload, "llvm.addrspacecast"):
        source, target = cast.operands[0], cast.results[0].type
        if (str(source.type), str(target)) == (_SHARED, _SHARED_OF_CLUSTER):
            with ir.InsertionPoint(cast), cast.location:
                number = llvm.ptrtoint(ir.IntegerType.get_signless(64), source)
                address = llvm.inttoptr(target, number)
            rewriter.replace_op(cast, [address])
