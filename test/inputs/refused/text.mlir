this is no MLIR
