"""Random contractions: loops, dimensions, views, transposes and casts around one matmul."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

SPLITS = {64: [(64,), (8, 8), (4, 16), (2, 32)], 96: [(96,), (12, 8), (3, 32)], 128: [(128,), (4, 32), (2, 64)]}


@dataclass
class Text:
    """Lines of a function, and values in it."""

    chosen: random.Random
    lines: list[str] = field(default_factory=list)
    count: int = 0
    features: list[str] = field(default_factory=list)

    def new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(self, text: str) -> str:
        name = self.new()
        self.lines.append(f"  {name} = {text}")
        return name

    def maybe(self, percent: int, feature: str) -> bool:
        taken = self.chosen.randrange(100) < percent
        if taken:
            self.features.append(feature)
        return taken


def tensor(sizes: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>"


@dataclass
class Value:
    """A tensor: its name, its element type, and the digits of its axes, each a letter and its extent."""

    name: str
    element: str
    axes: list[list[tuple[str, int]]]

    def shape(self) -> list[int]:
        return [math.prod(size for _, size in axis) for axis in self.axes]

    def type(self) -> str:
        return tensor(self.shape(), self.element)


def groups(axes: Sequence[Sequence]) -> str:
    """Returns the reassociation in which each axis takes its elements, of 1 where it has none."""
    texts, first = [], 0
    for axis in axes:
        count = max(1, len(axis))
        texts.append("[" + ", ".join(str(first + number) for number in range(count)) + "]")
        first += count
    return f"[{', '.join(texts)}]"


def split(text: Text, value: Value) -> Value:
    """Expands every axis to its digits."""
    axes = [[digit] for axis in value.axes for digit in axis or [("", 1)]]
    if len(axes) == len(value.axes):
        return value
    made = Value("", value.element, axes)
    sizes = ", ".join(map(str, made.shape()))
    made.name = text.op(
        f"tensor.expand_shape {value.name} {groups(value.axes)} output_shape [{sizes}] : {value.type()} into "
        f"{made.type()}"
    )
    return made


def join(text: Text, value: Value, counts: Sequence[int]) -> Value:
    """Collapses axes: so many for each new one."""
    axes, first = [], 0
    for count in counts:
        axes.append([digit for axis in value.axes[first : first + count] for digit in axis])
        first += count
    if len(axes) == len(value.axes):
        return value
    made = Value("", value.element, axes)
    groups_ = groups([[None] * count for count in counts])
    made.name = text.op(f"tensor.collapse_shape {value.name} {groups_} : {value.type()} into {made.type()}")
    return made


def permute(text: Text, value: Value, order: Sequence[int]) -> Value:
    """Transposes, by the named op or a generic."""
    if list(order) == sorted(order):
        return value
    made = Value("", value.element, [value.axes[number] for number in order])
    empty = text.op(f"tensor.empty() : {made.type()}")
    if text.maybe(60, "transpose"):
        made.name = text.op(
            f"linalg.transpose ins({value.name} : {value.type()}) outs({empty} : {made.type()}) "
            f"permutation = {list(order)}"
        )
        return made
    loops = [f"d{number}" for number in range(len(order))]
    source = ", ".join(loops[list(order).index(number)] for number in range(len(order)))
    return elementwise(text, value, made, empty, source, None)


def elementwise(text: Text, value: Value, made: Value, empty: str, source: str, cast: str | None) -> Value:
    loops = ", ".join(f"d{number}" for number in range(len(made.axes)))
    kinds = ", ".join(['"parallel"'] * len(made.axes))
    body = f"%r = {cast} %x : {value.element} to {made.element} " if cast else ""
    made.name = text.op(
        f"linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({source})>, affine_map<({loops}) -> ({loops})>], "
        f"iterator_types = [{kinds}]}} ins({value.name} : {value.type()}) outs({empty} : {made.type()}) {{ "
        f"^bb0(%x: {value.element}, %y: {made.element}): {body}linalg.yield {'%r' if cast else '%x'} : {made.element} "
        f"}} -> {made.type()}"
    )
    return made


def cast_to(text: Text, value: Value, element: str, cast: str) -> Value:
    made = Value("", element, value.axes)
    empty = text.op(f"tensor.empty() : {made.type()}")
    loops = ", ".join(f"d{number}" for number in range(len(value.axes)))
    return elementwise(text, value, made, empty, loops, cast)


def arranged(text: Text, value: Value, order: list[str], joined: list[list[str]]) -> Value:
    """Brings a value to axes of the given letters, in an order of joined digits."""
    value = split(text, value)
    letters = [axis[0][0] if axis else "" for axis in value.axes]
    units = [number for number, letter in enumerate(letters) if not letter]
    value = permute(text, value, [letters.index(letter) for letter in order] + units)
    counts = [len(axis) for axis in joined]
    counts[-1] += len(units)
    return join(text, value, counts)


def stored(text: Text, digits: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    """Returns axes of a buffer with given digits: some joined, some of 1 added."""
    axes: list[list[tuple[str, int]]] = []
    for digit in digits:
        if axes and axes[-1] and text.chosen.random() < 0.4:
            axes[-1].append(digit)
        else:
            axes.append([digit])
        if text.maybe(8, "axis of 1"):
            axes.append([])
    return axes


def random_contraction(seed: int) -> tuple[str, list[str], bool]:
    """Returns a payload, its features, and whether it collapses to a matmul without a copy."""
    chosen = random.Random(seed)
    text = Text(chosen)
    sizes = {"m": chosen.choice((64, 128)), "n": chosen.choice((64, 128)), "k": chosen.choice((64, 96, 128))}
    digits = {
        letter: [(f"{letter}{number}", size) for number, size in enumerate(chosen.choice(SPLITS[extent]))]
        for letter, extent in sizes.items()
    }
    is_matmul = True
    operands = {}
    for name, (first, second) in {"A": "mk", "B": "kn", "C": "mn"}.items():
        order = [digits[first], digits[second]]
        if chosen.random() < 0.4:
            order.reverse()
            text.features.append(f"{name} transposed")
        flat = [digit for group in order for digit in group]
        if len(flat) > 2 and text.maybe(6, "interleaved"):
            flat = [flat[1], *flat[2:], flat[0]]
            # Rotated digits are those of a matrix where the first group moves as a whole.
            is_matmul = is_matmul and len(order[0]) == 1
        operands[name] = flat
    input_, acc = chosen.choice((("f16", "f32"), ("f16", "f32"), ("bf16", "f32"), ("f16", "f16")))
    # The loops: digits, or groups of them.
    loops: list[list[str]] = []
    for group in digits.values():
        letters = [letter for letter, _ in group]
        loops += [letters] if text.maybe(50, "joined loops") else [[letter] for letter in letters]
    chosen.shuffle(loops)
    arguments, factors = [], []
    for name in "AB":
        value = Value(f"%{name}", input_, stored(text, operands[name]))
        arguments.append((value.name, value.type()))
        mine = [loop for loop in loops if {letter[0] for letter in loop} <= set("mk" if name == "A" else "kn")]
        chosen.shuffle(mine)
        extends = acc != input_ and text.maybe(30, "extended before")
        if extends and chosen.random() < 0.5:
            value, extends = cast_to(text, value, acc, "arith.extf"), False
        value = arranged(text, value, [letter for loop in mine for letter in loop], mine)
        if extends:
            value = cast_to(text, value, acc, "arith.extf")
        factors.append((value, mine))
    if text.maybe(50, "B before A"):
        factors.reverse()
    out_loops = [loop for loop in loops if loop[0][0] != "k"]
    chosen.shuffle(out_loops)
    extents = {letter: size for group in digits.values() for letter, size in group}
    product = Value("", acc, [[(letter, extents[letter]) for letter in loop] for loop in out_loops])
    zero = text.op(f"arith.constant 0.0 : {acc}")
    empty = text.op(f"tensor.empty() : {product.type()}")
    start = text.op(f"linalg.fill ins({zero} : {acc}) outs({empty} : {product.type()}) -> {product.type()}")
    product.name = contracted(text, factors, (start, product), out_loops, loops)
    final = operands["C"]
    rounds = acc == "f32" and text.maybe(40, "rounded")
    if rounds and chosen.random() < 0.5:
        product, rounds = cast_to(text, product, input_, "arith.truncf"), False
    result = arranged(text, product, [letter for letter, _ in final], [[letter] for letter, _ in final])
    axes = [axis for axis in stored(Text(chosen), final) if axis]
    result = join(text, result, [len(axis) for axis in axes])
    if rounds:
        result = cast_to(text, result, input_, "arith.truncf")
    if text.maybe(30, "arguments exchanged"):
        arguments.reverse()
    signature = ", ".join(f"{name}: {type_}" for name, type_ in arguments)
    head = f"func.func @f({signature}) -> {result.type()} {{"
    return (
        "\n".join([head, *text.lines, f"  return {result.name} : {result.type()}", "}", ""]),
        text.features,
        is_matmul,
    )


def contracted(text: Text, factors: list, out: tuple[str, Value], out_loops: list, loops: list) -> str:
    """Writes the contraction, as `linalg.contract` or `linalg.generic`; returns its result."""
    start, product = out
    names = {loop[0]: f"d{number}" for number, loop in enumerate(loops)}
    all_ = ", ".join(names[loop[0]] for loop in loops)
    maps = [
        f"affine_map<({all_}) -> ({', '.join(names[loop[0]] for loop in axes)})>"
        for axes in (*(mine for _, mine in factors), out_loops)
    ]
    (x, _), (y, _) = factors
    operands = f"ins({x.name}, {y.name} : {x.type()}, {y.type()}) outs({start} : {product.type()})"
    if text.maybe(50, "contract"):
        return text.op(f"linalg.contract indexing_maps = [{', '.join(maps)}] {operands} -> {product.type()}")
    kinds = ", ".join('"reduction"' if loop[0][0] == "k" else '"parallel"' for loop in loops)
    body, scalars = [], []
    for name, value in (("%x", x), ("%y", y)):
        scalars.append(name)
        if value.element != product.element:
            body.append(f"{name}e = arith.extf {name} : {value.element} to {product.element}")
            scalars[-1] += "e"
    text.chosen.shuffle(scalars)
    terms = ["%z", "%w"]
    text.chosen.shuffle(terms)
    body.append(f"%w = arith.mulf {', '.join(scalars)} : {product.element}")
    body.append(f"%s = arith.addf {', '.join(terms)} : {product.element}")
    return text.op(
        f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} {operands} {{ "
        f"^bb0(%x: {x.element}, %y: {y.element}, %z: {product.element}): {' '.join(body)} "
        f"linalg.yield %s : {product.element} }} -> {product.type()}"
    )
