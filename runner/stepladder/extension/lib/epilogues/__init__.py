"""Code of epilogues: stores of C, elementwise ops on accumulators, and reductions of rows and columns."""
