"""Ops of PyTorch as ops that torch-mlir lowers to linalg, one family a module; `table` has all of them."""
