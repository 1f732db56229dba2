"""`tc.pass_pointers`: lets a lowered kernel take one pointer for each buffer instead of a memref descriptor."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir, llvm
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import offset_of, strides_of


class PassPointers(Tc.Operation, name="pass_pointers"):
    """Replaces the parameters that a lowered kernel has for a memref by one, the address of its first element.

    The lowering of kernels for SPIR-V expands a memref to two pointers, the offset, the sizes and the strides. Those of
    a static memref are constants, so that a launcher need not pass them.

    Operands: a handle to any op; the kernels that the launches below call are rewritten.
    Refuses: memrefs whose shape, strides or offset are dynamic, or whose offset is not 0; a kernel whose parameters are
        no descriptors of what its launch passes; a kernel with two launches.
    """

    target: Handle


_POINTERS = 2  # allocated and aligned, before the other fields


@transform_op(PassPointers)
def pass_pointers(payload: ir.Operation, op: PassPointers, rewriter: Rewriter) -> None:
    """Rewrites the kernel of every launch below `payload`; see the op."""
    kernels = {_name(kernel): kernel for kernel in walk(payload, "llvm.func")}
    kernel_names: set[str] = set()
    for launch in walk(payload, "gpu.launch_func"):
        name = ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1]
        if name not in kernels:
            raise Refusal(launch, f"the kernel @{name} is not an llvm.func: lower it first")
        if name in kernel_names:
            raise Refusal(launch, f"the kernel @{name} has another launch; accepted: a kernel with one launch")
        kernel_names.add(name)
        sizes = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
        first = sum(sizes[:11])
        _rewrite(launch, kernels[name], list(launch.operands)[first : first + sizes[11]])


def _name(kernel: ir.Operation) -> str:
    return ir.StringAttr(kernel.attributes["sym_name"]).value


def _fields(launch: ir.Operation, type_: ir.Type) -> list[int] | None:
    """Returns the offset, the sizes and the strides of a memref; None for another type."""
    if not isinstance(type_, ir.MemRefType):
        return None
    strides = strides_of(type_)
    if not type_.has_static_shape or strides is None or None in strides or offset_of(type_) != 0:
        raise Refusal(launch, f"{type_} is passed: a kernel takes a pointer for a memref of static layout and offset 0")
    return [0, *type_.shape, *(stride for stride in strides if stride is not None)]


def _rewrite(launch: ir.Operation, kernel: ir.Operation, operands: list[ir.Value]) -> None:
    fields = [_fields(launch, operand.type) for operand in operands]
    block = kernel.regions[0].blocks[0]
    count = sum(1 if numbers is None else _POINTERS + len(numbers) for numbers in fields)
    if count != len(block.arguments):
        raise Refusal(
            kernel, f"the kernel has {len(block.arguments)} parameters, and descriptors of its arguments take {count}"
        )
    kept_places, place = [], 0
    for numbers in fields:
        if numbers is None:
            kept_places.append(place)
            place += 1
            continue
        allocated_pointer, aligned_pointer, *number_arguments = list(block.arguments)[
            place : place + _POINTERS + len(numbers)
        ]
        allocated_pointer.replace_all_uses_with(aligned_pointer)
        for argument, number in zip(number_arguments, numbers):
            if list(argument.uses):
                with ir.InsertionPoint.at_block_begin(block), kernel.location:
                    constant = llvm.mlir_constant(ir.IntegerAttr.get(argument.type, number))
                argument.replace_all_uses_with(constant)
        kept_places.append(place + 1)
        place += _POINTERS + len(numbers)
    for number in reversed(range(count)):
        if number not in kept_places:
            block.erase_argument(number)
    types = ", ".join(str(argument.type).removeprefix("!llvm.") for argument in block.arguments)
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<void ({types})>"))
    if "arg_attrs" in kernel.attributes:
        old = list(ir.ArrayAttr(kernel.attributes["arg_attrs"]))
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get([old[number] for number in kept_places])
