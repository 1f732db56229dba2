"""Functions with several matmuls: how they are divided into kernels, and how each kernel is compiled."""
