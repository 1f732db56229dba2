"""The manifest of a bundle: its fields.

`writing` and `reading` write and read bundles; the docstring of the package describes the folder.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepladder.runtime.element_types import element_type
from stepladder.runtime.problem import Operand, Problem, epilogue_role, result_role
from stepladder.runtime.reference import REFERENCE, Program, matmul_program

if TYPE_CHECKING:
    import numpy as np

SCHEMA_VERSION = 1
# Of a bundle with several kernels: those before that of the matmul, and the workspaces that they write, came later.
SCHEMA_VERSION_SEVERAL = 2
# Of a kernel that takes scalars by value, or operands that are parts of buffers, which came later too; 3 is that of a
# function with several matmuls.
SCHEMA_VERSION_VALUES = 4
MANIFEST = "manifest.json"
CUBIN = "kernel.cubin"
PTX = "kernel.ptx"
SPIRV = "kernel.spv"
SPIRV_FORMAT = "spirv"  # of a manifest of a kernel for Intel's GPUs (`bundle.spirv`)

# The cluster of a kernel whose blocks form none.
NO_CLUSTER = (1, 1, 1)

# Operands of the matmul, which every kernel has, and of the elementwise ops before and after it.
MATMUL_ROLES = ("a", "b", "c")
EPILOGUE_ROLES = tuple(epilogue_role(number) for number in range(8))
# Results beside C.
RESULT_ROLES = tuple(result_role(number) for number in range(3))
ROLES = MATMUL_ROLES + EPILOGUE_ROLES + RESULT_ROLES
# Buffers that a launcher allocates: one kernel writes them, and a later one reads them.
WORKSPACE_ROLES = tuple(f"w{number}" for number in range(6))
ACCESSES = ("read", "write", "readwrite")
LAYOUTS = ("row", "column")
INTERLEAVES = ("none", "16b", "32b")
SWIZZLES = ("none", "32b", "64b", "128b")
L2_PROMOTIONS = ("none", "64b", "128b", "256b")
OOB_FILLS = ("zero", "nan")

# Limits of a TMA descriptor.
TMA_DIMENSIONS = 5


def problem_json(problem: Problem) -> dict[str, Any]:
    """Returns a problem as JSON data.

    Args:
        problem: of a matmul; fields that have no value and came later are left out.
    """
    data = asdict(problem)
    # Came later: only problems that have them say so.
    for name in ("consumers", "epilogue_operands", "results", "producers", "a_source", "b_source"):
        if not data[name]:
            del data[name]
    if not data["fits_tf32"]:
        del data["fits_tf32"]
    if data["second_b"] is None:
        del data["second_b"]
    for name in ("a_window", "b_window", "c_window"):
        if data[name] is None:
            del data[name]
        elif not data[name]["batch"]:
            del data[name]["batch"]
    for operand in (*data.get("epilogue_operands", ()), data.get("a_source"), data.get("b_source")):
        _drop_unused(operand)
    return data


def _drop_unused(data: dict[str, Any] | None) -> None:
    """Leaves the field `by_value`, which came later, out of JSON data of what is no scalar."""
    if data is not None and not data["by_value"]:
        del data["by_value"]


@dataclass(frozen=True)
class Argument:
    """One kernel parameter: a bare pointer or a TMA descriptor, for a row-major buffer in global memory, or a scalar.

    Attributes:
        name: the parameter's name, for messages.
        role: which operand it is: `a`, `b` or `c` of the matmul (`a` where A and B are one buffer), `d0` to `d7` of the
            elementwise ops before and after it and the B of a second product, `r0` to `r2` of results beside C, `w0` to
            `w5` of the workspaces.
        element_type: MLIR's name of the element type.
        shape: extents of the buffer, outermost first; a column-major operand is a row-major buffer of its transpose, so
            that a column-major A (m x k) has the shape (k, m).
        access: `read`, `write` or `readwrite`.
        descriptor: None for a pointer; else the index in `Manifest.tma_descriptors` of the descriptor that the kernel
            takes by value (128 bytes, 64-byte aligned, `__grid_constant__`).
        data: for a constant of the payload, the file of the bundle with the buffer's content; else None.
        by_value: whether the kernel takes a number of the element type itself, and no buffer; `shape` is empty.
    """

    name: str
    role: str
    element_type: str
    shape: tuple[int, ...]
    access: str
    descriptor: int | None = None
    data: str | None = None
    by_value: bool = False


@dataclass(frozen=True)
class TmaDescriptor:
    """A TMA descriptor of a buffer: the parameters of cuTensorMapEncodeTiled, except the base address.

    Dimensions are listed outermost first, as in MLIR; the driver wants the innermost first.

    Attributes:
        role: whose buffer has the base address: `a`, `b`, `c`, the B of a second product, a result beside C, or
            a workspace.
        element_type: MLIR's name of the element type.
        shape: extents of the tensor in global memory, in elements; 1 to 5 of them.
        strides: bytes from one index to the next, of every dimension but the innermost, which is contiguous.
        box: extents of what one copy moves, in elements.
        element_strides: step within the box of every dimension, in elements: always 1.
        interleave: `none`, `16b` or `32b`.
        swizzle: span of the permutation of 16-byte chunks in shared memory: `none`, `32b`, `64b` or `128b`.
        l2_promotion: size of what is fetched into the L2 cache: `none`, `64b`, `128b` or `256b`.
        oob_fill: what is read outside of the tensor: `zero` or `nan`.
        offset: bytes from the beginning of the buffer to the base address.
    """

    role: str
    element_type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: str = "none"
    swizzle: str = "none"
    l2_promotion: str = "none"
    oob_fill: str = "zero"
    offset: int = 0

    @property
    def end(self) -> int:
        """Bytes from the beginning of the buffer to the end of the tensor."""
        element = element_type(self.element_type).bytes
        strides = (*self.strides, element)
        return self.offset + sum((extent - 1) * stride for extent, stride in zip(self.shape, strides)) + element


@dataclass(frozen=True)
class Workspace:
    """A row-major buffer in global memory that the launcher allocates once, for `w0` and so on, by index.

    Attributes:
        element_type: MLIR's name of the element type.
        shape: extents, outermost first.
    """

    element_type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class FrontKernel:
    """A kernel that is launched before that of the matmul, whose operands it prepares in a workspace.

    Attributes:
        kernel_name: entry point in its cubin and its PTX.
        cubin, ptx: files of the bundle.
        arguments: in the order of the kernel's parameters, all of them pointers.
        grid, block: extents x, y, z, in blocks and threads.
        static_shared_memory: bytes a block.
        registers: registers a thread.
        spills: bytes of spill `stores` and `loads` a thread.
    """

    kernel_name: str
    cubin: str
    ptx: str
    arguments: tuple[Argument, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    static_shared_memory: int
    registers: int
    spills: dict[str, int]


@dataclass(frozen=True)
class Manifest:
    """The manifest of a kernel; the fields are those of `manifest.json`.

    Attributes:
        kernel_name: entry point in the cubin and the PTX.
        target: GPU architecture of the cubin, for example `sm_90a`.
        arguments: in the order of the kernel's parameters.
        problem: what the kernel computes.
        grid, block, cluster: extents x, y, z, in blocks, threads and blocks; the cluster is compiled into the kernel.
        static_shared_memory, dynamic_shared_memory: bytes a block.
        registers: registers a thread.
        spills: bytes of spill `stores` and `loads` a thread.
        pipeline: name of the pipeline.
        steps: names of the steps that ran, in order.
        without: names of the steps left out.
        knobs: value of every knob.
        tool_versions: version of every tool in the build.
        files: SHA-256 in hexadecimal by path relative to the bundle; filled in by `write_bundle`.
        tma_descriptors: the TMA descriptors that arguments refer to.
        dependent_launch: whether the kernel begins by waiting for the one before it (`griddepcontrol.wait`), so that it
            may be started while that one ends (programmatic dependent launch), whatever that one writes.
        read_early: roles of arguments that the kernel reads before it waits for the kernel before it: it may be started
            while that one ends where no kernel that may still run writes them. `dependent_launch` is then false.
        function: name of the payload's function that was compiled.
        other_functions: names of the others in its module, which is `ir/00-input.mlir`.
        front: kernels that are launched before this one, in order, each time.
        workspaces: buffers that they write, by index.
        schema_version: version of this layout.
    """

    kernel_name: str
    target: str
    arguments: tuple[Argument, ...]
    problem: Problem
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    static_shared_memory: int
    dynamic_shared_memory: int
    registers: int
    spills: dict[str, int]
    pipeline: str
    steps: tuple[str, ...]
    without: tuple[str, ...] = ()
    knobs: dict[str, Any] = field(default_factory=dict)
    tool_versions: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    tma_descriptors: tuple[TmaDescriptor, ...] = ()
    cluster: tuple[int, int, int] = NO_CLUSTER
    dependent_launch: bool = False
    read_early: tuple[str, ...] = ()
    function: str = ""
    other_functions: tuple[str, ...] = ()
    front: tuple[FrontKernel, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def overlaps(self, *, keeps_early: bool) -> bool:
        """Returns whether the kernel may be started while the kernel before it ends.

        Args:
            keeps_early: whether no kernel that may still run writes what this one reads early (`read_early`).
        """
        return self.dependent_launch or (bool(self.read_early) and keeps_early)

    @property
    def all_arguments(self) -> tuple[Argument, ...]:
        """Arguments of all kernels, in the order of their launches."""
        return (*(argument for kernel in self.front for argument in kernel.arguments), *self.arguments)

    def operand(self, role: str) -> Operand:
        """Returns the operand or the workspace of a role, as the kernel of the matmul accesses it.

        Args:
            role: of the problem, or of a workspace.
        """
        if role in WORKSPACE_ROLES:
            workspace = self.workspaces[WORKSPACE_ROLES.index(role)]
            return Operand(workspace.element_type, workspace.shape, "read")
        return self.problem.operand(role)

    @property
    def operands(self) -> tuple[Argument, ...]:
        """The arguments of all kernels that are the caller's, one for each role: all but workspaces."""
        arguments = [*(argument for item in self.front for argument in item.arguments), *self.arguments]
        return tuple({item.role: item for item in arguments if item.role not in WORKSPACE_ROLES}.values())

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest as JSON data, the schema version first."""
        data = asdict(self)
        data["problem"] = problem_json(self.problem)
        for descriptor in data["tma_descriptors"]:
            if not descriptor["offset"]:
                del descriptor["offset"]
        for argument in (*data["arguments"], *(item for kernel in data["front"] for item in kernel["arguments"])):
            _drop_unused(argument)
        for name in ("front", "workspaces", "read_early"):  # likewise
            if not data[name]:
                del data[name]
        return {"schema_version": data.pop("schema_version"), **data}


@dataclass(frozen=True)
class Bundle:
    """A bundle read and verified.

    Attributes:
        path: the folder.
        manifest: its manifest.
        cubin: content of `kernel.cubin`.
        ptx: content of `kernel.ptx`.
        reference: what the payload computes; None for a bundle without `reference.json`.
        data: content of the files that arguments name as their data.
        front: cubin and PTX of the kernels of `manifest.front`.
    """

    path: Path
    manifest: Manifest
    cubin: bytes
    ptx: str
    reference: Program | None = None
    data: Mapping[str, bytes] = field(default_factory=dict)
    front: tuple[tuple[bytes, str], ...] = ()

    def constants(self) -> dict[str, np.ndarray]:
        """Returns the buffers that are constants of the payload, by role, of their storage types and shapes."""
        import numpy as np  # what writes bundles and reads manifests alone does without

        return {
            item.role: np.frombuffer(self.data[item.data], element_type(item.element_type).dtype).reshape(item.shape)
            for item in self.manifest.all_arguments
            if item.data is not None
        }

    def expected(self) -> Program:
        """Returns what the kernel must compute: the payload, or the manifest's problem where the bundle has no
        reference program, which a note on standard error states."""
        if self.reference is not None:
            return self.reference
        print(
            f"note: '{self.path}' has no {REFERENCE}: the expected numbers are those of the problem in its {MANIFEST}",
            file=sys.stderr,
        )
        return matmul_program(self.manifest.problem)
