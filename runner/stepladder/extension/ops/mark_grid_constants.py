"""`tc.mark_grid_constants`: TMA descriptors are parameters by value, constant for the grid."""

from stepladder.extension.lib.dialect import Tc, transform_op
from stepladder.extension.lib.tma import DESCRIPTOR_ALIGNMENT
from stepladder.mlir.bindings import ext, ir, transform
from stepladder.mlir.traverse import walk


class MarkGridConstants(Tc.Operation, name="mark_grid_constants"):
    """Makes the descriptors that a kernel takes parameters by value of 128 bytes, constant for the grid.

    The launcher writes them into the parameters; no copy in global memory has to be made, kept alive and fetched.
    Constant (`__grid_constant__`), since LLVM otherwise copies a parameter whose address is taken to the stack of each
    thread, where TMA cannot read it. The lowering of functions drops one mark and refuses the other, so that both come
    last; `tc.pass_descriptors_by_value` left the alignment to know descriptors by.

    Operands: a handle to any op; all lowered kernels below are treated.
    """

    target: ext.Operand[transform.AnyOpType]


@transform_op(MarkGridConstants)
def mark_grid_constants(payload, op, rewriter) -> None:
    """Marks the parameters of every kernel below `payload`; see the op."""
    for kernel in walk(payload, "llvm.func"):
        if "nvvm.kernel" not in kernel.attributes or "arg_attrs" not in kernel.attributes:
            continue
        marked = []
        for attributes in ir.ArrayAttr(kernel.attributes["arg_attrs"]):
            entries = {attributes[i].name: attributes[i].attr for i in range(len(attributes))}
            if "llvm.align" in entries and entries["llvm.align"].value == DESCRIPTOR_ALIGNMENT:
                entries["llvm.byval"] = ir.Attribute.parse("!llvm.array<128 x i8>")
                entries["nvvm.grid_constant"] = ir.UnitAttr.get()
            marked.append(ir.DictAttr.get(entries))
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(marked)
