"""PTX's special registers: indices of threads, blocks and clusters, clocks, sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.emulator.core.groups import DYNAMIC
from stepladder.emulator.dialects.nvvm_threads import SPECIAL, time_of
from stepladder.emulator.ptx import types

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.groups import Group
    from stepladder.emulator.core.values import Value

_GRID_BYTES = 8  # the size of what follows, and the barrier of the grid
_CHANGES = ("clock", "clock64", "clock_hi", "globaltimer", "globaltimer_lo", "globaltimer_hi")
_OWN: dict[str, Callable[[Group], Value]] = {
    "is_explicit_cluster": lambda group: group.blocks > 1,
    "dynamic_smem_size": lambda group: group.layout.get(DYNAMIC, 0),
    "aggr_smem_size": lambda group: group.shared.size,
    "reserved_smem_offset_begin": lambda group: 0,
    # The memory that CUDA reserves is not modelled: an access to it is out of bounds.
    **{f"reserved_smem_offset_{part}": lambda group: group.shared.size for part in ("0", "1", "cap", "end")},
    "nwarpid": lambda group: group.warps_per_block,
    "clock_hi": lambda group: time_of(group) >> 32,
    "globaltimer_hi": lambda group: time_of(group) >> 32,
    # The two halves of a pointer that a cooperative launch gives to CUDA's cooperative groups.
    "envreg1": lambda group: _for_the_grid(group) >> 32,
    "envreg2": lambda group: _for_the_grid(group) & 0xFFFFFFFF,
}


def _for_the_grid(group: Group) -> int:
    """Returns the address of the memory that the blocks of a launch meet in; it begins as zeros."""
    machine = group.machine
    key = "ptx", "memory of the grid"
    if key not in machine.globals:
        machine.globals[key] = machine.heap.allocate(_GRID_BYTES, "memory of a cooperative launch")
        machine.globals[key].data[:] = 0
    return machine.globals[key].address


@dataclass(frozen=True)
class SpecialRegister:
    """A special register: what gives its value, and whether that changes while a thread runs."""

    value: Callable[[Group], Value]
    changes: bool

    def get(self, fiber: Fiber, width: int) -> Value:
        """Returns the value as bits, uniform or (T,).

        Args:
            fiber: the threads that read it.
            width: bits.
        """
        return types.stored(self.value(fiber.group), width)


def _key(name: str) -> str:
    """Returns the name that the nvvm dialect has for a special register, given PTX's."""
    key = name.removeprefix("%")
    for prefix in ("cluster_", "lanemask_"):
        if key.startswith(prefix):
            return prefix[:-1] + "." + key.removeprefix(prefix)
    return {"total_smem_size": "total.smem.size", "globaltimer_lo": "globaltimer.lo"}.get(key, key)


def register(name: str) -> SpecialRegister | None:
    """Returns the special register with a name, None where there is none.

    Args:
        name: as it is written, such as %tid.x.
    """
    if name == "WARP_SZ":
        return SpecialRegister(SPECIAL["warpsize"], False)
    if not name.startswith("%"):
        return None
    own = name.removeprefix("%")
    value = _OWN.get(own) or SPECIAL.get(_key(name))
    if value is None and own in ("tid", "ntid", "ctaid", "nctaid"):  # .x is left out
        value = SPECIAL[f"{own}.x"]
    return None if value is None else SpecialRegister(value, own in _CHANGES)


def names() -> list[str]:
    """Returns the names of all special registers, as the nvvm dialect or PTX has them."""
    return sorted({*SPECIAL, *_OWN})
