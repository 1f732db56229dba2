"""Asynchronous stores to the shared memory of a cluster.

Source: PTX ISA, "Data Movement and Conversion Instructions: st.async".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.hardware import remote_stores
from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.instructions import addresses
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_VECTORS = {"v2": 2, "v4": 4}
_SPACE = "shared::cluster"


@instruction("st.async")
def st_async(site: Site) -> None:
    """Begins to store one element or several adjacent ones, whose bytes an mbarrier of the same block counts."""
    site.flag("weak")
    site.choice((_SPACE,), _SPACE)
    site.choice(("mbarrier::complete_tx::bytes",))
    count = _VECTORS[site.choice(tuple(_VECTORS), "")] if any(name in site.rest for name in _VECTORS) else 1
    type_ = site.type("busf", (32, 64))
    site.count(3)
    base, offset = site.address(0)
    sources = site.elements(1)
    barrier, barrier_offset = site.address(2)
    if len(sources) != count:
        raise site.error(f"with {len(sources)} registers for {count} elements")
    element = types.register(type_.bits)

    def execute(fiber: Fiber, op: Instruction, address: Value, complete: Value, *numbers: Value) -> None:
        columns = [
            values.lanes(np.asarray(types.stored(number, type_.bits), element.dtype), fiber.count) for number in numbers
        ]
        value = np.stack(columns, axis=-1)
        address, complete = addresses.at(address, offset), addresses.at(complete, barrier_offset)
        for part, allocation, start, _ in addresses.parts(fiber, op, _SPACE, address, element.bytes, (count,)):
            access = addresses.access(part, op, allocation, start, element, (count,), of_any_block=True, verb="writes")
            block = addresses.block_of(part, address)
            other = addresses.block_of(part, complete)
            if (block[part.lanes] != other[part.lanes]).any():
                part.group.sanitizer.report(
                    "order", "writes shared memory of one block, and completes on an mbarrier of another", op
                )
            remote_stores.store(part, op, access, value[part.lanes], other, addresses.inside_block(complete))

    reads = [site.read(source, PtxType(f"b{type_.bits}", type_.kind, type_.bits), wider=True) for source in sources]
    site.emit(execute, [base, barrier, *reads], ())
