"""Loads the dialect `xetile` into an MLIR context: the operations of the IRDL text, and their verifiers in Python."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from stepladder.mlir.bindings import ir, irdl, set_dialect_module
from stepladder.mlir.xetile.verify import RULES, verify

IRDL = Path(__file__).with_name("xetile.irdl.mlir")


@functools.cache
def _text() -> str:
    return IRDL.read_text(encoding="utf-8")


def _trait(name: str) -> type[ir.DynamicOpTrait]:
    class Verified(ir.DynamicOpTrait):
        """Runs the rules of one operation. MLIR runs it before the verifier that IRDL generates."""

        @staticmethod
        def verify_invariants(op: ir.OpView) -> bool:
            return verify(op.operation)

    Verified.__name__ = f"Verified_{name}"
    return Verified


_TRAITS = {name: _trait(name) for name in RULES}


def load() -> None:
    """Loads the dialect into the current MLIR context, once per context."""
    irdl.load_dialects(ir.Module.parse(_text()))
    for name, trait in _TRAITS.items():
        trait.attach(f"xetile.{name}", trait)
    set_dialect_module("xetile", sys.modules[__name__])
