"""The MLIR bindings, and what every user of them shares."""
