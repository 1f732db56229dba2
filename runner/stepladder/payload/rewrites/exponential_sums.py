"""Reductions to logarithms of sums of exponentials, or to a maximum and a sum of exponentials in one pass: two
reductions, to the maximum and to the sum.

`logaddexp` folds two such logarithms, and front ends and users write it in several forms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.constant_numbers import constant_number
from stepladder.mlir.linalg_ops import create_generic, create_named_op, indexing_maps, loops_of
from stepladder.mlir.traverse import producer, walk

# Short names of ops in the forms below; operands of those in `_COMMUTATIVE` are in the order of their text.
_NAMES = {
    "arith.addf": "add",
    "arith.maximumf": "max",
    "arith.maxnumf": "max",
    "arith.minimumf": "min",
    "arith.minnumf": "min",
    "arith.mulf": "mul",
    "arith.negf": "neg",
    "arith.subf": "sub",
    "math.absf": "abs",
    "math.exp": "exp",
    "math.exp2": "exp2",
    "math.fma": "fma",
    "math.log": "log",
    "math.log1p": "log1p",
    "math.log2": "log2",
}
_COMMUTATIVE = ("add", "max", "min", "mul")
# Comparisons of a number with itself that hold for NaN alone: une and uno.
_IS_NAN = (13, 14)
_OEQ = 1
# Functions of the two bases, and the one of a logarithm of one more.
_BASES = (("exp", "log"), ("exp2", "log2"))


def _call(name: str, *operands: str) -> str:
    return f"{name}({','.join(sorted(operands) if name in _COMMUTATIVE else operands)})"


def _logarithms(power: str, logarithm: str) -> frozenset[str]:
    """Returns the forms of the logarithm of the sum of the exponentials of a and b."""
    most, least = _call("max", "a", "b"), _call("min", "a", "b")
    powers = [f"{power}({_call('sub', item, most)})" for item in "ab"]
    smaller = [f"{power}(neg(abs(sub({pair}))))" for pair in ("a,b", "b,a")]
    smaller.append(f"{power}(sub({least},{most}))")
    sums = [_call("add", *powers), *(_call("add", "1", item) for item in smaller)]
    summands = [f"{logarithm}({item})" for item in sums]
    if power == "exp":
        summands += [f"log1p({item})" for item in smaller]
    plain = f"{logarithm}({_call('add', f'{power}(a)', f'{power}(b)')})"
    return frozenset((plain, *(_call("add", most, item) for item in summands)))


def _sums(power: str) -> frozenset[str]:
    """Returns the forms of a sum c of exponentials of differences to the maximum a so far, with that of b."""
    old, new = (f"{power}({_call('sub', item, _call('max', 'a', 'b'))})" for item in "ab")
    fused = [f"fma({first},{second},{new})" for first, second in (("c", old), (old, "c"))]
    return frozenset((_call("add", _call("mul", "c", old), new), *fused))


_LOGARITHMS = {text: power for power, logarithm in _BASES for text in _logarithms(power, logarithm)}
_SUMS = {text: power for power, _ in _BASES for text in _sums(power)}
# The logarithm of each exponential function.
_INVERSE = dict(_BASES)


def separate(function: ir.Operation) -> None:
    """Replaces such reductions of tensors.

    That of infinities is what an order of the reduction gives that does not subtract them from each other.

    Args:
        function: a function on static tensors; it is changed where there are such ops.
    """
    for op in walk(function, "linalg.generic", "linalg.reduce"):
        if len(op.results) not in (1, 2):
            continue
        maps = indexing_maps(op)
        outputs = maps[len(maps) - len(op.results) :]
        if len(set(map(str, outputs))) > 1 or len(loops_of(outputs[0])) == outputs[0].n_dims:
            continue
        block = op.regions[0].blocks[0]
        *_, end = (item.operation for item in block.operations)
        so_far = list(block.arguments)[len(block.arguments) - len(op.results) :]
        for term in _terms(end, so_far):
            if len(op.results) == 1:
                power = _LOGARITHMS.get(_without_guard(end.operands[0], {so_far[0]: "a", term: "b"}))
                if power is not None:
                    _replace_logarithm(op, term, power)
                    break
                continue
            places = [
                place
                for place in range(2)
                if _text(end.operands[place], {so_far[place]: "a", term: "b"}) == _call("max", "a", "b")
            ]
            if places:
                largest = places[0]
                names = {so_far[largest]: "a", term: "b", so_far[1 - largest]: "c"}
                power = _SUMS.get(_text(end.operands[1 - largest], names))
                if power is not None:
                    _replace_sum(op, term, power, largest)
                    break


def _terms(end: ir.Operation, so_far: Sequence[ir.Value]) -> list[ir.Value]:
    """Returns the operands of maxima and exponentials of a body that do not depend on earlier iterations."""
    dependent = set(so_far)
    terms: dict[ir.Value, None] = {}
    for op in (item.operation for item in end.block.operations):
        if _NAMES.get(op.name) in ("max", "exp", "exp2"):
            terms.update((operand, None) for operand in op.operands if operand not in dependent)
        if any(operand in dependent for operand in op.operands):
            dependent.update(op.results)
    return list(terms)


def _text(value: ir.Value, names: dict[ir.Value, str]) -> str:
    """Returns a value as a text of ops on named values; "?" stands for what is neither."""
    if value in names:
        return names[value]
    number = constant_number(value)
    if number is not None:
        return f"{float(number.value):g}"
    op = producer(value)
    if op is None or op.name not in _NAMES:
        return "?"
    return _call(_NAMES[op.name], *(_text(operand, names) for operand in op.operands))


def _without_guard(value: ir.Value, names: dict[ir.Value, str]) -> str:
    """Returns a value as a text; of one that is the sum of two values whose difference is NaN, the other choice."""
    choice = producer(value)
    test = producer(choice.operands[0]) if choice is not None and choice.name == "arith.select" else None
    if choice is None or test is None or test.name != "arith.cmpf":
        return _text(value, names)
    compared = {_text(operand, names) for operand in test.operands}
    is_guard = (
        ir.IntegerAttr(test.attributes["predicate"]).value in _IS_NAN
        and compared in ({"sub(a,b)"}, {"sub(b,a)"})
        and _text(choice.operands[1], names) == _call("add", "a", "b")
    )
    return _text(choice.operands[2], names) if is_guard else "?"


def _reduced(
    op: ir.Operation,
    term: ir.Value,
    start: ir.Value,
    reference: ir.Value | None,
    fold: Callable[[ir.Value, ir.Value, ir.Value | None], ir.Value],
) -> ir.Value:
    """Returns a reduction of the terms of another one.

    Args:
        op: the other one.
        term: of its body.
        start: what the reduction begins from.
        reference: a tensor like the start that the body reads too.
        fold: creates the new result of the result so far, a term, and an element of the reference.
    """
    maps = indexing_maps(op)
    count = len(op.operands) - len(op.results)
    references = [] if reference is None else [reference]
    inputs = list(op.operands)[:count]
    new, body = create_generic([*inputs, *references], [start], [*maps[:count], *[maps[-1]] * (len(references) + 1)])
    block = op.regions[0].blocks[0]
    needed: list[ir.Operation] = []
    values = {term}
    for item in reversed([item.operation for item in block.operations]):
        if any(result in values for result in item.results):
            needed.insert(0, item)
            values.update(item.operands)
    arguments: dict[ir.Value, ir.Value] = dict(zip(list(block.arguments)[:count], list(body.arguments)[:count]))
    copies = clone_ops(needed, arguments, ir.InsertionPoint(body))
    with ir.InsertionPoint(body):
        of_reference = body.arguments[count] if references else None
        value = fold(body.arguments[len(body.arguments) - 1], copies[term], of_reference)
        ir.Operation.create("linalg.yield", operands=[value])
    return new.results[0]


def _computed(inputs: Sequence[ir.Value], element: Callable[..., ir.Value]) -> ir.Value:
    """Returns a tensor of which each element is computed from those of others like it."""
    type_ = ir.RankedTensorType(inputs[0].type)
    identity = ir.AffineMap.get_identity(type_.rank)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    op, body = create_generic(inputs, [empty], [identity] * (len(inputs) + 1))
    with ir.InsertionPoint(body):
        value = element(*list(body.arguments)[: len(inputs)])
        ir.Operation.create("linalg.yield", operands=[value])
    return op.results[0]


def _of(name: str, value: ir.Value) -> ir.Value:
    """Returns a function of `math` of a value."""
    return ir.Operation.create(f"math.{name}", results=[value.type], operands=[value]).results[0]


def _zeros_like(start: ir.Value) -> ir.Value:
    type_ = ir.RankedTensorType(start.type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    return create_named_op("linalg.fill", [arith.constant(type_.element_type, 0.0)], empty).results[0]


def _maximum(op: ir.Operation, term: ir.Value, start: ir.Value) -> ir.Value:
    return _reduced(op, term, start, None, lambda so_far, value, _: arith.maximumf(value, so_far))


def _sum(op: ir.Operation, term: ir.Value, most: ir.Value, start: ir.Value, power: str) -> ir.Value:
    """Returns the sum of the exponentials of differences to a maximum."""

    def fold(so_far: ir.Value, value: ir.Value, largest: ir.Value | None) -> ir.Value:
        assert largest is not None
        return arith.addf(so_far, _of(power, arith.subf(value, largest)))

    return _reduced(op, term, _zeros_like(start), most, fold)


def _replace_logarithm(op: ir.Operation, term: ir.Value, power: str) -> None:
    """Creates the maximum, the sum of the exponentials of differences to it, unless it is infinite, and its
    logarithm."""
    start = op.operands[len(op.operands) - 1]

    def finite(largest: ir.Value) -> ir.Value:
        is_infinite = arith.cmpf(_OEQ, _of("absf", largest), arith.constant(largest.type, float("inf")))
        return arith.select(is_infinite, arith.constant(largest.type, 0.0), largest)

    def total(sums: ir.Value, largest: ir.Value, first: ir.Value) -> ir.Value:
        return arith.addf(largest, _of(_INVERSE[power], arith.addf(sums, _of(power, arith.subf(first, largest)))))

    with ir.InsertionPoint(op), op.location:
        most = _computed([_maximum(op, term, start)], finite)
        result = _computed([_sum(op, term, most, start, power), most, start], total)
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _replace_sum(op: ir.Operation, term: ir.Value, power: str, largest: int) -> None:
    """Creates the maximum, and the sum of the exponentials of differences to it.

    Args:
        op: with two results.
        term: of its body.
        power: the exponential function.
        largest: the index of the maximum.
    """
    starts = list(op.operands)[len(op.operands) - 2 :]

    def total(sums: ir.Value, most: ir.Value, first: ir.Value, of_start: ir.Value) -> ir.Value:
        return arith.addf(sums, arith.mulf(of_start, _of(power, arith.subf(first, most))))

    with ir.InsertionPoint(op), op.location:
        most = _maximum(op, term, starts[largest])
        sums = _sum(op, term, most, starts[largest], power)
        result = _computed([sums, most, starts[largest], starts[1 - largest]], total)
    op.results[largest].replace_all_uses_with(most)
    op.results[1 - largest].replace_all_uses_with(result)
    op.erase()
