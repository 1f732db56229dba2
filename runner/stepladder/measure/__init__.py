"""Benchmarks of bundles, baselines and the compute ceiling of a GPU. Imports no MLIR."""
