"""The kernels of a function: compiles each stage that was outlined, and finds the buffers that it is launched on."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stepladder.extension.lib.multi_kernel.attention import find_last
from stepladder.extension.lib.multi_kernel.products import is_product
from stepladder.extension.lib.multi_kernel.row_threads import block_threads
from stepladder.extension.lib.multi_kernel.stages import group_of, is_private, kind_named
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.reshapes import BUFFER_VIEWS
from stepladder.mlir.traverse import callee_of, origin, producer, symbol_of, walk
from stepladder.mlir.types import name_of
from stepladder.mlir.windows import BYTES, CAST, PART, begin_of_part
from stepladder.payload.arguments import donated
from stepladder.payload.selection import Selection
from stepladder.pipeline import build as builds
from stepladder.pipeline.automatic import first_of, pipelines_for
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.cost_model import gpu
from stepladder.pipeline.definition import KnobValue
from stepladder.pipeline.functions import attention_knobs
from stepladder.pipeline.functions.group_knobs import is_faster
from stepladder.pipeline.functions.groups import build_group
from stepladder.pipeline.functions.matmul_requests import of_matmuls, with_exact_tf32
from stepladder.pipeline.functions.plain_kernels import build_plain
from stepladder.pipeline.functions.stage_texts import OUTLINED, is_matmul
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run
from stepladder.runtime import bundle, targets
from stepladder.runtime.bundle.function import ALIGNMENT
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import operand_of

# Knobs of matmuls too: whether a kernel may start while the one before it ends, and whether it may approximate.
_DEPENDENT, _MATH = "dependent_launch", "math"
# Kinds of kernels, of several ops each, that have a pipeline of this name.
_ROWS, _THREADS = "rows", "threads"
_ATTENTION = "attention"
_CHAINS = (_ROWS, _ATTENTION)


def type_of(function: ir.Operation) -> ir.Type:
    """Returns the type of a `func.func`.

    Args:
        function: a `func.func`; types of tensors, or of buffers after bufferization.
    """
    return ir.TypeAttr(function.attributes["function_type"]).value


@dataclass(frozen=True)
class Stage:
    """A compiled kernel: what is written, and the role of its arguments by the index of an operand of its call."""

    code: bundle.Bundle | bundle.PlainCode
    roles: Mapping[int, tuple[str, ...]]
    kernel: bundle.PlainKernel | None = None
    dumps: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Compiler:
    """Compiles the stages of a function, equal ones once.

    Attributes:
        stages: by folder.
        notes: groups of matmuls that no pipeline made one kernel of, and why.

    Args:
        target: GPU architecture.
        request: of the matmuls.
        use_cache: reuse machine code made before from the same LLVM IR.
        texts: payloads of the stages, by name.
        groups_faster: whether groups are compiled only where one launch is predicted to be faster.
    """

    def __init__(
        self,
        target: str,
        request: Request,
        use_cache: bool,
        texts: Mapping[str, str],
        *,
        groups_faster: bool = False,
    ) -> None:
        self.target = target
        self.request = request
        self.use_cache = use_cache
        self.texts = texts
        self.groups_faster = groups_faster
        self.stages: dict[str, Stage] = {}
        self._folders: dict[tuple[str, bool], str] = {}
        self._groups: dict[tuple[tuple[str, ...], bool], str | None] = {}
        self.notes: list[str] = []

    @diagnostics.keeping_payload_name()
    def stage(self, name: str, loads_early: bool = False) -> tuple[str, Stage]:
        """Returns the folder of a stage and the stage, compiled.

        Args:
            name: of the outlined function.
            loads_early: whether a matmul may be chosen to load its weights before it waits for the kernel before it.

        Raises:
            StepladderError: what the pipelines of a matmul, or that of elementwise ops, refuse.
        """
        key = text, loads_early = self.texts[name], loads_early and is_matmul(name)
        if key not in self._folders:
            folder = f"kernels/{len(self.stages):02}-{name}"
            stage = (
                self._matmul(text, name, loads_early)
                if is_matmul(name)
                else self._plain([text], name, kind_named(name))
            )
            twin = self._folders.get((text, not loads_early), folder)  # the same where nothing is loaded early
            if stage.code.ptx != self.stages.setdefault(twin, stage).code.ptx:
                self.stages[folder], twin = stage, folder
            self._folders[key] = twin
        return self._folders[key], self.stages[self._folders[key]]

    @diagnostics.keeping_payload_name()
    def group(self, names: Sequence[str], loads_early: bool) -> tuple[str, Stage] | None:
        """Returns the folder of a group of matmuls or of elementwise ops, and the group, compiled to one kernel; None
        where no pipeline of matmuls does, or, with `groups_faster`, where one launch is not predicted to be faster.

        Args:
            names: of the outlined functions.
            loads_early: as for `stage`, of all of them.
        """
        texts = tuple(self.texts[name] for name in names)
        key = texts, loads_early and is_matmul(names[0])
        if key not in self._groups:
            self._groups[key] = None
            if not is_matmul(names[0]):
                return self._together(key, names)
            pipelines = pipelines_for(self.request.pipeline, self.target)

            def by(pipeline: str) -> Stage:
                request = self._request(pipeline, loads_early)
                built = build_group(_group_name(names[0]), texts, request, use_cache=self.use_cache)
                return Stage(built.code, built.roles, built.kernel)

            try:
                if self.groups_faster and not first_of(
                    pipelines, lambda pipeline: is_faster(texts, self._request(pipeline, loads_early))
                ):
                    return None
                stage = first_of(pipelines, by)
            except StepladderError as error:
                if not self.groups_faster:
                    self.notes.append(f"{', '.join(names)} are a launch each: {error.message}")
            else:
                folder = self._groups[key] = f"kernels/{len(self.stages):02}-{_group_name(names[0])}"
                self.stages[folder] = stage
        group_name = self._groups[key]
        return None if group_name is None else (group_name, self.stages[group_name])

    def _together(self, key: tuple[tuple[str, ...], bool], names: Sequence[str]) -> tuple[str, Stage]:
        """Returns the folder of a group of elementwise ops and the group, compiled; arguments as of `group`."""
        name = _group_name(names[0])
        folder = self._groups[key] = f"kernels/{len(self.stages):02}-{name}"
        self.stages[folder] = self._plain(key[0], name, kind_named(names[0]))
        return folder, self.stages[folder]

    def _request(self, pipeline: str, loads_early: bool = False) -> Request:
        """Returns the request of a matmul's pipeline."""
        return of_matmuls(self.request, pipeline, self.target, loads_early=loads_early, in_function=True)

    def _matmul(self, text: str, name: str, loads_early: bool) -> Stage:
        def by(pipeline: str) -> builds.Build:
            request = with_exact_tf32(self._request(pipeline, loads_early), text, name)
            return builds.build(text, f"stage {name}", request, use_cache=self.use_cache)

        def is_pair() -> bool:
            payload = parse_payload(text, name)  # what `walk` returns does not keep it
            return sum(map(is_product, walk(payload))) == 2

        built = first_of(pipelines_for(self.request.pipeline, self.target, is_divisible=is_pair), by)
        matmul = built.run.matmul
        assert matmul is not None  # of every build
        roles = {number: ("a", "b") if role == "ab" else (operand_of(role),) for number, role in matmul.roles.items()}
        return Stage(built.bundle(name), roles, dumps=built.run.dumps())

    def _plain(self, texts: Sequence[str], name: str, kind: str) -> Stage:
        settings: dict[str, KnobValue] = {"target": self.target}
        if targets.find(self.target).compute_capability >= targets.HOPPER:
            settings[_DEPENDENT] = self.request.settings.get(_DEPENDENT, True)
        pipeline = kind if kind in _CHAINS else "elementwise"
        if pipeline in _CHAINS and _MATH in self.request.settings:
            settings[_MATH] = self.request.settings[_MATH]
        if pipeline == _ROWS:
            payload = parse_payload(texts[0], name)  # what `walk` returns does not keep it
            settings[_THREADS] = block_threads(walk(payload, "linalg.generic"))
        if pipeline == _ATTENTION:
            settings |= self._knobs_of_attention(texts[0], name)
        built = build_plain(name, texts, pipeline, settings, use_cache=self.use_cache)
        return Stage(built.code, built.roles, built.kernel)

    def _knobs_of_attention(self, text: str, name: str) -> dict[str, KnobValue]:
        """Returns the rows of a block and the splits of the kernel of an attention."""
        payload = parse_payload(text, name)  # what `walk` returns does not keep it
        attention = find_last(walk(payload, "func.func")[0].regions[0].blocks[0])
        on = gpu.find(self.request.gpu, self.target).gpu
        choice = attention_knobs.choose(attention, on, skips=self.request.settings.get(_MATH) != "libdevice")
        return {"rows": choice.rows, "splits": choice.splits}


def _group_name(first: str) -> str:
    """Returns the name of a group, by that of the first one's function."""
    kind = kind_named(first)
    prefix, _, number = first.rpartition(f"_{kind}_")
    return f"{prefix}_{'' if kind == 'matmul' else f'{kind}_'}group_{number}"


class Plan:
    """The buffers and calls of a function's last IR.

    Attributes:
        buffers: so far.
        calls: of kernels, in order.
        workspace: bytes.
    """

    def __init__(self, run: Run, selection: Selection, arguments: int) -> None:
        function = next(op for op in walk(run.module, "func.func") if not is_private(op))
        self.module = run.module
        self.block = function.regions[0].blocks[0]
        self.constants = selection.constants
        self.arguments = arguments
        self.buffers: list[bundle.FunctionBuffer] = []
        self._numbers: dict[bundle.FunctionBuffer, int] = {}
        self.calls = [op.operation for op in self.block.operations if op.operation.name == "func.call"]
        allocs = walk(function, "memref.alloc")
        self.planned = sum(math.prod(ir.MemRefType(op.results[0].type).shape) for op in allocs)
        self.workspace = self.planned
        for op in walk(function, "memref.copy"):
            raise StepladderError(
                "a copy between buffers is left between the kernels of the function",
                location=diagnostics.location_text(op.location),
            )
        self.aliases = {result: number for number, result in donated(function).items()}
        for argument in self.block.arguments:
            self._number(argument)

    def file_of(self, number: int) -> str:
        """Returns the file with the data of a constant.

        Args:
            number: of the argument that holds the constant.
        """
        return f"constants/argument{number}.bin"

    def launches(self, compiler: Compiler) -> Iterator[bundle.Launch]:
        """Yields the launches of all calls, in order: one for a group of matmuls that a pipeline makes one kernel of.

        Args:
            compiler: of the stages that are called.

        Raises:
            StepladderError: as `launch`.
        """
        stages = {symbol_of(op): op for op in walk(self.module, "func.func")}
        # Of the first kernel, the launcher does not know what precedes it, unless the caller promises.
        follows = compiler.request.constant_weights
        for group, calls in itertools.groupby(self.calls, lambda call: group_of(stages[callee_of(call)])):
            members = list(calls)
            names = [callee_of(call) for call in members]
            is_early = follows and all(map(self._has_given_weights, members))
            group_stage = compiler.group(names, is_early) if group is not None else None
            if group_stage is None:
                for call in members:
                    yield self.launch(call, compiler, follows and self._has_given_weights(call))
                    follows = True
                continue
            follows = True
            folder, stage = group_stage
            values = [operand for call in members for operand in call.operands]
            yield bundle.Launch(_group_name(names[0]), folder, self._operands(values, stage), stage.kernel)

    def launch(self, call: ir.Operation, compiler: Compiler, loads_early: bool = False) -> bundle.Launch:
        """Returns the launch of a call.

        Args:
            call: a `func.call` of an outlined function.
            compiler: of the stages that are called.
            loads_early: whether a matmul may be chosen to load its weights before it waits for the kernel before it.

        Raises:
            StepladderError: what the stage's pipelines refuse; names the kernel.
        """
        name = callee_of(call)
        try:
            folder, stage = compiler.stage(name, loads_early)
        except StepladderError as error:
            error.location = diagnostics.location_text(call.location) or error.location
            error.notes = (*error.notes, f"the refused kernel is @{name} after the step {OUTLINED}")
            raise
        operands = self._operands(list(call.operands), stage)
        if isinstance(stage.code, bundle.Bundle):
            operands |= self._workspaces(stage.code.manifest)
        return bundle.Launch(name, folder, operands, stage.kernel)

    def _has_given_weights(self, call: ir.Operation) -> bool:
        """Returns whether the largest operands of a kernel, which are the weights of a product of few rows, are
        arguments or constants: no kernel of the function writes them.
        """
        sizes = [math.prod(ir.MemRefType(operand.type).shape) for operand in call.operands]
        largest = [operand for operand, size in zip(call.operands, sizes) if size == max(sizes)]
        roots = [origin(operand, (*BUFFER_VIEWS, PART)) for operand in largest]
        return all(producer(root) is None and ir.BlockArgument(root).arg_number < self.arguments for root in roots)

    def _operands(self, values: Sequence[ir.Value], stage: Stage) -> dict[str, int]:
        """Returns the buffers that a stage is launched on, by role."""
        return {
            role: self._number(operand) for number, operand in enumerate(values) for role in stage.roles.get(number, ())
        }

    def _workspaces(self, manifest: bundle.Manifest) -> dict[str, int]:
        """Places the workspaces of a matmul after the buffers between kernels; all matmuls share the memory."""
        places = {}
        end = -(-self.planned // ALIGNMENT) * ALIGNMENT
        for role, item in zip(bundle.WORKSPACE_ROLES, manifest.workspaces):
            buffer = bundle.FunctionBuffer("workspace", 0, item.element_type, item.shape, end)
            places[role] = self._place(buffer)
            end = -(-(end + buffer.bytes) // ALIGNMENT) * ALIGNMENT
            self.workspace = max(self.workspace, buffer.offset + buffer.bytes)
        return places

    def _number(self, value: ir.Value) -> int:
        """Returns the index of the buffer of a value."""
        type_ = ir.MemRefType(value.type)
        element = name_of(type_.element_type)
        begin = begin_of_part(value, BUFFER_VIEWS)
        if begin is not None:
            number = ir.BlockArgument(origin(value, (*BUFFER_VIEWS, PART))).arg_number
            begin *= element_type(element).bytes
            return self._place(bundle.FunctionBuffer("part", number, element, tuple(type_.shape), begin))
        source = producer(value := origin(value, BUFFER_VIEWS))
        strides = None
        if source is not None and source.name == CAST:  # columns of a buffer
            strides = tuple(type_.get_strides_and_offset()[0])
            source = producer(source.operands[0])
        shape = tuple(ir.MemRefType(value.type).shape)
        if source is None:
            number = ir.BlockArgument(value).arg_number
            if number >= self.arguments:
                number -= self.arguments
                alias = self.aliases.get(number)
                return self._place(bundle.FunctionBuffer("result", number, element, shape, aliases=alias))
            if number in self.constants:
                return self._place(bundle.FunctionBuffer("constant", number, element, shape, data=self.file_of(number)))
            return self._place(bundle.FunctionBuffer("argument", number, element, shape))
        offset = producer(source.operands[1]) if source.name == "memref.view" else None
        if offset is None:
            raise StepladderError(
                f"'{source.name}' between the kernels of the function",
                location=diagnostics.location_text(source.location),
            )
        begin = ir.IntegerAttr(offset.attributes["value"]).value
        source_op = producer(source.operands[0])
        if source_op is not None and source_op.name == BYTES:
            number = ir.BlockArgument(source_op.operands[0]).arg_number - self.arguments
            return self._place(bundle.FunctionBuffer("result_part", number, element, shape, begin, strides=strides))
        return self._place(bundle.FunctionBuffer("workspace", 0, element, shape, begin, strides=strides))

    def _place(self, buffer: bundle.FunctionBuffer) -> int:
        assert element_type(buffer.element_type).bytes  # a type that buffers hold
        if buffer not in self._numbers:
            self._numbers[buffer] = len(self.buffers)
            self.buffers.append(buffer)
        return self._numbers[buffer]
