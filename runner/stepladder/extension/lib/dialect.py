"""The `tc` dialect: transform ops for what upstream has no op for, written in Python.

Each op stands in a module of its own and registers itself with `@transform_op`. `extension.load` makes them known to
a context. Their text form is generic: `"tc.hoist_prefetch"(%module) : (!transform.any_op) -> ()`.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ext, ir, transform

Result = transform.DiagnosedSilenceableFailure


class Tc(ext.Dialect, name="tc"):
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


def transform_op(op_class: type):
    """Registers a function `rewrite(payload_op, op, rewriter)` as what `op_class` does to each op of its first handle.

    The function refuses by raising `Refusal`: the payload op's location and the message become the diagnostic, and the
    transform op fails silenceably, as upstream ops do.
    """

    def register(rewrite):
        class Implementation(transform.TransformOpInterface):
            @staticmethod
            def apply(op, rewriter, results, state):
                for payload in state.get_payload_ops(op.target):
                    try:
                        rewrite(payload.operation, op, rewriter)
                    except Refusal as refusal:
                        refusal.payload.location.emit_error(f"{op.OPERATION_NAME}: {refusal}")
                        return Result.SilenceableFailure
                return Result.Success

            @staticmethod
            def allow_repeated_handle_operands(op):
                return False

        _IMPLEMENTATIONS.append((op_class, Implementation))
        return rewrite

    return register


def attach_all(context) -> None:
    """Attaches the interface implementations of every registered op in `context`."""
    for op_class, implementation in _IMPLEMENTATIONS:
        # Both or none: a transform op without declared effects takes the process down.
        implementation.attach(op_class.OPERATION_NAME, context=context)
        ModifiesPayloadInside.attach(op_class.OPERATION_NAME, context=context)


def is_workgroup_memory(type_) -> bool:
    """Tells whether a memref type lies in the shared memory of a block."""
    space = ir.MemRefType(type_).memory_space
    return space is not None and "workgroup" in str(space)


def producer(value):
    """Returns the op that defines a value, or None for a block argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation
