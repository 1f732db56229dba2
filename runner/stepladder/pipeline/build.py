"""From a payload to a bundle: a pipeline's run, its kernel's machine code, and the manifest that describes both."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from stepladder.codegen import kernel as codegen
from stepladder.payload import reference_export
from stepladder.payload.problem import Problem
from stepladder.pipeline import engine
from stepladder.runtime import bundle
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.reference import Program


@dataclass(frozen=True)
class Build:
    """A finished build, before or after it is written.

    Args:
        run: the pipeline's run; its module is only valid inside the MLIR context it was made in.
        code: PTX, cubin and resources of the kernel.
        manifest: what the bundle says about it.
        reference: what the payload computes.
    """

    run: engine.Run
    code: codegen.MachineCode
    manifest: bundle.Manifest
    reference: Program

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the bundle, with the IR after every step in `ir/`."""
        bundle.write_bundle(path, self.manifest, self.code.cubin, self.code.ptx, self.run.dumps(), self.reference)


def problem_of(problem: Problem) -> bundle.Problem:
    """Returns a payload's problem as a manifest describes it; f32 operands are multiplied on tensor cores, in tf32."""
    return bundle.Problem(
        problem.m,
        problem.n,
        problem.k,
        problem.a_type,
        problem.b_type,
        acc_type=problem.acc_type,
        c_type=problem.c_type,
        accumulate=problem.accumulate,
        a_layout=problem.a_layout,
        b_layout=problem.b_layout,
        compute_type="tf32" if problem.a_type == "f32" else None,
    )


def _argument(role: str, problem: bundle.Problem, descriptor: int | None) -> bundle.Argument:
    operand = problem.operand(role)
    return bundle.Argument(role.upper(), role, operand.element_type, operand.shape, operand.access, descriptor)


def _tma_descriptor(role: str, descriptor: codegen.Descriptor, problem: bundle.Problem) -> bundle.TmaDescriptor:
    buffer = _argument(role, problem, None)
    pitch = buffer.shape[1] * element_type(buffer.element_type).bytes
    return bundle.TmaDescriptor(
        role,
        buffer.element_type,
        buffer.shape,
        (pitch,),
        descriptor.box,
        (1, 1),
        interleave=descriptor.interleave,
        swizzle=descriptor.swizzle,
        l2_promotion=descriptor.l2_promotion,
        oob_fill=descriptor.oob_fill,
    )


def _manifest(
    request: engine.Request, run: engine.Run, kernel: codegen.Kernel, code: codegen.MachineCode
) -> bundle.Manifest:
    problem = run.problem
    unknown = [parameter.number for parameter in kernel.parameters if parameter.number not in problem.roles]
    if unknown:
        raise StepladderError(
            f"the kernel takes argument {unknown[0]} of the function, which is none of A, B and C",
            location=problem.location,
        )
    described = problem_of(problem)
    arguments, descriptors = [], []
    for parameter in kernel.parameters:
        role = problem.roles[parameter.number]
        through = None
        if parameter.descriptor is not None:
            through = len(descriptors)
            descriptors.append(_tma_descriptor(role, parameter.descriptor, described))
        arguments.append(_argument(role, described, through))
    return bundle.Manifest(
        kernel_name=kernel.name,
        target=kernel.target,
        arguments=tuple(arguments),
        tma_descriptors=tuple(descriptors),
        problem=described,
        grid=tuple(kernel.grid),
        block=tuple(kernel.block),
        cluster=tuple(kernel.cluster),
        static_shared_memory=code.static_shared_memory,
        dynamic_shared_memory=kernel.dynamic_shared_memory,
        registers=code.registers,
        spills={"stores": code.spill_stores, "loads": code.spill_loads},
        pipeline=run.pipeline.name,
        steps=tuple(step.name for step in run.steps),
        without=request.without,
        knobs=run.knobs,
        tool_versions=codegen.tool_versions(),
        dependent_launch="griddepcontrol.wait" in code.ptx,
    )


def _check_outputs(reference: Program, manifest: bundle.Manifest, location: str) -> None:
    """Refuses a kernel that is described to write other buffers than the payload does, or of other types."""
    described = {
        (argument.role, argument.element_type, argument.shape)
        for argument in manifest.arguments
        if argument.access != "read"
    }
    written = {(item.role, item.type, item.shape) for item in reference.arguments if item.after is not None}
    written |= {(item.role, item.type, item.shape) for item in reference.results}
    if written != described:
        texts = [
            ", ".join(
                f"{role or 'another buffer'} of {'x'.join(map(str, shape))}x{type_}" for role, type_, shape in outputs
            )
            for outputs in (written, described)
        ]
        raise StepladderError(f"the payload writes {texts[0]}, and the kernel {texts[1]}", location=location)


def build(
    text: str,
    name: str,
    request: engine.Request,
    *,
    use_cache: bool = True,
    progress: Callable[[engine.StepResult], None] | None = None,
) -> Build:
    """Compiles a payload, in the current MLIR context (`engine.mlir_context`).

    Args:
        text: the payload.
        name: the file it came from, for messages.
        request: pipeline and knobs; the whole pipeline runs.
        use_cache: reuse machine code made before from the same LLVM IR.
        progress: called after each step.

    Raises:
        StepladderError: as `engine.run` and `codegen.generate`, or a kernel that does not fit its target.
    """
    codegen.find_tool("ptxas")  # before any work is done: without it none of it can be used
    run = engine.run(text, name, request, progress=progress)
    kernel = codegen.find_kernel(run.module)
    code = codegen.generate(kernel, use_cache=use_cache)
    codegen.check_resources(kernel, code)
    manifest = _manifest(request, run, kernel, code)
    # Of the payload as it was given, parsed anew: the run has changed its own module.
    reference = reference_export.export(engine.parse_payload(text, name), run.problem.roles)
    _check_outputs(reference, manifest, run.problem.location)
    return Build(run, code, manifest, reference)
