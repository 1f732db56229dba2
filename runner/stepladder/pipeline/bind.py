"""Writes the values of knobs into a pipeline's transform module."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import attributes_of, walk
from stepladder.payload.facts import FACTS
from stepladder.pipeline.definition import Knobs, KnobValue, Pipeline, Step, value_text
from stepladder.pipeline.expressions import ExpressionError, Scope, UnknownName, Value, evaluate
from stepladder.pipeline.sequences import knob_ops, sequences_of
from stepladder.runtime.errors import StepladderError


def bind(pipeline: Pipeline, steps: Sequence[Step], knobs: Knobs, scope: Scope, payload: ir.Module) -> None:
    """Writes the knobs' values into a pipeline's module: into the knob ops, and into attributes that follow knobs.

    Args:
        pipeline: whose module is written.
        steps: the steps that run. The others are not bound: a run from a dump lacks values that earlier steps follow.
        knobs: the value of every knob.
        scope: the values that expressions depend on (`knobs.evaluation_scope`).
        payload: what the pipeline runs over, for messages.

    Raises:
        StepladderError: an expression that cannot be evaluated, with the op's location in the script; or one of a
            property of the product, which the payload has none of.
    """
    for op in knob_ops(pipeline):
        value = knobs[op.attributes["name"].value]
        op.attributes["selected"] = _knob_attribute(value)

    bodies = [pipeline.sequence, *sequences_of(pipeline, steps)]
    ops = [op for body in bodies for op in walk(body) if "knobs" in op.attributes]
    for op in ops:
        entries = ir.DictAttr(op.attributes["knobs"])
        for index in range(len(entries)):
            try:
                _follow(op, entries[index].name, entries[index].attr.value, scope)
            except UnknownName as unknown:
                raise _unknown(op, unknown.name, payload) from None
        del op.attributes["knobs"]


def _knob_attribute(value: KnobValue) -> ir.Attribute:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    return ir.StringAttr.get(value)


def _unknown(op: ir.Operation, fact: str, payload: ir.Module) -> StepladderError:
    """Returns the error of an op that follows a property of the product, in IR without a product."""
    ops = walk(payload, "gpu.launch") or walk(payload, "gpu.launch_func") or walk(payload, "func.func")
    return StepladderError(
        "no product in the IR: the pipeline needs that of a linalg.matmul, a vector.contract or an xetile.tile_mma",
        location=diagnostics.location_text(ops[0].location) if ops else None,
        notes=[f"{op.name} at {diagnostics.location_text(op.location)} follows '{fact}'"],
    )


def _follow(op: ir.Operation, name: str, expression: str, scope: Scope) -> None:
    """Gives an op's attribute the value of an expression over knobs."""
    location = diagnostics.location_text(op.location)
    try:
        value = evaluate(expression, scope)
    except UnknownName as unknown:
        if unknown.name in FACTS:
            raise
        raise StepladderError(f"{op.name}: {name} = {expression}: {unknown}", location=location) from None
    except ExpressionError as error:
        raise StepladderError(f"{op.name}: {name} = {expression}: {error}", location=location) from None
    if name not in _OF_RESULT and name not in op.attributes:
        raise StepladderError(f"{op.name} has no attribute '{name}' to follow '{expression}'", location=location)
    try:
        if name == "shape":
            _retype_result(op, _numbers(value), None)
        elif name == "element_type":
            _retype_result(op, None, str(value))
        else:
            op.attributes[name] = _attribute_like(op.attributes[name], value)
    except (TypeError, ValueError, IndexError, RuntimeError):  # the last is what a bad cast in the bindings raises
        raise StepladderError(
            f"{op.name}: {name} = {expression}: the attribute cannot be {_text(value)}", location=location
        ) from None


# The text after a knob in the result of the op in the region of a `transform.structured.replace`.
_OF_RESULT = ("shape", "element_type")


def _attribute_like(old: ir.Attribute, value: Value) -> ir.Attribute:
    """Returns an attribute of the kind of `old` with another value; raises TypeError where there is none."""
    match old:
        case ir.DenseI64ArrayAttr():
            return ir.DenseI64ArrayAttr.get(_numbers(value))
        case ir.BoolAttr():
            return ir.BoolAttr.get(bool(value))
        case ir.IntegerAttr():
            return ir.IntegerAttr.get(old.type, _number(value))
        case ir.StringAttr():
            return ir.StringAttr.get(str(value))
        case ir.TypeAttr():
            return ir.TypeAttr.get(ir.Type.parse(str(value)))
        case ir.ArrayAttr():
            return ir.ArrayAttr.get([ir.IntegerAttr.get(old[0].type, element) for element in _numbers(value)])
    raise TypeError(f"attributes like {old} do not follow knobs")


def _retype_result(op: ir.Operation, shape: Sequence[int] | None, element_type: str | None) -> None:
    """Gives the one op in the region of a `transform.structured.replace` a memref of another shape or element type."""
    body = op.regions[0].blocks[0]
    old = body.operations[0].operation
    type_ = ir.MemRefType(old.results[0].type)
    element = type_.element_type if element_type is None else ir.Type.parse(element_type)
    result_type = ir.MemRefType.get(type_.shape if shape is None else shape, element, memory_space=type_.memory_space)
    with ir.InsertionPoint.at_block_begin(body):
        new = ir.Operation.create(
            old.name,
            results=[result_type],
            operands=list(old.operands),
            attributes=attributes_of(old),
            loc=old.location,
        )
    old.results[0].replace_all_uses_with(new.results[0])
    old.erase()


def _number(value: Value) -> int:
    """Returns a value that must be an integer; raises TypeError where it is not."""
    if not isinstance(value, int):
        raise TypeError(f"{value} is not an integer")
    return value


def _numbers(value: Value) -> list[int]:
    """Returns a value that must be a list of integers; raises TypeError where it is not."""
    if not isinstance(value, list):
        raise TypeError(f"{value} is not a list")
    return [_number(element) for element in value]


def _text(value: Value) -> str:
    return str(value) if isinstance(value, list) else value_text(value)
