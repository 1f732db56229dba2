"""Kernels of a function that are no matmuls: of a linalg op, of a chain over rows, of an attention, or of several
independent ops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.multi_kernel.products import is_product, sizes_of
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import name_of
from stepladder.pipeline.build import triple
from stepladder.pipeline.codegen.kernel import find_kernel
from stepladder.pipeline.codegen.machine_code import check_resources, generate
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.definition import KnobValue
from stepladder.pipeline.functions.group_module import argument_types, merged
from stepladder.pipeline.library import pipeline_file
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime import bundle

# The step that lets a kernel start while the one before it ends.
_WAITS = "wait_at_start"


@dataclass(frozen=True)
class PlainStage:
    """A compiled kernel.

    Attributes:
        code: PTX and cubin, and the IR after each step.
        kernel: how it is launched.
        roles: of its arguments, by the index of an operand of the calls, one call after the other.
    """

    code: bundle.PlainCode
    kernel: bundle.PlainKernel
    roles: Mapping[int, tuple[str, ...]]


def build_plain(
    name: str, texts: Sequence[str], pipeline: str, settings: Mapping[str, KnobValue], *, use_cache: bool
) -> PlainStage:
    """Compiles one op, or several that do not depend on each other, to one kernel, in the current MLIR context.

    Args:
        name: of the stage.
        texts: payloads of the ops.
        pipeline: name of the file that lowers them, `elementwise`, `rows` or `attention`.
        settings: its knobs.
        use_cache: reuse machine code made before from the same LLVM IR.

    Returns:
        The kernel, with the roles of its arguments.

    Raises:
        StepladderError: an op that the pipeline refuses, or kernels that cannot be merged.
    """
    request = Request(pipeline_file(pipeline), settings)
    runs = {text: run_pipeline(text, f"stage {name}", request) for text in dict.fromkeys(texts)}
    members = [runs[text] for text in texts]
    types = [ir.MemRefType(type_) for run in members for type_ in argument_types(run)]
    is_read = [number < _inputs(text, name) for text in texts for number in range(len(argument_types(runs[text])))]
    run = members[0]
    if len(members) > 1:
        run = merged(name, members, {place for place, reads in enumerate(is_read) if not reads})
    kernel = find_kernel(run.module)
    code = generate(kernel, use_cache=use_cache)
    check_resources(kernel, code)
    steps = (*(step.name for step in members[0].steps), *(step.name for step in run.steps if run is not members[0]))
    plain = bundle.PlainKernel(
        kernel.name,
        tuple(
            bundle.Argument(
                f"P{place}",
                f"p{place}",
                name_of(types[parameter.number].element_type),
                tuple(types[parameter.number].shape),
                "read" if is_read[parameter.number] else "write",
            )
            for place, parameter in enumerate(kernel.parameters)
        ),
        triple(kernel.grid),
        triple(kernel.block),
        code.static_shared_memory,
        code.registers,
        code.spills,
        steps,
        sum(_flops(text, name) for text in texts),
        cluster=triple(kernel.cluster),
        dynamic_shared_memory=kernel.dynamic_shared_memory,
        dependent_launch=_WAITS in steps,
    )
    roles: dict[int, tuple[str, ...]] = {}
    for place, parameter in enumerate(kernel.parameters):
        roles[parameter.number] = (*roles.get(parameter.number, ()), f"p{place}")
    dumps = dict(run.dumps())
    if run is not members[0]:
        dumps |= {
            f"{place}/{file}": dump
            for place, member in enumerate(runs.values())
            for file, dump in member.dumps().items()
        }
    return PlainStage(bundle.PlainCode(code.cubin, code.ptx, dumps), plain, roles)


def _flops(text: str, name: str) -> int:
    """Returns the arithmetic operations of the products of a payload, such as those of an attention."""
    payload = parse_payload(text, name)  # what `walk` returns does not keep it
    products = [op for op in walk(payload) if is_product(op)]
    return sum(2 * math.prod(sizes_of(product).values()) for product in products)


def _inputs(text: str, name: str) -> int:
    """Returns how many arguments the function of a payload has; those after them are its results."""
    payload = parse_payload(text, name)  # what `walk` returns does not keep it
    function = walk(payload, "func.func")[0]
    return len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
