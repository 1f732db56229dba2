"""Random programs: a contraction and up to six elementwise ops, of drawn layouts, sizes, types and results."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FLOATS = ("f32", "f16", "bf16")
# Bodies of functions of %x, a number of f32, as lines before the one that makes %v.
FUNCTIONS = (
    ("%v = arith.negf %x : f32",),
    ("%v = math.absf %x : f32",),
    ("%v = math.tanh %x : f32",),
    ("%v = math.erf %x : f32",),
    ("%v = math.sin %x : f32",),
    ("%v = math.floor %x : f32",),
    ("%v = math.round %x : f32",),
    ("%v = math.trunc %x : f32",),
    ("%v = math.atan %x : f32",),
    ("%v = math.asinh %x : f32",),
    ("%v = math.cbrt %x : f32",),
    ("%v = math.erfc %x : f32",),
    ("%c = arith.constant 1.5 : f32", "%v = math.copysign %c, %x : f32"),
    ("%c = arith.constant 2.5 : f32", "%v = math.atan2 %x, %c : f32"),
    ("%c = arith.constant 1.0e3 : f32", "%v = arith.remf %x, %c : f32"),
    ("%c = arith.constant 0.75 : f32", "%a = math.absf %x : f32", "%v = math.powf %a, %c : f32"),
    ("%a = math.tanh %x : f32", "%v = math.acos %a : f32"),
    ("%a = math.absf %x : f32", "%v = math.sqrt %a : f32"),
    ("%c = arith.constant 0.0 : f32", "%v = arith.maximumf %x, %c : f32"),
    ("%c = arith.constant -0.75 : f32", "%v = arith.mulf %x, %c : f32"),
    ("%c = arith.constant 2.5 : f32", "%v = arith.minimumf %x, %c : f32"),
    ("%c = arith.constant 3.0 : f32", "%a = arith.minimumf %x, %c : f32", "%v = math.exp %a : f32"),
    (  # the sigmoid
        "%c = arith.constant 1.0 : f32",
        "%n = arith.negf %x : f32",
        "%e = math.exp %n : f32",
        "%d = arith.addf %e, %c : f32",
        "%v = arith.divf %c, %d : f32",
    ),
    (  # GELU
        "%h = arith.constant 0.5 : f32",
        "%c = arith.constant 1.0 : f32",
        "%k = arith.constant 0.797884583 : f32",
        "%u = arith.mulf %x, %k : f32",
        "%t = math.tanh %u : f32",
        "%s = arith.addf %c, %t : f32",
        "%a = arith.mulf %x, %h : f32",
        "%v = arith.mulf %s, %a : f32",
    ),
    (
        "%c = arith.constant 0.0 : f32",
        "%l = arith.constant 0.25 : f32",
        "%b = arith.cmpf ogt, %x, %c : f32",
        "%a = arith.mulf %x, %l : f32",
        "%v = arith.select %b, %x, %a : f32",
    ),
)
COMBINATIONS = ("addf", "subf", "mulf", "maximumf", "minimumf")
INTEGER_FUNCTIONS = (
    ("%c = arith.constant 3 : i32", "%v = arith.addi %x, %c : i32"),
    ("%c = arith.constant 0 : i32", "%v = arith.maxsi %x, %c : i32"),
    ("%c = arith.constant -2 : i32", "%v = arith.muli %x, %c : i32"),
    ("%c = arith.constant 7 : i32", "%v = arith.remsi %x, %c : i32"),
    ("%c = arith.constant -5 : i32", "%v = arith.floordivsi %x, %c : i32"),
    ("%c = arith.constant 9 : i32", "%v = arith.divui %x, %c : i32"),
    ("%c = arith.constant 3 : i32", "%v = arith.shrsi %x, %c : i32"),
    ("%c = arith.constant 4 : i32", "%v = arith.shrui %x, %c : i32"),
    ("%c = arith.constant 51 : i32", "%v = arith.xori %x, %c : i32"),
    ("%c = arith.constant 2000 : i32", "%v = arith.minui %x, %c : i32"),
    (  # the fixed-point scale of TOSA's rescale
        "%w = arith.extsi %x : i32 to i64",
        "%c = arith.constant 1234567890 : i64",
        "%m = arith.muli %w, %c : i64",
        "%s = arith.constant 33 : i64",
        "%q = arith.shrsi %m, %s : i64",
        "%v = arith.trunci %q : i64 to i32",
    ),
)


@dataclass
class Writer:
    """Writes one program.

    Args:
        drawn: draws it.
        batch: of a batch; None for one matmul.
        m, n, k: extents.
    """

    drawn: random.Random
    batch: int | None
    m: int
    n: int
    k: int
    arguments: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    values: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    def tensor(self, shape: list[int], element: str) -> str:
        """Returns the type of a tensor."""
        return f"tensor<{'x'.join(map(str, [*shape, element]))}>"

    @property
    def shape(self) -> list[int]:
        """Extents of the product."""
        return [self.m, self.n] if self.batch is None else [self.batch, self.m, self.n]

    @property
    def loops(self) -> str:
        """The loops of elementwise ops."""
        return "i, j" if self.batch is None else "b, i, j"

    def name(self) -> str:
        """Returns a new name."""
        self.count += 1
        return f"%v{self.count}"

    def argument(self, shape: list[int], element: str) -> str:
        """Adds an argument; returns its name."""
        name = f"%arg{len(self.arguments)}"
        self.arguments.append(f"{name}: {self.tensor(shape, element)}")
        return name

    def operand(self, element: str) -> tuple[str, str, str]:
        """Returns a new operand of an elementwise op: name, type and map."""
        m, n = self.m, self.n
        forms = [([m, n], "i, j"), ([n], "j"), ([m], "i"), ([n, m], "j, i"), ([1], "0"), ([1, n], "0, j")]
        if self.batch is not None:
            forms += [(self.shape, "b, i, j"), ([self.batch, n], "b, j")]
        shape, map_ = self.drawn.choice(forms)
        return self.argument(shape, element), self.tensor(shape, element), map_

    def elementwise(self, inputs: list[tuple[str, str, str]], arguments: list[str], body: list[str], made: str) -> str:
        """Writes an elementwise op whose body makes %r, of type `made`; returns the result."""
        empty, name = self.name(), self.name()
        maps = [f"affine_map<({self.loops}) -> ({map_})>" for _, _, map_ in inputs]
        parallel = ", ".join(['"parallel"'] * len(self.shape))
        type_ = self.tensor(self.shape, made)
        identity = f"affine_map<({self.loops}) -> ({self.loops})>"
        self.lines += [
            f"{empty} = tensor.empty() : {type_}",
            f"{name} = linalg.generic {{indexing_maps = [{', '.join([*maps, identity])}],",
            f"    iterator_types = [{parallel}]}}",
            f"    ins({', '.join(item[0] for item in inputs)} : {', '.join(item[1] for item in inputs)})"
            f" outs({empty} : {type_}) {{",
            f"^bb0({', '.join([*arguments, f'%o: {made}'])}):",
            *(f"  {line}" for line in body),
            f"  linalg.yield %r : {made}",
            f"}} -> {type_}",
        ]
        self.values.append((name, made))
        return name

    def step(self) -> None:
        """Writes one elementwise op on the last value, or on one before it."""
        value, element = self.values[-1] if self.drawn.random() < 0.7 else self.drawn.choice(self.values)
        source = (value, self.tensor(self.shape, element), self.loops)
        if element == "i32":
            self._integer_step(source)
            return
        widened = [] if element == "f32" else [f"%x = arith.extf %x0 : {element} to f32"]
        inputs, arguments = [source], [f"%x{'0' if widened else ''}: {element}"]
        body = list(widened)
        if self.drawn.random() < 0.5:
            floats = [item for item in self.values if item[1] != "i32"]
            stored = self.drawn.choice(FLOATS)
            other = self.operand(stored)
            if self.drawn.random() < 0.25:
                name, stored = self.drawn.choice(floats)
                self.arguments.pop()
                other = (name, self.tensor(self.shape, stored), self.loops)
            inputs.append(other)
            arguments.append(f"%y{'' if stored == 'f32' else '0'}: {stored}")
            body += [] if stored == "f32" else [f"%y = arith.extf %y0 : {stored} to f32"]
            body.append(f"%v = arith.{self.drawn.choice(COMBINATIONS)} %x, %y : f32")
        else:
            body += self.drawn.choice(FUNCTIONS)
        made = self.drawn.choice(("f32", "f32", *FLOATS))
        body.append("%z = arith.constant 0.0 : f32")
        body.append("%r = arith.addf %v, %z : f32" if made == "f32" else f"%r = arith.truncf %v : f32 to {made}")
        self.elementwise(inputs, arguments, body, made)

    def _integer_step(self, source: tuple[str, str, str]) -> None:
        if self.drawn.random() < 0.4:
            scale = self.argument([self.n], "f32")
            inputs = [source, (scale, self.tensor([self.n], "f32"), "j")]
            body = ["%f = arith.sitofp %x : i32 to f32", "%r = arith.mulf %f, %s : f32"]
            self.elementwise(inputs, ["%x: i32", "%s: f32"], body, "f32")
            return
        body = [*self.drawn.choice(INTEGER_FUNCTIONS), "%z = arith.constant 0 : i32", "%r = arith.addi %v, %z : i32"]
        self.elementwise([source], ["%x: i32"], body, "i32")

    def product(self, inputs: str, sums: str, columns: str) -> None:
        """Writes the contraction."""
        outer = [] if self.batch is None else [self.batch]
        a_shape = [*outer, self.k, self.m] if "a" in columns else [*outer, self.m, self.k]
        b_shape = [*outer, self.n, self.k] if "b" in columns else [*outer, self.k, self.n]
        a, b = self.argument(a_shape, inputs), self.argument(b_shape, inputs)
        loops = "i, j, k" if self.batch is None else "b, i, j, k"
        first = "" if self.batch is None else "b, "
        maps = [
            f"affine_map<({loops}) -> ({first}{results})>"
            for results in ("k, i" if "a" in columns else "i, k", "j, k" if "b" in columns else "k, j", "i, j")
        ]
        type_ = self.tensor(self.shape, sums)
        if self.drawn.random() < 0.2:
            start = self.argument(self.shape, sums)
        else:
            zero, empty, start = self.name(), self.name(), self.name()
            self.lines += [
                f"{zero} = arith.constant {'0' if sums == 'i32' else '0.0'} : {sums}",
                f"{empty} = tensor.empty() : {type_}",
                f"{start} = linalg.fill ins({zero} : {sums}) outs({empty} : {type_}) -> {type_}",
            ]
        op = "linalg.matmul" if self.batch is None else "linalg.batch_matmul"
        name = self.name()
        self.lines += [
            f"{name} = {op} indexing_maps = [{', '.join(maps)}]",
            f"    ins({a}, {b} : {self.tensor(a_shape, inputs)}, {self.tensor(b_shape, inputs)})"
            f" outs({start} : {type_}) -> {type_}",
        ]
        self.values.append((name, sums))

    def text(self) -> str:
        """Returns the function, which returns all values that nothing reads, and others."""
        read = " ".join(self.lines)
        chosen = [item for item in self.values if f"{item[0]}," not in read and f"ins({item[0]} " not in read]
        others = [item for item in self.values if item not in chosen]
        while others and len(chosen) < 3 and self.drawn.random() < 0.3:
            chosen.append(others.pop(self.drawn.randrange(len(others))))
        types = ", ".join(self.tensor(self.shape, element) for _, element in chosen)
        body = "\n  ".join([*self.lines, f"return {', '.join(name for name, _ in chosen)} : {types}"])
        return f"func.func @program({', '.join(self.arguments)}) -> ({types}) {{\n  {body}\n}}\n"


def program(drawn: random.Random, pipeline: str) -> str:
    """Returns a program for a pipeline, some of which it refuses."""
    inputs, sums = drawn.choice([("f16", "f32"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("f16", "f16")])
    sizes = [8, 17, 24, 40, 64, 72, 100, 131] if pipeline == "wgmma" else [16, 32, 33, 40, 64, 64, 96, 128]
    m, n, k = (drawn.choice(sizes) for _ in "mnk")
    batch = drawn.choice([None, None, None, 2])
    writer = Writer(drawn, batch, m, n, k)
    writer.product(inputs, sums, drawn.choice(["", "a", "b", "b", "ab"]))
    for _ in range(drawn.randrange(7)):
        writer.step()
    return writer.text()
