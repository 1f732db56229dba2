"""Types of the parts of MLIR's `ext` module, for dialects written in Python, that this package uses: the wheel ships
none."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from . import ir

Operand = ir.Value
Result = ir.OpResult

class Variadicity(Enum):
    single = 0
    optional = 1
    variadic = 2

class FieldDef:
    name: str
    variadicity: Variadicity
    constraint: Any

class OperandDef(FieldDef): ...
class ResultDef(FieldDef): ...
class AttributeDef(FieldDef): ...

class Operation(ir.OpView):
    _fields: ClassVar[list[FieldDef]]
    _dialect_obj: ClassVar[type[Dialect]]
    def __init_subclass__(cls, *, name: str | None = None, **options: object) -> None: ...
    @classmethod
    def _attach_traits(cls) -> None: ...

_Operation = Operation

class Dialect:
    DIALECT_NAMESPACE: ClassVar[str]
    operations: ClassVar[list[type[_Operation]]]
    types: ClassVar[list[type]]
    attributes: ClassVar[list[type]]
    _mlir_module: ClassVar[ir.Module]
    class Operation(_Operation): ...

    def __init_subclass__(cls, *, name: str, **options: object) -> None: ...
    @classmethod
    def load(cls) -> None: ...
