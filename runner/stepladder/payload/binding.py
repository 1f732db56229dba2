"""Binds dynamic dimensions of a payload's arguments to sizes: `?` becomes a size everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stepladder.mlir.bindings import ir, linalg
from stepladder.mlir.traverse import producer, walk
from stepladder.mlir.types import is_number, name_of
from stepladder.payload import computed_sizes
from stepladder.payload.inlining import inline_calls
from stepladder.payload.refusal import refuse
from stepladder.payload.rewrites import shape_folding
from stepladder.payload.selection import select
from stepladder.payload.stablehlo import torch_ops
from stepladder.runtime.errors import StepladderError

# Loops of the named products, outermost first.
_LOOPS = {"linalg.matmul": ("M", "N", "K"), "linalg.batch_matmul": ("BATCH", "M", "N", "K")}
_ARGUMENT = re.compile(r"arg(\d+)\.(\d+)")
_ACCEPTED = "accepted: argN.D, dimension D of argument N; M, N, K and BATCH, extents of a linalg.matmul or batch_matmul"


def bind(module: ir.Module, sizes: Mapping[str, int], name: str | None = None) -> None:
    """Makes the dynamic dimensions of a function's arguments static, and with them those of all values.

    The bodies of functions that it calls become part of it. Upstream's canonicalization carries the sizes on:
    `tensor.dim`, `tensor.empty`, linalg ops and assertions about sizes fold.

    Args:
        module: the payload; functions in it that this one does not call stay as they are.
        sizes: extents by name: `arg0.1`, or M, N, K, BATCH.
        name: of the function that is compiled; None as for `select`.

    Raises:
        StepladderError: as `select`; an unknown name, a static dimension of another size, a dimension of an argument
            without a size, sizes with which no op writes a buffer, or a value whose shape does not follow from the
            arguments.
    """
    function = inline_calls(module, _function(module, name))
    block = function.regions[0].blocks[0]
    extents = _places(function, sizes)
    written = _ops_on_buffers(function)
    first = written[0].name if written else ""
    for number, argument in enumerate(block.arguments):
        if isinstance(argument.type, (ir.RankedTensorType, ir.MemRefType)):
            _retype(function, argument, {axis: size for (owner, axis), size in extents.items() if owner == number})
    _set_type(function)
    try:
        shape_folding.fold(function)
    except ir.MLIRError as error:
        raise refuse(function, f"the sizes do not match the payload: {error.error_diagnostics[0].message}") from None
    torch_ops.take_static_operands(function)
    for op in walk(function, "func.return", "bufferization.materialize_in_destination"):
        for place, operand in enumerate(op.operands):
            cast = producer(operand)
            if cast is not None and cast.name == "tensor.cast":
                op.operands[place] = cast.operands[0]
    _set_type(function)
    shape_folding.fold(function)
    if first and not _ops_on_buffers(function):  # upstream's canonicalization erases what has no iteration
        raise refuse(
            function,
            f"{first} has no iteration with these sizes, and leaves the buffer that it would write as it is",
            "accepted: on buffers, sizes of at least 1, or a result that another op writes, such as a linalg.fill",
        )
    for op in walk(function):
        for result in op.results:
            if isinstance(result.type, (ir.RankedTensorType, ir.MemRefType)) and not _is_static(result.type):
                raise refuse(
                    op,
                    f"{op.name} has a shape that does not follow from those of the arguments: {result.type}",
                    computed_sizes.ACCEPTED,
                )


def dynamic_shapes(module: ir.Module, name: str | None = None) -> list[tuple[str, tuple[int | None, ...]]] | None:
    """Returns element types and shapes of a function's arguments; None where all shapes are static.

    Args:
        module: the payload; one that `select` refuses has none.
        name: of the function that is compiled; None as for `select`.

    Raises:
        StepladderError: dynamic dimensions, and an argument that is no tensor of scalars.
    """
    try:
        function = _function(module, name)
    except StepladderError:
        return None
    arguments = list(function.regions[0].blocks[0].arguments)
    tensors = [item for item in arguments if isinstance(item.type, (ir.RankedTensorType, ir.MemRefType))]
    if all(map(_is_static, (item.type for item in tensors))):
        return None
    shapes: list[tuple[str, tuple[int | None, ...]]] = []
    for argument in arguments:
        type_ = argument.type
        if not isinstance(type_, ir.RankedTensorType) or not is_number(type_.element_type):
            raise refuse(
                argument,
                f"argument {argument.arg_number} is {type_}, in a function with dynamic dimensions",
                "accepted: functions of tensors of scalars; of others the sizes are given before, as by --bind",
            )
        shape = tuple(None if type_.is_dynamic_dim(axis) else type_.shape[axis] for axis in range(type_.rank))
        shapes.append((name_of(type_.element_type), shape))
    return shapes


def computes_shapes(module: ir.Module, name: str | None = None) -> bool:
    """Returns whether a function computes shapes of tensors, though those of its arguments are static.

    Args:
        module: the payload; one that `select` refuses computes none.
        name: of the function that is compiled; None as for `select`.
    """
    # Before `select`, which folds shapes of slices. Those in loops, such as tiles in the dump of a step, are no shapes
    # that the payload computes.
    computing = {
        _name_of(candidate) for candidate in walk(module, "func.func") if _has_dynamic_results(_outermost(candidate))
    }
    try:
        function = _function(module, name)
    except StepladderError:
        return False
    is_static = [
        isinstance(item.type, ir.RankedTensorType) and _is_static(item.type)
        for item in function.regions[0].blocks[0].arguments
    ]
    return all(is_static) and (_name_of(function) in computing or _has_dynamic_results(walk(function)))


def _ops_on_buffers(function: ir.Operation) -> list[ir.Operation]:
    """Returns the linalg ops of a function that have buffers as operands."""
    return [
        op
        for op in walk(function)
        if op.name.startswith("linalg.") and any(isinstance(item.type, ir.MemRefType) for item in op.operands)
    ]


def _outermost(function: ir.Operation) -> list[ir.Operation]:
    """Returns the ops of a function that are in no other op."""
    return [op.operation for block in function.regions[0].blocks for op in block.operations]


def _has_dynamic_results(ops: Iterable[ir.Operation]) -> bool:
    """Returns whether an op makes a tensor whose shape is not static."""
    results = [result for op in ops for result in op.results]
    return any(isinstance(result.type, ir.RankedTensorType) and not _is_static(result.type) for result in results)


def _name_of(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _function(module: ir.Module, name: str | None) -> ir.Operation:
    function_name = select(module, name).function
    functions = [op for op in walk(module, "func.func") if _name_of(op) == function_name]
    if not functions:
        raise StepladderError("--bind: the payload has no function with a body")
    return functions[0]


def _is_static(type_: ir.Type) -> bool:
    return ir.ShapedType(type_).has_static_shape


def _places(function: ir.Operation, sizes: Mapping[str, int]) -> dict[tuple[int, int], int]:
    """Returns sizes by argument and dimension."""
    arguments = function.regions[0].blocks[0].arguments
    extents: dict[tuple[int, int], int] = {}
    for name, size in sizes.items():
        match = _ARGUMENT.fullmatch(name)
        places = [(int(match[1]), int(match[2]))] if match else _places_of_extent(function, name)
        for number, axis in places:
            type_ = arguments[number].type if number < len(arguments) else None
            if not isinstance(type_, (ir.RankedTensorType, ir.MemRefType)) or axis >= type_.rank:
                raise refuse(function, f"--bind {name}={size}: no argument has this dimension", _ACCEPTED)
            static_extent = None if type_.is_dynamic_dim(axis) else type_.shape[axis]
            if (static_extent or extents.get((number, axis), size)) != size:
                extent = static_extent or extents[number, axis]
                raise refuse(
                    arguments[number],
                    f"--bind {name}={size}: dimension {axis} of argument {number} is {extent}",
                    f"accepted: {name}={extent}",
                )
            extents[number, axis] = size
    return extents


def _places_of_extent(function: ir.Operation, name: str) -> list[tuple[int, int]]:
    """Returns the dimensions of arguments along the loop of an extent, `M` for example, of the one product."""
    if not any(name in names for names in _LOOPS.values()):
        raise refuse(function, f"--bind {name}: unknown name", _ACCEPTED)
    products = [op for op in walk(function, *_LOOPS) if name in _LOOPS[op.name]]
    if len(products) != 1:
        raise refuse(function, f"--bind {name}: {len(products)} products have such an extent", _ACCEPTED)
    (product,) = products
    loop = ir.AffineExpr.get_dim(_LOOPS[product.name].index(name))
    places = []
    for operand, map_ in zip(product.operands, linalg.get_indexing_maps(product)):
        source = producer(operand)
        while source is not None and source.name in ("bufferization.to_tensor", "linalg.fill"):
            operand = source.operands[len(source.operands) - 1]
            source = producer(operand)
        if source is None:
            results = list(ir.AffineMapAttr(map_).value.results)
            places += [
                (ir.BlockArgument(operand).arg_number, axis)
                for axis, expression in enumerate(results)
                if expression == loop
            ]
    if not places:
        raise refuse(product, f"--bind {name}: no argument of the function is an operand along it", _ACCEPTED)
    return places


def _retype(function: ir.Operation, argument: ir.BlockArgument, sizes: Mapping[int, int]) -> None:
    """Makes the type of an argument static; ops on tensors go on with a cast to the old type, which folds."""
    old = argument.type
    if _is_static(old):
        return
    shaped_type = ir.ShapedType(old)
    for axis in range(shaped_type.rank):
        if shaped_type.is_dynamic_dim(axis) and axis not in sizes:
            place = f"arg{argument.arg_number}.{axis}"
            raise refuse(argument, f"{place} has no size: it is {old}", f"--bind {place}=SIZE")
    shape = [
        sizes.get(axis, 0) if shaped_type.is_dynamic_dim(axis) else shaped_type.shape[axis]
        for axis in range(shaped_type.rank)
    ]
    tensor = ir.RankedTensorType.get(shape, shaped_type.element_type)
    if isinstance(old, ir.RankedTensorType):
        argument.set_type(tensor)
        _cast(argument, old, ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location)
        return
    if not ir.MemRefType(old).layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(shaped_type.rank)):
        raise refuse(argument, f"argument {argument.arg_number} is {old}", "accepted: row-major buffers without gaps")
    argument.set_type(ir.MemRefType.get(shape, shaped_type.element_type, memory_space=ir.MemRefType(old).memory_space))
    for to_tensor in [use.owner.operation for use in argument.uses if use.owner.name == "bufferization.to_tensor"]:
        dynamic = to_tensor.results[0].type
        to_tensor.results[0].set_type(tensor)
        _cast(to_tensor.results[0], dynamic, ir.InsertionPoint.after(to_tensor), to_tensor.location)


def _cast(value: ir.Value, type_: ir.Type, point: ir.InsertionPoint, location: ir.Location) -> None:
    with point, location:
        cast = ir.Operation.create("tensor.cast", results=[type_], operands=[value])
    value.replace_all_uses_except(cast.results[0], cast)


def _set_type(function: ir.Operation) -> None:
    """Makes the type of a function that of its arguments and of what it returns."""
    body = function.regions[0].blocks[0]
    result_types = [operand.type for operand in walk(function, "func.return")[-1].operands]
    types = ir.FunctionType.get([argument.type for argument in body.arguments], result_types)
    function.attributes["function_type"] = ir.TypeAttr.get(types)
