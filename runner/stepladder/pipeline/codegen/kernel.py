"""Finds the kernel of a lowered module and describes how it is launched."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.printed import chip_of
from stepladder.mlir.tensor_maps import READ_EARLY, TensorMap, read_tensor_map
from stepladder.mlir.traverse import defining_op, origin, walk
from stepladder.mlir.windows import window_of
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.problem import Window

_PTX_NAMES = "rename the function: a PTX identifier holds letters of ASCII, digits, _ and $, and begins with no digit"
# The attribute of a workspace's `memref.alloc` (`extension.lib.workspaces`).
WORKSPACE = "workspace"
_VIEWS = (
    *("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.transpose", "memref.reinterpret_cast"),
)
_PTX_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$][A-Za-z0-9_$]+")


@dataclass(frozen=True)
class Workspace:
    """A buffer in global memory that one kernel writes and another reads: element type and extents."""

    element_type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: a buffer, as a pointer or through a TMA descriptor.

    Attributes:
        number: index of the function's argument, or of the workspace.
        descriptor: what the type of a TMA descriptor says; None for a pointer.
        is_workspace: whether the buffer is a workspace.
        shape: of the matrix that a TMA descriptor is of.
        window: the part of the buffer that this matrix is; None for all of it.
        is_early: whether the kernel reads it before it waits for the kernel before it.
    """

    number: int
    descriptor: TensorMap | None = None
    is_workspace: bool = False
    shape: tuple[int, ...] = ()
    window: Window | None = None
    is_early: bool = False


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


@dataclass(frozen=True)
class Program:
    """The kernels of a lowered module.

    Attributes:
        kernel: that of the matmul, which is launched last.
        front: those that are launched before it, in order; they write workspaces.
        workspaces: by index.
    """

    kernel: Kernel
    front: tuple[Kernel, ...]
    workspaces: tuple[Workspace, ...]


def find_kernel(module: ir.Module) -> Kernel:
    """Returns the one kernel of a lowered module.

    Args:
        module: the IR after the last step of a pipeline.

    Raises:
        StepladderError: as `find_program`, and more than one launch.
    """
    program = find_program(module)
    if program.front:
        raise _not_one(1 + len(program.front))
    return program.kernel


def _not_one(count: int) -> StepladderError:
    return StepladderError(
        f"expected one gpu.launch_func after the last step, found {count}",
        notes=["a pipeline that is compiled ends with outlining and lowering a kernel"],
    )


def find_program(module: ir.Module) -> Program:
    """Returns the kernels of a lowered module, in the order of their launches: those that write workspaces, then one.

    Args:
        module: the IR after the last step of a pipeline.

    Raises:
        StepladderError: no launch in the module, or several of which not all but the last write a workspace: the
            pipeline does not end in a kernel; or a kernel whose name PTX does not take.
    """
    launches = walk(module, "gpu.launch_func")
    allocs: list[ir.Value] = [op.results[0] for op in walk(module, "memref.alloc") if WORKSPACE in op.attributes]
    workspaces = []
    for buffer in allocs:
        type_ = ir.MemRefType(buffer.type)
        workspaces.append(Workspace(str(type_.element_type), tuple(type_.shape)))
    kernels = [_kernel(launch, module, allocs) for launch in launches]
    if not kernels:
        raise _not_one(0)
    *front, last = kernels
    if not all(any(parameter.is_workspace for parameter in kernel.parameters) for kernel in front):
        raise _not_one(len(launches))
    return Program(last, tuple(front), tuple(workspaces))


def _kernel(launch: ir.Operation, module: ir.Module, workspaces: list[ir.Value]) -> Kernel:
    """Returns the kernel of a launch."""
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
    parameters = [_parameter(operand, launch, workspaces) for operand in segment(11)]
    *_, holder, name = ir.SymbolRefAttr(launch.attributes["kernel"]).value
    kernels = [op for op in walk(module, "gpu.module") if ir.StringAttr(op.attributes["sym_name"]).value == holder]
    if len(kernels) != 1 or "targets" not in kernels[0].attributes:
        raise StepladderError("expected one gpu.module with a target attached after the last step")
    _check_name(name, launch)
    return Kernel(
        name,
        _target(kernels[0].attributes["targets"]),
        grid,
        block,
        cluster,
        parameters,
        dynamic,
        kernels[0],
    )


def _target(targets: ir.Attribute) -> str:
    """Returns the GPU of a `gpu.module`; MLIR does not print the one that is the default of its vendor."""
    return chip_of(targets) or ("bmg" if "#xevm.target" in str(targets) else "sm_75")


def check_lowered(kernel: Kernel) -> None:
    """Checks that a kernel holds only ops that translate to LLVM IR: any other ends the process in the translation.

    Args:
        kernel: as the last step of its pipeline leaves it.

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
    """Follows casts, reshapes and windows of a buffer back to the buffer: bare pointers are of its first element."""
    return origin(buffer, _VIEWS)


def _parameter(operand: ir.Value, launch: ir.Operation, workspaces: list[ir.Value]) -> Parameter:
    """Returns the parameter that an operand of a launch is for: an argument of the function, a workspace, or a
    descriptor of one."""
    source = _whole_buffer(operand)
    if isinstance(source.owner, ir.Block):
        return Parameter(ir.BlockArgument(source).arg_number)
    if source in workspaces:
        return Parameter(workspaces.index(source), is_workspace=True)
    create = defining_op(operand)
    if create.name == "builtin.unrealized_conversion_cast":
        create = ir.OpResult(create.operands[0]).owner.operation
    if create.name == "nvgpu.tma.create.descriptor":
        buffer = _whole_buffer(create.operands[0])
        if isinstance(buffer.owner, ir.Block):
            matrix = defining_op(create.operands[0]).operands[0]
            number, shape = ir.BlockArgument(buffer).arg_number, tuple(ir.MemRefType(matrix.type).shape)
            is_early = READ_EARLY in create.attributes
            return Parameter(number, _tensor_map(create), shape=shape, window=window_of(matrix), is_early=is_early)
        view = defining_op(buffer)
        if buffer in workspaces:
            matrix = defining_op(create.operands[0]).operands[0]
            shape = tuple(ir.MemRefType(matrix.type).shape)
            return Parameter(workspaces.index(buffer), _tensor_map(create), True, shape, window_of(matrix))
        if view.name == "memref.subview" and view.operands[0] in workspaces:
            shape = tuple(ir.MemRefType(buffer.type).shape)
            return Parameter(workspaces.index(view.operands[0]), _tensor_map(create), True, shape)
    raise StepladderError(
        "the kernel is passed a value that is not an argument of the function",
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
        f"function '{name}' gives its kernel the name '{kernel}', which is not an identifier of PTX",
        location=diagnostics.location_text(function.location),
        notes=[_PTX_NAMES],
    )


def _tensor_map(create: ir.Operation) -> TensorMap:
    """Returns the parameters of the TMA descriptor that an op creates."""
    type_ = create.results[0].type
    tensor_map = read_tensor_map(type_)
    if tensor_map is None:
        raise StepladderError(
            f"cannot read the TMA descriptor {type_}", location=diagnostics.location_text(create.location)
        )
    return tensor_map
