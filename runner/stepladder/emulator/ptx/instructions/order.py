"""Order and scope of PTX's memory instructions; `memory.order` has their effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.emulator.memory.order import SCOPES, acquire, fence, is_idle, release

if TYPE_CHECKING:
    from stepladder.emulator.ptx.site import Site

__all__ = ["ACQUIRES", "ORDERS", "RELEASES", "SCOPES", "acquire", "fence", "is_idle", "release", "scope_of"]

ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "sc")
RELEASES = ("release", "acq_rel", "sc")
ACQUIRES = ("acquire", "acq_rel", "sc")


def scope_of(site: Site, default: str = "sys") -> str:
    """Consumes and returns the modifier that states the scope.

    Args:
        site: the instruction.
        default: returned where there is no such modifier.
    """
    return site.choice(SCOPES, default)
