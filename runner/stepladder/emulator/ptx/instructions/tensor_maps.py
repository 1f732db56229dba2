"""TMA descriptors that a kernel makes or changes.

Source: PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.hardware import tensor_maps
from stepladder.emulator.ptx import types
from stepladder.emulator.ptx.instructions import addresses, memory_access
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_B64 = PtxType("b64", "b", 64)
_SPACES = ("global", "shared::cta")


@instruction("tensormap.replace")
def replace(site: Site) -> None:
    """Sets one field of a descriptor."""
    site.choice(("tile",))
    name = site.choice(tuple(tensor_maps.FIELDS))
    space = site.choice(_SPACES, "generic")
    site.choice(("b1024",))
    type_ = site.type("b", (32, 64))
    field = tensor_maps.FIELDS[name]
    site.count(3 if field.count > 1 else 2)
    base, offset = site.address(0)
    place = field.start
    if field.count > 1:
        ordinal = site.number(1)
        if not 0 <= ordinal < field.count:
            raise site.error(f"of field {ordinal}: there are {field.count}")
        place += ordinal * field.bits // 8
    field_type = PtxType(f"b{field.bits}", "b", field.bits)

    def execute(fiber: Fiber, op: Instruction, address: Value, number: Value) -> None:
        part = types.stored(types.number(number, type_), field.bits)
        memory_access.write(fiber, op, space, addresses.at(address, offset + place), field_type, part)

    site.emit(execute, [base, site.read(-1, type_)], ())


@instruction("tensormap.cp_fenceproxy")
def copy(site: Site) -> None:
    """Copies a descriptor from shared to global memory, and releases it."""
    for name in ("global", "shared::cta", "tensormap::generic", "release"):
        site.choice((name,))
    site.choice(("cta", "cluster", "gpu", "sys"))
    for name in ("sync", "aligned"):
        site.choice((name,))
    site.count(3)
    if site.number(2) != tensor_maps.BYTES:
        raise site.error(f"of {site.number(2)} bytes: it takes {tensor_maps.BYTES}")
    target, target_offset = site.address(0)
    source, source_offset = site.address(1)

    def execute(fiber: Fiber, op: Instruction, to: Value, from_: Value) -> None:
        representatives = fiber.representatives()
        for start in range(0, tensor_maps.BYTES, _B64.bytes):
            part = memory_access.read(representatives, op, "shared", addresses.at(from_, source_offset + start), _B64)
            memory_access.write(representatives, op, "global", addresses.at(to, target_offset + start), _B64, part)
        for lane in representatives.lanes:
            tensor_maps.note_written(fiber.group, addresses.of_lane(addresses.at(to, target_offset), lane))

    site.emit(execute, [target, source], ())


def acquire(site: Site) -> None:
    """Emits the fence after which TMA sees a descriptor that a kernel has written.

    Args:
        site: of `fence.proxy`, whose kind is taken.

    Raises:
        StepladderError: another size than that of a descriptor.
    """
    site.choice(("cta", "cluster", "gpu", "sys"))
    site.count(2)
    if site.number(1) != tensor_maps.BYTES:
        raise site.error(f"of {site.number(1)} bytes: it takes {tensor_maps.BYTES}")
    base, offset = site.address(0)

    def execute(fiber: Fiber, op: Instruction, address: Value) -> None:
        places = values.lanes(np.asarray(addresses.at(address, offset)), fiber.count)
        for place in np.unique(places[fiber.lanes]):
            tensor_maps.note_fenced(fiber.group, int(place))

    site.emit(execute, [base], ())
