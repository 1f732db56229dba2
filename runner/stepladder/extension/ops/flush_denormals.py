"""`tc.flush_denormals`: lets a kernel flush subnormal f32 values to zero."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.workspaces import WORKSPACE
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, callee_of, walk


class FlushDenormals(Tc.Operation, name="flush_denormals"):
    """Lets kernels flush subnormal operands and results of f32 to zero, and exponentials be those of the hardware.

    The function attribute `denormal-fp-math-f32` makes LLVM select `ex2.approx.ftz` and `rcp.approx.ftz`, which need no
    scaling. Calls of libdevice's `__nv_exp2f`, which does not follow the attribute, become `llvm.intr.exp2`.

    Kernels that prepare operands (`tc.prepare_operands`) compute exactly what their types require, and are not changed.

    Operands: a handle to ops with kernels of the LLVM dialect below them.
    """

    target: Handle


_EXP2 = "__nv_exp2f"
_ATTRIBUTE = '[["denormal-fp-math-f32", "preserve-sign,preserve-sign"]]'


@transform_op(FlushDenormals)
def flush_denormals(payload: ir.Operation, op: FlushDenormals, rewriter: Rewriter) -> None:
    """Rewrites the kernels below `payload`; see the op."""
    for kernel in walk(payload, "llvm.func"):
        if "nvvm.kernel" not in kernel.attributes or WORKSPACE in kernel.attributes:
            continue
        entries = list(kernel.attributes["passthrough"]) if "passthrough" in kernel.attributes else []
        kernel.attributes["passthrough"] = ir.ArrayAttr.get([*entries, *ir.ArrayAttr(ir.Attribute.parse(_ATTRIBUTE))])
        for call in walk(kernel, "llvm.call"):
            if callee_of(call) != _EXP2:
                continue
            flags = {name: value for name, value in attributes_of(call).items() if name == "fastmathFlags"}
            with ir.InsertionPoint(call), call.location:
                result = ir.Operation.create(
                    "llvm.intr.exp2",
                    results=[call.results[0].type],
                    operands=list(call.operands),
                    attributes=flags,
                ).results[0]
            rewriter.replace_op(call, [result])
