"""The attributes of pipelines and steps that the runner reads: their names, kinds of values, and checks.

They are discardable attributes of named sequences, which a stock mlir-opt ignores: without a check, a misspelt one
would have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ir
from stepladder.pipeline.expressions import ExpressionError, names
from stepladder.runtime.errors import StepladderError, suggest

# Attributes that every named sequence has. A name with a dot belongs to the dialect before it.
_OF_THE_OP = ("sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs")
_MATCH = "transform.structured.match"


@dataclass(frozen=True)
class Attribute:
    """An attribute of a sequence.

    Args:
        holds: what its value is, for messages.
        example: how it is written.
        fits: whether a value is of that kind.
        expressions: the texts in a value that are expressions over knobs.
    """

    holds: str
    example: str
    fits: Callable[[ir.Attribute], bool]
    expressions: Callable[[ir.Attribute], Iterable[str]] = lambda attribute: ()


def _is_unit(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.UnitAttr)


def _is_texts(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.ArrayAttr) and all(isinstance(element, ir.StringAttr) for element in attribute)


def _entries(attribute: ir.Attribute) -> dict[str, ir.Attribute]:
    dictionary = ir.DictAttr(attribute)
    return {entry.name: entry.attr for entry in (dictionary[number] for number in range(len(dictionary)))}


def _is_texts_by_name(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.DictAttr) and all(
        isinstance(value, ir.StringAttr) for value in _entries(attribute).values()
    )


def _is_values_by_name(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.DictAttr) and all(
        isinstance(value, (ir.BoolAttr, ir.IntegerAttr, ir.StringAttr)) for value in _entries(attribute).values()
    )


def _is_requirements(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.ArrayAttr) and all(
        _is_texts_by_name(entry)
        and set(_entries(entry)) == {"condition", "message"}
        and all(text.strip() for text in _texts_by_name(entry))
        for entry in attribute
    )


def _conditions(attribute: ir.Attribute) -> list[str]:
    return [ir.StringAttr(_entries(entry)["condition"]).value for entry in ir.ArrayAttr(attribute)]


def _is_text(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.StringAttr)


def _text(attribute: ir.Attribute) -> list[str]:
    return [ir.StringAttr(attribute).value]


def _texts_by_name(attribute: ir.Attribute) -> list[str]:
    return [ir.StringAttr(value).value for value in _entries(attribute).values()]


OF_STEPS = {
    "optimization": Attribute("no value", "optimization", _is_unit),
    "needs": Attribute("a list of step names", 'needs = ["multi_buffer"]', _is_texts),
    "requires": Attribute(
        "a list of conditions, each with a message",
        'requires = [{condition = "block_m % warp_m == 0", message = "block_m must be a multiple of warp_m"}]',
        _is_requirements,
        _conditions,
    ),
    "when": Attribute("an expression over knobs", 'when = "split_k > 1"', _is_text, _text),
    "left_out": Attribute("numbers, booleans or texts by knob", "left_out = {stages = 1 : i64}", _is_values_by_name),
    "facts": Attribute(
        "expressions by fact of the payload", 'facts = {m = "n", n = "m"}', _is_texts_by_name, _texts_by_name
    ),
}
OF_PIPELINES = {
    "derived": Attribute(
        "expressions over knobs by name", 'derived = {threads = "warps * 32"}', _is_texts_by_name, _texts_by_name
    ),
    "whole_function": Attribute("no value", "whole_function", _is_unit),
    "program_step": Attribute("the name of a step", 'program_step = "distribute_to_subgroups"', _is_text),
    "program_knobs": Attribute(
        "expressions by knob", 'program_knobs = {block_m = "tile_m"}', _is_texts_by_name, _texts_by_name
    ),
}
OF_OPS = {
    "knobs": Attribute("expressions over knobs by attribute", 'knobs = {factor = "stages"}', _is_texts_by_name),
}


def check_step(sequence: ir.Operation, name: str) -> None:
    """Checks the attributes of a step's sequence and of the ops in it.

    Args:
        sequence: the step's `transform.named_sequence`.
        name: the step's, for the error.

    Raises:
        StepladderError: an attribute that steps do not have, or a value of another kind; with its location and what is
            accepted.
    """
    _check(sequence, f"step '{name}'", OF_STEPS, "pipeline", OF_PIPELINES)


def check_pipeline(sequence: ir.Operation, name: str) -> None:
    """Checks the attributes of a pipeline's sequence.

    Args:
        sequence: the pipeline's `transform.named_sequence`.
        name: of the pipeline, for messages.

    Raises:
        StepladderError: as `check_step`.
    """
    _check(sequence, f"pipeline '{name}'", OF_PIPELINES, "step", OF_STEPS)


def check_declaration(sequence: ir.Operation, name: str) -> None:
    """Checks that the declaration of a step that another file defines has no attributes, where none is read.

    Args:
        sequence: the declaration, a `transform.named_sequence` without a body.
        name: of the step, for the message.

    Raises:
        StepladderError: it has one.
    """
    for attribute in _own_attributes(sequence):
        raise StepladderError(
            f"attribute '{attribute}' is on the declaration of step '{name}'",
            location=diagnostics.location_text(sequence.location),
            notes=["attributes of a step are where it is defined"],
        )


def check_included(sequence: ir.Operation, name: str, step: str) -> None:
    """Checks that a sequence which a step includes has no attributes of steps, since only a pipeline's includes read
    them.

    Args:
        sequence: the included `transform.named_sequence`.
        name: of the sequence, for the message.
        step: name of the step that includes it, for the message.

    Raises:
        StepladderError: it has one.
    """
    for attribute in _own_attributes(sequence):
        raise StepladderError(
            f"attribute '{attribute}' is on sequence '{name}', which step '{step}' includes",
            location=diagnostics.location_text(sequence.location),
            notes=["attributes of a step are read where a pipeline includes it"],
        )


def check_knobs(op: ir.Operation) -> None:
    """Checks the attribute `knobs` of an op, where it has one.

    Args:
        op: a transform op.

    Raises:
        StepladderError: it is no dictionary of expressions.
    """
    if "knobs" in op.attributes:
        _check_kind(op, op.name, "knobs", OF_OPS["knobs"])


def check_matched_ops(op: ir.Operation) -> None:
    """Checks that the ops which `transform.structured.match` looks for exist: a misspelt one would match nothing, and
    the step would leave the payload as it is.

    Args:
        op: a transform op.

    Raises:
        StepladderError: it names an op of no registered dialect.
    """
    if op.name != _MATCH or "ops" not in op.attributes:
        return
    for name in (ir.StringAttr(text).value for text in ir.ArrayAttr(op.attributes["ops"])):
        if not op.context.is_registered_operation(name):
            raise StepladderError(
                f"{_MATCH} looks for '{name}', which is not an op of upstream MLIR or of a loaded dialect",
                location=diagnostics.location_text(op.location),
                notes=["ops of your own are loaded by --plugin FILE.py"],
            )


def _own_attributes(sequence: ir.Operation) -> list[str]:
    attributes = sequence.attributes
    attribute_names = [attributes[number].name for number in range(len(attributes))]
    return [name for name in attribute_names if name not in _OF_THE_OP and "." not in name]


def _check(
    sequence: ir.Operation,
    what: str,
    accepted: Mapping[str, Attribute],
    other_kind: str,
    others: Mapping[str, Attribute],
) -> None:
    location = diagnostics.location_text(sequence.location)
    for name in _own_attributes(sequence):
        if name in others:
            raise StepladderError(
                f"{what} has an attribute '{name}', which belongs on a {other_kind}", location=location
            )
        if name not in accepted:
            raise StepladderError(
                f"{what} has an unknown attribute '{name}'{suggest(name, list(accepted))}",
                location=location,
                notes=[f"known are: {', '.join(accepted)}"],
            )
        _check_kind(sequence, what, name, accepted[name])
        for expression in accepted[name].expressions(sequence.attributes[name]):
            try:
                names(expression)
            except ExpressionError as error:
                raise StepladderError(f"{what}: {name}: {error}", location=location) from None


def _check_kind(op: ir.Operation, what: str, name: str, attribute: Attribute) -> None:
    value = op.attributes[name]
    if not attribute.fits(value):
        raise StepladderError(
            f"{what}: attribute '{name}' must hold {attribute.holds}, for example {attribute.example}, got "
            f"{diagnostics.shorten(str(value))}",
            location=diagnostics.location_text(op.location),
        )
