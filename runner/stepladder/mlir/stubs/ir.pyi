"""Types of the parts of MLIR's `ir` module that this package uses: the wheel ships none.

Types and attributes are downcast to their classes at run time. What is read off an op or a value is therefore `Any`.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from types import TracebackType
from typing import Any, BinaryIO, ClassVar, Generic, overload

from typing_extensions import Self, TypeVar

from .affine import *  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403
from .affine import AffineMap

__file__: str

_T = TypeVar("_T", default=Any, covariant=True)

class MLIRError(Exception):
    message: str
    error_diagnostics: list[DiagnosticInfo]

class DiagnosticSeverity:
    ERROR: ClassVar[DiagnosticSeverity]

class DiagnosticInfo:
    severity: DiagnosticSeverity
    location: Location
    message: str
    notes: list[DiagnosticInfo]

class DiagnosticHandler:
    def detach(self) -> None: ...

class _Scope:
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

class Context(_Scope):
    current: ClassVar[Context]
    allow_unregistered_dialects: bool
    def __init__(self, load_on_create_dialects: Sequence[str] | None = None) -> None: ...
    def attach_diagnostic_handler(self, callback: Callable[[DiagnosticInfo], bool]) -> DiagnosticHandler: ...
    def enable_multithreading(self, enable: bool) -> None: ...
    def get_dialect_descriptor(self, dialect_name: str) -> object: ...
    def is_registered_operation(self, operation_name: str) -> bool: ...

class Location(_Scope):
    current: ClassVar[Location]
    filename: str
    @staticmethod
    def unknown(context: Context | None = None) -> Location: ...
    @staticmethod
    def name(name: str, childLoc: Location | None = None, context: Context | None = None) -> Location: ...
    def emit_error(self, message: str) -> None: ...

class FileLineColLoc(Location):
    start_line: int
    start_col: int

class InsertionPoint(_Scope):
    @overload
    def __init__(self, block: Block) -> None: ...
    @overload
    def __init__(self, beforeOperation: _OperationBase) -> None: ...
    @staticmethod
    def at_block_begin(block: Block) -> InsertionPoint: ...
    @staticmethod
    def at_block_terminator(block: Block) -> InsertionPoint: ...
    @staticmethod
    def after(operation: _OperationBase) -> InsertionPoint: ...

class WalkResult:
    ADVANCE: ClassVar[WalkResult]

class WalkOrder:
    PRE_ORDER: ClassVar[WalkOrder]

class NamedAttribute:
    name: str
    attr: Any

class OpAttributeMap:
    def __contains__(self, name: str) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    @overload
    def __getitem__(self, name: str) -> Any: ...
    @overload
    def __getitem__(self, index: int) -> NamedAttribute: ...
    def __setitem__(self, name: str, attr: Attribute) -> None: ...
    def __delitem__(self, name: str) -> None: ...
    def get(self, key: str, default: object = None) -> Any: ...
    def items(self) -> ItemsView[str, Attribute]: ...
    def keys(self) -> KeysView[str]: ...
    def values(self) -> ValuesView[Attribute]: ...

class OpOperandList(Sequence[Value]):
    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...
    def __len__(self) -> int: ...
    def __setitem__(self, index: int, value: Value) -> None: ...

class BlockList(Sequence[Block]):
    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Block]: ...
    def __len__(self) -> int: ...
    def append(self, *args: Type, arg_locs: Sequence[Location] | None = None) -> Block: ...

class Region:
    blocks: BlockList
    owner: Operation

class _OperationBase:
    name: str
    attributes: OpAttributeMap
    operands: OpOperandList
    op_operands: Sequence[OpOperand]
    results: Sequence[OpResult]
    regions: Sequence[Region]
    successors: Sequence[Block]
    location: Location
    context: Context
    @property
    def operation(self) -> Operation: ...
    @property
    def opview(self) -> OpView: ...
    @property
    def parent(self) -> Operation | None: ...
    @property
    def block(self) -> Block: ...
    @property
    def result(self) -> OpResult: ...
    def clone(self, ip: InsertionPoint | None = None) -> Operation: ...
    def erase(self) -> None: ...
    def verify(self) -> bool: ...
    def get_asm(self, **options: bool) -> str: ...
    def write_bytecode(self, file: BinaryIO) -> None: ...
    def is_before_in_block(self, other: _OperationBase) -> bool: ...
    def move_after(self, other: _OperationBase) -> None: ...
    def move_before(self, other: _OperationBase) -> None: ...
    def walk(self, callback: Callable[[Operation], WalkResult], walk_order: WalkOrder = ...) -> None: ...

class Operation(_OperationBase):
    @staticmethod
    def parse(source: str, *, source_name: str = "", context: Context | None = None) -> Any: ...
    @staticmethod
    def create(
        name: str,
        results: Sequence[Type] | None = None,
        operands: Sequence[Value] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        successors: Sequence[Block] | None = None,
        regions: int = 0,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> Operation: ...

class OpView(_OperationBase):
    OPERATION_NAME: ClassVar[str]

class Module:
    body: Block
    context: Context
    @property
    def operation(self) -> Operation: ...
    @staticmethod
    def create(loc: Location | None = None) -> Module: ...
    @staticmethod
    def parse(asm: str | bytes, context: Context | None = None) -> Module: ...
    @staticmethod
    def parseFile(path: str, context: Context | None = None) -> Module: ...

class Block:
    arguments: Sequence[BlockArgument]
    operations: Sequence[Operation]
    owner: Operation
    region: Region
    def add_argument(self, type: Type, loc: Location) -> BlockArgument: ...
    def append(self, operation: _OperationBase) -> None: ...
    def append_to(self, region: Region) -> None: ...
    def erase_argument(self, index: int) -> None: ...

class OpOperand:
    owner: Operation
    operand_number: int

class Value(Generic[_T]):
    location: Location
    context: Context
    def __init__(self, value: Value) -> None: ...
    @property
    def type(self) -> _T: ...
    @property
    def owner(self) -> Operation | Block: ...
    @property
    def uses(self) -> Iterator[OpOperand]: ...
    def replace_all_uses_with(self, value: Value, /) -> None: ...
    def replace_all_uses_except(self, with_: Value, exceptions: _OperationBase | Sequence[_OperationBase]) -> None: ...
    def set_type(self, type: Type) -> None: ...

class OpResult(Value[_T]):
    result_number: int
    @property
    def owner(self) -> Operation: ...

class BlockArgument(Value[_T]):
    arg_number: int
    @property
    def owner(self) -> Block: ...
    def set_location(self, loc: Location) -> None: ...

class Type:
    def __init__(self, cast_from_type: Type) -> None: ...
    @staticmethod
    def parse(asm: str, context: Context | None = None) -> Type: ...

class IndexType(Type):
    @staticmethod
    def get(context: Context | None = None) -> IndexType: ...

class IntegerType(Type):
    width: int
    is_signless: bool
    is_unsigned: bool
    @staticmethod
    def get_signless(width: int, context: Context | None = None) -> IntegerType: ...

class ComplexType(Type):
    element_type: Any

class FloatType(Type):
    width: int

class FunctionType(Type):
    inputs: list[Type]
    results: list[Type]
    @staticmethod
    def get(inputs: Sequence[Type], results: Sequence[Type], context: Context | None = None) -> FunctionType: ...

class ShapedType(Type):
    shape: list[int]
    rank: int
    element_type: Any
    has_static_shape: bool
    def is_dynamic_dim(self, dim: int) -> bool: ...
    def get_dim_size(self, dim: int) -> int: ...
    @staticmethod
    def get_dynamic_size() -> int: ...
    @staticmethod
    def get_dynamic_stride_or_offset() -> int: ...

class RankedTensorType(ShapedType):
    encoding: Attribute | None
    @staticmethod
    def get(shape: Sequence[int], element_type: Type, encoding: Attribute | None = None) -> RankedTensorType: ...

class VectorType(ShapedType):
    scalable: bool
    @staticmethod
    def get(shape: Sequence[int], element_type: Type) -> VectorType: ...

class DynamicType(Type):
    params: Sequence[Attribute]

class DynamicAttr(Attribute):
    params: Sequence[Attribute]

class DynamicOpTrait:
    @staticmethod
    def verify_invariants(op: OpView) -> bool: ...
    @staticmethod
    def attach(op_name: str, target: object = None, context: Context | None = None) -> bool: ...

class MemRefType(ShapedType):
    layout: Attribute
    affine_map: AffineMap
    memory_space: Attribute | None
    def get_strides_and_offset(self) -> tuple[list[int], int]: ...
    @staticmethod
    def get(
        shape: Sequence[int],
        element_type: Type,
        layout: Attribute | None = None,
        memory_space: Attribute | None = None,
    ) -> MemRefType: ...

class UnrankedTensorType(Type):
    element_type: Any

class UnrankedMemRefType(Type):
    element_type: Any
    memory_space: Attribute | None
    @staticmethod
    def get(element_type: Type, memory_space: Attribute | None) -> UnrankedMemRefType: ...

class Attribute:
    def __init__(self, cast_from_attr: Attribute) -> None: ...
    @staticmethod
    def parse(asm: str, context: Context | None = None) -> Attribute: ...

class UnitAttr(Attribute):
    @staticmethod
    def get(context: Context | None = None) -> UnitAttr: ...

class BoolAttr(Attribute):
    value: bool
    @staticmethod
    def get(value: bool, context: Context | None = None) -> BoolAttr: ...

class IntegerAttr(Attribute):
    value: int
    type: Any
    @staticmethod
    def get(type: Type, value: int) -> IntegerAttr: ...

class FloatAttr(Attribute):
    value: float
    type: Any
    @staticmethod
    def get(type: Type, value: float) -> FloatAttr: ...

class StringAttr(Attribute):
    value: str
    @staticmethod
    def get(value: str | bytes, context: Context | None = None) -> StringAttr: ...

class TypeAttr(Attribute):
    value: Any
    @staticmethod
    def get(value: Type, context: Context | None = None) -> TypeAttr: ...

class ArrayAttr(Attribute, Sequence[Attribute]):
    @staticmethod
    def get(attributes: Sequence[Attribute], context: Context | None = None) -> ArrayAttr: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Attribute]: ...

class DictAttr(Attribute):
    @staticmethod
    def get(value: Mapping[str, Attribute] = ..., context: Context | None = None) -> DictAttr: ...
    def __contains__(self, name: str) -> bool: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, name: str) -> Any: ...
    @overload
    def __getitem__(self, index: int) -> NamedAttribute: ...

class DenseElementsAttr(Attribute):
    is_splat: bool
    type: Any
    def get_splat_value(self) -> Any: ...
    @staticmethod
    def get_splat(shaped_type: Type, element_attr: Attribute) -> DenseElementsAttr: ...

class DenseI32ArrayAttr(Attribute, Sequence[int]):
    @staticmethod
    def get(values: Sequence[int], context: Context | None = None) -> DenseI32ArrayAttr: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...

class DenseI64ArrayAttr(DenseI32ArrayAttr):
    @staticmethod
    def get(values: Sequence[int], context: Context | None = None) -> DenseI64ArrayAttr: ...

class StridedLayoutAttr(Attribute):
    offset: int
    strides: list[int]
    @staticmethod
    def get(offset: int, strides: Sequence[int], context: Context | None = None) -> StridedLayoutAttr: ...

class AffineMapAttr(Attribute):
    value: AffineMap
    @staticmethod
    def get(affine_map: AffineMap) -> AffineMapAttr: ...

class MemoryEffectInstancesList: ...

class _Interface:
    @classmethod
    def attach(cls, op_name: str, target: type | None = None, context: Context | None = None) -> None: ...

class MemoryEffectsOpInterface(_Interface): ...

def __getattr__(name: str) -> Any: ...  # what is not listed is not checked
