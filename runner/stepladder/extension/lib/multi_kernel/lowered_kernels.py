"""Launches of kernels that are lowered to the LLVM and NVVM dialects: their sizes, parameters and code."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant_value
from stepladder.extension.lib.dialect import Refusal
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, symbol_of, walk

SHARED = 3  # the address space of shared memory
# Attributes of a kernel that do not concern its blocks.
_OWN = ("sym_name", "function_type", "arg_attrs", "gpu.known_grid_size")
Extents = tuple[int, int, int]


def is_shared(global_: ir.Operation) -> bool:
    """Returns whether a global is in the shared memory of a block.

    Args:
        global_: an `llvm.mlir.global`.
    """
    attributes = global_.attributes
    return "addr_space" in attributes and ir.IntegerAttr(attributes["addr_space"]).value == SHARED


@dataclass(frozen=True)
class Code:
    """A lowered kernel.

    Attributes:
        kernel: the `llvm.func`.
        holder: the `gpu.module` that it is in, with the globals and declarations that it uses.
    """

    kernel: ir.Operation
    holder: ir.Operation

    @property
    def others(self) -> list[ir.Operation]:
        """The other ops of the module: globals and functions."""
        return [op.operation for op in self.holder.regions[0].blocks[0].operations if op.operation != self.kernel]

    @property
    def has_memory(self) -> bool:
        """Whether the kernel has variables in global memory, such as counters."""
        return any(
            op.name == "llvm.mlir.global" and not is_shared(op) and "constant" not in op.attributes
            for op in self.others
        )

    @property
    def targets(self) -> str:
        """The targets that the module is compiled for."""
        return str(self.holder.attributes["targets"]) if "targets" in self.holder.attributes else "none"

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of the kernel, without those that are its own."""
        return {name: str(item) for name, item in attributes_of(self.kernel).items() if name not in _OWN}


@dataclass(frozen=True)
class Launch:
    """A launch of a lowered kernel.

    Attributes:
        op: the `gpu.launch_func`.
        code: what it launches.
        grid, block, cluster: extents x, y, z, in blocks, threads and blocks.
        shared_memory: dynamic, in bytes.
        arguments: values of the kernel's parameters.
    """

    op: ir.Operation
    code: Code
    grid: Extents
    block: Extents
    cluster: Extents
    shared_memory: int
    arguments: tuple[ir.Value, ...]


def launches_of(payload: ir.Operation) -> list[Launch]:
    """Returns the launches below an op, in order.

    Args:
        payload: a module with one function that launches kernels.

    Raises:
        Refusal: launches of several functions, asynchronous ones, sizes that are not constant, and kernels that are
            not lowered.
    """
    ops = walk(payload, "gpu.launch_func")
    for op in ops:
        if op.parent != ops[0].parent or op.block != ops[0].block:
            raise Refusal(op, "launches in several functions or regions; accepted: those of one function's block")
    return [_launch(op, payload) for op in ops]


def _launch(op: ir.Operation, payload: ir.Operation) -> Launch:
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    starts = [sum(segments[:number]) for number in range(len(segments) + 1)]
    values = list(op.operands)

    def segment(number: int) -> list[ir.Value]:
        return values[starts[number] : starts[number + 1]]

    if segments[0] or segments[12]:
        raise Refusal(op, "an asynchronous launch; accepted: launches that follow each other")

    def size(number: int, default: int = 1) -> int:
        constant = constant_value(segment(number)[0]) if segment(number) else default
        if constant is None:
            raise Refusal(op, "the sizes of the launch are not constant")
        return constant

    grid, block, cluster = ((size(first), size(first + 1), size(first + 2)) for first in (1, 4, 7))
    return Launch(op, _code(op, payload), grid, block, cluster, size(10, 0), tuple(segment(11)))


def _code(op: ir.Operation, payload: ir.Operation) -> Code:
    """Returns the kernel of a launch."""
    *_, holder, name = ir.SymbolRefAttr(op.attributes["kernel"]).value
    for module in walk(payload, "gpu.module"):
        if symbol_of(module) == holder:
            for kernel in walk(module, "llvm.func"):
                if symbol_of(kernel) == name:
                    return Code(kernel, module)
    raise Refusal(op, f"kernel @{holder}::@{name} is not lowered to the LLVM dialect")
