"""Checks of a kernel's results against a reference; imports no MLIR."""
