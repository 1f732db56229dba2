"""The Python interface: `stepladder.compile`, `stepladder.matmul`, and kernels that are called on arrays.

`stepladder` exports the names of this package and imports it when one of them is used first.
"""
