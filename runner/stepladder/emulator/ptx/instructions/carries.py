"""Sums of 32-bit integers with a carry, which each thread has one bit for (CC.CF): `add.cc`, `addc`, `mad.lo.cc`.

Source: PTX ISA, "Extended-Precision Integer Arithmetic Instructions".
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

_BITS = 32
_KEY = "carries of PTX"


@instruction("addc", "subc", "madc", is_pure=True)
def with_carry(site: Site) -> None:
    """A sum, a difference or a product and a sum, with the carry or the borrow of the instruction before."""
    emit(site, site.type("su", (_BITS,)))


def emit(site: Site, type_: PtxType) -> None:
    """Emits a sum, a difference, or half a product and a sum, modulo 2^32.

    Args:
        site: of the family `add`, `sub` or `mad`, or of one of these with a `c`, which reads the carry; the modifier
            `cc`, where it is there, writes it.
        type_: of the operands.

    Raises:
        StepladderError: another type than one of 32 bits, or `mad` without `.lo` and `.hi`.
    """
    kind, reads = site.family.removesuffix("c"), site.family.endswith("c")
    writes = site.flag("cc")
    if type_.kind not in "su" or type_.bits != _BITS:
        raise site.error("with these types")
    is_high = kind == "mad" and site.choice(("lo", "hi")) == "hi"
    wide = np.uint64 if type_.kind == "u" else np.int64
    count = 3 if kind == "mad" else 2
    site.count(1 + count)

    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        carries = fiber.group.state.setdefault(_KEY, np.zeros(fiber.count, np.int64))
        carry = carries if reads else 0
        first, second, *more = (np.asarray(types.number(value, type_)) for value in operands)
        if kind == "mad":
            first, second = first.astype(wide), second.astype(wide)
            total = _bits(first * second >> _BITS if is_high else first * second) + _bits(more[0]) + carry
        else:
            total = _bits(first) + (_bits(second) + carry) * (-1 if kind == "sub" else 1)
        if writes:
            out = (total < 0) | (total >= 1 << _BITS)
            carries[fiber.lanes] = np.broadcast_to(out, fiber.count)[fiber.lanes]
        return types.stored(types.plain(total), _BITS)

    site.emit(execute, [site.read(1 + number, type_) for number in range(count)], [site.write(0, _BITS)])


def _bits(number: np.ndarray) -> np.ndarray:
    """Returns the lower bits of numbers as unsigned ones, with room for sums of them."""
    return number.astype(np.int64) & (1 << _BITS) - 1
