"""Builds a bundle from a payload: runs the pipeline, generates the machine code, and writes the manifest."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stepladder.mlir.tensor_maps import TensorMap
from stepladder.payload import reference_export
from stepladder.payload.matmul import PayloadMatmul
from stepladder.payload.selection import select
from stepladder.pipeline.codegen.kernel import Kernel, Parameter, Workspace, find_program
from stepladder.pipeline.codegen.kernel import Program as KernelProgram
from stepladder.pipeline.codegen.machine_code import MachineCode, check_resources, generate
from stepladder.pipeline.codegen.toolchain import find_tool, tool_versions
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.kernel_arguments import argument, constant_file, data_of
from stepladder.pipeline.knob_choice import MEASURED, MODEL
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, StepResult, run_pipeline
from stepladder.pipeline.tile_programs import read_text
from stepladder.runtime import bundle, targets
from stepladder.runtime.bundle import TmaDescriptor
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem, Window, operand_of
from stepladder.runtime.reference import Program

# Choices of knobs that are compiled until ptxas makes code of one that is not slow, and where they come from. What a
# tuning database has was measured as it is.
_CHOICES, _REPLACEABLE = 4, (MODEL, MEASURED)


@dataclass(frozen=True)
class Build:
    """A finished build, before or after it is written.

    Args:
        run: the pipeline's run; its module is only valid inside the MLIR context it was made in.
        code: PTX, cubin and resources of the kernel.
        manifest: describes the kernel and how it was made.
        reference: what the payload computes.
        front: PTX, cubin and resources of the kernels of `manifest.front`.
    """

    run: Run
    code: MachineCode
    manifest: bundle.Manifest
    reference: Program
    front: tuple[MachineCode, ...] = ()

    def data(self) -> dict[str, bytes]:
        """Returns the content of the bundle's further files, by their names: constants of the payload, and the code of
        the preceding kernels."""
        return {
            **data_of(self.run),
            **{item.cubin: code.cubin for item, code in zip(self.manifest.front, self.front)},
            **{item.ptx: code.ptx.encode() for item, code in zip(self.manifest.front, self.front)},
        }

    def bundle(self, name: str) -> bundle.Bundle:
        """Returns the bundle in memory; `name` is used for its folder in messages.

        Args:
            name: of a folder that need not exist.
        """
        front = tuple((code.cubin, code.ptx) for code in self.front)
        code = self.code
        return bundle.Bundle(Path(name), self.manifest, code.cubin, code.ptx, self.reference, self.data(), front)

    def write(self, path: str | os.PathLike[str], *, with_ir: bool = True) -> None:
        """Writes the bundle, with the IR after every step in `ir/`.

        Args:
            path: the bundle's folder.
            with_ir: whether to write that IR.

        Raises:
            StepladderError: as `write_bundle`.
        """
        bundle.write_bundle(
            path,
            self.manifest,
            self.code.cubin,
            self.code.ptx,
            self.run.dumps() if with_ir else {},
            reference=self.reference,
            data=self.data(),
        )


def _described(
    role: str, type_: str, shape: Sequence[int], extents: Sequence[int], map_: TensorMap, window: Window | None = None
) -> TmaDescriptor:
    """Returns the descriptor of a matrix; its pitches are those of a dense buffer of the given extents, or of the part
    of a buffer that it is."""
    bytes_ = element_type(type_).bytes
    dense = tuple(math.prod(extents[axis:]) for axis in range(1, len(extents)))
    strides = dense if window is None else window.strides[:-1]
    return TmaDescriptor(
        role,
        type_,
        tuple(shape),
        tuple(stride * bytes_ for stride in strides),
        map_.box,
        (1,) * len(map_.box),
        interleave=map_.interleave,
        swizzle=map_.swizzle,
        l2_promotion=map_.l2_promotion,
        oob_fill=map_.oob_fill,
        offset=0 if window is None else window.offset * bytes_,
    )


def tma_descriptor(role: str, parameter: Parameter, map_: TensorMap, problem: Problem) -> TmaDescriptor:
    """Returns the description of the TMA descriptor that a kernel takes for an operand.

    Args:
        role: of the operand.
        parameter: of the kernel.
        map_: what its type says.
        problem: that has the operand.
    """
    buffer = argument(role, problem, None)
    # The source of an operand may have any number of dimensions, and is described as a matrix.
    is_source = {"a": problem.a_source, "b": problem.b_source}.get(role) is not None
    extents = parameter.shape if is_source else buffer.shape
    shape = extents if parameter.window is None else parameter.shape
    return _described(role, buffer.element_type, shape, extents, map_, parameter.window)


def _workspace_argument(
    parameter: Parameter, workspaces: Sequence[Workspace], access: str, descriptor: int | None = None
) -> bundle.Argument:
    role, workspace = bundle.WORKSPACE_ROLES[parameter.number], workspaces[parameter.number]
    return bundle.Argument(role.upper(), role, workspace.element_type, workspace.shape, access, descriptor)


def _workspace_descriptor(parameter: Parameter, map_: TensorMap, workspaces: Sequence[Workspace]) -> TmaDescriptor:
    """Returns the descriptor of the matrix in a workspace: of the extents of the matrix, with the workspace's pitch, or
    with the strides of the part that it is."""
    workspace = workspaces[parameter.number]
    # A matrix of all elements may have other extents than the buffer.
    is_whole = math.prod(parameter.shape) == math.prod(workspace.shape)
    extents = parameter.shape if is_whole else workspace.shape
    role = bundle.WORKSPACE_ROLES[parameter.number]
    return _described(role, workspace.element_type, parameter.shape, extents, map_, parameter.window)


def _front(
    kernel: Kernel,
    code: MachineCode,
    run: Run,
    matmul: PayloadMatmul,
    workspaces: Sequence[Workspace],
    written: set[int],
) -> bundle.FrontKernel:
    """Returns the description of a kernel that is launched before that of the matmul; a workspace that an earlier one
    wrote, one of `written`, is read."""
    arguments = [
        _workspace_argument(parameter, workspaces, "read" if parameter.number in written else "write")
        if parameter.is_workspace
        else argument(
            operand_of(matmul.roles[parameter.number]), matmul.problem, None, constant_file(run, parameter.number)
        )
        for parameter in kernel.parameters
    ]
    written.update(parameter.number for parameter in kernel.parameters if parameter.is_workspace)
    return bundle.FrontKernel(
        kernel_name=kernel.name,
        cubin=f"front/{kernel.name}.cubin",
        ptx=f"front/{kernel.name}.ptx",
        arguments=tuple(arguments),
        grid=triple(kernel.grid),
        block=triple(kernel.block),
        static_shared_memory=code.static_shared_memory,
        registers=code.registers,
        spills=code.spills,
    )


def _arguments(
    kernel: Kernel, run: Run, matmul: PayloadMatmul, workspaces: Sequence[Workspace]
) -> tuple[tuple[bundle.Argument, ...], tuple[TmaDescriptor, ...]]:
    """Returns the arguments of a matmul's kernel, and the descriptors that some of them are read through."""
    arguments, descriptors = [], []
    for parameter in kernel.parameters:
        role = "" if parameter.is_workspace else operand_of(matmul.roles[parameter.number])
        through, map_ = None, parameter.descriptor
        if map_ is not None:
            through = len(descriptors)
            descriptors.append(
                _workspace_descriptor(parameter, map_, workspaces)
                if parameter.is_workspace
                else tma_descriptor(role, parameter, map_, matmul.problem)
            )
        arguments.append(
            _workspace_argument(parameter, workspaces, "read", through)
            if parameter.is_workspace
            else argument(role, matmul.problem, through, constant_file(run, parameter.number))
        )
    return tuple(arguments), tuple(descriptors)


def _manifest(
    request: Request, run: Run, matmul: PayloadMatmul, program: KernelProgram, codes: Sequence[MachineCode]
) -> bundle.Manifest:
    """Returns the manifest; `codes` are of the preceding kernels, then of that of the matmul."""
    kernel, code = program.kernel, codes[-1]
    parameters = [parameter for each in (*program.front, kernel) for parameter in each.parameters]
    unknown = [
        parameter.number
        for parameter in parameters
        if not parameter.is_workspace and parameter.number not in matmul.roles
    ]
    if unknown:
        raise StepladderError(
            f"the kernel takes argument {unknown[0]} of the function, which is not an operand of the problem",
            location=matmul.location,
        )
    written: set[int] = set()
    front = [_front(item, each, run, matmul, program.workspaces, written) for item, each in zip(program.front, codes)]
    arguments, descriptors = _arguments(kernel, run, matmul, program.workspaces)
    read_early = [each for each in kernel.parameters if each.is_early and not each.is_workspace]
    early = tuple(dict.fromkeys(operand_of(matmul.roles[each.number]) for each in read_early))
    return bundle.Manifest(
        kernel_name=kernel.name,
        target=kernel.target,
        arguments=arguments,
        tma_descriptors=descriptors,
        problem=matmul.problem,
        grid=triple(kernel.grid),
        block=triple(kernel.block),
        cluster=triple(kernel.cluster),
        static_shared_memory=code.static_shared_memory,
        dynamic_shared_memory=kernel.dynamic_shared_memory,
        registers=code.registers,
        spills=code.spills,
        pipeline=run.pipeline.name,
        steps=tuple(step.name for step in run.steps),
        without=request.without,
        knobs=run.knobs,
        tool_versions=tool_versions(),
        dependent_launch="griddepcontrol.wait" in code.ptx and not early,
        read_early=early,
        function=run.selection.function or "" if run.selection else "",
        other_functions=run.selection.others if run.selection else (),
        front=tuple(front),
        workspaces=tuple(bundle.Workspace(item.element_type, item.shape) for item in program.workspaces),
        schema_version=_schema_version(program, matmul.problem),
    )


def _schema_version(program: KernelProgram, problem: Problem) -> int:
    """Returns the first version of the manifest that has what it describes."""
    if any(operand.by_value for operand in problem.epilogue_operands) or problem.has_windows:
        return bundle.SCHEMA_VERSION_VALUES
    return bundle.SCHEMA_VERSION_SEVERAL if program.front else bundle.SCHEMA_VERSION


def triple(extents: Sequence[int]) -> tuple[int, int, int]:
    """Returns extents x, y, z.

    Args:
        extents: three of them, of a grid or a block.
    """
    x, y, z = extents
    return x, y, z


def _check_outputs(reference: Program, manifest: bundle.Manifest, location: str) -> None:
    """Refuses a kernel that is described to write other buffers than the payload does, or of other types."""
    from_roles = {
        (argument.role, argument.element_type, argument.shape)
        for argument in manifest.arguments
        if argument.access != "read"
    }
    # The payload may have more dimensions than the kernel, of the same elements.
    shapes = {role: shape for role, _, shape in from_roles}
    from_reference = set()
    for item in (*(item for item in reference.arguments if item.after is not None), *reference.results):
        shape = shapes.get(item.role or "", item.shape)
        is_same_size = math.prod(item.shape) == math.prod(shape)
        from_reference.add((item.role, item.type, shape if is_same_size else item.shape))
    if from_reference != from_roles:
        texts = [
            ", ".join(
                f"{role or 'another buffer'} of {'x'.join(map(str, shape))}x{type_}" for role, type_, shape in outputs
            )
            for outputs in (from_reference, from_roles)
        ]
        raise StepladderError(f"the payload writes {texts[0]}, and the kernel {texts[1]}", location=location)


def build(
    text: str,
    name: str,
    request: Request,
    *,
    use_cache: bool = True,
    progress: Callable[[StepResult], None] | None = None,
) -> Build:
    """Compiles a payload, in the current MLIR context (`context.mlir_context`).

    Where ptxas makes slow code of the knobs that are chosen (`MachineCode.is_slow`), the next choices are tried, and
    the first one that is not slow is taken, if there is one.

    Args:
        text: the payload: a matmul, or a XeTile program.
        name: the file it came from, for messages.
        request: pipeline and knobs; the whole pipeline runs.
        use_cache: reuse machine code made before from the same LLVM IR.
        progress: called after each step.

    Returns:
        The run, the machine code and the manifest.

    Raises:
        StepladderError: as `run_pipeline` and `machine_code.generate`, or a kernel that does not fit its target.
    """
    first = _built(text, name, request, use_cache=use_cache, progress=progress)
    if not first.code.is_slow or first.run.knob_source.kind not in _REPLACEABLE:
        return first
    for passed_over in range(1, _CHOICES):
        with contextlib.suppress(StepladderError):  # a step may refuse a later choice
            built = _built(text, name, replace(request, passed_over=passed_over), use_cache=use_cache)
            if built.run.knob_source.kind not in _REPLACEABLE:
                break
            if not built.code.is_slow:
                return built
    return first


def _built(
    text: str,
    name: str,
    request: Request,
    *,
    use_cache: bool,
    progress: Callable[[StepResult], None] | None = None,
) -> Build:
    """Compiles a payload with the knobs of a request; arguments, result and errors as of `build`."""
    request.check_build()
    find_tool("ptxas")  # before the pipeline runs, whose result is of no use without it
    run = run_pipeline(text, name, request, progress=progress)
    program = read_text(text, name, request)
    # Of the payload as it was given, parsed anew: the run has changed its own module.
    if program is not None:
        payload, matmul = program.understood()
    else:
        payload, matmul = select(parse_payload(text, name), request.function).module, run.matmul
    if matmul is None:  # the run began with the payload
        raise StepladderError(
            f"pipeline '{run.pipeline.name}' compiles whole functions, not single kernels",
            location=str(run.pipeline.path),
            notes=["--pipeline auto, or the pipeline of a matmul, compiles a function with several matmuls"],
        )
    final = find_program(run.module)
    if final.kernel.target in targets.XE_TARGETS:
        raise StepladderError(
            f"pipeline '{run.pipeline.name}' is for {final.kernel.target}: `stepladder compile` writes its kernel "
            "as SPIR-V, and nothing here launches it"
        )
    kernels = (*final.front, final.kernel)
    codes = [generate(kernel, use_cache=use_cache) for kernel in kernels]
    for kernel, code in zip(kernels, codes):
        check_resources(kernel, code)
    manifest = _manifest(request, run, matmul, final, codes)
    reference = reference_export.export(payload, matmul.roles)
    _check_outputs(reference, manifest, matmul.location)
    return Build(run, codes[-1], manifest, reference, tuple(codes[:-1]))
