"""Arguments that are buffers with gaps, whose rows have a pitch."""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import defining_op
from stepladder.mlir.windows import place_of, span_of, window
from stepladder.payload.signature import set_signature


def pitched_arguments(function: ir.Operation) -> list[ir.Value]:
    """Returns the arguments of a function, of those that it uses, that are dense rows with a layout of their own.

    Args:
        function: a `func.func` with a body.
    """
    return [
        argument
        for argument in function.regions[0].blocks[0].arguments
        if isinstance(argument.type, ir.MemRefType) and list(argument.uses) and _is_strided(argument.type)
    ]


def _is_strided(type_: ir.MemRefType) -> bool:
    return place_of(type_) is not None and type_.affine_map != ir.AffineMap.get_identity(type_.rank)


def spread(function: ir.Operation) -> None:
    """Makes plain buffers of the arguments that have gaps: each is a window of the shortest buffer that it is in.

    Args:
        function: a `func.func` with a body; it is changed.
    """
    body = function.regions[0].blocks[0]
    for argument in pitched_arguments(function):
        type_ = ir.MemRefType(argument.type)
        place = place_of(type_)
        assert place is not None  # it is one of those with gaps
        plain = ir.MemRefType.get([span_of(type_, *place)], type_.element_type, memory_space=type_.memory_space)
        argument.set_type(plain)
        with ir.InsertionPoint.at_block_begin(body), function.location:
            view = window(argument, place[0], type_.shape, place[1])
        argument.replace_all_uses_except(view, defining_op(view))
    set_signature(function)
