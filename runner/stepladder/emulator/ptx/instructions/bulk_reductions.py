"""Bulk copies that combine their data with what memory holds: global memory, or that of another block.

Source: PTX ISA, "cp.reduce.async.bulk" and "cp.reduce.async.bulk.tensor".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.ptx.instructions.copies import move_to_block, store_box, store_bytes
from stepladder.emulator.ptx.registry import instruction

if TYPE_CHECKING:
    from stepladder.emulator.ptx.site import Site

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def _incremented(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    old, new = old.view(np.uint32), new.view(np.uint32)
    return np.where(old >= new, 0, old + np.uint32(1))


def _decremented(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    old, new = old.view(np.uint32), new.view(np.uint32)
    return np.where((old == 0) | (old > new), new, old - np.uint32(1))


# Of two arrays of one type: what memory holds, and the data of the copy.
_OF_ARRAYS: dict[str, Callable] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "inc": _incremented,
    "dec": _decremented,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_TENSORS = {  # elements of tensors, whose types have no sign before they are in a descriptor
    "add": ("i32", "i64", "f16", "bf16", "f32", "f64"),
    **dict.fromkeys(("min", "max"), ("i32", "i64", "f16", "bf16")),
    **dict.fromkeys(("inc", "dec"), ("i32",)),
    **dict.fromkeys(("and", "or", "xor"), ("i32", "i64")),
}


@instruction("cp.reduce.async.bulk.tensor")
def reduce_tensor(site: Site) -> None:
    """Begins to combine a box with a tensor."""
    rank = site.match(r"([1-5])d")
    if rank is None:
        raise site.error("without a number of dimensions: expected one of .1d, .2d, .3d, .4d, .5d")
    site.choice(("global",))
    site.choice(("shared::cta",))
    operation = site.choice(REDUCTIONS)
    site.flag("tile")
    site.choice(("bulk_group",))
    site.count(2 + site.flag("L2::cache_hint"))
    store_box(site, int(rank[1]), _OF_ARRAYS[operation], _TENSORS[operation])


@instruction("cp.reduce.async.bulk")
def reduce_bulk(site: Site) -> None:
    """Begins to combine numbers in shared memory with others in global memory, or in the memory of a block."""
    space = site.choice(("global", "shared::cluster"))
    site.choice(("shared::cta",))
    in_block = space != "global"
    site.choice(("mbarrier::complete_tx::bytes",) if in_block else ("bulk_group",))
    has_hint = not in_block and site.flag("L2::cache_hint")
    operation = site.choice(REDUCTIONS)
    site.flag("noftz")
    (type_,) = site.types(1)
    combine = _OF_ARRAYS[operation]
    site.count((4 if in_block else 3) + has_hint)
    if in_block:
        move_to_block(site, type_.dtype, combine)
    else:
        store_bytes(site, type_, combine)
