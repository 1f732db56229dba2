"""StableHLO, as JAX writes it, lowered to linalg on tensors by the passes that torch-mlir's bindings come with.

The bindings have the passes, but no Python module that registers the dialect: converting an empty module from torch's
dialect loads it into the context.
"""

from __future__ import annotations

import importlib
import re

from stepladder.mlir.bindings import PREFIX, ir, passmanager
from stepladder.mlir.diagnostics import from_error, location_text, name_payload
from stepladder.mlir.traverse import walk
from stepladder.mlir.types import element_of
from stepladder.payload.arguments import ALIAS
from stepladder.payload.stablehlo import (
    algorithms,
    control_flow,
    empty_tensors,
    functions,
    orders,
    powers,
    reductions,
    scatters,
    slices,
    torch_ops,
    unsigned,
    window_gradients,
)
from stepladder.runtime.errors import StepladderError

_OP = re.compile(r"^\s*(?:%\S+(?:, %\S+)* = )?\"?(?:stablehlo|tm_tensor)\.", re.MULTILINE)
# Random numbers of JAX, and of StableHLO.
_RANDOM = re.compile(r"(@\w*threefry\w*|stablehlo\.rng\w*)\b")
_LOADS = "builtin.module(func.func(convert-torch-to-stablehlo,convert-torch-to-tmtensor))"
_INLINES = "builtin.module(inline,symbol-dce)"
_LOWERS = "builtin.module(stablehlo-legalize-to-linalg,canonicalize,cse)"
_CALL = "stablehlo.custom_call"
_OF_TORCH = "tm_tensor."
# What JAX says of a tensor by a call that returns it: which parts of it devices hold, and in which memory.
_ANNOTATIONS = ("Sharding", "annotate_device_placement")
# Attributes of JAX, of dialects that are not there.
_FOREIGN = ("mhlo.", "jax.", "tf.", "sdy.")


def is_stablehlo(text: str) -> bool:
    """Returns whether a payload has ops of StableHLO, or of CHLO or torch-mlir's `tm_tensor`, whose ops become those.

    Args:
        text: of the payload, before it is parsed.
    """
    return _OP.search(text) is not None or functions.has_chlo(text)


def register_torch_ops(text: str, name: str) -> None:
    """Registers the dialects of torch-mlir with the current context, where a payload has ops of `tm_tensor`.

    Args:
        text: the payload; `name`: its file, for messages.

    Raises:
        StepladderError: bindings without these dialects.
    """
    if _OF_TORCH in text:
        _register(ir.Context.current, name)
        passmanager.PassManager.parse(_LOADS).run(ir.Module.create().operation)


def lowered(text: str, name: str, *, is_bound: bool = False) -> str:
    """Returns a payload in StableHLO as linalg on tensors; any other one as it is.

    Args:
        text: the payload; `name`: its file, for messages.
        is_bound: whether sizes of arguments are as they will be; else ops of `tm_tensor` of dynamic sizes stay.

    Raises:
        StepladderError: bindings without the passes, text that does not parse, or an op that they do not lower.
    """
    if not is_stablehlo(text):
        return text
    drawn = _RANDOM.search(text)
    if drawn is not None:
        raise StepladderError(
            f"'{drawn[1]}' draws random numbers, which kernels do not",
            location=f"{name}:{text.count(chr(10), 0, drawn.start()) + 1}",
            notes=["accepted: random numbers as an argument, which the caller draws"],
        )
    text = functions.parsed_forms(text, name)
    with ir.Context() as context, ir.Location.unknown():
        _register(context, name)
        name_payload(name)
        passmanager.PassManager.parse(_LOADS).run(ir.Module.create().operation)
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            raise _refusal(error, name, "") from None
        if not is_bound and torch_ops.has_dynamic_sizes(module):
            return text
        try:
            passmanager.PassManager.parse(_INLINES).run(module.operation)
            _rewrite(module)
            passmanager.PassManager.parse(_LOWERS).run(module.operation)
        except ir.MLIRError as error:
            raise _refusal(error, name, "StableHLO is not lowered to linalg: ") from None
        _refuse_left(module)
        _drop_foreign(module)
        return module.operation.get_asm(enable_debug_info=True)


def _refusal(error: ir.MLIRError, name: str, prefix: str) -> StepladderError:
    """Returns the refusal of a payload for an error of MLIR, whose first message it has."""
    found = from_error(error)
    message, location = (found[0].message, found[0].location) if found else (str(error), "")
    return StepladderError(prefix + message, location=location or name)


def _register(context: ir.Context, name: str) -> None:
    """Registers torch's dialect, from which a conversion loads StableHLO."""
    try:
        torch = importlib.import_module(f"{PREFIX}.dialects.torch")
    except ImportError:
        raise StepladderError(
            "StableHLO is lowered by passes that torch-mlir's bindings have, and these have not", location=name
        ) from None
    context.allow_unregistered_dialects = True
    torch.register_dialect(context)


def _rewrite(module: ir.Module) -> None:
    """Rewrites the ops that the passes do not lower, or not to structured ops, to others of StableHLO or tensor."""
    control_flow.unroll(module)
    annotations = [op for op in walk(module, _CALL) if _is_annotation(op)]
    for op in [*walk(module, "stablehlo.optimization_barrier"), *annotations]:
        for result, operand in zip(op.results, op.operands):
            result.replace_all_uses_with(operand)
        op.erase()
    empty_tensors.drop(module)
    torch_ops.rewrite(module)
    algorithms.rewrite(module)
    reductions.rewrite_unsigned_places(module)
    powers.rewrite(module)
    unsigned.rewrite(module)
    functions.rewrite(module)
    orders.rewrite(module)
    scatters.rewrite(module)
    slices.rewrite(module)
    reductions.rewrite(module)
    window_gradients.rewrite(module)
    for op in walk(module, "stablehlo.select_and_scatter"):  # lowered to a form that nothing computes
        raise StepladderError(
            f"'{op.name}' that does not add to zeros where windows have an extremum is not computed",
            location=location_text(op.location),
            notes=["accepted: the gradient of a max pooling, whose padding is a stablehlo.pad, of up to 64 elements"],
        )
    _concatenate(module)
    _broadcast(module)


def _target(call: ir.Operation) -> str:
    """Returns the name of what a `stablehlo.custom_call` calls."""
    return ir.StringAttr(call.attributes["call_target_name"]).value


def _is_annotation(call: ir.Operation) -> bool:
    """Returns whether a `stablehlo.custom_call` returns what it takes."""
    types = [[value.type for value in values] for values in (call.operands, call.results)]
    return _target(call) in _ANNOTATIONS and types[0] == types[1]


def _refuse_left(module: ir.Module) -> None:
    """Refuses ops of StableHLO that the passes left, complex numbers, and casts between its types and others."""
    left = [op for op in walk(module) if op.name.startswith("stablehlo.")]
    if left:
        first = min(left, key=lambda op: op.name == "stablehlo.return")  # others before the ends of their functions
        name = f"'{first.name}'" + (f" of @{_target(first)}" if first.name == _CALL else "")
        raise StepladderError(f"{name} is not lowered to linalg", location=location_text(first.location))
    for op in walk(module):
        of_complex = [value.type for value in op.results if isinstance(element_of(value.type), ir.ComplexType)]
        if of_complex:
            raise StepladderError(
                f"a value of complex numbers, {of_complex[0]}",
                location=location_text(op.location),
                notes=["accepted: real and imaginary parts, in tensors of their own"],
            )
    for op in walk(module, "builtin.unrealized_conversion_cast"):  # of arguments and results
        raise StepladderError(
            f"StableHLO is not lowered to linalg: a cast of {op.operands[0].type} to {op.results[0].type} is left",
            location=location_text(op.location),
            notes=["accepted: elements of floating point, and integers such as i8 and i32, not ui8"],
        )


def _drop_foreign(module: ir.Module) -> None:
    """Removes attributes of JAX; those that donate the memory of arguments stay."""
    for op in [module.operation, *walk(module, "func.func")]:
        kept = _donated(op)
        for attribute in [op.attributes[index].name for index in range(len(op.attributes))]:
            if attribute.startswith(_FOREIGN) or attribute in ("arg_attrs", "res_attrs"):
                del op.attributes[attribute]
        if kept is not None:
            op.attributes["arg_attrs"] = kept


def _donated(op: ir.Operation) -> ir.ArrayAttr | None:
    """Returns the attributes of a function's arguments that name results which take their memory; None for none."""
    if "arg_attrs" not in op.attributes:
        return None
    marks = [ir.DictAttr(item) for item in ir.ArrayAttr(op.attributes["arg_attrs"])]
    if not any(ALIAS in mark for mark in marks):
        return None
    return ir.ArrayAttr.get([ir.DictAttr.get({ALIAS: mark[ALIAS]} if ALIAS in mark else {}) for mark in marks])


def _concatenate(module: ir.Module) -> None:
    """Replaces concatenations by those of tensors: upstream's lowering writes a branch for each element."""
    for op in walk(module, "stablehlo.concatenate"):
        types = [op.results[0].type, *(operand.type for operand in op.operands)]
        if all(ir.RankedTensorType(type_).has_static_shape for type_ in types):
            attributes: dict[str, ir.Attribute] = {"dim": op.attributes["dimension"]}
            with ir.InsertionPoint(op), op.location:
                made = ir.Operation.create(
                    "tensor.concat", results=types[:1], operands=list(op.operands), attributes=attributes
                )
            op.results[0].replace_all_uses_with(made.results[0])
            op.erase()


def _broadcast(module: ir.Module) -> None:
    """Gives selects and clamps by single elements operands of their shape: upstream's lowering reads such an element
    beside the op, which no kernel does. JAX writes them for variances, whose count of elements it compares with 0."""
    for op in walk(module, "stablehlo.select", "stablehlo.clamp"):
        whole = ir.RankedTensorType(op.results[0].type)
        if not whole.rank or not whole.has_static_shape:
            continue
        for place, operand in enumerate(op.operands):
            type_ = ir.RankedTensorType(operand.type)
            if not type_.rank:
                with ir.InsertionPoint(op), op.location:
                    made = ir.Operation.create(
                        "stablehlo.broadcast_in_dim",
                        results=[ir.RankedTensorType.get(whole.shape, type_.element_type)],
                        operands=[operand],
                        attributes={"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])},
                    )
                op.operands[place] = made.results[0]
