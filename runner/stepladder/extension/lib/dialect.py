"""The `tc` dialect: transform ops written in Python, for transformations that upstream has no op for.

Each op is defined in a module of its own, which registers its implementation with `@transform_op`. `extension.load`
loads the dialect into a context. The text form of the ops is generic:
`"tc.hoist_prefetch"(%module) : (!transform.any_op) -> ()`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, cast

from stepladder.extension.lib import faults
from stepladder.mlir.bindings import ext, ir, irdl, set_dialect_module, transform

Result = transform.DiagnosedSilenceableFailure
Dialect = ext.Dialect
Rewriter = transform.TransformRewriter

# The types of an op's fields: a handle to payload ops that it takes, and one that it returns.
Handle = ext.Operand[transform.AnyOpType]
HandleResult = ext.Result[transform.AnyOpType]

Op = TypeVar("Op", bound=ext.Operation)
# A rewrite function: of a payload op, the transform op, and the rewriter, to the payload ops of the result, if any.
Rewrite = Callable[[ir.Operation, Op, Rewriter], object]


class _HasTarget(Protocol):
    target: ir.Value


class Tc(Dialect, name="tc"):
    """Transform ops of this project."""


class ModifiesPayloadInside(ir.MemoryEffectsOpInterface):
    """Memory effects of a transform op that modifies the payload below its handles and keeps the handles valid."""

    @staticmethod
    def get_effects(op: ir.OpView, effects: ir.MemoryEffectInstancesList) -> None:
        """Declares the effects of an op, for MLIR.

        Args:
            op: whose handles are read.
            effects: grows.
        """
        transform.only_reads_handle(op.op_operands, effects)
        transform.produces_handle(op.results, effects)
        transform.modifies_payload(effects)


class Refusal(Exception):
    """Payload that an op does not accept.

    Args:
        payload: the payload op that the diagnostic points to.
        message: the reason.
    """

    def __init__(self, payload: ir.Operation, message: str) -> None:
        super().__init__(message)
        self.payload = payload


OpClass = type[ext.Operation]
Registered = tuple[
    list[tuple[OpClass, type[transform.TransformOpInterface]]],
    list[type[ext.Dialect]],
    dict[type[ext.Dialect], list[OpClass]],
]

_IMPLEMENTATIONS: list[tuple[OpClass, type[transform.TransformOpInterface]]] = []
_DIALECTS: list[type[ext.Dialect]] = [Tc]
# The classes of the dialect that was loaded last under a name, and their definition.
_DEFINITIONS: dict[str, tuple[tuple[type, ...], str]] = {}
_GUARDED_VERIFIERS: set[Callable[[ir.OpView], bool]] = set()


def _check_op_class(op_class: OpClass) -> None:
    """Raises TypeError for a class that the interfaces below cannot be attached to: MLIR would crash on it."""
    fields = {field.name: field for field in getattr(op_class, "_fields", ())}
    if not getattr(op_class, "OPERATION_NAME", None):
        raise TypeError(
            f"{getattr(op_class, '__name__', op_class)} is not an op of a dialect: derive it from the dialect's "
            "Operation, with a name"
        )
    name = op_class.OPERATION_NAME
    target = fields.get("target")
    if isinstance(target, ext.AttributeDef) and isinstance(target.constraint, str):
        raise TypeError(
            f"the type of field 'target' of {name} is a text: leave out `from __future__ import annotations`"
        )
    if not isinstance(target, ext.OperandDef) or target.variadicity != ext.Variadicity.single:
        raise TypeError(f"{name} has no field 'target: Handle', the handle to what it treats")
    if sum(isinstance(field, ext.ResultDef) for field in fields.values()) > 1:
        raise TypeError(f"{name} has several results, and transform_op sets one")
    if any(name == existing.OPERATION_NAME for existing, _ in _IMPLEMENTATIONS):
        raise TypeError(f"{name} has an implementation already")


def transform_op(op_class: type[Op]) -> Callable[[Rewrite[Op]], Rewrite[Op]]:
    """Registers a function `rewrite(payload_op, op, rewriter)` as the implementation of `op_class`.

    The function is called for each payload op of the handle `target`. It refuses a payload by raising `Refusal`: the
    payload op's location and the message become the diagnostic, and the transform op fails silenceably, as upstream ops
    do. Any other exception is an error of the op itself: it is reported with its file and line in Python, and the
    transform op fails definitely. For an op with a result, the function returns the payload op, or the list of payload
    ops, that the result holds.

    Args:
        op_class: an op of `Tc` or of another `Dialect`, with a field `target: Handle`.

    Raises:
        TypeError: a class that is no such op, or that has an implementation already.
    """
    _check_op_class(op_class)
    has_result = any(isinstance(field, ext.ResultDef) for field in op_class._fields)

    def register(rewrite: Rewrite[Op]) -> Rewrite[Op]:
        class Implementation(transform.TransformOpInterface):
            @staticmethod
            def apply(
                op: Op, rewriter: Rewriter, results: transform.TransformResults, state: transform.TransformState
            ) -> transform.DiagnosedSilenceableFailure:
                ops: list[ir.Operation] = []
                for payload in state.get_payload_ops(cast(_HasTarget, op).target):
                    try:
                        result = rewrite(payload.operation, op, rewriter)
                        if has_result:
                            ops += _payload_ops(rewrite, result)
                    except Refusal as refusal:
                        refusal.payload.location.emit_error(f"{op.OPERATION_NAME}: {refusal}")
                        return Result.SilenceableFailure
                    except Exception as error:  # without a diagnostic, the location in the script would be lost
                        op.location.emit_error(faults.record(op.OPERATION_NAME, error))
                        return Result.DefiniteFailure
                if has_result:
                    results.set_ops(op.results[0], ops)
                return Result.Success

            @staticmethod
            def allow_repeated_handle_operands(op: Op) -> bool:
                return False

        _IMPLEMENTATIONS.append((op_class, Implementation))
        register_dialect(op_class._dialect_obj)
        return rewrite

    return register


def _payload_ops(rewrite: Rewrite[Op], result: object) -> list[ir.Operation]:
    """Returns the payload ops that a rewrite function returned for the result of its op."""
    ops: list[ir.Operation] = []
    for op in list(result) if isinstance(result, (list, tuple)) else [result]:
        if not isinstance(op, (ir.Operation, ir.OpView)):
            code = rewrite.__code__
            location = f"{code.co_filename}:{code.co_firstlineno}"
            raise TypeError(
                f"the op has a result, for which {code.co_name} at {location} returned {op!r}, which is not "
                f"a payload op"
            )
        ops.append(op.operation)
    return ops


def register_dialect(dialect: type[ext.Dialect]) -> None:
    """Adds a dialect to those that `load` loads; an op with `@transform_op` adds its own.

    Args:
        dialect: a Python-defined one; one that is registered already changes nothing.
    """
    if dialect not in _DIALECTS:
        _DIALECTS.append(dialect)


def dialects() -> tuple[type[ext.Dialect], ...]:
    """Returns the dialects that are written in Python, `Tc` first."""
    return tuple(_DIALECTS)


def load() -> None:
    """Loads every dialect written in Python into the current MLIR context; once per context."""
    for dialect in _DIALECTS:
        for op_class in dialect.operations:
            _guard_verifier(op_class)
        _load_definition(dialect)
        set_dialect_module(dialect.DIALECT_NAMESPACE, sys.modules[__name__])
    for op_class, implementation in _IMPLEMENTATIONS:
        # A transform op without memory effects aborts the process, so both interfaces are attached.
        implementation.attach(op_class.OPERATION_NAME, context=ir.Context.current)
        ModifiesPayloadInside.attach(op_class.OPERATION_NAME, context=ir.Context.current)


def _load_definition(dialect: type[ext.Dialect]) -> None:
    """Loads the ops of a dialect into the current MLIR context, from their definition in IRDL.

    The bindings create the definition from the classes and register the classes, which are those of the process, not of
    a context. That is done once, and again after another class is defined.
    """
    name, classes = dialect.DIALECT_NAMESPACE, (dialect, *dialect.operations)
    definition = _DEFINITIONS.get(name)
    if definition is None or definition[0] != classes or dialect.types or dialect.attributes:
        dialect.load()
        _DEFINITIONS[name] = classes, str(dialect._mlir_module)
        return
    irdl.load_dialects(ir.Module.parse(definition[1]))
    for op_class in dialect.operations:
        op_class._attach_traits()


def _guard_verifier(op_class: OpClass) -> None:
    """Wraps an op's verifier, so that a Python error in it becomes a diagnostic at the op."""
    verify = op_class.__dict__.get("verify_invariants")
    if verify is None or verify in _GUARDED_VERIFIERS:
        return

    def verify_invariants(op: ir.OpView) -> bool:
        try:
            return verify(op)
        except Exception as error:
            op.location.emit_error(faults.record(op_class.OPERATION_NAME, error))
            return False

    _GUARDED_VERIFIERS.add(verify_invariants)
    op_class.verify_invariants = verify_invariants  # pyright: ignore[reportAttributeAccessIssue]


def registered() -> Registered:
    """Returns the registered implementations, dialects and ops of each dialect, for `restore`."""
    return list(_IMPLEMENTATIONS), list(_DIALECTS), {dialect: list(dialect.operations) for dialect in _DIALECTS}


def restore(before: Registered) -> None:
    """Removes what was registered after `registered` returned `before`.

    Args:
        before: what `registered` returned.
    """
    _IMPLEMENTATIONS[:], _DIALECTS[:] = before[0], before[1]
    for dialect, operations in before[2].items():
        dialect.operations[:] = operations


def python_dialects_in(ops: Iterable[ir.Operation]) -> tuple[str, ...]:
    """Returns the names of the dialects written in Python that the ops belong to, each once.

    Args:
        ops: of any dialects.
    """
    names = {dialect.DIALECT_NAMESPACE for dialect in _DIALECTS}
    return tuple(dict.fromkeys(prefix for prefix in (op.name.partition(".")[0] for op in ops) if prefix in names))
