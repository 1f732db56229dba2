"""Builds a bundle with SPIR-V from a payload, by a pipeline for Intel's GPUs."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from dataclasses import dataclass

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload import reference_export
from stepladder.payload.selection import select
from stepladder.pipeline import library
from stepladder.pipeline.build import triple
from stepladder.pipeline.codegen import spirv
from stepladder.pipeline.codegen.kernel import Kernel, find_kernel
from stepladder.pipeline.codegen.spirv import SpirvCode
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.kernel_arguments import argument_of, data_of
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, StepResult, run_pipeline
from stepladder.pipeline.tile_programs import is_tile_program
from stepladder.runtime import targets
from stepladder.runtime.bundle import Argument
from stepladder.runtime.bundle.spirv import SpirvManifest, write_spirv_bundle
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import operand_of
from stepladder.runtime.reference import Program

_FIRST_OF_PROGRAMS = "distribute_to_subgroups"


@dataclass(frozen=True)
class SpirvBuild:
    """A finished build, before or after it is written.

    Args:
        run: the pipeline's run; its module is only valid inside the MLIR context it was made in.
        code: the SPIR-V module of the kernel.
        manifest: describes the kernel and how it was made.
        reference: what the payload computes; None for a XeTile program.
    """

    run: Run
    code: SpirvCode
    manifest: SpirvManifest
    reference: Program | None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the bundle, with the IR after every step in `ir/`.

        Args:
            path: the bundle's folder.

        Raises:
            StepladderError: as `write_spirv_bundle`.
        """
        write_spirv_bundle(
            path,
            self.manifest,
            self.code.spirv,
            self.code.llvm_ir,
            self.run.dumps(),
            self.reference,
            data_of(self.run),
        )


def is_for_xe(pipeline: str) -> bool:
    """Returns whether a pipeline's kernels are for Intel's GPUs, in the current MLIR context.

    Args:
        pipeline: its name, or the path of its file.

    Raises:
        StepladderError: no such pipeline, or a script that does not parse.
    """
    knob = library.load(pipeline).knobs.get("target")
    return knob is not None and knob.default in targets.XE_TARGETS


def build(
    text: str,
    name: str,
    request: Request,
    *,
    use_cache: bool = True,
    progress: Callable[[StepResult], None] | None = None,
) -> SpirvBuild:
    """Compiles a payload, in the current MLIR context (`context.mlir_context`).

    Args:
        text: the payload: a matmul, or a XeTile program.
        name: the file it came from, for messages.
        request: pipeline and knobs; the whole pipeline runs.
        use_cache: reuse a module made before from the same LLVM IR.
        progress: called after each step.

    Returns:
        The run, the SPIR-V module and the manifest.

    Raises:
        StepladderError: as `run_pipeline` and `spirv.generate`, or a kernel that does not fit its target.
    """
    request.check_build()
    program = is_tile_program(parse_payload(text, name))
    if program:
        request = dataclasses.replace(request, start=_FIRST_OF_PROGRAMS, tuned=False)
    run = run_pipeline(text, name, request, progress=progress)
    kernel = find_kernel(run.module)
    code = spirv.generate(kernel, use_cache=use_cache)
    target = targets.find_limits(kernel.target)
    threads = math.prod(kernel.block)
    if threads > targets.XE_WORK_GROUP:
        raise StepladderError(f"a work-group has {threads} threads, and {target.name} runs {targets.XE_WORK_GROUP}")
    if code.shared_memory > target.shared_memory:
        raise StepladderError(
            f"a work-group needs {code.shared_memory} bytes of shared local memory, and {target.name} has "
            f"{target.shared_memory}"
        )
    function = "" if run.selection is None else run.selection.function or ""
    manifest = SpirvManifest(
        kernel_name=kernel.name,
        target=kernel.target,
        arguments=_of_program(run.module, kernel) if program else _of_matmul(run, kernel),
        problem=None if run.matmul is None else run.matmul.problem,
        grid=triple(kernel.grid),
        work_group=triple(kernel.block),
        subgroup_size=code.subgroup_size,
        shared_local_memory=code.shared_memory,
        validated=code.validated,
        pipeline=run.pipeline.name,
        steps=tuple(step.name for step in run.steps),
        without=request.without,
        knobs=run.knobs,
        tool_versions=spirv.tool_versions(),
        function=function,
        other_functions=() if run.selection is None else run.selection.others,
    )
    if run.matmul is None:
        return SpirvBuild(run, code, manifest, None)
    payload = select(parse_payload(text, name), request.function).module
    return SpirvBuild(run, code, manifest, reference_export.export(payload, run.matmul.roles))


def _of_matmul(run: Run, kernel: Kernel) -> tuple[Argument, ...]:
    """Returns the arguments of the kernel of a matmul."""
    matmul = run.matmul
    assert matmul is not None  # of every run that begins with the payload
    unknown = [parameter.number for parameter in kernel.parameters if parameter.number not in matmul.roles]
    if unknown:
        raise StepladderError(
            f"the kernel takes argument {unknown[0]} of the function, which is not an operand of the problem",
            location=matmul.location,
        )
    return tuple(
        argument_of(run, operand_of(matmul.roles[parameter.number]), matmul.problem, parameter.number)
        for parameter in kernel.parameters
    )


def _of_program(module: ir.Module, kernel: Kernel) -> tuple[Argument, ...]:
    """Returns the arguments of the kernel of a XeTile program: the buffers of its function, by index."""
    function = walk(module, "gpu.launch_func")[0].parent
    assert function is not None  # a launch is in a function
    buffers = [ir.MemRefType(argument.type) for argument in function.regions[0].blocks[0].arguments]
    return tuple(
        Argument(
            f"argument{parameter.number}",
            "",
            str(buffers[parameter.number].element_type),
            tuple(buffers[parameter.number].shape),
            "readwrite",
        )
        for parameter in kernel.parameters
    )
