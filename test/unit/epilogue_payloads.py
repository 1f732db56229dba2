"""Payloads of a matmul and elementwise ops on its result: about thirty kinds, as users write them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class Writer:
    """Writes the function of a payload, line by line.

    Args:
        m, n, k: extents.
        inputs, sums, stored: element types of A and B, of the product, and of the result.
        columns: which of "ab" are column-major.
    """

    m: int
    n: int
    k: int
    inputs: str = "f16"
    sums: str = "f32"
    stored: str = "f32"
    columns: str = ""
    head: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def new(self) -> str:
        """Returns a name for a value."""
        self.count += 1
        return f"%v{self.count}"

    def line(self, text: str) -> str:
        """Writes an op with one result; returns its name."""
        name = self.new()
        self.lines.append(f"{name} = {text}")
        return name

    def argument(self, shape: str) -> str:
        """Adds a tensor argument."""
        name = f"%d{len(self.arguments)}"
        self.arguments.append(f"{name}: tensor<{shape}>")
        return name

    def number(self, value: float, type_: str | None = None) -> str:
        """Writes a constant."""
        type_ = type_ or self.sums
        text = str(int(value)) if type_.startswith("i") else f"{value:e}"
        return self.line(f"arith.constant {text} : {type_}")

    def empty(self, type_: str | None = None, shape: str | None = None) -> str:
        """Writes a tensor.empty."""
        return self.line(f"tensor.empty() : tensor<{shape or f'{self.m}x{self.n}'}x{type_ or self.sums}>")

    def tensor(self, type_: str | None = None) -> str:
        """Returns the type of a matrix like C."""
        return f"tensor<{self.m}x{self.n}x{type_ or self.sums}>"

    def named(self, name: str, *operands: str, type_: str | None = None) -> str:
        """Writes a named op on matrices."""
        tensor = self.tensor(type_)
        ins = ", ".join(operands)
        types = ", ".join([tensor] * len(operands))
        out = self.empty(type_)
        return self.line(f"linalg.{name} ins({ins} : {types}) outs({out} : {tensor}) -> {tensor}")

    def filled(self, value: float) -> str:
        """Writes a matrix of one number."""
        return self.line(
            f"linalg.fill ins({self.number(value)} : {self.sums}) outs({self.empty()} : {self.tensor()}) "
            f"-> {self.tensor()}"
        )

    def broadcast(self, vector: str, along: int) -> str:
        """Writes a `linalg.broadcast` of a vector, of elements along m (1) or n (0)."""
        length = self.n if along == 0 else self.m
        return self.line(
            f"linalg.broadcast ins({vector} : tensor<{length}x{self.sums}>) outs({self.empty()} : {self.tensor()}) "
            f"dimensions = [{along}]"
        )

    def generic(
        self,
        body: list[str],
        inputs: list[tuple[str, str, str]],
        type_: str | None = None,
        result: str = "%r",
    ) -> str:
        """Writes a `linalg.generic`; inputs are (value, shape and element type, results of the map), %x0, %x1, ..."""
        type_ = type_ or self.sums
        out = self.empty(type_)
        maps = ", ".join(f"affine_map<(i, j) -> ({results})>" for *_, results in [*inputs, ("", "", "i, j")])
        arguments = ", ".join(f"%x{number}: {kind.split('x')[-1]}" for number, (_, kind, _) in enumerate(inputs))
        lines = "\n".join(f"      {line}" for line in body)
        return self.line(
            f'linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}\n'
            f"      ins({', '.join(value for value, *_ in inputs)} : "
            f"{', '.join(f'tensor<{kind}>' for _, kind, _ in inputs)}) outs({out} : {self.tensor(type_)}) {{\n"
            f"    ^bb0({arguments}, %out: {type_}):\n{lines}\n      linalg.yield {result} : {type_}\n"
            f"    }} -> {self.tensor(type_)}"
        )

    def unary(self, value: str, *body: str, type_: str | None = None, of: str | None = None) -> str:
        """Writes a generic on one matrix."""
        return self.generic(list(body), [(value, f"{self.m}x{self.n}x{of or self.sums}", "i, j")], type_)

    def combined(self, value: str, op: str, kind: str, results: str) -> str:
        """Writes a generic that combines the product with a new argument."""
        other = self.argument(kind)
        element = kind.split("x")[-1]
        body, name = [], "%x1"
        if element != self.sums:
            body.append(f"%e = arith.extf %x1 : {element} to {self.sums}")
            name = "%e"
        body.append(f"%r = {op} %x0, {name} : {self.sums}")
        return self.generic(body, [(value, f"{self.m}x{self.n}x{self.sums}", "i, j"), (other, kind, results)])

    def product(self, start: str | None = None) -> str:
        """Writes the matmul."""
        a_map, b_map = ("k, m" if "a" in self.columns else "m, k"), ("n, k" if "b" in self.columns else "k, n")
        a = f"{self.k}x{self.m}" if "a" in self.columns else f"{self.m}x{self.k}"
        b = f"{self.n}x{self.k}" if "b" in self.columns else f"{self.k}x{self.n}"
        maps = ""
        if self.columns:
            maps = "indexing_maps = [{}] ".format(
                ", ".join(f"affine_map<(m, n, k) -> ({results})>" for results in (a_map, b_map, "m, n"))
            )
        start = start or self.filled(0)
        self.head = [f"%A: tensor<{a}x{self.inputs}>", f"%B: tensor<{b}x{self.inputs}>"]
        return self.line(
            f"linalg.matmul {maps}ins(%A, %B : tensor<{a}x{self.inputs}>, tensor<{b}x{self.inputs}>) "
            f"outs({start} : {self.tensor()}) -> {self.tensor()}"
        )

    def text(self, result: str) -> str:
        """Returns the payload, which returns `result`, rounded to the type that is stored."""
        if self.stored != self.sums:
            result = self.unary(result, f"%r = arith.truncf %x0 : {self.sums} to {self.stored}", type_=self.stored)
        body = "\n".join(f"    {line}" for line in self.lines)
        arguments = ", ".join([*self.head, *self.arguments])
        return (
            f"func.func @matmul({arguments}) -> {self.tensor(self.stored)} {{\n{body}\n"
            f"    return {result} : {self.tensor(self.stored)}\n}}\n"
        )


def _relu(w: Writer, x: str) -> str:
    return w.named("max", x, w.filled(0))


def _gelu_tanh(w: Writer, x: str) -> str:
    half, one, cubic, root = (w.number(value) for value in (0.5, 1, 0.044715, 0.7978845608))
    f = w.sums
    return w.unary(
        x,
        f"%a = arith.mulf %x0, %x0 : {f}",
        f"%b = arith.mulf %a, %x0 : {f}",
        f"%c = arith.mulf %b, {cubic} : {f}",
        f"%d = arith.addf %x0, %c : {f}",
        f"%e = arith.mulf %d, {root} : {f}",
        f"%f = math.tanh %e : {f}",
        f"%g = arith.addf %f, {one} : {f}",
        f"%h = arith.mulf %x0, {half} : {f}",
        f"%r = arith.mulf %h, %g : {f}",
    )


def _gelu_erf(w: Writer, x: str) -> str:
    half, one, root = (w.number(value) for value in (0.5, 1, 0.70710678))
    f = w.sums
    return w.unary(
        x,
        f"%a = arith.mulf %x0, {root} : {f}",
        f"%b = math.erf %a : {f}",
        f"%c = arith.addf %b, {one} : {f}",
        f"%d = arith.mulf %x0, {half} : {f}",
        f"%r = arith.mulf %d, %c : {f}",
    )


def _silu(w: Writer, x: str) -> str:
    negative = w.named("negf", x)
    exp = w.named("exp", negative)
    return w.named("div", x, w.named("add", exp, w.filled(1)))


def _clamp(w: Writer, x: str) -> str:
    low, high = w.number(-2), w.number(3)
    return w.unary(
        x,
        f"%a = arith.maximumf %x0, {low} : {w.sums}",
        f"%r = arith.minimumf %a, {high} : {w.sums}",
    )


def _leaky(w: Writer, x: str) -> str:
    zero, slope = w.number(0), w.number(0.125)
    return w.unary(
        x,
        f"%a = arith.cmpf ogt, %x0, {zero} : {w.sums}",
        f"%b = arith.mulf %x0, {slope} : {w.sums}",
        f"%r = arith.select %a, %x0, %b : {w.sums}",
    )


def _row_bias(w: Writer, x: str) -> str:
    return w.combined(x, "arith.addf", f"{w.n}x{w.sums}", "j")


def _matrix(w: Writer, x: str, op: str = "arith.addf") -> str:
    return w.combined(x, op, f"{w.m}x{w.n}x{w.sums}", "i, j")


def _casts(w: Writer, x: str) -> str:
    half = w.unary(x, f"%r = arith.truncf %x0 : {w.sums} to bf16", type_="bf16")
    return w.unary(half, f"%r = arith.extf %x0 : bf16 to {w.sums}", of="bf16")


def _broadcast_bias(w: Writer, x: str) -> str:
    return w.named("add", x, w.broadcast(w.argument(f"{w.n}x{w.sums}"), 0))


def _broadcast_column_bias(w: Writer, x: str) -> str:
    return w.named("add", x, w.broadcast(w.argument(f"{w.m}x{w.sums}"), 1))


def _map(w: Writer, x: str) -> str:
    return w.line(f"linalg.map {{ math.absf }} ins({x} : {w.tensor()}) outs({w.empty()} : {w.tensor()})")


def _elementwise(w: Writer, x: str) -> str:
    other = w.argument(f"{w.m}x{w.n}x{w.sums}")
    return w.line(
        f"linalg.elementwise kind=#linalg.elementwise_kind<mul> ins({x}, {other} : {w.tensor()}, {w.tensor()}) "
        f"outs({w.empty()} : {w.tensor()}) -> {w.tensor()}"
    )


def _dense_constant(w: Writer, x: str) -> str:
    return w.named("mul", x, w.line(f"arith.constant dense<5.0e-01> : {w.tensor()}"))


def _scale_of_one_element(w: Writer, x: str) -> str:
    return w.combined(x, "arith.mulf", f"1x{w.sums}", "0")


def _many_operands(w: Writer, x: str) -> str:
    x = _row_bias(w, x)
    x = w.combined(x, "arith.mulf", f"{w.m}x{w.sums}", "i")
    x = _matrix(w, x)
    return _matrix(w, x, "arith.mulf")


def _used_twice(w: Writer, x: str) -> str:
    bias = w.argument(f"{w.n}x{w.sums}")
    x = w.named("add", x, w.broadcast(bias, 0))
    return w.named("mul", x, w.broadcast(bias, 0))


def _diamond(w: Writer, x: str) -> str:
    x = _row_bias(w, x)
    return w.named("sub", w.named("tanh", x), w.named("square", x))


def _derived_bias(w: Writer, x: str) -> str:
    vector = f"tensor<{w.n}x{w.sums}>"
    bias = w.argument(f"{w.n}x{w.sums}")
    out = w.empty(shape=str(w.n))
    doubled = w.line(f"linalg.add ins({bias}, {bias} : {vector}, {vector}) outs({out} : {vector}) -> {vector}")
    return w.named("add", x, w.broadcast(doubled, 0))


def _where(w: Writer, x: str) -> str:
    """Two selections by one mask of the product."""
    mask = w.unary(x, f"%r = arith.cmpf ogt, %x0, {w.number(0)} : {w.sums}", type_="i1")
    return _selected(w, mask, _selected(w, mask, x, w.filled(0.5)), w.named("tanh", x))


def _where_of_bias(w: Writer, x: str) -> str:
    """A selection by a mask of a vector."""
    bias, zero, vector = w.argument(f"{w.n}x{w.sums}"), w.number(0), "affine_map<(j) -> (j)>"
    mask = w.line(
        f'linalg.generic {{indexing_maps = [{vector}, {vector}], iterator_types = ["parallel"]}}\n'
        f"      ins({bias} : tensor<{w.n}x{w.sums}>) outs({w.empty('i1', str(w.n))} : tensor<{w.n}xi1>) {{\n"
        f"    ^bb0(%x0: {w.sums}, %out: i1):\n      %r = arith.cmpf ogt, %x0, {zero} : {w.sums}\n"
        f"      linalg.yield %r : i1\n    }} -> tensor<{w.n}xi1>"
    )
    rows = w.line(
        f"linalg.broadcast ins({mask} : tensor<{w.n}xi1>) outs({w.empty('i1')} : {w.tensor('i1')}) dimensions = [0]"
    )
    return _selected(w, rows, x, w.filled(0.5))


def _selected(w: Writer, mask: str, x: str, y: str) -> str:
    return w.line(
        f"linalg.select ins({mask}, {x}, {y} : {w.tensor('i1')}, {w.tensor()}, {w.tensor()}) "
        f"outs({w.empty()} : {w.tensor()}) -> {w.tensor()}"
    )


# What follows the product, by name: a function of the writer and the product, which returns the result.
KINDS = {
    "relu": _relu,
    "leaky_relu": _leaky,
    "gelu_tanh": _gelu_tanh,
    "gelu_erf": _gelu_erf,
    "silu": _silu,
    "exp": lambda w, x: w.named("exp", w.named("mul", x, w.filled(0.125))),
    "tanh": lambda w, x: w.named("tanh", x),
    "scale": lambda w, x: w.named("mul", x, w.filled(0.5)),
    "dense_constant": _dense_constant,
    "clamp": _clamp,
    "casts": _casts,
    "square": lambda w, x: w.named("square", x),
    "abs_by_map": _map,
    "row_bias": _row_bias,
    "row_bias_f16": lambda w, x: w.combined(x, "arith.addf", f"{w.n}xf16", "j"),
    "row_bias_of_one_row": lambda w, x: w.combined(x, "arith.addf", f"1x{w.n}x{w.sums}", "0, j"),
    "column_bias": lambda w, x: w.combined(x, "arith.addf", f"{w.m}x{w.sums}", "i"),
    "broadcast_bias": _broadcast_bias,
    "broadcast_column_bias": _broadcast_column_bias,
    "add_matrix": _matrix,
    "add_matrix_bf16": lambda w, x: w.combined(x, "arith.addf", f"{w.m}x{w.n}xbf16", "i, j"),
    "add_transposed_matrix": lambda w, x: w.combined(x, "arith.addf", f"{w.n}x{w.m}x{w.sums}", "j, i"),
    "multiply_matrix": _elementwise,
    "add_relu": lambda w, x: _relu(w, _matrix(w, x)),
    "bias_relu": lambda w, x: _relu(w, _row_bias(w, x)),
    "bias_gelu": lambda w, x: _gelu_tanh(w, _row_bias(w, x)),
    "scale_of_one_element": _scale_of_one_element,
    "many_operands": _many_operands,
    "operand_used_twice": _used_twice,
    "diamond": _diamond,
    "derived_bias": _derived_bias,
    "where": _where,
    "where_of_bias": _where_of_bias,
    "copy_of_relu": lambda w, x: w.line(
        f"linalg.copy ins({_relu(w, x)} : {w.tensor()}) outs({w.empty()} : {w.tensor()}) -> {w.tensor()}"
    ),
}


def payload(kind: str, m: int, n: int, k: int, **types: str) -> str:
    """Returns the payload of a kind in `KINDS`; further arguments as for `Writer`."""
    writer = Writer(m, n, k, **types)
    return writer.text(KINDS[kind](writer, writer.product()))


# Steps of random chains: functions of a matrix that stay in range for values of a few units.
_STEPS = (
    "relu",
    "leaky_relu",
    "gelu_tanh",
    "gelu_erf",
    "silu",
    "tanh",
    "scale",
    "clamp",
    "casts",
    "abs_by_map",
    "where",
)
_WITH_OPERANDS = (
    *("row_bias", "row_bias_f16", "row_bias_of_one_row", "column_bias", "broadcast_bias", "broadcast_column_bias"),
    *("add_matrix", "add_matrix_bf16", "add_transposed_matrix", "multiply_matrix", "scale_of_one_element"),
    *("diamond", "derived_bias", "where_of_bias"),
)


def random_chain(writer: Writer, drawn: random.Random) -> str:
    """Writes a product and up to six kinds of elementwise ops, drawn, behind it; returns the result."""
    value = writer.product()
    for _ in range(drawn.randint(1, 6)):
        full = len(writer.arguments) >= 7
        value = KINDS[drawn.choice(_STEPS if full else drawn.choice([_STEPS, _WITH_OPERANDS]))](writer, value)
    return value
