"""Checks of a kernel's numbers against a reference; imports no MLIR."""
