"""Payloads of a pair of products: an elementwise function of two products of one A, as users and front ends write it.

Each is drawn: sizes, types, layouts, biases, roundings between, the activation, the order of the ops, and whether
weights are transposed or contractions are generics.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class PairPayload:
    """What a payload is drawn with.

    Attributes:
        m, n, k: extents.
        inputs, stored: element types of A and B, and of the result.
        rounded: the element type that each product is rounded to before the ops; None for none.
        layout: of B: `row`, `transposed` by a `linalg.transpose`, or `generic`, in the indexing maps of a contraction.
        activation: of the first product: `silu`, `relu`, `tanh` or `none`.
        biases: how many of the products have a bias along n.
        late: whether the second product is written behind the activation of the first.
        buffers: whether arguments are buffers, of which the last is written.
        reduced: which axis of the result, of f32, sums are returned along, beside it; None for none.
        batch: matmuls of a batch; None for matrices.
        prepared: which operand elementwise ops make: `x`, the A of both products, `g` or `u`, one B; None for none.
    """

    m: int = 72
    n: int = 48
    k: int = 40
    inputs: str = "f16"
    stored: str = "f16"
    rounded: str | None = None
    layout: str = "transposed"
    activation: str = "silu"
    biases: int = 0
    late: bool = False
    buffers: bool = False
    reduced: int | None = None
    batch: int | None = None
    prepared: str | None = None

    @property
    def loops(self) -> str:
        """Loops over the elements of a product."""
        return "i, j" if self.batch is None else "b, i, j"

    def _shape(self, *extents: int) -> str:
        """Returns the extents of a matrix, or of those of a batch."""
        return "x".join(str(extent) for extent in (self.batch, *extents) if extent is not None)

    def text(self) -> str:
        """Returns the payload."""
        a, c = f"{self._shape(self.m, self.k)}x{self.inputs}", f"{self._shape(self.m, self.n)}x{self.stored}"
        b = f"{self._shape(self.k, self.n) if self.layout == 'row' else self._shape(self.n, self.k)}x{self.inputs}"
        shapes = [a, b, b, *[f"{self.n}xf32"] * self.biases]
        names = ["x", "g", "u", *(f"bias{number}" for number in range(self.biases))]
        if self.buffers:
            arguments = ", ".join(f"%m_{name}: memref<{shape}>" for name, shape in zip(names, shapes))
            head = [f"func.func @pair({arguments}, %m_c: memref<{c}>) {{"]
            head += [
                f"%{name} = bufferization.to_tensor %m_{name} restrict : memref<{shape}> to tensor<{shape}>"
                for name, shape in zip(names, shapes)
            ]
        else:
            arguments = ", ".join(f"%{name}: tensor<{shape}>" for name, shape in zip(names, shapes))
            head = [f"func.func @pair({arguments}) -> tensor<{c}> {{"]
        sums = f"tensor<{self._shape(self.m, self.n)}xf32>"
        head += [
            "%zero = arith.constant 0.0 : f32",
            "%one = arith.constant 1.0 : f32",
            f"%e = tensor.empty() : {sums}",
            f"%zeros = linalg.fill ins(%zero : f32) outs(%e : {sums}) -> {sums}",
        ]
        head += self._prepared()
        second = self._product("u", "q", 1)
        lines = self._product("g", "p", 0)
        activation = self._activation()
        lines += [*activation, *second] if self.late else [*second, *activation]
        lines += self._combined(c)
        if self.buffers:
            store = (
                f"bufferization.materialize_in_destination %d in restrict writable %m_c : (tensor<{c}>, memref<{c}>)"
            )
            lines += [f"{store} -> ()", "return"]
        elif self.reduced is not None:
            vector = f"tensor<{(self.n, self.m)[self.reduced]}xf32>"
            head[0] = head[0].replace(f"-> tensor<{c}>", f"-> (tensor<{c}>, {vector})")
            lines += [
                f"%ve = tensor.empty() : {vector}",
                f"%v0 = linalg.fill ins(%zero : f32) outs(%ve : {vector}) -> {vector}",
                f"%v = linalg.reduce ins(%d : tensor<{c}>) outs(%v0 : {vector}) dimensions = [{self.reduced}]",
                "    (%left: f32, %right: f32) {",
                "  %sum = arith.addf %left, %right : f32",
                "  linalg.yield %sum : f32",
                "}",
                f"return %d, %v : tensor<{c}>, {vector}",
            ]
        else:
            lines.append(f"return %d : tensor<{c}>")
        return "\n  ".join([*head, *lines]) + "\n}\n"

    def _parallel(self) -> str:
        """Returns the types of the loops over the elements of a product."""
        return ", ".join(['"parallel"'] * (2 if self.batch is None else 3))

    def _operand(self, name: str) -> str:
        """Returns what the products read for an argument: it, or what is made of it."""
        return "%made" if name == self.prepared else f"%{name}"

    def _prepared(self) -> list[str]:
        """Returns the ops that make an operand, max(x, 0)."""
        if self.prepared is None:
            return []
        b = (self.k, self.n) if self.layout == "row" else (self.n, self.k)
        made = f"tensor<{self._shape(*((self.m, self.k) if self.prepared == 'x' else b))}x{self.inputs}>"
        return [
            f"%low = arith.constant 0.0 : {self.inputs}",
            f"%lows = tensor.empty() : {made}",
            f"%bound = linalg.fill ins(%low : {self.inputs}) outs(%lows : {made}) -> {made}",
            f"%made = linalg.max ins(%{self.prepared}, %bound : {made}, {made}) outs(%lows : {made}) -> {made}",
        ]

    def _product(self, weight: str, name: str, number: int) -> list[str]:
        """Returns the ops of a product, with its bias and its rounding."""
        a, b, stored = (
            f"tensor<{self._shape(*extents)}x{self.inputs}>"
            for extents in ((self.m, self.k), (self.k, self.n), (self.n, self.k))
        )
        sums = f"tensor<{self._shape(self.m, self.n)}xf32>"
        batch = "" if self.batch is None else "b, "
        result, x = f"%{name}0", self._operand("x")
        if self.layout == "generic":
            read = (f"affine_map<({self.loops}, k) -> ({batch}{axes})>" for axes in ("i, k", "j, k", "i, j"))
            maps = f"[{', '.join(read)}]"
            lines = [
                f"{result} = linalg.generic {{indexing_maps = {maps}, iterator_types = "
                f'[{self._parallel()}, "reduction"]}}',
                f"    ins({x}, {self._operand(weight)} : {a}, {stored}) outs(%zeros : {sums}) {{",
                f"^bb0(%l: {self.inputs}, %r: {self.inputs}, %s: f32):",
                f"  %wl = arith.extf %l : {self.inputs} to f32",
                f"  %wr = arith.extf %r : {self.inputs} to f32",
                "  %t = arith.mulf %wl, %wr : f32",
                "  %v = arith.addf %s, %t : f32",
                "  linalg.yield %v : f32",
                f"}} -> {sums}",
            ]
        else:
            operand, lines = self._operand(weight), []
            if self.layout == "transposed":
                lines = [
                    f"%{weight}e = tensor.empty() : {b}",
                    f"%{weight}t = linalg.transpose ins({operand} : {stored}) outs(%{weight}e : {b}) "
                    f"permutation = {'[1, 0]' if self.batch is None else '[0, 2, 1]'}",
                ]
                operand = f"%{weight}t"
            op = "matmul" if self.batch is None else "batch_matmul"
            lines.append(f"{result} = linalg.{op} ins({x}, {operand} : {a}, {b}) outs(%zeros : {sums}) -> {sums}")
        if number < self.biases:
            bias = f"tensor<{self.n}xf32>"
            lines += [
                f"%{name}b = linalg.broadcast ins(%bias{number} : {bias}) outs(%e : {sums}) "
                f"dimensions = {'[0]' if self.batch is None else '[0, 1]'}",
                f"%{name}1 = linalg.add ins({result}, %{name}b : {sums}, {sums}) outs(%e : {sums}) -> {sums}",
            ]
            result = f"%{name}1"
        if self.rounded:
            body = [f"%v = arith.truncf %i : f32 to {self.rounded}", f"linalg.yield %v : {self.rounded}"]
            lines += self._elementwise(f"%{name}r", [(result, "f32")], self.rounded, body)
        else:
            lines += self._elementwise(f"%{name}r", [(result, "f32")], "f32", ["linalg.yield %i : f32"])
        return lines

    def _elementwise(self, name: str, inputs: list[tuple[str, str]], output: str, body: list[str]) -> list[str]:
        """Returns an elementwise op; its body has the inputs as `%i` and `%j`."""
        identity = f"affine_map<({self.loops}) -> ({self.loops})>"
        types = ", ".join(f"tensor<{self._shape(self.m, self.n)}x{type_}>" for _, type_ in inputs)
        made = f"tensor<{self._shape(self.m, self.n)}x{output}>"
        maps = ", ".join([identity] * (len(inputs) + 1))
        arguments = ", ".join(f"%{letter}: {type_}" for letter, (_, type_) in zip("ij", inputs))
        return [
            f"{name}e = tensor.empty() : {made}",
            f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{self._parallel()}]}}",
            f"    ins({', '.join(value for value, _ in inputs)} : {types}) outs({name}e : {made}) {{",
            f"^bb0({arguments}, %o: {output}):",
            *(f"  {line}" for line in body),
            f"}} -> {made}",
        ]

    def _activation(self) -> list[str]:
        type_ = self.rounded or "f32"
        body = ["%f = arith.extf %i : " + f"{type_} to f32"] if self.rounded else []
        value = "%f" if self.rounded else "%i"
        if self.activation == "silu":
            body += [
                f"%n = arith.negf {value} : f32",
                "%x1 = math.exp %n : f32",
                "%x2 = arith.addf %x1, %one : f32",
                f"%y = arith.divf {value}, %x2 : f32",
            ]
        elif self.activation == "relu":
            body.append(f"%y = arith.maximumf {value}, %zero : f32")
        elif self.activation == "tanh":
            body.append(f"%y = math.tanh {value} : f32")
        else:
            body.append(f"%y = arith.addf {value}, %one : f32")
        return self._elementwise("%act", [("%pr", type_)], "f32", [*body, "linalg.yield %y : f32"])

    def _combined(self, c: str) -> list[str]:
        """Returns the op that multiplies both, rounded to the type of the result."""
        type_ = self.rounded or "f32"
        body = [f"%w = arith.extf %j : {type_} to f32"] if self.rounded else []
        body.append(f"%y = arith.mulf %i, {'%w' if self.rounded else '%j'} : f32")
        value = "%y"
        if self.stored != "f32":
            body.append(f"%z = arith.truncf %y : f32 to {self.stored}")
            value = "%z"
        lines = self._elementwise(
            "%d", [("%act", "f32"), ("%qr", type_)], self.stored, [*body, f"linalg.yield {value} : {self.stored}"]
        )
        if self.buffers:
            lines[0] = f"%de = bufferization.to_tensor %m_c restrict writable : memref<{c}> to tensor<{c}>"
        return lines


def drawn(generator: random.Random) -> PairPayload:
    """Returns a payload with random properties: sizes that tiles do not divide, too."""
    inputs = generator.choice(["f16", "bf16"])
    batch = generator.choice([None, None, 2])
    return PairPayload(
        m=generator.randrange(1 if batch is None else 2, 140),
        n=8 * generator.randrange(1, 14),
        k=8 * generator.randrange(1, 14),
        inputs=inputs,
        stored=generator.choice([inputs, "f32"]),
        rounded=generator.choice([None, inputs]),
        layout=generator.choice(["row", "transposed", "generic"]),
        activation=generator.choice(["silu", "relu", "tanh", "none"]),
        biases=generator.randrange(3),
        late=generator.choice([False, True]),
        buffers=generator.choice([False, True]),
        batch=batch,
        prepared=generator.choice([None, None, "x"]),
    )


def stored_gate(m: int, n: int, k: int, bits: int) -> str:
    """Returns a gated layer in f16 whose weights are stored as integers, with scales and zero points for groups of k.

    Args:
        m, n, k: of both products.
        bits: of an integer.
    """
    groups = f"{n}x{k // 32}"

    def product(b: str) -> str:
        return f"""
  %{b}_made = linalg.generic {{indexing_maps = [#all, #group, #group, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%{b}, %{b}_scale, %{b}_zero : tensor<{groups}x32xi{bits}>, tensor<{groups}xf16>, tensor<{groups}xf16>)
      outs(%made : tensor<{groups}x32xf16>) {{
  ^bb0(%number: i{bits}, %scale: f16, %point: f16, %out: f16):
    %wide = arith.sitofp %number : i{bits} to f16
    %value = arith.subf %wide, %point : f16
    %scaled = arith.mulf %value, %scale : f16
    linalg.yield %scaled : f16
  }} -> tensor<{groups}x32xf16>
  %{b}_rows = tensor.collapse_shape %{b}_made [[0], [1, 2]] : tensor<{groups}x32xf16> into tensor<{n}x{k}xf16>
  %{b}_sums = linalg.matmul indexing_maps = [affine_map<(i, j, l) -> (i, l)>, affine_map<(i, j, l) -> (j, l)>,
      affine_map<(i, j, l) -> (i, j)>] ins(%x, %{b}_rows : tensor<{m}x{k}xf16>, tensor<{n}x{k}xf16>)
      outs(%zeros : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>"""

    weights = ", ".join(
        f"%{b}: tensor<{groups}x32xi{bits}>, %{b}_scale: tensor<{groups}xf16>, %{b}_zero: tensor<{groups}xf16>"
        for b in "wv"
    )
    return f"""#all = affine_map<(i, g, j) -> (i, g, j)>
#group = affine_map<(i, g, j) -> (i, g)>
#id = affine_map<(i, j) -> (i, j)>
func.func @gate(%x: tensor<{m}x{k}xf16>, {weights}) -> tensor<{m}x{n}xf16> {{
  %zero = arith.constant 0.0 : f32
  %made = tensor.empty() : tensor<{groups}x32xf16>
  %sums = tensor.empty() : tensor<{m}x{n}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%sums : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  {product("w")}
  {product("v")}
  %out = tensor.empty() : tensor<{m}x{n}xf16>
  %gated = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%w_sums, %v_sums : tensor<{m}x{n}xf32>, tensor<{m}x{n}xf32>) outs(%out : tensor<{m}x{n}xf16>) {{
  ^bb0(%a: f32, %b: f32, %o: f16):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %a : f32
    %power = math.exp %minus : f32
    %sum = arith.addf %power, %one : f32
    %silu = arith.divf %a, %sum : f32
    %value = arith.mulf %silu, %b : f32
    %rounded = arith.truncf %value : f32 to f16
    linalg.yield %rounded : f16
  }} -> tensor<{m}x{n}xf16>
  return %gated : tensor<{m}x{n}xf16>
}}
"""
