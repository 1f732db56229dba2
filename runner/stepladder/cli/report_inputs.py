"""Inputs of `stepladder report`: payloads, which it compiles, and bundles; both become kernels with their dumps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.runtime.bundle import Bundle, FunctionBundle, Manifest, PlainKernel, read_any
from stepladder.runtime.bundle.spirv import SpirvBundle, SpirvManifest, is_spirv_bundle, read_spirv_bundle
from stepladder.runtime.files import read_text
from stepladder.runtime.resources import transforms_dir

if TYPE_CHECKING:
    from stepladder.pipeline.request import Request
    from stepladder.pipeline.run import Run

Dumps = Mapping[str, str]


@dataclass(frozen=True)
class Reported:
    """A kernel, or a function with several kernels, with its dumps and the request that it was compiled by.

    Attributes:
        name: of the input, and of the kernel in a function.
        compiled: the bundle, read or in memory; of a kernel that is no matmul, its description.
        dumps: the IR after each step, by file name.
        sources: where the value of a knob comes from; empty for a bundle, which does not record it.
        summaries: what steps of a pipeline file of the user do, beside those of the package.
        request: of a payload; None for a bundle.
        is_part: whether it is a kernel of a function.
    """

    name: str
    compiled: Bundle | SpirvBundle | FunctionBundle | PlainKernel
    dumps: Dumps
    sources: Mapping[str, str] = field(default_factory=dict)
    summaries: Mapping[str, str] = field(default_factory=dict)
    request: Request | None = None
    is_part: bool = False

    @property
    def manifest(self) -> Manifest | SpirvManifest | None:
        """The manifest of a matmul's kernel; None for others."""
        return self.compiled.manifest if isinstance(self.compiled, Bundle | SpirvBundle) else None


def read_bundle_folder(path: str) -> list[Reported]:
    """Returns the contents of a bundle: a kernel, or a function followed by each of its kernels once.

    Args:
        path: of the folder.

    Raises:
        StepladderError: as `read_any` and `read_spirv_bundle`.
    """
    if is_spirv_bundle(path):
        return [Reported(path, read_spirv_bundle(path), _dumps(Path(path)))]
    bundle = read_any(path)
    if isinstance(bundle, Bundle):
        return [Reported(path, bundle, _dumps(bundle.path))]
    return _function(path, bundle, _dumps(bundle.path), lambda folder: _dumps(bundle.path / folder))


def compile_payload(path: str, request: Request, sizes: Mapping[str, int], from_option: str | None) -> list[Reported]:
    """Compiles a payload, and returns the same as `read_bundle_folder` of its bundle.

    Args:
        path: of the file, `-` for standard input.
        request: pipeline and knobs, as those of `stepladder compile`.
        sizes: of dynamic dimensions.
        from_option: the knob that --target sets, if it was given.

    Raises:
        StepladderError: as `stepladder compile`.
    """
    from stepladder.payload import stablehlo
    from stepladder.pipeline import any_payload, library, spirv_build
    from stepladder.pipeline.automatic import AUTO, for_vendor
    from stepladder.pipeline.context import bound_text, mlir_context
    from stepladder.pipeline.functions import build

    text, name = read_text(path)
    request = for_vendor(request)
    with mlir_context():
        text = bound_text(stablehlo.lowered(text, name), name, sizes, request.function)
        summaries = {}
        if request.pipeline != AUTO:
            summaries = {step.name: step.summary() for step in library.load(request.pipeline).steps}
        if request.pipeline != AUTO and spirv_build.is_for_xe(request.pipeline):
            built = spirv_build.build(text, name, request)
            compiled = SpirvBundle(built.manifest, built.code.spirv, built.reference, {})
        else:
            built = any_payload.build_any(text, name, request)
            compiled = built.bundle if isinstance(built, build.FunctionBuild) else built.bundle(name)
        if isinstance(built, build.FunctionBuild):
            items = _function(name, built.bundle, built.dumps, lambda folder: built.stages.get(folder, {}))
            return [dataclasses.replace(item, summaries=summaries) for item in items]
        return [Reported(name, compiled, built.run.dumps(), _sources(built.run, from_option), summaries, request)]


def summary_of(step: str, reported: Reported) -> str:
    """Returns the first sentence of a step's description; empty for an unknown step.

    Args:
        step: its name.
        reported: the kernel whose pipeline has it.
    """
    from stepladder.pipeline.definition import head_comment

    if step in reported.summaries:
        return reported.summaries[step]
    scripts = sorted(transforms_dir().rglob(f"steps/**/{step}.mlir")) if step.isidentifier() else []
    return head_comment(scripts[0]) if scripts else ""


def _function(name: str, bundle: FunctionBundle, dumps: Dumps, dumps_of: Callable[[str], Dumps]) -> list[Reported]:
    items = [Reported(name, bundle, dumps)]
    launches = {launch.folder: launch for launch in bundle.manifest.launches}
    for folder, launch in launches.items():
        title = f"{name}: {folder}"
        if launch.kernel is not None:
            items.append(Reported(title, launch.kernel, bundle.plain(launch).ir, is_part=True))
        else:
            items.append(Reported(title, bundle.matmul(launch), dumps_of(folder), is_part=True))
    return items


def _dumps(folder: Path) -> Dumps:
    """Returns the dumps in a bundle. Raises StepladderError, one that is no text."""
    return {path.name: read_text(str(path))[0] for path in sorted((folder / "ir").glob("*.mlir"))}


def _sources(run: Run, from_option: str | None) -> Mapping[str, str]:
    return {**run.sources, **({from_option: "--target"} if from_option is not None else {})}
