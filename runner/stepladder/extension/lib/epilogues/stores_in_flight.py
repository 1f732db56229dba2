"""How many TMA stores of an epilogue may be in flight when a buffer is written again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.extension.lib.epilogues.box_stores import BoxStore


def in_flight(stores: list[BoxStore]) -> Callable[[BoxStore, int], int]:
    """Returns a function that returns how many stores were issued after the previous store from a box's buffer.

    The boxes of all results are stored in turn, tile by tile. Each result uses its buffers in turn. Where the number of
    its boxes is no multiple of that of its buffers, the last store of a tile and the first of the next may use the same
    buffer.

    Args:
        stores: of all results of a tile, in the order in which they are issued.

    Returns:
        A function of a store and the number of its box.
    """
    order = [(store, number, number % store.stages) for store in stores for number in range(store.boxes)]

    def count(store: BoxStore, number: int) -> int:
        own = next(place for place, (other, box, _) in enumerate(order) if other is store and box == number)
        for distance in range(1, len(order) + 1):
            other, _, buffer = order[own - distance]  # of the tile before where it is negative
            if other is store and buffer == number % store.stages:
                return distance - 1
        raise AssertionError("a box uses its own buffer a tile before")

    return count
