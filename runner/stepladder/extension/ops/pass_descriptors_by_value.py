"""`tc.pass_descriptors_by_value`: TMA descriptors become pointers, to parameters of the kernel."""

from stepladder.extension.lib.dialect import Tc, transform_op
from stepladder.extension.lib.tma import DESCRIPTOR_ALIGNMENT
from stepladder.mlir.bindings import builtin, ext, ir, transform
from stepladder.mlir.traverse import walk


class PassDescriptorsByValue(Tc.Operation, name="pass_descriptors_by_value"):
    """Makes the TMA descriptors that a kernel takes pointers, aligned as parameters by value are.

    Upstream converts a descriptor to a pointer wherever it is used, and has no conversion for a kernel's argument. That
    the pointer is to a parameter of the kernel itself is said once the kernel is lowered, by `tc.mark_grid_constants`.

    Operands: a handle to any op; all kernels below are treated.
    """

    target: ext.Operand[transform.AnyOpType]


@transform_op(PassDescriptorsByValue)
def pass_descriptors_by_value(payload, op, rewriter) -> None:
    """Treats every kernel below `payload`; see the op."""
    pointer = ir.Type.parse("!llvm.ptr")
    for kernel in walk(payload, "gpu.func"):
        block = kernel.regions[0].blocks[0]
        descriptors = [argument for argument in block.arguments if "nvgpu.tensormap" in str(argument.type)]
        if not descriptors:
            continue
        aligned = ir.Attribute.parse(f"{{llvm.align = {DESCRIPTOR_ALIGNMENT} : i64}}")
        attributes = [aligned if argument in descriptors else ir.DictAttr.get({}) for argument in block.arguments]
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
            if "nvgpu.tensormap" in str(operand.type):
                with ir.InsertionPoint(launch), launch.location:
                    launch.operands[position] = builtin.unrealized_conversion_cast([pointer], [operand])
