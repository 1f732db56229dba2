"""Machine code: from the NVVM dialect to LLVM IR, PTX and a cubin."""
