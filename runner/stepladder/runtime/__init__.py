"""Bundles on a GPU: reading them, loading and launching their kernels. Imports no MLIR."""
