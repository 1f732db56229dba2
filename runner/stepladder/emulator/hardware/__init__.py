"""Units of the emulated GPU: warps, warpgroups, barriers, TMA, matrix units, counters."""
