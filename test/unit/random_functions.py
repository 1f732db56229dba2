"""Random functions of contractions, elementwise ops, reductions, views, parts and loops, with their results in NumPy.

Inputs are small integers, and so are all values: each result is exact in any order of sums, and is compared for
equality.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from exact_values import DTYPES, EXACT, LETTERS, Function, tensor
from random_views import ViewWriter

# Operands and sums
PRODUCTS = (
    *((("f16", "f32"),) * 4),
    *((("bf16", "f32"),) * 3),
    ("f16", "f16"),
    ("f32", "f32"),
    ("f64", "f64"),
    *((("i8", "i32"),) * 2),
    ("f8E4M3FN", "f32"),
)
SIZES = (1, 2, 3, 4, 5, 7, 8, 8, 11, 16, 16, 24, 32, 33)
ODD = (1, 2, 3, 5, 7, 11, 13, 17, 31, 37, 61, 67, 97, 101, 127, 131)
EVEN = (8, 16, 24, 32, 40, 48, 64, 72, 80, 104, 128, 144, 200)


class Writer(ViewWriter):
    """Writes one random function, and computes it."""

    def contraction(self) -> None:
        """Writes a contraction of a value, or of an argument, with another one."""
        drawn = self.drawn
        inputs, sums = drawn.choice(PRODUCTS)
        x = self.value(lambda v: 2 <= v.held.ndim <= 4 and v.element != "i64")
        if x is None or drawn.random() < 0.15:
            x = self.argument([drawn.choice(self.sizes) for _ in range(drawn.choice((2, 2, 2, 3)))], inputs)
        elif x.element in {"f16", "bf16", "f32"} and drawn.random() < 0.7:
            inputs, sums = x.element, "f32"
        if x.most > 4:
            x = self.clamped(x, 3)
        x = self.cast(x, inputs)
        loops = LETTERS[: x.held.ndim]
        roles = {letter: drawn.choice("mmkkb") for letter in loops}
        roles[drawn.choice(loops)] = "k"
        extents = dict(zip(loops, x.held.shape))
        for letter in LETTERS[len(loops) :][: drawn.choice((1, 1, 1, 2))]:
            roles[letter], extents[letter] = "n", drawn.choice(self.sizes)
        order = list(roles)
        if drawn.random() < 0.4:
            drawn.shuffle(order)
        of_y = [letter for letter in order if roles[letter] in "kbn"]
        of_c = [letter for letter in order if roles[letter] in "bmn"]
        if drawn.random() < 0.5:  # as matmuls have them
            of_c.sort(key=lambda letter: "bmn".index(roles[letter]))
            of_y.sort(key=lambda letter: drawn.choice(("bnk", "bkn")).index(roles[letter]))
        shape = [extents[letter] for letter in of_y]
        fitting = [v for v in [*self.values, *self.arguments] if list(v.held.shape) == shape and v.element == inputs]
        fitting = [v for v in fitting if v.most <= 4]
        y = drawn.choice(fitting) if fitting and drawn.random() < 0.5 else self.argument(shape, inputs)
        operands = [(x, loops), (y, "".join(of_y))]
        if drawn.random() < 0.4:
            operands.reverse()
        spec = f"{operands[0][1]},{operands[1][1]}->{''.join(of_c)}"
        held = np.einsum(spec, operands[0][0].held, operands[1][0].held)
        if np.einsum(spec, *(np.abs(v.held) for v, _ in operands)).max(initial=0) > EXACT[sums] - 8:
            return
        start = None
        if drawn.random() < 0.2:
            first = self.argument(held.shape, sums)
            start, held = first.name, held + first.held
        elif drawn.random() < 0.1:
            start, held = self.filled(held.shape, sums, 3), held + 3
        start = start or self.filled(held.shape, sums)
        names = ", ".join(order)
        maps = [f"affine_map<({names}) -> ({', '.join(letters)})>" for letters in (*(o[1] for o in operands), of_c)]
        a, b = (v for v, _ in operands)
        if drawn.random() < 0.5:
            self.op(
                f"linalg.contract indexing_maps = [{', '.join(maps)}]\n"
                f"    ins({a.name}, {b.name} : {a.type}, {b.type}) outs({start} : {{type}}) -> {{type}}",
                sums,
                held,
                "contract",
            )
            return
        add = "f" if "f" in sums else "i"
        body = []
        factors = ["%x0", "%x1"]
        if inputs != sums:
            extended = "extf" if add == "f" else "extsi"
            body = [f"%e{i} = arith.{extended} %x{i} : {inputs} to {sums}" for i in (0, 1)]
            factors = ["%e0", "%e1"]
        body += [
            f"%p = arith.mul{add} {factors[0]}, {factors[1]} : {sums}",
            f"%r = arith.add{add} {drawn.choice(('%o, %p', '%p, %o'))} : {sums}",
        ]
        inputs_ = [(v, ", ".join(letters)) for v, letters in operands]
        self.generic(inputs_, "".join(order), ("".join(of_c), sums), body, held, "generic contraction", outs=start)

    def elementwise(self) -> None:
        """Writes an elementwise op of up to three operands, with broadcasts and transposes."""
        drawn = self.drawn
        x = self.value(lambda v: v.held.ndim >= 1)
        if x is None:
            return
        loops = LETTERS[: x.held.ndim]
        out = list(loops)
        if drawn.random() < 0.2:
            drawn.shuffle(out)
        element = x.element
        if element == "i1":
            x = self.cast(x, "f32")
            element = "f32"
        letter = "f" if x.is_float else "i"
        inputs, arrays = [(x, ", ".join(loops))], [np.einsum(f"{loops}->{''.join(out)}", x.held)]
        for _ in range(drawn.choice((0, 1, 1, 2))):
            fitting = [v for v in self.values if v.held.shape == x.held.shape and v.element == element]
            if fitting and drawn.random() < 0.4:
                y, letters = drawn.choice(fitting), list(loops)
            else:
                letters = [a for a in loops if drawn.random() < 0.6]
                if drawn.random() < 0.3:
                    drawn.shuffle(letters)
                shape = [x.held.shape[loops.index(a)] for a in letters]
                fitting = [v for v in [*self.values, *self.arguments] if v.element == element]
                fitting = [v for v in fitting if list(v.held.shape) == shape]
                y = drawn.choice(fitting) if fitting and drawn.random() < 0.4 else self.argument(shape, element)
            inputs.append((y, ", ".join(letters)))
            spread = np.einsum(f"{''.join(letters)}->{''.join(a for a in out if a in letters)}", y.held)
            arrays.append(spread.reshape([x.held.shape[loops.index(a)] if a in letters else 1 for a in out]))
        body, held, last = [], arrays[0], "%x0"
        for number, other in enumerate(arrays[1:], 1):
            kind = drawn.choice(("add", "sub", "mul", "max", "min", "select"))
            body, held, last = self._combined(body, (held, last), (other, f"%x{number}"), kind, element)
        for _ in range(drawn.randrange(3)):
            body, held, last = self._function(body, (held, last), element)
        held = np.broadcast_to(held, [x.held.shape[loops.index(a)] for a in out])
        if np.abs(held).max(initial=0) > EXACT[element] // 2:
            return
        body.append(f"%z = arith.constant {'0.0' if letter == 'f' else '0'} : {element}")
        body.append(f"%r = arith.add{letter} {last}, %z : {element}")
        order = list(loops)
        self.generic(inputs, "".join(order), ("".join(out), element), body, np.array(held), "elementwise")

    def _combined(
        self, body: list[str], x: tuple[np.ndarray, str], y: tuple[np.ndarray, str], kind: str, element: str
    ) -> tuple[list[str], np.ndarray, str]:
        (a, first), (b, second) = x, y
        name = f"%t{len(body)}"
        is_float = "f" in element
        if kind == "select":
            compare = "cmpf ogt" if is_float else "cmpi sgt"
            lines = [
                f"{name}c = arith.{compare}, {first}, {second} : {element}",
                f"{name} = arith.select {name}c, {second}, {first} : {element}",
            ]
            return [*body, *lines], np.where(a > b, b, a), name
        op = {"max": ("maximumf", "maxsi"), "min": ("minimumf", "minsi")}.get(kind, (f"{kind}f", f"{kind}i"))
        held = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[kind](a, b)
        if np.abs(held).max(initial=0) > EXACT[element] // 4:
            return body, a + 0 * b, first
        return [*body, f"{name} = arith.{op[not is_float]} {first}, {second} : {element}"], held, name

    def _function(self, body: list[str], x: tuple[np.ndarray, str], element: str) -> tuple[list[str], np.ndarray, str]:
        held, last = x
        name = f"%t{len(body)}"
        number = self.drawn.choice((-2, -1, 1, 2, 3))
        if "f" in element:
            constant = f"{name}n = arith.constant {float(number)} : {element}"
            choices = [
                (f"{name} = arith.negf {last} : {element}", -held),
                (f"{name} = arith.addf {last}, {name}n : {element}", held + number),
                (f"{name} = arith.maximumf {last}, {name}n : {element}", np.maximum(held, number)),
                (f"{name} = arith.mulf {name}n, {last} : {element}", held * number),
                (f"{name} = arith.subf {name}n, {last} : {element}", number - held),
            ]
            if element in ("f32", "f16", "f64"):
                choices.append((f"{name} = math.absf {last} : {element}", np.abs(held)))
                choices.append((f"{name} = arith.remf {last}, {name}n : {element}", np.fmod(held, number)))
        else:
            constant = f"{name}n = arith.constant {number} : {element}"
            choices = [
                (f"{name} = arith.addi {last}, {name}n : {element}", held + number),
                (f"{name} = arith.maxsi {last}, {name}n : {element}", np.maximum(held, number)),
                (f"{name} = arith.muli {name}n, {last} : {element}", held * number),
                (f"{name} = arith.xori {last}, {name}n : {element}", held ^ number),
                (f"{name} = arith.subi {name}n, {last} : {element}", number - held),
                (f"{name} = arith.andi {last}, {name}n : {element}", held & number),
            ]
        line, made = self.drawn.choice(choices)
        if np.abs(made).max(initial=0) > EXACT[element] // 4:
            return body, held, last
        return [*body, constant, line], made, name

    def reduction(self) -> None:
        """Writes a sum or an extremum along axes."""
        drawn = self.drawn
        x = self.value(lambda v: v.held.ndim >= 2 and v.element != "i1")
        if x is None:
            return
        loops = LETTERS[: x.held.ndim]
        kept = [letter for letter in loops if drawn.random() < 0.5]
        if len(kept) == len(loops):
            kept.pop(drawn.randrange(len(kept)))
        axes = tuple(axis for axis, letter in enumerate(loops) if letter not in kept)
        kind = drawn.choice(("add", "add", "max", "min"))
        if kind == "add" and np.abs(x.held).sum(axis=axes).max(initial=0) > EXACT[x.element] // 2:
            return
        suffix = ("f" if x.is_float else "i") if kind == "add" else ("imumf" if x.is_float else "si")
        held = {"add": np.sum, "max": np.max, "min": np.min}[kind](x.held, axis=axes)
        bound = 0.0
        if kind != "add":
            bound = 100
            if drawn.random() < 0.6:
                bound = np.inf if x.is_float else EXACT[x.element]
            bound *= -1 if kind == "max" else 1
            held = np.maximum(held, bound) if kind == "max" else np.minimum(held, bound)
        held = np.asarray(held)
        outs = self.filled(held.shape, x.element, bound)
        if drawn.random() < 0.5:
            self.op(
                f"linalg.reduce {{ arith.{kind}{suffix} }} ins({x.name} : {x.type}) outs({outs} : {{type}}) "
                f"dimensions = [{', '.join(map(str, axes))}]",
                x.element,
                held,
                "reduce",
            )
            return
        body = [f"%r = arith.{kind}{suffix} %x0, %o : {x.element}"]
        self.generic([(x, ", ".join(loops))], loops, ("".join(kept), x.element), body, held, "reduction", outs=outs)

    def loop(self) -> None:
        """Writes a loop that carries a tensor: x = clamp(x w) or x = x + y, each of a few iterations."""
        x = self.value(lambda v: v.held.ndim == 2 and v.element in ("f16", "bf16", "f32"))
        if x is None:
            return
        if x.most > 3:
            x = self.clamped(x, 3)
        m, k = x.held.shape
        w = self.argument([k, k], x.element)
        steps = self.drawn.randint(1, 3)
        if k * 9 > EXACT[x.element]:
            return
        low, high, step = (self.name() for _ in range(3))
        self.lines += [
            f"{low} = arith.constant 0 : index",
            f"{high} = arith.constant {steps} : index",
            f"{step} = arith.constant 1 : index",
        ]
        zeros = self.filled([m, k], "f32")
        lo, hi = self.filled([m, k], "f32", -3), self.filled([m, k], "f32", 3)
        held = x.held
        for _ in range(steps):
            held = np.clip(held @ w.held, -3, 3)
        sums, rounded = tensor([m, k], "f32"), []
        last = "%k2"
        if x.element != "f32":
            rounded, last = [f"  %k3 = arith.truncf %k2 : {sums} to {x.type}"], "%k3"
        body = [
            f"  %k0 = linalg.matmul ins(%it, {w.name} : {x.type}, {w.type}) outs({zeros} : {sums}) -> {sums}",
            f"  %k1 = arith.minimumf %k0, {hi} : {sums}",
            f"  %k2 = arith.maximumf %k1, {lo} : {sums}",
            *rounded,
            f"  scf.yield {last} : {x.type}",
        ]
        text = f"scf.for %i = {low} to {high} step {step} iter_args(%it = {x.name}) -> ({x.type}) {{\n  "
        self.op(text + "\n  ".join(body) + "\n  }", x.element, held, "loop")

    def random_cast(self) -> None:
        """Writes a conversion to another type."""
        x = self.value(lambda v: v.element not in ("i1", "i64") and v.held.ndim >= 1)
        if x is not None:
            self.cast(x, self.drawn.choice(("f32", "f16", "bf16", "f32", "i32", "i8")))

    def matmul(self) -> None:
        """Writes one matmul or batch of matmuls of arguments, which may be transposed before, or its result after."""
        drawn = self.drawn
        inputs, sums = drawn.choice(PRODUCTS)
        batch = [drawn.choice((1, 2, 3))] if drawn.random() < 0.2 else []
        m, n, k = (drawn.choice(self.sizes) for _ in "mnk")
        layouts = [drawn.random() < 0.5, drawn.random() < 0.5]
        operands, letters = [], []
        for by_columns, shape, names in zip(layouts, ((m, k), (k, n)), ("mk", "kn")):
            if by_columns:
                shape, names = shape[::-1], names[::-1]
            x = self.argument([*batch, *shape], inputs)
            names = "b" * len(batch) + names
            if drawn.random() < 0.2:  # a transpose of its own
                order = [*range(len(batch)), len(batch) + 1, len(batch)]
                self._transpose(x, order)
                x, names = self.values.pop(), "".join(names[axis] for axis in order)
            operands.append(x)
            letters.append(names)
        spec = f"{','.join(letters)}->{'b' * len(batch)}mn"
        held = np.einsum(spec, *(x.held for x in operands), optimize=True)
        if 4 * k > EXACT[sums] - 8:
            return
        if drawn.random() < 0.3:
            first = self.argument(held.shape, sums)
            start, held = first.name, held + first.held
        else:
            start = self.filled(held.shape, sums)
        loops = ", ".join(["b"] * len(batch) + ["m", "n", "k"])
        maps = [f"affine_map<({loops}) -> ({', '.join(item)})>" for item in (*letters, spec.partition(">")[2])]
        a, b = operands
        op = drawn.choice(("linalg.batch_matmul" if batch else "linalg.matmul", "linalg.contract"))
        self.op(
            f"{op} indexing_maps = [{', '.join(maps)}]\n"
            f"    ins({a.name}, {b.name} : {a.type}, {b.type}) outs({start} : {{type}}) -> {{type}}",
            sums,
            held,
            "matmul",
        )

    def write(self, length: int, kinds: Sequence[Callable[[], None]] = ()) -> Function:
        """Writes a function of about `length` ops.

        Args:
            length: number of ops after the first contraction.
            kinds: methods that write ops, after the first contraction; all if there are none.
        """
        drawn = self.drawn
        while not self.values:
            self.contraction()
        kinds = kinds or (
            *((self.contraction,) * 4),
            *((self.elementwise,) * 5),
            *((self.view,) * 3),
            *((self.reduction,) * 2),
            self.random_cast,
            self.loop,
        )
        for _ in range(length):
            if sum(value.held.size for value in self.values) < 2**16:
                drawn.choice(kinds)()
        text = "\n".join(self.lines)
        read = set()
        for line in text.replace("(", " ").replace(")", " ").replace(",", " ").replace("[", " ").split():
            read.add(line)
        counts = {value.name: 0 for value in self.values}
        for token in text.replace("(", " ").replace(")", " ").replace(",", " ").replace("[", " ").split():
            if token in counts:
                counts[token] += 1
        results = [value for value in self.values if counts[value.name] == 1]
        others = [value for value in self.values if counts[value.name] > 1]
        if others and drawn.random() < 0.5:
            results.append(drawn.choice(others))
        if drawn.random() < 0.1:
            results.append(drawn.choice(results))
        arguments = ", ".join(f"{value.name}: {value.type}" for value in self.arguments)
        types = ", ".join(value.type for value in results)
        names = ", ".join(value.name for value in results)
        body = "\n".join(f"  {line}" for line in self.lines)
        return Function(
            f"func.func @drawn({arguments}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}\n",
            [value.held.astype(DTYPES[value.element]) for value in self.arguments],
            [value.held.astype(DTYPES[value.element]) for value in results],
            self.features,
        )


def drawn_function(seed: int, length: int | None = None) -> Function:
    """Returns the function of a seed."""
    drawn = random.Random(seed)
    return Writer(drawn, SIZES).write(drawn.randrange(1, 9) if length is None else length)


def drawn_kernel(seed: int) -> Function:
    """Returns a function of one matmul, most of which are one kernel: elementwise ops, reductions of rows and columns.

    Args:
        seed: of all that is drawn.
    """
    drawn = random.Random(seed)
    odd = drawn.choice((0.0, 0.3, 1.0))
    sizes = [drawn.choice(ODD if drawn.random() < odd else EVEN) for _ in range(3)]
    writer = Writer(drawn, sizes)
    while not writer.values:
        writer.matmul()
    kinds = (*((writer.elementwise,) * 4), writer.random_cast, writer.reduction)
    return writer.write(drawn.randrange(7), kinds)
