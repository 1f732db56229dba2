"""Stepladder: a matmul in `linalg` IR, climbed step by step to machine code for GPU matrix units."""

__version__ = "0.1.0"
