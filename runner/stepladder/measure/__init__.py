"""Benchmarks, baselines and the ceiling of a card; imports no MLIR."""
