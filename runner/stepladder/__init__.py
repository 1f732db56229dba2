"""Stepladder: compiles a matmul in `linalg` IR to kernels for GPU matrix units, step by step."""

__version__ = "0.1.0"
