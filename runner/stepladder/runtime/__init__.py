"""What runs a bundle on a GPU; imports no MLIR."""
