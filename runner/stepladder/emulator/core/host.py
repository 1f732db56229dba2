"""Functions that programs declare and MLIR's runner libraries define: the emulator's implementations.

A function registers under the names of its declarations (`@brings("printMemrefF32")`). It is called like a function
that executes an op: with the fiber, the instruction, and the values of the operands.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from stepladder.emulator.core.elements import unsigned
from stepladder.emulator.core.fibers import Fiber, Stopped, Unsupported
from stepladder.emulator.core.printing import memref_data, memref_head, number_text
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.types import INDEX, Scalar
from stepladder.emulator.core.values import MemRef, Value
from stepladder.emulator.memory import memory, pointers

FUNCTIONS: dict[str, Callable] = {}

# Relative errors that `verifyMemRef` takes as equal, by element type.
_CLOSE = {"f32": 1e-6, "f64": 1e-12}
# The elements of a memref that a function takes, by the end of its name.
_ELEMENTS = {
    **{f"I{width}": Scalar(f"i{width}", np.dtype(f"i{width // 8}"), width) for width in (8, 16, 32, 64)},
    "F16": Scalar("f16", np.dtype(np.float16), 16),
    "BF16": Scalar("bf16", np.dtype(ml_dtypes.bfloat16), 16),
    "F32": Scalar("f32", np.dtype(np.float32), 32),
    "F64": Scalar("f64", np.dtype(np.float64), 64),
    "Ind": INDEX,
    "C32": Scalar("complex<f32>", np.dtype(np.complex64), 64),
    "C64": Scalar("complex<f64>", np.dtype(np.complex128), 128),
}
_WORD = Scalar("i64", np.dtype(np.int64), 64)


def brings(*names: str) -> Callable[[Callable], Callable]:
    """Registers the implementation of the functions with these names, and of their C interface wrappers.

    Args:
        names: of functions, without the prefix `_mlir_ciface_`.

    Returns:
        A decorator of a function of the fiber, the call and its operands, which returns the function.
    """

    def decorator(function: Callable) -> Callable:
        for name in names:
            FUNCTIONS[name] = FUNCTIONS[f"_mlir_ciface_{name}"] = function
        return function

    return decorator


def say(fiber: Fiber, text: str) -> None:
    """Appends a text to the output of the program.

    Args:
        fiber: of the host or of threads.
        text: with line ends.
    """
    fiber.group.machine.output.append(text)


def array_of(fiber: Fiber, op: Instruction, value: Value) -> np.ndarray:
    """Returns the elements of a memref or a tensor as an array.

    Args:
        fiber: that reads them; sizes are those of its first active lane.
        op: the instruction that reads, for findings.
        value: a memref, or an array of the tensor's elements.
    """
    if not isinstance(value, MemRef):
        return np.asarray(value)
    shape = tuple(int(fiber.first(size)) for size in value.sizes)
    places = np.ix_(*(np.arange(size) for size in shape))
    return np.asarray(memory.read(fiber, op, value, places, shape))


def _head(fiber: Fiber, value: Value) -> str:
    if isinstance(value, MemRef):
        numbers = [int(fiber.first(number)) for number in (value.offset, *value.sizes, *value.strides)]
        rank = value.rank
        return memref_head(value.memory.address + value.start, numbers[0], numbers[1 : 1 + rank], numbers[1 + rank :])
    value = np.asarray(value)
    strides = [int(np.prod(value.shape[axis + 1 :], dtype=int)) for axis in range(value.ndim)]
    return memref_head(0, 0, value.shape, strides)


def _element(op: Instruction, value: Value) -> Scalar:
    type_ = op.operand_types[0]
    return value.element if isinstance(value, MemRef) else type_.element


def _text_of(element: Scalar) -> Callable:
    if element == INDEX:
        return lambda number: str(int(unsigned(int(number), 64)))
    if element.width == 8 and not element.is_float:
        return lambda number: chr(int(number) & 0xFF)  # as C++ prints an int8_t
    return lambda number: number_text(number, element)


@brings(*(f"printMemref{suffix}" for suffix in _ELEMENTS))
def print_memref(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Prints a memref and its elements."""
    (value,) = _memrefs(fiber, op, operands)
    say(fiber, _head(fiber, value) + " data = \n")
    say(fiber, memref_data(array_of(fiber, op, value), _text_of(_element(op, value))) + "\n")


@brings(*(f"printMemrefShape{suffix}" for suffix in _ELEMENTS))
def print_memref_shape(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Prints the description of a memref, without its elements."""
    (value,) = _memrefs(fiber, op, operands)
    say(fiber, _head(fiber, value) + "\n")


def _memrefs(fiber: Fiber, op: Instruction, operands: Sequence[Value]) -> Sequence[Value]:
    """Returns the memrefs or tensors that a function of the runner libraries is called with.

    A lowered host passes a rank and the address of a descriptor for each, or the address of both.
    """
    if all(isinstance(operand, (MemRef, np.ndarray, np.generic)) for operand in operands):
        return operands
    element = _ELEMENTS[re.sub(".*(?:print|verify)Mem[rR]ef(?:Shape)?", "", op.attributes["callee"])]
    if "_mlir_ciface_" in op.attributes["callee"]:
        return [unranked_at(fiber, op, int(address), element) for address in operands]
    pairs = zip(operands[::2], operands[1::2])
    return [ranked_at(fiber, op, int(rank), int(address), element) for rank, address in pairs]


def unranked_at(fiber: Fiber, op: Instruction, address: int, element: Scalar) -> MemRef:
    """Returns the memref that an unranked descriptor describes.

    Args:
        fiber: of the host.
        op: the instruction that reads it.
        address: of the rank, and the address of the ranked descriptor after it.
        element: type of an element.
    """
    rank, descriptor = np.ravel(pointers.read(fiber, op, address, _WORD, (2,)))
    return ranked_at(fiber, op, int(rank), int(descriptor), element)


def ranked_at(fiber: Fiber, op: Instruction, rank: int, address: int, element: Scalar) -> MemRef:
    """Returns the memref that a descriptor describes.

    Args:
        fiber: of the host.
        op: the instruction that reads it.
        rank: of the memref.
        address: of the descriptor: two pointers, the offset, the sizes and the strides.
        element: type of an element.
    """
    _, start, offset, *numbers = (
        int(word) for word in np.ravel(pointers.read(fiber, op, address, _WORD, (3 + 2 * rank,)))
    )
    return pointers.view_at(fiber, op, start, element, offset, numbers[:rank], numbers[rank:])


@brings(*(f"verifyMemRef{suffix}" for suffix in _ELEMENTS))
def verify_memref(fiber: Fiber, op: Instruction, *operands: Value) -> int:
    """Returns how many elements of two memrefs differ, -1 where their shapes do."""
    actual, expected = _memrefs(fiber, op, operands)
    left, right = array_of(fiber, op, actual), array_of(fiber, op, expected)
    if left.shape != right.shape:
        return -1
    relative = _CLOSE.get(_element(op, actual).name)
    with np.errstate(all="ignore"):
        is_equal = (
            left == right
            if relative is None
            else np.isfinite(left) & np.isfinite(right) & (np.abs(left - right) <= relative * np.abs(right))
        )
    return int((~is_equal).sum())


@brings("printI64", "printU64", "printF16", "printBF16", "printF32", "printF64")
def print_number(fiber: Fiber, op: Instruction, value: Value) -> None:
    """Prints a scalar."""
    element = op.operand_types[0]
    is_unsigned = op.attributes["callee"].endswith("U64")
    say(fiber, str(int(unsigned(int(value), element.width))) if is_unsigned else number_text(value, element))


for _name, _text in {"printOpen": "( ", "printClose": " )", "printComma": ", ", "printNewline": "\n"}.items():
    brings(_name)(lambda fiber, op, text=_text: say(fiber, text))


@brings("nanoTime")
def nano_time(fiber: Fiber, op: Instruction) -> int:
    """Returns the time in nanoseconds."""
    return time.time_ns()


@brings("rtclock")
def clock(fiber: Fiber, op: Instruction) -> np.float64:
    """Returns the time in seconds."""
    return np.float64(time.time())


@brings("printFlops")
def print_flops(fiber: Fiber, op: Instruction, value: Value) -> None:
    """Prints a speed; the library does so on standard error."""


@brings("abort")
def abort(fiber: Fiber, op: Instruction) -> None:
    """Ends the program."""
    fiber.group.machine.stopped = True
    raise Stopped


@brings(
    *(f"fillResource{rank}D{type_}" for rank in (1, 2, 3) for type_ in ("Float", "Int", "Int8")),
    *(f"fillF32Buffer{rank}D" for rank in (1, 2, 3)),
    "fillI32Buffer",
)
def fill(fiber: Fiber, op: Instruction, target: Value, number: Value) -> None:
    """Writes a number to all elements of a memref, as the libraries for Vulkan and for SPIR-V on CPUs do."""
    if not isinstance(target, MemRef):
        raise Unsupported(op, "of a descriptor in memory: expected a memref, as before finalize-memref-to-llvm")
    shape = tuple(int(fiber.first(size)) for size in target.sizes)
    places = np.ix_(*(np.arange(size) for size in shape))
    memory.write(fiber, op, target, places, np.full(shape, number, target.element.dtype), shape)


@brings("mgpuMemGetDeviceMemRef1dFloat", "mgpuMemGetDeviceMemRef1dInt32")
def device_memref(fiber: Fiber, op: Instruction, value: Value) -> Value:
    """Returns the memref by which kernels access memory of the host: there is one address for each place."""
    return value


@brings("mgpuMemHostRegisterFloat", "mgpuMemHostRegisterInt32")
def register_memory(fiber: Fiber, op: Instruction, *operands: Value) -> None:
    """Lets kernels access memory of the host, as they may."""
