"""Parallel loops as loops one iteration after the other."""

from __future__ import annotations

from stepladder.mlir.bindings import ir, passmanager
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.traverse import producer, walk

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_BOUNDS = ("LowerBound", "UpperBound", "Step")


def make_sequential(function: ir.Operation) -> None:
    """Replaces each `scf.forall` with constant bounds by a nest of `scf.for`, whatever it is mapped to. So do
    upstream's patterns with each `scf.parallel`.

    What iterations insert goes into a tensor that the loops carry. All else that they read of the shared result is what
    it was before the loop, as in the `scf.forall`.

    Args:
        function: a function; it is changed where there are such loops.
    """
    if walk(function, "scf.parallel"):
        passmanager.PassManager.parse(f"{function.name}(scf-parallel-for-to-nested-fors)").run(function)
    for loop in reversed(walk(function, "scf.forall")):
        bounds = [list(ir.DenseI64ArrayAttr(loop.attributes[f"static{name}"])) for name in _BOUNDS]
        outputs = list(loop.operands)
        is_constant = all(bound != _DYNAMIC for kind in bounds for bound in kind)
        inserts = walk(loop, "tensor.parallel_insert_slice")
        is_plain = is_constant and len(outputs) == len(loop.results) == len(inserts)
        if is_plain:
            _replace(loop, list(zip(*bounds)), outputs)


def _replace(loop: ir.Operation, bounds: list[tuple[int, ...]], outputs: list[ir.Value]) -> None:
    block = loop.regions[0].blocks[0]
    *ops, end = [item.operation for item in block.operations]
    inserts = [item.operation for item in end.regions[0].blocks[0].operations]
    shared = list(block.arguments)[len(bounds) :]
    with loop.location:
        outermost, indices, carried, point = _nest(bounds, outputs, ir.InsertionPoint(loop))
        mapping: dict[ir.Value, ir.Value] = dict(zip(block.arguments, [*indices, *outputs]))
        new_values = clone_ops(ops, mapping, point)
        values: dict[ir.Value, ir.Value] = dict(zip(shared, carried))
        for insert in inserts:
            with point, insert.location:
                source, target, *rest = insert.operands
                new_tensor = ir.Operation.create(
                    "tensor.insert_slice",
                    results=[target.type],
                    operands=[
                        new_values.get(source, source),
                        values[target],
                        *(new_values.get(item, item) for item in rest),
                    ],
                    attributes={item: insert.attributes[item] for item in insert.attributes},
                )
            values[target] = new_tensor.results[0]
        with point:
            ir.Operation.create("scf.yield", operands=[values[argument] for argument in shared])
    for part in walk(outermost, "tensor.extract_slice"):
        _make_part(part)
    for result, value in zip(loop.results, outermost.results):
        result.replace_all_uses_with(value)
    loop.erase()


def _make_part(part: ir.Operation) -> None:
    """Replaces a part of a splat tensor, or of an empty one, by such a tensor."""
    maker = producer(part.operands[0])
    type_ = ir.RankedTensorType(part.results[0].type)
    if maker is None or maker.name not in ("linalg.fill", "tensor.empty") or not type_.has_static_shape:
        return
    with ir.InsertionPoint(part), part.location:
        tensor = ir.Operation.create("tensor.empty", results=[type_])
        if maker.name == "linalg.fill":
            tensor = create_named_op("linalg.fill", [maker.operands[0]], tensor.results[0])
    part.results[0].replace_all_uses_with(tensor.results[0])
    part.erase()


def _nest(
    bounds: list[tuple[int, ...]], outputs: list[ir.Value], point: ir.InsertionPoint
) -> tuple[ir.Operation, list[ir.Value], list[ir.Value], ir.InsertionPoint]:
    """Creates loops at an insertion point; returns the outermost one, indices, what the innermost one carries, and
    where its body ends. Each loop yields the results of the one in it."""
    index = ir.IndexType.get()
    types = [output.type for output in outputs]
    loops: list[ir.Operation] = []
    indices: list[ir.Value] = []
    carried: list[ir.Value] = outputs
    for bound in bounds:
        with point:
            numbers = [
                ir.Operation.create(
                    "arith.constant", results=[index], attributes={"value": ir.IntegerAttr.get(index, number)}
                ).results[0]
                for number in bound
            ]
            loop = ir.Operation.create("scf.for", results=types, operands=[*numbers, *carried], regions=1)
        if loops:
            with point:
                ir.Operation.create("scf.yield", operands=loop.results)
        body = loop.regions[0].blocks.append(index, *types, arg_locs=[loop.location] * (1 + len(types)))
        loops.append(loop)
        indices.append(body.arguments[0])
        carried = [argument for argument in body.arguments if argument != body.arguments[0]]
        point = ir.InsertionPoint(body)
    return loops[0], indices, carried, point
