"""The MLIR bindings, and code that all their users share."""
