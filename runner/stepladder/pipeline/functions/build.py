"""Builds the bundle of a function with several matmuls, which is divided into kernels (`divided_function`).

The functions of matmuls are compiled as payloads of their own; the others go through the pipelines `elementwise`,
`rows` and `attention`. Equal functions are compiled once.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepladder.pipeline.automatic import pipelines_for
from stepladder.pipeline.codegen.toolchain import find_tool, tool_versions
from stepladder.pipeline.functions.divided_function import COLUMNS, Divided, divide, takes_pairs
from stepladder.pipeline.functions.division import target_of
from stepladder.pipeline.functions.stages import Compiler, Plan
from stepladder.pipeline.request import Request
from stepladder.runtime import bundle
from stepladder.runtime.errors import StepladderError


@dataclass(frozen=True)
class FunctionBuild:
    """A finished build, before or after it is written.

    Attributes:
        bundle: of the function, in memory.
        dumps: the function after each step, by file name.
        stages: the same of each matmul's kernel, by folder.
        notes: for people, what was asked for and could not be done.
    """

    bundle: bundle.FunctionBundle
    dumps: Mapping[str, str]
    stages: Mapping[str, Mapping[str, str]]
    notes: Sequence[str] = ()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the bundle, with the IR after every step.

        Args:
            path: the bundle's folder.

        Raises:
            StepladderError: as `write_function`.
        """
        bundle.write_function(path, self.bundle, self.dumps, self.stages)


def build_function(text: str, name: str, request: Request, *, use_cache: bool = True) -> FunctionBuild:
    """Compiles a function, in the current MLIR context.

    Args:
        text: the payload; `name`: its file, for messages.
        request: of its matmuls: a pipeline, or `auto` for the first that accepts each, knobs, and steps to leave out;
            the function to compile, of several.
        use_cache: reuse machine code made before from the same LLVM IR.

    Returns:
        The compiled function, not written yet.

    Raises:
        StepladderError: a function that is not on tensors of static shapes, an op that no kernel computes, or what the
            pipelines of its kernels refuse.
    """
    if "pairs" in request.settings:
        return _build_function(text, name, request, use_cache=use_cache, pairs=False)
    if takes_pairs(pipelines_for(request.pipeline, target_of(request))):
        try:
            return _build_function(text, name, request, use_cache=use_cache, pairs=True)
        except StepladderError:
            # Of a pair of products that its pipelines refuse, each may be a kernel of its own.
            pass
    return _build_function(text, name, request, use_cache=use_cache, pairs=False)


def _build_function(text: str, name: str, request: Request, *, use_cache: bool, pairs: bool) -> FunctionBuild:
    """Compiles a function; arguments as for `build_function` and `divide`.

    Raises:
        StepladderError: as `build_function`.
    """
    find_tool("ptxas")
    divided = divide(text, name, request, pairs=pairs)
    try:
        return _compiled(divided, name, use_cache=use_cache)
    except StepladderError:
        if COLUMNS in request.settings or not divided.has_columns:
            raise
        # A kernel that its pipelines refuse to write columns of a buffer may write a buffer of its own.
        apart = dataclasses.replace(request, settings={**request.settings, COLUMNS: False})
        return _compiled(divide(text, name, apart, pairs=pairs), name, use_cache=use_cache)


def _compiled(divided: Divided, name: str, *, use_cache: bool) -> FunctionBuild:
    """Compiles the kernels of a function.

    Raises:
        StepladderError: as `build_function`.
    """
    run, selection, target = divided.run, divided.selection, divided.target
    compiler = Compiler(target, divided.request, use_cache, divided.texts, groups_faster=divided.groups_faster)
    plan = Plan(run, selection, divided.arguments)
    launches = list(plan.launches(compiler))
    manifest = bundle.FunctionManifest(
        function=selection.function or "",
        target=target,
        buffers=tuple(plan.buffers),
        launches=tuple(launches),
        workspace=plan.workspace,
        other_functions=selection.others,
        steps=tuple(step.name for step in run.steps),
        tool_versions=tool_versions(),
        schema_version=bundle.schema_version_of(launches, plan.buffers),
    )
    data = {plan.file_of(number): constant.data for number, constant in selection.constants.items()}
    codes = {folder: stage.code for folder, stage in compiler.stages.items()}
    function_bundle = bundle.FunctionBundle(Path(name), manifest, codes, divided.reference, data)
    bundle.check_function(function_bundle)
    dumps = {folder: stage.dumps for folder, stage in compiler.stages.items()}
    return FunctionBuild(function_bundle, run.dumps(), dumps, compiler.notes)
