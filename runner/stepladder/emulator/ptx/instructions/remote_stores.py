"""Asynchronous stores and updates of the shared memory of a cluster.

Source: PTX ISA, "st.async" and "red.async".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.hardware import remote_stores
from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.instructions import addresses
from stepladder.emulator.ptx.instructions.atomic import combination
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_VECTORS = {"v2": 2, "v4": 4}
_SPACE = "shared::cluster"
_MOST_BITS = 128


_UPDATES = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


@instruction("st.async")
def st_async(site: Site) -> None:
    """Begins to store one element or several adjacent ones, whose bytes an mbarrier of the same block counts."""
    site.flag("weak")
    site.choice((_SPACE,), "")
    site.choice(("mbarrier::complete_tx::bytes",))
    count = _VECTORS[site.choice(tuple(_VECTORS), "")] if any(name in site.rest for name in _VECTORS) else 1
    type_ = site.type("busf", (32, 64))
    if count * type_.bits > _MOST_BITS:
        raise site.error(f"of {count} elements of {type_.bits} bits: expected {_MOST_BITS} bits at most")
    _begin(site, type_, count, None)


@instruction("red.async")
def red_async(site: Site) -> None:
    """Begins to update a number, whose bytes an mbarrier of the same block counts."""
    site.choice(("relaxed",))
    site.choice(("cluster",))
    site.choice((_SPACE,), "")
    site.choice(("mbarrier::complete_tx::bytes",))
    operation = site.choice(_UPDATES)
    (type_,) = site.types(1)
    _begin(site, type_, 1, combination(operation, type_))


def _begin(
    site: Site, type_: PtxType, count: int, combine: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
) -> None:
    """Emits a store, or an update given what combines the bits in memory and those of the thread."""
    site.count(3)
    base, offset = site.address(0)
    sources = site.elements(1)
    barrier, barrier_offset = site.address(2)
    if len(sources) != count:
        raise site.error(f"with {len(sources)} registers for {count} elements")
    element = types.register(type_.bits)
    verb = "writes" if combine is None else "updates"

    def execute(fiber: Fiber, op: Instruction, address: Value, complete: Value, *numbers: Value) -> None:
        columns = [
            values.lanes(np.asarray(types.stored(number, type_.bits), element.dtype), fiber.count) for number in numbers
        ]
        value = np.stack(columns, axis=-1)
        address, complete = addresses.at(address, offset), addresses.at(complete, barrier_offset)
        for part, allocation, start, _ in addresses.parts(fiber, op, _SPACE, address, element.bytes, (count,)):
            access = addresses.access(part, op, allocation, start, element, (count,), of_any_block=True, verb=verb)
            block = addresses.block_of(part, address)
            other = addresses.block_of(part, complete)
            if (block[part.lanes] != other[part.lanes]).any():
                part.group.sanitizer.report(
                    "order", f"{verb} shared memory of one block, and completes on an mbarrier of another", op
                )
            place = addresses.inside_block(complete)
            remote_stores.store(part, op, access, value[part.lanes], other, place, combine)

    reads = [site.read(source, PtxType(f"b{type_.bits}", type_.kind, type_.bits), wider=True) for source in sources]
    site.emit(execute, [base, barrier, *reads], ())
