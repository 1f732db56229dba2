"""Builds a bundle from a payload: runs the pipeline, generates the machine code, and writes the manifest."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepladder.mlir.tensor_maps import TensorMap
from stepladder.payload import reference_export
from stepladder.payload.matmul import PayloadMatmul
from stepladder.payload.selection import select
from stepladder.pipeline.codegen.kernel import Kernel, find_kernel
from stepladder.pipeline.codegen.machine_code import MachineCode, check_resources, generate
from stepladder.pipeline.codegen.toolchain import find_tool, tool_versions
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, StepResult, run_pipeline
from stepladder.runtime import bundle
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem, operand_of
from stepladder.runtime.reference import Program


@dataclass(frozen=True)
class Build:
    """A finished build, before or after it is written.

    Args:
        run: the pipeline's run; its module is only valid inside the MLIR context it was made in.
        code: PTX, cubin and resources of the kernel.
        manifest: describes the kernel and how it was made.
        reference: what the payload computes.
    """

    run: Run
    code: MachineCode
    manifest: bundle.Manifest
    reference: Program

    def data(self) -> dict[str, bytes]:
        """Returns the content of the bundle's files with constants of the payload, by their names."""
        constants = self.run.selection.constants if self.run.selection is not None else {}
        return {_data_file(number): constant.data for number, constant in constants.items()}

    def bundle(self, name: str) -> bundle.Bundle:
        """Returns the bundle in memory; `name` stands for its folder in messages."""
        return bundle.Bundle(Path(name), self.manifest, self.code.cubin, self.code.ptx, self.reference, self.data())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the bundle, with the IR after every step in `ir/`."""
        bundle.write_bundle(
            path,
            self.manifest,
            self.code.cubin,
            self.code.ptx,
            self.run.dumps(),
            reference=self.reference,
            data=self.data(),
        )


def _data_file(number: int) -> str:
    """Returns the file of a bundle with the data of argument `number` of the function, a constant of the payload."""
    return f"constants/argument{number}.bin"


def _argument(role: str, problem: Problem, descriptor: int | None, data: str | None = None) -> bundle.Argument:
    operand = problem.operand(role)
    return bundle.Argument(role.upper(), role, operand.element_type, operand.shape, operand.access, descriptor, data)


def _tma_descriptor(role: str, descriptor: TensorMap, problem: Problem) -> bundle.TmaDescriptor:
    buffer = _argument(role, problem, None)
    bytes_ = element_type(buffer.element_type).bytes
    strides = tuple(math.prod(buffer.shape[axis:]) * bytes_ for axis in range(1, len(buffer.shape)))
    return bundle.TmaDescriptor(
        role,
        buffer.element_type,
        buffer.shape,
        strides,
        descriptor.box,
        (1,) * len(descriptor.box),
        interleave=descriptor.interleave,
        swizzle=descriptor.swizzle,
        l2_promotion=descriptor.l2_promotion,
        oob_fill=descriptor.oob_fill,
    )


def _manifest(request: Request, run: Run, matmul: PayloadMatmul, kernel: Kernel, code: MachineCode) -> bundle.Manifest:
    unknown = [parameter.number for parameter in kernel.parameters if parameter.number not in matmul.roles]
    if unknown:
        raise StepladderError(
            f"the kernel takes argument {unknown[0]} of the function, which is no operand of the problem",
            location=matmul.location,
        )
    arguments, descriptors = [], []
    for parameter in kernel.parameters:
        role = operand_of(matmul.roles[parameter.number])
        through = None
        if parameter.descriptor is not None:
            through = len(descriptors)
            descriptors.append(_tma_descriptor(role, parameter.descriptor, matmul.problem))
        is_constant = run.selection is not None and parameter.number in run.selection.constants
        data = _data_file(parameter.number) if is_constant else None
        arguments.append(_argument(role, matmul.problem, through, data))
    return bundle.Manifest(
        kernel_name=kernel.name,
        target=kernel.target,
        arguments=tuple(arguments),
        tma_descriptors=tuple(descriptors),
        problem=matmul.problem,
        grid=_triple(kernel.grid),
        block=_triple(kernel.block),
        cluster=_triple(kernel.cluster),
        static_shared_memory=code.static_shared_memory,
        dynamic_shared_memory=kernel.dynamic_shared_memory,
        registers=code.registers,
        spills={"stores": code.spill_stores, "loads": code.spill_loads},
        pipeline=run.pipeline.name,
        steps=tuple(step.name for step in run.steps),
        without=request.without,
        knobs=run.knobs,
        tool_versions=tool_versions(),
        dependent_launch="griddepcontrol.wait" in code.ptx,
        function=run.selection.function or "" if run.selection else "",
        other_functions=run.selection.others if run.selection else (),
    )


def _triple(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = extents
    return x, y, z


def _check_outputs(reference: Program, manifest: bundle.Manifest, location: str) -> None:
    """Refuses a kernel that is described to write other buffers than the payload does, or of other types."""
    described = {
        (argument.role, argument.element_type, argument.shape)
        for argument in manifest.arguments
        if argument.access != "read"
    }
    # The payload may have more dimensions than the problem's matrix, of the same elements.
    problem = manifest.problem
    matrix = (problem.m, problem.n)
    written = {
        (item.role, item.type, matrix if math.prod(item.shape) == math.prod(matrix) else item.shape)
        for item in (*(item for item in reference.arguments if item.after is not None), *reference.results)
    }
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
    request: Request,
    *,
    use_cache: bool = True,
    progress: Callable[[StepResult], None] | None = None,
) -> Build:
    """Compiles a payload, in the current MLIR context (`context.mlir_context`).

    Args:
        text: the payload.
        name: the file it came from, for messages.
        request: pipeline and knobs; the whole pipeline runs.
        use_cache: reuse machine code made before from the same LLVM IR.
        progress: called after each step.

    Raises:
        StepladderError: as `run_pipeline` and `machine_code.generate`, or a kernel that does not fit its target.
    """
    if request.start is not None:
        raise StepladderError(f"a build runs a whole pipeline, and the request begins with step '{request.start}'")
    find_tool("ptxas")  # before the pipeline runs, whose result is of no use without it
    run = run_pipeline(text, name, request, progress=progress)
    matmul = run.matmul
    assert matmul is not None  # of every run that begins with the payload
    kernel = find_kernel(run.module)
    code = generate(kernel, use_cache=use_cache)
    check_resources(kernel, code)
    manifest = _manifest(request, run, matmul, kernel, code)
    # Of the payload as it was given, parsed anew: the run has changed its own module.
    given = select(parse_payload(text, name), request.function).module
    reference = reference_export.export(given, matmul.roles)
    _check_outputs(reference, manifest, matmul.location)
    return Build(run, code, manifest, reference)
