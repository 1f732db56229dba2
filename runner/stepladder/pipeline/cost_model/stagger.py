"""The choice of `stagger`: how many k steps cooperative consumers delay, so that they end a tile one after the other.

The rule selects the problems that gained by it among those that `benchmarks/staggered.py` measures: random ones and
those of `figures.py` (`stagger.json`). Predicted times ignore the knob.
"""

from __future__ import annotations

import numpy as np

from stepladder.pipeline.cost_model.columns import Columns
from stepladder.pipeline.cost_model.terms import Size

KNOB = "stagger"
# Tiles of fewer columns leave the tensor core idle while one warpgroup multiplies alone.
_MIN_COLUMNS = 112
# The last option of the knob.
_MAX = 7
_ELEMENT_BYTES = 2


def choose(knobs: Columns, size: Size) -> Columns:
    """Returns settings with the knob: one less than the stages, where kernels of two or more consumers gain by it.

    Args:
        knobs: columns of the pipeline's knobs.
        size: of the product.
    """
    stages = knobs.floats("stages", 1)
    steps = np.ceil(size.k / knobs.floats("block_k"))
    gains = (
        (size.in_bytes == _ELEMENT_BYTES)
        & (not size.in_registers)
        & knobs.equals("schedule", "cooperative", "cooperative")
        & knobs.equals("tile_scheduler", "data_parallel", "data_parallel")
        & (knobs.floats("consumer_warpgroups", 1) > 1)
        & (knobs.floats("split_k", 1) == 1)
        & (knobs.floats("block_n") * size.products >= _MIN_COLUMNS)
        & (steps >= 2 * stages)
    )
    # A knob that is given is one value for all settings.
    stages_apart = np.broadcast_to(np.where(gains, np.minimum(stages - 1, _MAX), 0).astype(np.int64), (knobs.count,))
    return Columns({**knobs.values, KNOB: stages_apart}, knobs.derived, knobs.count)
