"""The bundle of a function with several kernels: its manifest, and the kernels in it.

BUNDLE/manifest.json    buffers, and the launches in order (`FunctionManifest`)
BUNDLE/reference.json   what the function computes
BUNDLE/kernels/NAME/    a kernel: of a matmul, a bundle of its own; of others, `kernel.cubin` and `kernel.ptx`
BUNDLE/constants/       content of constants
BUNDLE/ir/              the function after each step; the IR of a kernel is in its folder
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepladder.runtime.bundle.manifest import (
    NO_CLUSTER,
    WORKSPACE_ROLES,
    Argument,
    Bundle,
    TmaDescriptor,
    problem_json,
)
from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Problem
from stepladder.runtime.reference import Program

if TYPE_CHECKING:
    import numpy as np

SCHEMA_VERSION_FUNCTION = 3
# Of a function with a group of matmuls that are one launch, which came later.
SCHEMA_VERSION_GROUPS = 5
# Of a function with a kernel of no matmul that has dynamic shared memory, which came later.
SCHEMA_VERSION_DYNAMIC = 7
# Of a function with a result in the memory of an argument, which came later too.
SCHEMA_VERSION_ALIASES = 6
# Of a function with kernels that are launched on parts of arguments, which came later.
SCHEMA_VERSION_PARTS = 8
# Of a function with kernels that write parts of results, or of other buffers in the workspace, which came later.
SCHEMA_VERSION_PLACED = 9
# Of a function with kernels that write columns of such buffers, which came later.
SCHEMA_VERSION_PITCHED = 10
# Of a function with a kernel of no matmul whose blocks form clusters, which came later.
SCHEMA_VERSION_CLUSTERS = 11
# Of a function with tensors without elements, or without kernels, which came last.
SCHEMA_VERSION_EMPTY = 12
BUFFER_KINDS = ("argument", "result", "constant", "workspace", "part", "result_part")
# Bytes that the offset of a buffer in the workspace is a multiple of, if it is no part of another one.
ALIGNMENT = 256
# Bytes that the address of a matmul's operand is a multiple of; other kernels load vectors of up to as many.
VECTOR = 16


@dataclass(frozen=True)
class FunctionBuffer:
    """A row-major buffer in global memory that kernels of a function are launched on.

    Attributes:
        kind: `argument` or `result` of the function, `constant`, `workspace`: a part of the one workspace, or `part`:
            elements of an argument or a constant that follow each other; `result_part`: elements of a result.
        number: of the argument or result, also of a part; of constants, of the argument of the reference program that
            holds it.
        element_type: MLIR's name of the element type.
        shape: extents, outermost first.
        offset: bytes from the beginning of the workspace, or of what a part is of.
        data: for a constant, the file of the bundle with its content.
        aliases: for a result, the index of the argument whose memory it takes: kernels write only what differs.
        strides: of each axis, in elements, of columns of a larger buffer, which a kernel writes with its row pitch;
            None of elements that follow each other.
    """

    kind: str
    number: int
    element_type: str
    shape: tuple[int, ...]
    offset: int = 0
    data: str | None = None
    aliases: int | None = None
    strides: tuple[int, ...] | None = None

    @property
    def extents(self) -> tuple[int, ...]:
        """Those of the array that a kernel takes: of columns, all elements from the first to the last, as one axis."""
        if self.strides is None:
            return self.shape
        return (sum((size - 1) * stride for size, stride in zip(self.shape, self.strides)) + 1,)

    @property
    def bytes(self) -> int:
        """Its size; of columns, from the first element to the last."""
        return math.prod(self.extents) * element_type(self.element_type).bytes

    @property
    def name(self) -> str:
        """Its name in messages."""
        if self.kind == "workspace":
            return f"{self._type} at byte {self.offset} of the workspace"
        if self.kind == "part":
            return f"{self._type} at byte {self.offset} of argument {self.number}"
        if self.kind == "result_part":
            return f"{self._type} at byte {self.offset} of result {self.number}"
        return f"{self.kind} {self.number}"

    @property
    def _type(self) -> str:
        return f"{'x'.join(map(str, self.shape))}x{self.element_type}"

    @property
    def memory(self) -> tuple[str, int]:
        """The memory that it is in, from byte `offset` on: the workspace, or an argument or a result."""
        if self.kind == "workspace":
            return self.kind, 0
        return self.kind.replace("result_part", "result").replace("part", "argument"), self.number


def part_alignment(size: int, *, is_multiplied: bool) -> int:
    """Returns the bytes that the offset of a part of an argument is a multiple of.

    Args:
        size: bytes of the part.
        is_multiplied: whether a matmul reads it. Kernels of elements and rows load vectors that the extents of their
            operands are multiples of.
    """
    return VECTOR if is_multiplied else math.gcd(VECTOR, size)


@dataclass(frozen=True)
class PlainKernel:
    """A kernel that is no matmul, or that of a group of matmuls.

    Attributes:
        kernel_name: entry point in its cubin and its PTX.
        arguments: in the order of the kernel's parameters, pointers or TMA descriptors; their roles are `p0`, `p1` and
            so on.
        grid, block: extents x, y, z, in blocks and threads.
        static_shared_memory: bytes a block.
        registers: registers a thread.
        spills: bytes of spill `stores` and `loads` a thread.
        steps: names of the steps that made it, in order.
        flops: arithmetic operations of its products, such as those of an attention; 0 of a group.
        problems: of a group, what its matmuls compute.
        tma_descriptors, read_early: as those of a `Manifest`, of a group.
        cluster, dynamic_shared_memory, dependent_launch: as those of a `Manifest`.
    """

    kernel_name: str
    arguments: tuple[Argument, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    static_shared_memory: int
    registers: int
    spills: dict[str, int]
    steps: tuple[str, ...]
    flops: int = 0
    problems: tuple[Problem, ...] = ()
    tma_descriptors: tuple[TmaDescriptor, ...] = ()
    cluster: tuple[int, int, int] = NO_CLUSTER
    dynamic_shared_memory: int = 0
    dependent_launch: bool = False
    read_early: tuple[str, ...] = ()

    @property
    def waits_at_start(self) -> bool:
        """Whether it waits for the kernel before it first, and then lets the next one start: the kernel of no matmul
        that supports programmatic dependent launch."""
        return self.dependent_launch and not self.problems

    def to_json(self) -> dict[str, Any]:
        """Returns the kernel as JSON data; only that of a group has the fields of groups."""
        data = asdict(self)
        data["problems"] = [problem_json(problem) for problem in self.problems]
        if not self.problems:
            for name in ("problems", "tma_descriptors"):
                del data[name]
            if self.cluster == NO_CLUSTER:
                del data["cluster"]
            for name in ("dynamic_shared_memory", "dependent_launch"):
                if not data[name]:
                    del data[name]
        for name in ("flops", "read_early"):
            if not data[name]:
                del data[name]
        return data


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel.

    Attributes:
        stage: name of the function that became the kernel.
        folder: of the kernel, in the bundle; launches of equal kernels share it.
        operands: role of a kernel's argument -> index of the buffer.
        kernel: of an op that is no matmul, or of a group of matmuls; None for one matmul, whose folder has a manifest.
    """

    stage: str
    folder: str
    operands: dict[str, int]
    kernel: PlainKernel | None = None

    @property
    def written(self) -> list[int]:
        """Indices of the buffers that it writes."""
        if self.kernel is None:
            return [number for role, number in self.operands.items() if role[0] in "crw"]
        return [self.operands[item.role] for item in self.kernel.arguments if item.access != "read"]

    @property
    def grouped(self) -> tuple[Problem, ...]:
        """The problems of the matmuls of a group; empty for another launch."""
        return self.kernel.problems if self.kernel is not None else ()


def schema_version_of(launches: Sequence[Launch], buffers: Sequence[FunctionBuffer] = ()) -> int:
    """Returns the first version of the manifest that has what it describes.

    Args:
        launches, buffers: of the function.
    """
    plain = [launch.kernel for launch in launches if launch.kernel is not None and not launch.grouped]
    written = {number for launch in launches for number in launch.written}
    if not launches or any(0 in buffer.shape for buffer in buffers):
        return SCHEMA_VERSION_EMPTY
    if any(kernel.cluster != NO_CLUSTER for kernel in plain):
        return SCHEMA_VERSION_CLUSTERS
    if any(buffer.strides is not None for buffer in buffers):
        return SCHEMA_VERSION_PITCHED
    if any(
        buffer.kind == "result_part" or (buffer.kind == "workspace" and place not in written)
        for place, buffer in enumerate(buffers)
    ):
        return SCHEMA_VERSION_PLACED
    if any(buffer.kind == "part" for buffer in buffers):
        return SCHEMA_VERSION_PARTS
    if any(kernel.dynamic_shared_memory for kernel in plain):
        return SCHEMA_VERSION_DYNAMIC
    if any(buffer.aliases is not None for buffer in buffers):
        return SCHEMA_VERSION_ALIASES
    return SCHEMA_VERSION_GROUPS if any(launch.grouped for launch in launches) else SCHEMA_VERSION_FUNCTION


@dataclass(frozen=True)
class FunctionManifest:
    """The manifest of a function; the fields are those of `manifest.json`.

    Attributes:
        function: name of the payload's function.
        target: GPU architecture of the cubins.
        buffers: that kernels are launched on.
        launches: in order.
        workspace: bytes of the workspace, which the launcher allocates.
        other_functions: names of the other functions of the payload's module.
        steps: names of the steps that divided the function.
        tool_versions: version of every tool in the build.
        files: SHA-256 in hexadecimal by path relative to the bundle; filled in by `write_function`.
        schema_version: version of this layout.
    """

    function: str
    target: str
    buffers: tuple[FunctionBuffer, ...]
    launches: tuple[Launch, ...]
    workspace: int
    other_functions: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    tool_versions: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION_FUNCTION

    @property
    def aliases(self) -> dict[int, int]:
        """The positions in `buffers` of the arguments whose memory results take, by those of the results."""
        arguments = {buffer.number: place for place, buffer in self.of_kind("argument")}
        results = self.of_kind("result")
        return {place: arguments[item.aliases] for place, item in results if item.aliases is not None}

    @property
    def homes(self) -> dict[int, int]:
        """The positions in `buffers` of the arguments, constants and results that have parts, by those of the parts."""
        inputs = {item.number: place for kind in ("argument", "constant") for place, item in self.of_kind(kind)}
        results = {item.number: place for place, item in self.of_kind("result")}
        parts = {place: inputs[item.number] for place, item in self.of_kind("part")}
        return parts | {place: results[item.number] for place, item in self.of_kind("result_part")}

    def of_kind(self, kind: str) -> list[tuple[int, FunctionBuffer]]:
        """Returns the buffers of a kind with their positions in `buffers`, by their indices.

        Args:
            kind: one of `BUFFER_KINDS`.
        """
        numbered = [(place, buffer) for place, buffer in enumerate(self.buffers) if buffer.kind == kind]
        return sorted(numbered, key=lambda item: item[1].number)

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest as JSON data, the schema version first."""
        data = asdict(self)
        for launch, item in zip(self.launches, data["launches"]):
            item["kernel"] = None if launch.kernel is None else launch.kernel.to_json()
        for item in data["buffers"]:
            for name in ("aliases", "strides"):
                if item[name] is None:
                    del item[name]
        return {"schema_version": data.pop("schema_version"), **data}

    def describe(self) -> str:
        """Returns one line: kernels, arguments, workspace."""
        groups = [launch.grouped for launch in self.launches if launch.grouped]
        matmuls = sum(launch.kernel is None for launch in self.launches)
        others = len(self.launches) - matmuls - len(groups)
        group_sizes = f", groups of {', '.join(str(len(problems)) for problems in groups)} matmuls" if groups else ""
        return (
            f"@{self.function}: {matmuls} matmul{'s' * (matmuls != 1)} and {others} other kernel{'s' * (others != 1)}"
            f"{group_sizes}, {self.workspace} bytes of workspace"
        )


@dataclass(frozen=True)
class PlainCode:
    """Machine code of a kernel that is no matmul: cubin, PTX, and the IR after each step by file name."""

    cubin: bytes
    ptx: str
    ir: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FunctionBundle:
    """A function's bundle, read and verified, or built.

    Attributes:
        path: the folder.
        manifest: its manifest.
        kernels: by folder: bundles of matmuls, and the machine code of the others.
        reference: what the function computes.
        data: content of constants, by the files that buffers name.
    """

    path: Path
    manifest: FunctionManifest
    kernels: Mapping[str, Bundle | PlainCode]
    reference: Program
    data: Mapping[str, bytes] = field(default_factory=dict)

    def matmul(self, launch: Launch) -> Bundle:
        """Returns the bundle of a matmul's launch.

        Args:
            launch: of the manifest, of a matmul.
        """
        kernel = self.kernels[launch.folder]
        assert isinstance(kernel, Bundle)
        return kernel

    def plain(self, launch: Launch) -> PlainCode:
        """Returns the machine code of the launch of another kernel.

        Args:
            launch: of the manifest, of a kernel that is no matmul.
        """
        kernel = self.kernels[launch.folder]
        assert isinstance(kernel, PlainCode)
        return kernel

    def constant(self, buffer: FunctionBuffer) -> np.ndarray:
        """Returns the content of a constant.

        Args:
            buffer: of the kind `constant`.

        Returns:
            An array of the buffer's element type and shape, which cannot be written.
        """
        import numpy as np  # reading a manifest alone does without

        assert buffer.data is not None
        return np.frombuffer(self.data[buffer.data], element_type(buffer.element_type).dtype).reshape(buffer.shape)


def accesses(bundle: FunctionBundle, launch: Launch) -> dict[str, tuple[str, int, str]]:
    """Returns what a kernel takes: role -> element type, number of elements, and access.

    Args:
        bundle: which has the launch.
        launch: of a matmul or of another kernel.
    """
    if launch.kernel is not None:
        return {item.role: (item.element_type, math.prod(item.shape), item.access) for item in launch.kernel.arguments}
    manifest = bundle.matmul(launch).manifest
    operands = {}
    for role in (*manifest.problem.roles, *WORKSPACE_ROLES[: len(manifest.workspaces)]):
        operand = manifest.operand(role)
        access = "write" if role in WORKSPACE_ROLES else operand.access
        operands[role] = (operand.element_type, math.prod(operand.shape), access)
    return operands
