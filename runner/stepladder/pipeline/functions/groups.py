"""Groups of matmuls that are one launch: chooses knobs for all, lowers each, and merges their kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from stepladder.payload.matmul import PayloadMatmul
from stepladder.pipeline.build import tma_descriptor, triple
from stepladder.pipeline.codegen.kernel import Kernel, find_kernel, find_program
from stepladder.pipeline.codegen.machine_code import MachineCode, check_resources, generate
from stepladder.pipeline.functions.group_knobs import requests_of
from stepladder.pipeline.functions.group_module import argument_types, merged
from stepladder.pipeline.kernel_arguments import argument_of
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_pipeline
from stepladder.runtime import bundle
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import operand_of


@dataclasses.dataclass(frozen=True)
class GroupKernel:
    """A group's kernel.

    Attributes:
        code: PTX and cubin, and the IR of the merge and of each of the lowered kernels.
        kernel: how it is launched.
        roles: of its arguments, by the index of an operand of the calls, one call after the other.
    """

    code: bundle.PlainCode
    kernel: bundle.PlainKernel
    roles: Mapping[int, tuple[str, ...]]


def build_group(name: str, texts: Sequence[str], request: Request, *, use_cache: bool) -> GroupKernel:
    """Compiles a group of matmuls, in the current MLIR context.

    Args:
        name: of the group.
        texts: payloads of its matmuls.
        request: pipeline of the matmuls, and its knobs.
        use_cache: reuse machine code made before from the same LLVM IR.

    Returns:
        The merged kernel, compiled.

    Raises:
        StepladderError: a matmul that the pipeline refuses with the knobs of the group, or kernels that cannot be
            merged.
    """
    requests = requests_of(texts, request)
    runs = {text: run_pipeline(text, f"stage {name}", requests[text]) for text in dict.fromkeys(texts)}
    members = [runs[text] for text in texts]
    for run in runs.values():
        if find_program(run.module).front:
            raise StepladderError(
                "operands of a matmul are prepared by kernels before it, and those of a group have one kernel each"
            )
    # Arguments of the group's function: those of each of its matmuls, one after the other.
    places = [(run, number) for run in members for number in range(len(argument_types(run)))]
    written = {place for place, (run, number) in enumerate(places) if _access(run, number) != "read"}
    group = merged(name, members, written)
    kernel = find_kernel(group.module)
    code = generate(kernel, use_cache=use_cache)
    check_resources(kernel, code)
    plain = _described(kernel, code, group, places, members)
    roles: dict[int, tuple[str, ...]] = {}
    for place, parameter in enumerate(kernel.parameters):
        roles[parameter.number] = (*roles.get(parameter.number, ()), f"p{place}")
    dumps = {f"{place}/{file}": dump for place, run in enumerate(runs.values()) for file, dump in run.dumps().items()}
    return GroupKernel(bundle.PlainCode(code.cubin, code.ptx, {**group.dumps(), **dumps}), plain, roles)


def _matmul(run: Run) -> PayloadMatmul:
    assert run.matmul is not None  # the run began with the payload
    return run.matmul


def _role(run: Run, number: int) -> str | None:
    role = _matmul(run).roles.get(number)
    return None if role is None else operand_of(role)


def _access(run: Run, number: int) -> str:
    role = _role(run, number)
    return "read" if role is None else _matmul(run).problem.operand(role).access


def _described(
    kernel: Kernel, code: MachineCode, run: Run, places: Sequence[tuple[Run, int]], members: Sequence[Run]
) -> bundle.PlainKernel:
    """Returns the description of a group's kernel.

    Args:
        kernel, code: lowered and compiled.
        run: that merged it.
        places: of each argument of the group's function, the run of its matmul and the index there.
        members: of each matmul.
    """
    arguments, descriptors, early = [], [], []
    for place, parameter in enumerate(kernel.parameters):
        if parameter.is_early:
            early.append(f"p{place}")
        member, number = places[parameter.number]
        problem, role = _matmul(member).problem, _role(member, number)
        if role is None:
            raise StepladderError("a kernel of a group takes an argument that is no operand of its matmul")
        through = None
        if parameter.descriptor is not None:
            through = len(descriptors)
            descriptor = tma_descriptor(role, parameter, parameter.descriptor, problem)
            descriptors.append(dataclasses.replace(descriptor, role=f"p{place}"))
        argument = argument_of(member, role, problem, number)
        arguments.append(dataclasses.replace(argument, name=f"P{place}", role=f"p{place}", descriptor=through))
    return bundle.PlainKernel(
        kernel_name=kernel.name,
        arguments=tuple(arguments),
        grid=triple(kernel.grid),
        block=triple(kernel.block),
        static_shared_memory=code.static_shared_memory,
        registers=code.registers,
        spills=code.spills,
        steps=(*(step.name for step in members[0].steps), *(step.name for step in run.steps)),
        problems=tuple(_matmul(member).problem for member in members),
        tma_descriptors=tuple(descriptors),
        cluster=triple(kernel.cluster),
        dynamic_shared_memory=kernel.dynamic_shared_memory,
        dependent_launch="griddepcontrol.wait" in code.ptx and not early,
        read_early=tuple(early),
    )
