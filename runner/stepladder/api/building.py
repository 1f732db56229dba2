"""Compiles payloads to kernels: chooses the target and the pipeline, and keeps kernels in memory and on disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stepladder.api import store
from stepladder.api.errors import ArgumentError
from stepladder.api.kernel_cache import KernelCache
from stepladder.pipeline.automatic import AUTO, WITHOUT_GPU, add_reason, first_of, pipelines_for, with_reason
from stepladder.runtime import targets
from stepladder.runtime.bundle import Bundle, FunctionBundle
from stepladder.runtime.errors import BAD_INPUT, FAILED, NOT_EXECUTED, StepladderError, suggest
from stepladder.runtime.files import read_text

if TYPE_CHECKING:
    from stepladder.pipeline.request import Request

KnobValue = str | int
EMULATOR = "emulator"
# Functions that are kept in memory.
_KEPT_FUNCTIONS = 64


@dataclass(frozen=True)
class Job:
    """A request for a kernel.

    Attributes:
        text: the payload.
        name: where it comes from, for messages.
        pipeline: name or file of a pipeline, or `auto`.
        target: GPU architecture.
        knobs: name and value of those that are given.
        without: steps to leave out.
        function: of the payload; None for the only one.
        plugins: files of transform ops.
        constant_weights: whether no kernel that may still run at a launch writes the weights.
    """

    text: str
    name: str
    pipeline: str
    target: str
    knobs: tuple[tuple[str, KnobValue], ...] = ()
    without: tuple[str, ...] = ()
    function: str | None = None
    plugins: tuple[str, ...] = ()
    constant_weights: bool = False

    def pipelines(self) -> tuple[str, ...]:
        """Returns the pipelines to try, in order, for the payload in the current MLIR context."""
        return pipelines_for(self.pipeline, self.target, is_divisible=self._is_divisible)

    def _is_divisible(self) -> bool:
        """Returns whether the payload may be several kernels as well as one; an unacceptable one is refused later."""
        from stepladder.pipeline.functions.division import is_divisible

        try:
            return is_divisible(self.text, self.name, self.request(self.pipeline))
        except StepladderError:
            return False

    def request(self, pipeline: str) -> Request:
        """Returns the request for one of the pipelines.

        Args:
            pipeline: its name, or the path of its file.
        """
        from stepladder.measure.tuning.database import default_path
        from stepladder.pipeline.request import Request

        return Request(
            pipeline,
            {**dict(self.knobs), "target": self.target},
            without=self.without,
            tuned=True,
            database=default_path(),
            function=self.function,
            constant_weights=self.constant_weights,
        )

    @property
    def is_kept(self) -> bool:
        """Whether the kernel is kept: pipelines and ops of the user may change between two calls."""
        return not self.plugins and self.pipeline in (AUTO, *store.pipelines())

    def key(self) -> str:
        """Returns the key of the kernel in the cache."""
        from stepladder.measure.tuning.database import default_path

        description = {
            "text": self.text,
            "name": self.name,
            "pipeline": self.pipeline,
            "target": self.target,
            "knobs": sorted((name, str(value)) for name, value in self.knobs),
            "without": self.without,
            "function": self.function,
            "constant_weights": self.constant_weights,
        }
        return store.key_of(description, default_path())


@dataclass(frozen=True)
class Built:
    """A compiled kernel: its bundle in memory, the request that it was compiled by, and the IR after each step, by file
    name; None where it comes from the cache."""

    bundle: Bundle
    job: Job | None
    dumps: Mapping[str, str] | None


@dataclass(frozen=True)
class BuiltFunction:
    """A compiled function: its bundle in memory, the request that it was compiled by, its IR after each step by file
    name, and that of its matmuls' kernels by folder; None where it comes from the cache or a bundle's folder."""

    bundle: FunctionBundle
    job: Job | None
    dumps: Mapping[str, str] | None = None
    stages: Mapping[str, Mapping[str, str]] | None = None


def source_text(source: object) -> tuple[str, str]:
    """Returns the text of a payload and the name of its file.

    Args:
        source: a path, MLIR as text, or a module of MLIR's Python bindings.

    Raises:
        ArgumentError: something else.
        StepladderError: a file that cannot be read.
    """
    if isinstance(source, os.PathLike):
        return read_text(os.fspath(source))
    if isinstance(source, str):
        if "\n" in source or "func.func" in source or not source.strip():
            return source, "payload"
        return read_text(source)
    if hasattr(source, "operation"):
        return str(source), "payload"
    raise ArgumentError(
        f"a {type(source).__name__} cannot be compiled",
        notes=["accepted: a path, MLIR as text, a module of MLIR's Python bindings, a MatmulSpec, a torch.nn.Module"],
    )


def target_of(target: str, device: object) -> str:
    """Returns the target to compile for.

    Args:
        target: its name, or `auto`: that of the GPU, or sm_90a where there is none.
        device: ordinal of the GPU, `auto`, or `emulator`.

    Raises:
        StepladderError: an unknown target.
    """
    if target != AUTO:
        return targets.find(target).name
    if device == EMULATOR:
        return WITHOUT_GPU
    from stepladder.api.gpu import open_gpu

    try:
        capability = open_gpu(device if isinstance(device, int) else None).device.capability
    except StepladderError as error:
        if error.status != NOT_EXECUTED:
            raise
        return WITHOUT_GPU
    return target_for(capability)


def target_for(capability: tuple[int, int]) -> str:
    """Returns the target for a GPU: that of its compute capability, or the nearest below.

    Args:
        capability: major and minor number.

    Raises:
        StepladderError: a GPU older than all targets.
    """
    if capability == (9, 0):
        return "sm_90a"
    candidates = [item for item in targets.TARGETS.values() if item.compute_capability <= capability]
    names = [item.name for item in candidates if not item.name.endswith("a")]
    if not names:
        least = min(item.compute_capability for item in targets.TARGETS.values())
        raise StepladderError(
            f"a GPU of compute capability {capability[0]}.{capability[1]} has no target",
            notes=[f"accepted: compute capability {least[0]}.{least[1]} or higher"],
        )
    return names[-1]


_kernels = KernelCache[Built]()
_functions = KernelCache[BuiltFunction](_KEPT_FUNCTIONS)
# MLIR's bindings and the package's own state of a run, also on the emulator, belong to one thread at a time.
exclusive = threading.RLock()


def build(job: Job) -> Built:
    """Returns the kernel of a request: from memory, from the cache on disk, or compiled.

    Args:
        job: a payload, and how it is compiled.

    Raises:
        StepladderError: the payload, the pipeline or the knobs are not acceptable, or a step fails.
    """
    if not job.is_kept:
        return _compile(job)
    kernel = _kernels.find(job)
    if kernel is not None:
        return kernel
    with _kernels.only_one(job):
        kernel = _kernels.find(job)
        if kernel is None:
            kernel = _stored(job) or _compile(job)
            if kernel.dumps is not None:
                store.save(job.key(), kernel.bundle)
            _kernels.keep(job, kernel)
    return kernel


def _stored(job: Job) -> Built | None:
    bundle = store.load(job.key())
    return None if bundle is None else Built(bundle, job, None)


def build_any(job: Job) -> Built | BuiltFunction:
    """Returns the kernel of a request, or the kernels of a function that is no single matmul.

    Both come from memory, from the cache on disk, or are compiled.

    Args:
        job: a payload, and how it is compiled.

    Raises:
        StepladderError: as `build`; of a function, what its kernels or pipelines refuse.
    """
    if not job.is_kept:
        return _compile_any(job)
    single = _kernels.find(job)
    if single is not None:
        return single
    with _kernels.only_one((job, "function")):
        function = _functions.find(job)
        if function is not None:
            return function
        key = job.key()
        bundle = store.load_function(key)
        if bundle is not None:
            function = BuiltFunction(bundle, job)
        else:
            built = _compile_any(job)
            if isinstance(built, Built):
                return built
            function = built
            store.save_function(key, function.bundle)
        _functions.keep(job, function)
        return function


def _compile_any(job: Job) -> Built | BuiltFunction:
    """Compiles a kernel, or, where the payload is refused as one matmul, a function; one on buffers as on tensors."""
    try:
        return build(job)
    except StepladderError as refusal:
        if refusal.status not in (BAD_INPUT, FAILED):
            raise
        if (text := _on_tensors(job, refusal)) is None:
            return _build_function(job, refusal)
        try:
            return _compile_any(replace(job, text=text, function=None))
        except StepladderError as error:
            raise with_reason(refusal, error) from None


def _on_tensors(job: Job, refusal: StepladderError) -> str | None:
    """Returns a refused payload on buffers and scalars as one on tensors; None for one that is not raised, where a
    reason is a note of the refusal."""
    from stepladder.pipeline import any_payload
    from stepladder.pipeline.context import mlir_context

    with exclusive, mlir_context():
        try:
            return any_payload.raised_text(job.text, job.name, job.function)
        except StepladderError as error:
            add_reason(refusal, error)
            return None


def after_step(dumps: Mapping[str, str], step: str | None) -> str:
    """Returns the IR after a step.

    Args:
        dumps: the IR after each step by file name, such as `00-input.mlir`.
        step: its name; `input` for the payload; None for the last one.

    Raises:
        ArgumentError: no such step.
    """
    by_step = {name.partition("-")[2].removesuffix(".mlir"): text for name, text in sorted(dumps.items())}
    if step is None:
        return list(by_step.values())[-1]
    if step not in by_step:
        raise ArgumentError(
            f"no step '{step}' ran{suggest(step, list(by_step))}", notes=[f"steps: {', '.join(by_step)}"]
        )
    return by_step[step]


def with_dumps(function: BuiltFunction) -> BuiltFunction:
    """Returns a function with its IR; one from the cache runs its pipeline again, and keeps its machine code.

    Args:
        function: which was compiled, or came from the cache.
    """
    if function.dumps is not None or function.job is None:
        return function
    return _build_function(function.job, None)


def _build_function(job: Job, refusal: StepladderError | None) -> BuiltFunction:
    """Compiles a function with several kernels; raises the refusal of the matmul for a payload that is none."""
    from stepladder.extension import plugins
    from stepladder.pipeline import any_payload
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.functions import build
    from stepladder.pipeline.functions.division import is_divisible

    with exclusive:
        plugins.load_files(list(job.plugins))
        with mlir_context():
            is_matmul = any_payload.refusal_of_matmul(job.text, job.name, job.function) is None
            request = job.request(job.pipeline)
            if refusal is not None and is_matmul and not is_divisible(job.text, job.name, request):
                raise refusal
            built = any_payload.build_any(job.text, job.name, request)
            assert isinstance(built, build.FunctionBuild)  # no pipeline took the payload as one matmul
            return BuiltFunction(built.bundle, job, built.dumps, built.stages)


def _compile(job: Job) -> Built:
    """Compiles a kernel by the first pipeline that accepts it."""
    from stepladder.extension import plugins
    from stepladder.pipeline.context import mlir_context

    with exclusive:
        plugins.load_files(list(job.plugins))
        with mlir_context():
            return first_of(job.pipelines(), lambda pipeline: compile_by(job, pipeline))


def compile_by(job: Job, pipeline: str) -> Built:
    """Compiles a kernel by one pipeline, in the current MLIR context.

    Args:
        job: a payload, and how it is compiled.
        pipeline: its name, or the path of its file.

    Returns:
        The kernel, with the IR after each step.

    Raises:
        StepladderError: as `pipeline.build.build`.
    """
    from stepladder.pipeline import build as builds

    built = builds.build(job.text, job.name, job.request(pipeline))
    return Built(built.bundle(job.name), job, built.run.dumps())


def dumps_of(built: Built) -> Mapping[str, str]:
    """Returns the IR after each step, by file name: the pipeline runs again where the kernel comes from the cache.

    Args:
        built: which was compiled, loaded, or came from the cache.
    """
    if built.dumps is not None:
        return built.dumps
    manifest = built.bundle.manifest
    if built.job is None:
        files = sorted((built.bundle.path / "ir").glob("*.mlir"))
        return {file.name: file.read_text() for file in files}
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.run import run_pipeline

    request = built.job.request(built.job.pipeline if built.job.pipeline != AUTO else manifest.pipeline)
    request = replace(request, settings=manifest.knobs, tuned=False, without=manifest.without)
    with exclusive, mlir_context():
        return run_pipeline(built.job.text, built.job.name, request).dumps()
