"""Sums of integers with a carry (`add.cc`, `addc`, `mad.lo.cc`); each thread has one bit for it (CC.CF).

The PTX ISA says that `sub.cc` writes a borrow. ptxas uses one bit for both, the carry, which is the complement of the
borrow; nvcc's division of 128 bits reads the result of `sub.cc` by `addc`.
Source: PTX ISA, "Extended-Precision Integer Arithmetic Instructions", and the code that ptxas makes for sm_90.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_WIDTHS = (32, 64)
_KEY = "carries of PTX"


@instruction("addc", "subc", "madc", is_pure=True)
def with_carry(site: Site) -> None:
    """A sum, a difference or a product and a sum, with the carry of the instruction before."""
    emit(site, site.type("su", _WIDTHS))


def emit(site: Site, type_: PtxType) -> None:
    """Emits a sum, a difference, or half a product and a sum, modulo 2^32 or 2^64.

    Args:
        site: of the family `add`, `sub` or `mad`, or of one of these with a `c`, which reads the carry; the modifier
            `cc`, where it is there, writes it.
        type_: of the operands.

    Raises:
        StepladderError: `mad` without `.lo` and `.hi`.
    """
    kind, reads = site.family.removesuffix("c"), site.family.endswith("c")
    writes = site.flag("cc")
    bits = type_.bits
    is_high = kind == "mad" and site.choice(("lo", "hi")) == "hi"
    # Of 64 bits, Python's integers represent products and sums.
    wide = object if bits == 64 else np.uint64 if type_.kind == "u" else np.int64
    count = 3 if kind == "mad" else 2
    site.count(1 + count)

    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        carries = fiber.group.state.setdefault(_KEY, np.zeros(fiber.count, np.int64))
        carry = carries.astype(object if bits == 64 else np.int64) if reads else 0
        first, second, *more = (np.asarray(types.number(value, type_)) for value in operands)
        if kind == "mad":
            first, second = first.astype(wide), second.astype(wide)
            product = first * second >> bits if is_high else first * second
            total = _bits(product, bits) + _bits(more[0], bits) + carry
        else:
            # The hardware subtracts by adding the complement: the carry is set where there is no borrow.
            second = _bits(~second if kind == "sub" else second, bits)
            total = _bits(first, bits) + second + (carry if reads else kind == "sub")
        if writes:
            out = np.asarray(total >= 1 << bits, bool)
            carries[fiber.lanes] = np.broadcast_to(out, fiber.count)[fiber.lanes]
        if bits == 64 and np.ndim(total):
            total = (total & (1 << bits) - 1).astype(np.uint64).view(np.int64)
        return types.stored(types.plain(total), bits)

    site.emit(execute, [site.read(1 + number, type_) for number in range(count)], [site.write(0, bits)])


def _bits(number: np.ndarray, bits: int) -> np.ndarray:
    """Returns the lower bits of values as unsigned ones, of a type that represents sums of them."""
    return np.asarray(number).astype(object if bits == 64 else np.int64) & (1 << bits) - 1
