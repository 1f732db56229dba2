"""Functions of C's library, and of MLIR's, that hosts call after finalize-memref-to-llvm: memory, copies and prints."""

from __future__ import annotations

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.host import array_of, brings, say, unranked_at
from stepladder.emulator.core.printing import formatted, variadic
from stepladder.emulator.core.program import Instruction
from stepladder.emulator.core.types import Scalar
from stepladder.emulator.core.values import Value
from stepladder.emulator.memory import initialized, memory, pointers


@brings("malloc")
def allocate(fiber: Fiber, op: Instruction, size: Value) -> int:
    """Returns the address of new memory."""
    place = fiber.group.machine.heap.allocate(int(size))
    initialized.begin(place)
    return place.address


@brings("aligned_alloc")
def allocate_aligned(fiber: Fiber, op: Instruction, alignment: Value, size: Value) -> int:
    """Returns the address of new memory; all memory is aligned to more than programs ask for."""
    return allocate(fiber, op, size)


@brings("free")
def free(fiber: Fiber, op: Instruction, address: Value) -> None:
    """Frees memory; a later access is a finding. A null pointer frees nothing."""
    machine = fiber.group.machine
    if not address:
        return
    place = machine.heap.find(int(address))
    if place is None or place.address != address:
        fiber.group.sanitizer.report("out-of-bounds", f"frees {int(address):#x}, where no memory begins", op)
    else:
        machine.free(op, place)


@brings("memrefCopy")
def copy_memref(fiber: Fiber, op: Instruction, size: Value, source: Value, target: Value) -> None:
    """Copies the elements of a memref, given the addresses of unranked descriptors."""
    element = Scalar(f"i{8 * int(size)}", np.dtype(f"V{int(size)}"), 8 * int(size))
    given, taken = (unranked_at(fiber, op, int(address), element) for address in (source, target))
    array = array_of(fiber, op, given)
    memory.write(fiber, op, taken, np.ix_(*map(np.arange, array.shape)), array, array.shape)


@brings("printf")
def printf(fiber: Fiber, op: Instruction, form: Value, *arguments: Value) -> int:
    """Prints, and returns the number of characters."""
    specifiers = pointers.text_at(fiber, op, int(form))
    columns = [
        (pointers.text_at(fiber, op, int(value)) if letter == "s" else value, bits)
        for value, (_, bits, letter) in zip(arguments, variadic(specifiers))
    ]
    text = formatted(specifiers, columns)
    say(fiber, text)
    return len(text)


@brings("printString")
def print_string(fiber: Fiber, op: Instruction, address: Value) -> None:
    """Prints a text."""
    say(fiber, pointers.text_at(fiber, op, int(address)))
