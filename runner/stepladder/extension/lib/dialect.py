"""The `tc` dialect: transform ops for what upstream has no op for, written in Python.

Each op stands in a module of its own and registers itself with `@transform_op`. `extension.load` makes them known to
a context. Their text form is generic: `"tc.hoist_prefetch"(%module) : (!transform.any_op) -> ()`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from stepladder.extension.lib import faults
from stepladder.mlir.bindings import ext, ir, set_dialect_module, transform

Result = transform.DiagnosedSilenceableFailure
Dialect = ext.Dialect

# The types of an op's fields: a handle to payload ops that it takes, and one that it returns.
Handle = ext.Operand[transform.AnyOpType]
HandleResult = ext.Result[transform.AnyOpType]


class Tc(Dialect, name="tc"):
    """Transform ops of this project."""


class ModifiesPayloadInside(ir.MemoryEffectsOpInterface):
    """Effects of an op that changes the payload below its handles and keeps the handles valid."""

    @staticmethod
    def get_effects(op, effects):
        transform.only_reads_handle(op.op_operands, effects)
        transform.produces_handle(op.results, effects)
        transform.modifies_payload(effects)


class Refusal(Exception):
    """What an op does not accept: the payload op in question, and why."""

    def __init__(self, payload, message: str):
        super().__init__(message)
        self.payload = payload


_IMPLEMENTATIONS: list[tuple[type, type]] = []
_DIALECTS: list[type] = [Tc]


def _check_op_class(op_class: type) -> None:
    """Refuses what the interfaces below cannot be attached to: MLIR would crash on it."""
    fields = {field.name: field for field in getattr(op_class, "_fields", ())}
    if not getattr(op_class, "OPERATION_NAME", None):
        raise TypeError(
            f"{getattr(op_class, '__name__', op_class)} is no op of a dialect: derive it from the "
            "dialect's Operation, with a name"
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
    if any(name == known.OPERATION_NAME for known, _ in _IMPLEMENTATIONS):
        raise TypeError(f"{name} has an implementation already")


def transform_op(op_class: type) -> Callable[[Callable], Callable]:
    """Registers a function `rewrite(payload_op, op, rewriter)` as what `op_class` does to each op of its handle
    `target`.

    The function refuses by raising `Refusal`: the payload op's location and the message become the diagnostic, and the
    transform op fails silenceably, as upstream ops do. Any other exception is an error of the op itself: it is
    reported with its place in Python, and the transform op fails definitely. For an op with a result, the function
    returns the payload op, or the list of payload ops, that the result is to hold.

    Args:
        op_class: an op of `Tc` or of another `Dialect`, with a field `target: Handle`.

    Raises:
        TypeError: a class that is no such op, or that has an implementation already.
    """
    _check_op_class(op_class)
    has_result = any(isinstance(field, ext.ResultDef) for field in op_class._fields)

    def register(rewrite):
        class Implementation(transform.TransformOpInterface):
            @staticmethod
            def apply(op, rewriter, results, state):
                found: list = []
                for payload in state.get_payload_ops(op.target):
                    try:
                        produced = rewrite(payload.operation, op, rewriter)
                        if has_result:
                            found += _payload_ops(rewrite, produced)
                    except Refusal as refusal:
                        refusal.payload.location.emit_error(f"{op.OPERATION_NAME}: {refusal}")
                        return Result.SilenceableFailure
                    except Exception as error:  # without a diagnostic, its place in the script would be lost
                        op.location.emit_error(faults.record(op.OPERATION_NAME, error))
                        return Result.DefiniteFailure
                if has_result:
                    results.set_ops(op.results[0], found)
                return Result.Success

            @staticmethod
            def allow_repeated_handle_operands(op):
                return False

        _IMPLEMENTATIONS.append((op_class, Implementation))
        register_dialect(op_class._dialect_obj)
        return rewrite

    return register


def _payload_ops(rewrite: Callable, produced: object) -> list:
    """Returns what a rewrite function gave for the result of its op, as a list of payload ops."""
    found = list(produced) if isinstance(produced, (list, tuple)) else [produced]
    for op in found:
        if not isinstance(op, (ir.Operation, ir.OpView)):
            code = rewrite.__code__
            place = f"{code.co_filename}:{code.co_firstlineno}"
            raise TypeError(
                f"the op has a result, for which {code.co_name} at {place} returned {op!r}, which is no payload op"
            )
    return [op.operation for op in found]


def register_dialect(dialect: type) -> None:
    """Adds a dialect to those that `load` makes known to a context; an op with `@transform_op` adds its own."""
    if dialect not in _DIALECTS:
        _DIALECTS.append(dialect)


def dialects() -> tuple[type, ...]:
    """Returns the dialects that are written in Python, `Tc` first."""
    return tuple(_DIALECTS)


def load() -> None:
    """Makes every dialect written in Python known to the current MLIR context; once a context."""
    for dialect in _DIALECTS:
        for op_class in dialect.operations:
            _guard_verifier(op_class)
        dialect.load()
        set_dialect_module(dialect.DIALECT_NAMESPACE, sys.modules[__name__])
    for op_class, implementation in _IMPLEMENTATIONS:
        # Both or none: a transform op without declared effects takes the process down.
        implementation.attach(op_class.OPERATION_NAME, context=ir.Context.current)
        ModifiesPayloadInside.attach(op_class.OPERATION_NAME, context=ir.Context.current)


def _guard_verifier(op_class: type) -> None:
    """Makes a Python error in an op's verifier a diagnostic at the op."""
    verify = op_class.__dict__.get("verify_invariants")
    if verify is None or hasattr(verify, "guarded"):
        return

    def verify_invariants(op) -> bool:
        try:
            return verify(op)
        except Exception as error:
            op.location.emit_error(faults.record(op_class.OPERATION_NAME, error))
            return False

    verify_invariants.guarded = True
    op_class.verify_invariants = verify_invariants


def registered() -> tuple[list, list, dict[type, list]]:
    """Returns what is registered, for `restore`."""
    return list(_IMPLEMENTATIONS), list(_DIALECTS), {dialect: list(dialect.operations) for dialect in _DIALECTS}


def restore(before: tuple[list, list, dict[type, list]]) -> None:
    """Takes back what was registered since `registered` returned `before`."""
    _IMPLEMENTATIONS[:], _DIALECTS[:] = before[0], before[1]
    for dialect, operations in before[2].items():
        dialect.operations[:] = operations


def python_dialects_in(ops: Iterable) -> tuple[str, ...]:
    """Returns the names of the dialects written in Python that some ops are of, each once."""
    names = {dialect.DIALECT_NAMESPACE for dialect in _DIALECTS}
    return tuple(dict.fromkeys(prefix for prefix in (op.name.partition(".")[0] for op in ops) if prefix in names))


def is_workgroup_memory(type_) -> bool:
    """Tells whether a memref type lies in the shared memory of a block."""
    space = ir.MemRefType(type_).memory_space
    return space is not None and "workgroup" in str(space)


def producer(value):
    """Returns the op that defines a value, or None for a block argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation
