"""Reads the problem in a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepladder.runtime.bundle.fields import Fields
from stepladder.runtime.bundle.manifest import EPILOGUE_ROLES, LAYOUTS, RESULT_ROLES
from stepladder.runtime.element_types import ELEMENT_TYPES, OPERAND_TYPES
from stepladder.runtime.problem import EpilogueOperand, FurtherResult, Problem, Window

# Fields of a problem that have fields of their own.
_NESTED = {
    "epilogue_operands": EpilogueOperand,
    "results": FurtherResult,
    "a_source": EpilogueOperand,
    "b_source": EpilogueOperand,
    "a_window": Window,
    "b_window": Window,
    "c_window": Window,
}


def parse_problem(fields: Fields) -> Problem:
    """Returns a manifest's `problem`.

    Args:
        fields: of the problem.

    Raises:
        StepladderError: a field is missing, or has a value that no problem has; names it.
    """
    a_type = fields.string("a_type", OPERAND_TYPES)
    # Layouts and the type of the products came later: bundles without them are row-major, multiplied in A's type.
    return Problem(
        kind=fields.string("kind", ("matmul",)),
        m=fields.integer("m", 1),
        n=fields.integer("n", 1),
        k=fields.integer("k", 1),
        a_type=a_type,
        b_type=fields.string("b_type", ELEMENT_TYPES),
        acc_type=fields.string("acc_type", ELEMENT_TYPES),
        c_type=fields.string("c_type", ELEMENT_TYPES),
        accumulate=fields.boolean("accumulate"),
        a_layout=fields.string("a_layout", LAYOUTS, default="row"),
        b_layout=fields.string("b_layout", LAYOUTS, default="row"),
        compute_type=fields.string("compute_type", (a_type, "tf32") if a_type == "f32" else (a_type,), default=a_type),
        # Batches came later as well.
        batch=fields.integer("batch", 1) if fields.data.get("batch") is not None else None,
        a_broadcast=fields.boolean("a_broadcast", default=False),
        b_broadcast=fields.boolean("b_broadcast", default=False),
        b_is_a=fields.boolean("b_is_a", default=False),
        consumers=fields.strings("consumers") if "consumers" in fields.data else (),
        epilogue_operands=_parse_epilogue(fields),
        results=_parse_results(fields),
        second_b=_parse_second_b(fields),
        producers=fields.strings("producers") if "producers" in fields.data else (),
        a_source=_parse_source(fields, "a_source"),
        b_source=_parse_source(fields, "b_source"),
        a_window=_parse_window(fields, "a_window"),
        b_window=_parse_window(fields, "b_window"),
        c_window=_parse_window(fields, "c_window"),
        fits_tf32=fields.boolean("fits_tf32", default=False),
    )


def problem_of(data: Mapping[str, Any]) -> Problem:
    """Returns the problem of a result of `bench`.

    Args:
        data: its fields, as `dataclasses.asdict` gives them, or as they are read from JSON.
    """
    fields = _with_tuples(data)
    for name, kind in _NESTED.items():
        value = fields.get(name)
        if isinstance(value, tuple):
            fields[name] = tuple(kind(**_with_tuples(item)) for item in value)
        elif value is not None:
            fields[name] = kind(**_with_tuples(value))
    return Problem(**fields)


def _with_tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


def _parse_second_b(fields: Fields) -> int | None:
    """Returns which operand of the elementwise ops is the B of a second product; None without the field."""
    if "second_b" not in fields.data:
        return None
    number, count = fields.integer("second_b", 0), len(_parse_epilogue(fields))
    if number >= count:
        raise fields.error("second_b", f"must be below {count}, the number of epilogue_operands, got {number}")
    return number


def _parse_source(fields: Fields, name: str) -> EpilogueOperand | None:
    """Returns the buffer that an operand of a problem is prepared from, if it is."""
    if name not in fields.data:
        return None
    item = fields.object(name)
    return EpilogueOperand(item.string("element_type", ELEMENT_TYPES), item.extents("shape"))


def _parse_window(fields: Fields, name: str) -> Window | None:
    """Returns the part of a buffer that an operand of a problem is, if it is one."""
    if name not in fields.data:
        return None
    item = fields.object(name)
    shape, strides = item.extents("shape"), item.integers("strides")
    return Window(shape, item.integer("offset", 0), strides, item.extents("batch") if "batch" in item.data else ())


def _parse_epilogue(fields: Fields) -> tuple[EpilogueOperand, ...]:
    """Returns a problem's operands of elementwise ops; bundles without the field have none."""
    items = fields.objects("epilogue_operands") if "epilogue_operands" in fields.data else []
    if len(items) > len(EPILOGUE_ROLES):
        raise fields.error("epilogue_operands", f"must have at most {len(EPILOGUE_ROLES)} entries, got {len(items)}")
    return tuple(map(_parse_operand, items))


def _parse_operand(fields: Fields) -> EpilogueOperand:
    """Returns an operand of elementwise ops: a buffer, or a scalar, which came later and has no extents."""
    by_value = fields.boolean("by_value", default=False)
    shape = fields.extents("shape", 0 if by_value else None)
    return EpilogueOperand(fields.string("element_type", ELEMENT_TYPES), shape, by_value)


def _parse_results(fields: Fields) -> tuple[FurtherResult, ...]:
    """Returns a problem's results beside C; bundles without the field have none."""
    items = fields.objects("results") if "results" in fields.data else []
    if len(items) > len(RESULT_ROLES):
        raise fields.error("results", f"must have at most {len(RESULT_ROLES)} entries, got {len(items)}")
    return tuple(FurtherResult(item.string("element_type", ELEMENT_TYPES), item.extents("shape")) for item in items)
