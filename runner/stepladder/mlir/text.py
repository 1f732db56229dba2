"""IR as text."""

from __future__ import annotations

from stepladder.mlir.bindings import ir


def text_of(module: ir.Module | ir.Operation) -> str:
    """Returns a module as MLIR text, with the names of function arguments that locations hold (`ssa_names`).

    Args:
        module: the module, or a copy of it as an op. It is valid: a parser, a pass manager or a step has verified it.
    """
    return module.operation.get_asm(use_name_loc_as_prefix=True, assume_verified=True)
