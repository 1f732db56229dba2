"""Finds the kernel of a lowered module and describes how it is launched."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.printed import chip_of
from stepladder.mlir.tensor_maps import TensorMap, read_tensor_map
from stepladder.mlir.traverse import defining_op, producer, walk
from stepladder.runtime.errors import FAILED, StepladderError

_PTX_NAMES = "rename the function: a PTX identifier holds letters of ASCII, digits, _ and $, and begins with no digit"
_VIEWS = ("memref.cast", "memref.collapse_shape", "memref.expand_shape")
_PTX_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$][A-Za-z0-9_$]+")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: function argument `number`, as a pointer or through a TMA descriptor."""

    number: int
    descriptor: TensorMap | None = None


@dataclass(frozen=True)
class Kernel:
    """A kernel in a lowered module.

    Attributes:
        name: of its function.
        target: GPU architecture, such as "sm_90a".
        grid, block, cluster: extents x, y, z, in blocks, threads and blocks.
        parameters: in the kernel's order.
        dynamic_shared_memory: bytes a block.
        module: the `gpu.module` with the kernel.
    """

    name: str
    target: str
    grid: list[int]
    block: list[int]
    cluster: list[int]
    parameters: list[Parameter]
    dynamic_shared_memory: int
    module: ir.Operation


def find_kernel(module: ir.Module) -> Kernel:
    """Returns the one kernel of a lowered module.

    Raises:
        StepladderError: no launch in the module, or more than one: the pipeline does not end in a kernel; or a kernel
            whose name PTX does not take.
    """
    launches = walk(module, "gpu.launch_func")
    if len(launches) != 1:
        raise StepladderError(
            f"expected one gpu.launch_func after the last step, found {len(launches)}",
            notes=["a pipeline that is compiled ends with outlining and lowering a kernel"],
        )
    launch = launches[0]
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    starts = [sum(sizes[:i]) for i in range(len(sizes) + 1)]

    # Segments of gpu.launch_func: async tokens, grid x y z, block x y z, cluster x y z, dynamic shared memory,
    # kernel operands, async object.
    def segment(index: int) -> list[ir.Value]:
        return list(launch.operands)[starts[index] : starts[index + 1]]

    grid = [_constant(segment(i)[0]) for i in (1, 2, 3)]
    block = [_constant(segment(i)[0]) for i in (4, 5, 6)]
    cluster = [_constant(segment(i)[0]) if segment(i) else 1 for i in (7, 8, 9)]
    dynamic = _constant(segment(10)[0]) if segment(10) else 0
    parameters = [_parameter(operand, launch) for operand in segment(11)]
    kernels = walk(module, "gpu.module")
    if len(kernels) != 1 or "targets" not in kernels[0].attributes:
        raise StepladderError("expected one gpu.module with a target attached after the last step")
    name = ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1]
    _check_name(name, launch)
    return Kernel(
        name,
        chip_of(kernels[0].attributes["targets"]) or "sm_75",
        grid,
        block,
        cluster,
        parameters,
        dynamic,
        kernels[0],
    )


def check_lowered(kernel: Kernel) -> None:
    """Checks that a kernel holds only ops that translate to LLVM IR: any other ends the process in the translation.

    Raises:
        StepladderError: an op of another dialect (status FAILED).
    """
    for op in walk(kernel.module):
        if not op.name.startswith(("llvm.", "nvvm.", "gpu.module")):
            raise StepladderError(
                f"{op.name} is left in the kernel after the last step",
                location=diagnostics.location_text(op.location) or None,
                status=FAILED,
                notes=["a pipeline that is compiled lowers its kernel to the NVVM and LLVM dialects"],
            )


def _constant(value: ir.Value) -> int:
    """Returns the value of an integer that a constant op makes."""
    return ir.IntegerAttr(ir.OpResult(value).owner.attributes["value"]).value


def _whole_buffer(buffer: ir.Value) -> ir.Value:
    """Follows casts and reshapes of a buffer, which begin where it does, back to the buffer."""
    view = producer(buffer)
    while view is not None and view.name in _VIEWS:
        buffer = view.operands[0]
        view = producer(buffer)
    return buffer


def _parameter(operand: ir.Value, launch: ir.Operation) -> Parameter:
    """Returns the parameter that an operand of a launch is for: an argument of the function, or a descriptor of one."""
    whole = _whole_buffer(operand)
    if isinstance(whole.owner, ir.Block):
        return Parameter(ir.BlockArgument(whole).arg_number)
    create = defining_op(operand)
    if create.name == "builtin.unrealized_conversion_cast":
        create = ir.OpResult(create.operands[0]).owner.operation
    if create.name == "nvgpu.tma.create.descriptor":
        buffer = _whole_buffer(create.operands[0])
        if isinstance(buffer.owner, ir.Block):
            return Parameter(ir.BlockArgument(buffer).arg_number, _tensor_map(create))
    raise StepladderError(
        "the kernel is passed a value that is no argument of the function",
        location=diagnostics.location_text(launch.location),
    )


def _check_name(kernel: str, launch: ir.Operation) -> None:
    """Refuses a kernel whose name, made of the function's, is no identifier of PTX."""
    if _PTX_NAME.fullmatch(kernel):
        return
    function = launch.parent
    while function is not None and function.name != "func.func":
        function = function.parent
    assert function is not None  # a launch is in a function
    name = function.attributes["sym_name"].value
    raise StepladderError(
        f"function '{name}' gives its kernel the name '{kernel}', which is no identifier of PTX",
        location=diagnostics.location_text(function.location),
        notes=[_PTX_NAMES],
    )


def _tensor_map(create: ir.Operation) -> TensorMap:
    """Returns the parameters of the TMA descriptor that an op creates."""
    type_ = create.results[0].type
    found = read_tensor_map(type_)
    if found is None:
        raise StepladderError(
            f"cannot read the TMA descriptor {type_}", location=diagnostics.location_text(create.location)
        )
    return found
