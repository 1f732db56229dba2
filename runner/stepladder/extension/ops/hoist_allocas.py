"""`tc.hoist_allocas`: moves stack memory of constant size to the entry of its function."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, walk


class HoistAllocas(Tc.Operation, name="hoist_allocas"):
    """Moves every `llvm.alloca` of constant size to the entry block of its function.

    In a loop each iteration allocates anew, and the stack grows until the function returns. LLVM takes an allocation in
    the entry block as a variable of the function, and SPIR-V has no other allocations. An `llvm.alloca` whose size is
    computed stays where it is.

    Operands: a handle to any op; the functions of the LLVM dialect below are rewritten.
    """

    target: Handle


@transform_op(HoistAllocas)
def hoist_allocas(payload: ir.Operation, op: HoistAllocas, rewriter: Rewriter) -> None:
    """Rewrites every function below `payload`; see the op."""
    for function in walk(payload, "llvm.func"):
        if not list(function.regions[0].blocks):
            continue
        entry = function.regions[0].blocks[0]
        first = entry.operations[0].operation
        for alloca in walk(function, "llvm.alloca"):
            size = producer(alloca.operands[0])
            if size is None or size.name != "llvm.mlir.constant":
                continue
            with ir.InsertionPoint(first):
                count = size.clone()
            alloca.operands[0] = count.results[0]
            alloca.move_after(count.operation)
