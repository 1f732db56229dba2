"""Bodies of linalg ops: recognizes contractions, casts and copies."""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.rounding import rounds_to_nearest
from stepladder.mlir.traverse import producer
from stepladder.payload.refusal import refuse

# Casts that lose nothing: a product of what they make is the product of what they take.
EXTENSIONS = ("arith.extf", "arith.extsi")
# Casts of the sums that pipelines do in the epilogue.
_ROUNDING = "arith.truncf"


@dataclass(frozen=True)
class Structured:
    """A linalg op in its generic form.

    Attributes:
        op: the op.
        inputs, outputs: its operands.
        maps: for each of them, the loop that runs along each axis (None where the coordinate is 0).
        sizes: how often each loop runs.
        body: the ops of the body without the terminator; `block`: it; `yields`: what it yields.
    """

    op: ir.Operation
    inputs: list[ir.Value]
    outputs: list[ir.Value]
    maps: list[list[int | None]]
    sizes: list[int]
    body: list[ir.Operation]
    block: ir.Block
    yields: list[ir.Value]


def structured(op: ir.Operation) -> Structured:
    """Returns a linalg op in its generic form.

    Args:
        op: a linalg op, on tensors or buffers.

    Raises:
        StepladderError: indexing maps other than projected permutations, or dynamic shapes.
    """
    block = op.regions[0].blocks[0]
    *body, end = [item.operation for item in block.operations]
    outputs = list(op.operands)[len(op.operands) - len(end.operands) :]
    inputs = list(op.operands)[: len(op.operands) - len(end.operands)]
    maps: list[list[int | None]] = []
    attributes = indexing_maps(op)
    sizes = [1] * (attributes[0].n_dims if attributes else 0)
    for operand, map_ in zip(op.operands, attributes):
        shape = shape_of(operand, op)
        loops: list[int | None] = []
        for expression, size in zip(map_.results, shape):
            if isinstance(expression, ir.AffineDimExpr) and expression.position not in loops:
                loops.append(expression.position)
                sizes[expression.position] = size
            elif isinstance(expression, ir.AffineConstantExpr) and expression.value == 0 and size == 1:
                loops.append(None)
            else:
                raise refuse(
                    op,
                    f"{op.name} has the indexing map {map_}",
                    "accepted: indexing maps whose results are distinct loops",
                )
        maps.append(loops)
    return Structured(op, inputs, outputs, maps, sizes, body, block, list(end.operands))


def shape_of(value: ir.Value, op: ir.Operation) -> list[int]:
    """Returns the shape of an operand; a scalar has none.

    Args:
        value: of any type.
        op: the one that takes it, for the message.

    Raises:
        StepladderError: a dynamic shape; names `op`.
    """
    if not isinstance(value.type, (ir.RankedTensorType, ir.MemRefType)):
        return []
    if not ir.ShapedType(value.type).has_static_shape:
        raise refuse(
            op, f"{op.name} has dynamic shapes; sizes must be static", "accepted: static shapes, or sizes by --bind"
        )
    return list(value.type.shape)


def _source_of(value: ir.Value, casts: tuple[str, ...]) -> tuple[ir.Value, list[ir.Operation]]:
    """Follows casts of given names back to what they begin from; returns it and the casts, first one first."""
    chain: list[ir.Operation] = []
    cast = producer(value)
    while cast is not None and cast.name in casts:
        chain.insert(0, cast)
        value = cast.operands[0]
        cast = producer(value)
    return value, chain


def constant_of(value: ir.Value) -> ir.Attribute | None:
    """Returns the constant that a value is; None for another value.

    Args:
        value: of any type.
    """
    source = producer(value)
    return source.attributes["value"] if source is not None and source.name == "arith.constant" else None


def reduces(item: Structured) -> bool:
    """Returns whether a loop of more than one iteration is a reduction: the output does not have it.

    Args:
        item: a linalg op in its generic form, with one output.
    """
    return any(loop not in item.maps[-1] and size > 1 for loop, size in enumerate(item.sizes))


def factors(item: Structured) -> tuple[int, int] | None:
    """Returns which inputs a contraction multiplies, in the order of the product; None for another op.

    A contraction adds to its output the product of two inputs, each extended or as it is, along a loop that the output
    does not have, though of one iteration: without such a loop the op is elementwise, and so is its reference.

    Args:
        item: a linalg op in its generic form.
    """
    if len(item.yields) != 1 or len(item.inputs) != 2 or set(item.maps[-1]) >= set(range(len(item.sizes))):
        return None
    arguments: list[ir.Value] = list(item.block.arguments)
    *inputs, accumulator = arguments
    total = producer(item.yields[0])
    letter = {"arith.addf": "f", "arith.addi": "i"}.get(total.name) if total is not None else None
    if total is None or letter is None:
        return None
    terms = [operand for operand in total.operands if operand != accumulator]
    product = producer(terms[0]) if len(terms) == 1 else None
    if product is None or product.name != f"arith.mul{letter}":
        return None
    sources = [_source_of(operand, EXTENSIONS) for operand in product.operands]
    casts = sum(len(ops) for _, ops in sources)
    numbers = [inputs.index(value) for value, _ in sources if value in inputs]
    return (numbers[0], numbers[1]) if sorted(numbers) == [0, 1] and len(item.body) == casts + 2 else None


def is_elementwise(item: Structured) -> bool:
    """Returns whether an op computes each element of one output from elements of its inputs, wherever they are.

    Args:
        item: a linalg op in its generic form.
    """
    loops = set(range(len(item.sizes)))
    return (
        len(item.outputs) == 1
        and set(item.maps[-1]) - {None} >= {loop for loop in loops if item.sizes[loop] != 1}
        and all(not inner.regions and inner.name != "linalg.index" for inner in item.body)
    )


def reads_output(item: Structured) -> bool:
    """Returns whether the body of an op with one output reads what the output held.

    Args:
        item: a linalg op with one output, in its generic form.
    """
    arguments = list(item.block.arguments)
    return bool(list(arguments[-1].uses))


def permutation(op: ir.Operation) -> list[int]:
    """Returns which axis of its source each axis of a `memref.transpose` is.

    Args:
        op: a `memref.transpose`.
    """
    results = ir.AffineMapAttr(op.attributes["permutation"]).value.results
    return [expression.position for expression in results if isinstance(expression, ir.AffineDimExpr)]


def casts_of_one(item: Structured) -> list[str] | None:
    """Returns the casts that an op applies to each element of one input, by name; none for a copy.

    None represents any other op: of several inputs, with another op in its body, or that reads its output.

    Args:
        item: a linalg op in its generic form.
    """
    if len(item.inputs) != 1 or len(item.yields) != 1:
        return None
    source, casts = _source_of(item.yields[0], (*EXTENSIONS, _ROUNDING))
    if source != item.block.arguments[0] or len(casts) != len(item.body):
        return None
    for cast in casts:
        if not rounds_to_nearest(cast):
            return None
    return [cast.name for cast in casts]
