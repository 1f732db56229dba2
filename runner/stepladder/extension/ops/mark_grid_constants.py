"""`tc.mark_grid_constants`: makes TMA descriptors by-value, grid-constant kernel parameters."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.tma import DESCRIPTOR_ALIGNMENT
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk


class MarkGridConstants(Tc.Operation, name="mark_grid_constants"):
    """Makes the TMA descriptors that a kernel takes by-value parameters of 128 bytes, constant for the grid.

    The launcher writes the descriptors to the kernel's parameters, so that no copy in global memory is needed. Without
    `__grid_constant__`, LLVM copies a by-value parameter whose address is taken to the stack of each thread, where TMA
    cannot read it. The lowering of functions drops one of the two attributes and rejects the other, so that both are
    set after it. Descriptors are recognized by the alignment that `tc.pass_descriptors_by_value` gives them.

    Operands: a handle to any op; all lowered kernels below are rewritten.
    """

    target: Handle


@transform_op(MarkGridConstants)
def mark_grid_constants(payload: ir.Operation, op: MarkGridConstants, rewriter: Rewriter) -> None:
    """Sets the attributes of the parameters of every kernel below `payload`; see the op."""
    for kernel in walk(payload, "llvm.func"):
        if "nvvm.kernel" not in kernel.attributes or "arg_attrs" not in kernel.attributes:
            continue
        argument_attributes: list[ir.Attribute] = []
        for attributes in ir.ArrayAttr(kernel.attributes["arg_attrs"]):
            parameter = ir.DictAttr(attributes)
            entries = {parameter[i].name: parameter[i].attr for i in range(len(parameter))}
            if "llvm.align" in entries and entries["llvm.align"].value == DESCRIPTOR_ALIGNMENT:
                entries["llvm.byval"] = ir.Attribute.parse("!llvm.array<128 x i8>")
                entries["nvvm.grid_constant"] = ir.UnitAttr.get()
            argument_attributes.append(ir.DictAttr.get(entries))
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(argument_attributes)
