"""Code of the ops on functions with several kernels: what becomes a kernel, and kernels that are no matmuls."""
