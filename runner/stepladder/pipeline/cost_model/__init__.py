"""A cost model that chooses knobs: predicted times of all settings that a pipeline accepts for a problem.

`docs/cost_model.md` describes the terms and how their constants are fitted. The package imports NumPy and nothing of
MLIR, so that it works where there is no toolchain.
"""
