"""`tc.pass_descriptors_by_value`: converts TMA descriptor arguments of kernels to pointers."""

from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.tma import DESCRIPTOR_ALIGNMENT
from stepladder.mlir.bindings import builtin, ir
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import is_tensor_map


class PassDescriptorsByValue(Tc.Operation, name="pass_descriptors_by_value"):
    """Converts the TMA descriptors that a kernel takes to pointers, with the alignment of by-value descriptors.

    Upstream converts a descriptor to a pointer at each use, and has no conversion for the argument of a kernel. After
    the kernel is lowered, `tc.mark_grid_constants` makes the pointers by-value parameters.

    Operands: a handle to any op; all kernels below are rewritten.
    """

    target: Handle


@transform_op(PassDescriptorsByValue)
def pass_descriptors_by_value(payload: ir.Operation, op: PassDescriptorsByValue, rewriter: Rewriter) -> None:
    """Rewrites every kernel below `payload`; see the op."""
    pointer = ir.Type.parse("!llvm.ptr")
    for kernel in walk(payload, "gpu.func"):
        block = kernel.regions[0].blocks[0]
        descriptors = [argument for argument in block.arguments if is_tensor_map(argument.type)]
        if not descriptors:
            continue
        alignment = ir.Attribute.parse(f"{{llvm.align = {DESCRIPTOR_ALIGNMENT} : i64}}")
        attributes = [alignment if argument in descriptors else ir.DictAttr.get({}) for argument in block.arguments]
        for argument in descriptors:
            type_ = argument.type
            argument.set_type(pointer)
            with ir.InsertionPoint.at_block_begin(block), kernel.location:
                descriptor = builtin.unrealized_conversion_cast([type_], [argument])
            argument.replace_all_uses_except(descriptor, descriptor.owner.operation)
        kernel.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([argument.type for argument in block.arguments], [])
        )
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
    for launch in walk(payload, "gpu.launch_func"):
        for position, operand in enumerate(launch.operands):
            if is_tensor_map(operand.type):
                with ir.InsertionPoint(launch), launch.location:
                    launch.operands[position] = builtin.unrealized_conversion_cast([pointer], [operand])
