"""Types of the parts of MLIR's `transform` dialect module that this package uses: the wheel ships none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, overload

from . import ir

class AnyOpType(ir.Type): ...

class DiagnosedSilenceableFailure:
    Success: ClassVar[DiagnosedSilenceableFailure]
    SilenceableFailure: ClassVar[DiagnosedSilenceableFailure]
    DefiniteFailure: ClassVar[DiagnosedSilenceableFailure]

class TransformRewriter:
    def erase_op(self, op: ir._OperationBase) -> None: ...
    @overload
    def replace_op(self, op: ir._OperationBase, new_op: ir._OperationBase) -> None: ...
    @overload
    def replace_op(self, op: ir._OperationBase, values: Sequence[ir.Value]) -> None: ...

class TransformResults:
    def set_ops(self, result: ir.Value, ops: Sequence[ir._OperationBase]) -> None: ...

class TransformState:
    def get_payload_ops(self, operand: ir.Value) -> list[ir.Operation]: ...

class TransformOpInterface(ir._Interface): ...

def only_reads_handle(operands: Iterable[ir.OpOperand], effects: ir.MemoryEffectInstancesList) -> None: ...
def produces_handle(results: Iterable[ir.OpResult], effects: ir.MemoryEffectInstancesList) -> None: ...
def modifies_payload(effects: ir.MemoryEffectInstancesList) -> None: ...
def __getattr__(name: str) -> Any: ...  # what is not listed is not checked
