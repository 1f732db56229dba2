"""Random payloads whose A or B elementwise ops make: activations, casts, weights of 8 and 4 bits with scales."""

from __future__ import annotations

import random


class ProducerPayload:
    """A function on tensors, C = AB, of which A, B or both are prepared.

    Args:
        seed: what is drawn.
        acc_type: of the sums.

    Attributes:
        text: the payload.
        kinds: what makes A and B, for messages.
    """

    def __init__(self, seed: int, acc_type: str = "f32") -> None:
        self._draw = random.Random(seed)
        self._arguments: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self.kinds: list[str] = []
        # Tiles of 32 x 32 x 32: some sizes are multiples, others odd.
        self.m, self.n = (self._draw.choice((32, 64, 33, 40)) for _ in range(2))
        self.k = self._draw.choice((32, 64, 48))
        self.type = self._draw.choice(("f16", "f16", "bf16")) if acc_type == "f32" else "f16"
        which = self._draw.choice(("a", "b", "b", "ab"))
        columns = self._draw.choice(("", "b", "a"))
        a = self._operand("a" in which, self.m, self.k, turned="a" in columns)
        b = self._operand("b" in which, self.k, self.n, turned="b" in columns)
        maps = ["(d0, d2)", "(d2, d1)", "(d0, d1)"]
        maps = ["(d2, d0)" if "a" in columns else maps[0], "(d1, d2)" if "b" in columns else maps[1], maps[2]]
        shapes = [(self.m, self.k), (self.k, self.n)]
        a_shape, b_shape = (f"{y}x{x}" if name in columns else f"{x}x{y}" for name, (x, y) in zip("ab", shapes))
        c = f"tensor<{self.m}x{self.n}x{acc_type}>"
        zero = self._line(f"arith.constant 0.0 : {acc_type}")
        empty = self._line(f"tensor.empty() : {c}")
        start = self._line(f"linalg.fill ins({zero} : {acc_type}) outs({empty} : {c}) -> {c}")
        indexing = ", ".join(f"affine_map<(d0, d1, d2) -> {map_}>" for map_ in maps)
        types = f"tensor<{a_shape}x{self.type}>, tensor<{b_shape}x{self.type}>"
        product = self._line(
            f"linalg.matmul indexing_maps = [{indexing}] ins({a}, {b} : {types}) outs({start} : {c}) -> {c}"
        )
        body = "\n  ".join(self._lines)
        self.text = f"func.func @f({', '.join(self._arguments)}) -> {c} {{\n  {body}\n  return {product} : {c}\n}}\n"

    def _line(self, text: str) -> str:
        self._count += 1
        self._lines.append(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def _argument(self, type_: str) -> str:
        self._arguments.append(f"%d{len(self._arguments)}: tensor<{type_}>")
        return f"%d{len(self._arguments) - 1}"

    def _generic(self, inputs: list[tuple[str, str, str]], result: str, loops: int, body: list[str]) -> str:
        """Writes a `linalg.generic`: inputs as value, type and map's results; `%x0` and so on are their elements."""
        dims = ", ".join(f"d{number}" for number in range(loops))
        maps = [f"affine_map<({dims}) -> ({map_})>" for *_, map_ in inputs] + [f"affine_map<({dims}) -> ({dims})>"]
        element = result.rpartition("x")[2]
        out = self._line(f"tensor.empty() : tensor<{result}>")
        elements = [f"%x{number}: {type_.rpartition('x')[2]}" for number, (_, type_, _) in enumerate(inputs)]
        yielded = body[-1].partition(" = ")[0]
        types = ", ".join(f"tensor<{type_}>" for _, type_, _ in inputs)
        parallel = ", ".join(['"parallel"'] * loops)
        return self._line(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = "
            f"[{parallel}]}} ins({', '.join(value for value, *_ in inputs)} : "
            f"{types}) outs({out} : tensor<{result}>) {{\n  ^bb0({', '.join(elements)}, %out: {element}):\n    "
            + "\n    ".join([*body, f"linalg.yield {yielded} : {element}"])
            + f"\n  }} -> tensor<{result}>"
        )

    def _operand(self, is_prepared: bool, rows: int, columns: int, *, turned: bool) -> str:
        rows, columns = (columns, rows) if turned else (rows, columns)
        if not is_prepared:
            return self._argument(f"{rows}x{columns}x{self.type}")
        kinds = [self._activation, self._scaled, self._dequantized, self._narrowed, self._narrow_floats]
        kinds += (
            [self._nibbles] * (columns % 16 == 0)
            + [self._words] * (rows % 8 == 0)
            + [self._grouped] * (rows % 16 == 0)
            + [self._packed] * (rows % 2 == 0)
        )
        kind = self._draw.choice(kinds)
        self.kinds.append(kind.__name__)
        return kind(rows, columns)

    def _vector(self, rows: int, columns: int, type_: str) -> tuple[str, str, str]:
        """Returns an operand along rows or columns, or of one number."""
        shape, map_ = self._draw.choice(((f"{rows}x", "d0"), (f"{columns}x", "d1"), ("", ""), (f"{rows}x1x", "d0, 0")))
        return self._argument(shape + type_), shape + type_, map_

    def _activation(self, rows: int, columns: int) -> str:
        shape = f"{rows}x{columns}x{self.type}"
        zero = self._line(f"arith.constant 0.0 : {self.type}")
        value = self._generic(
            [(self._argument(shape), shape, "d0, d1")], shape, 2, [f"%y = arith.maximumf %x0, {zero} : {self.type}"]
        )
        if self._draw.random() < 0.5:
            body = [f"%w = arith.extf %x0 : {self.type} to f32", "%e = math.tanh %w : f32"]
            body.append(f"%y = arith.truncf %e : f32 to {self.type}")
            value = self._generic([(value, shape, "d0, d1")], shape, 2, body)
        return value

    def _scaled(self, rows: int, columns: int) -> str:
        shape = f"{rows}x{columns}x{self.type}"
        turned = self._draw.random() < 0.3
        given = f"{columns}x{rows}x{self.type}" if turned else shape
        inputs = [(self._argument(given), given, "d1, d0" if turned else "d0, d1")]
        inputs.append(self._vector(rows, columns, self.type))
        name = self._draw.choice(("mulf", "addf", "subf"))
        return self._generic(inputs, shape, 2, [f"%y = arith.{name} %x0, %x1 : {self.type}"])

    def _dequantized(self, rows: int, columns: int) -> str:
        """Numbers of i8, with or without a zero point, times scales; in the operand's type or in f32."""
        wide = self._draw.choice((self.type, "f32"))
        inputs = [(self._argument(f"{rows}x{columns}xi8"), f"{rows}x{columns}xi8", "d0, d1")]
        inputs.append(self._vector(rows, columns, wide))
        body, number = ["%i = arith.extsi %x0 : i8 to i32"], "%i"
        if self._draw.random() < 0.5:
            inputs.append(self._vector(rows, columns, "i8"))
            body += ["%z = arith.extsi %x2 : i8 to i32", "%c = arith.subi %i, %z : i32"]
            number = "%c"
        body += [f"%f = arith.sitofp {number} : i32 to {wide}", f"%s = arith.mulf %f, %x1 : {wide}"]
        if wide != self.type:
            body.append(f"%y = arith.truncf %s : {wide} to {self.type}")
        return self._generic(inputs, f"{rows}x{columns}x{self.type}", 2, body)

    def _narrowed(self, rows: int, columns: int) -> str:
        given = f"{rows}x{columns}xf32"
        body = [f"%y = arith.truncf %x0 : f32 to {self.type}"]
        return self._generic([(self._argument(given), given, "d0, d1")], f"{rows}x{columns}x{self.type}", 2, body)

    def _narrow_floats(self, rows: int, columns: int) -> str:
        """Numbers of fp8, alone or times scales, in the operand's type or in f32."""
        stored, wide = self._draw.choice(("f8E4M3FN", "f8E5M2")), self._draw.choice((self.type, "f32"))
        inputs = [(self._argument(f"{rows}x{columns}x{stored}"), f"{rows}x{columns}x{stored}", "d0, d1")]
        if wide == self.type and self._draw.random() < 0.3:
            body = [f"%y = arith.extf %x0 : {stored} to {wide}"]
            return self._generic(inputs, f"{rows}x{columns}x{self.type}", 2, body)
        inputs.append(self._vector(rows, columns, wide))
        body = [f"%f = arith.extf %x0 : {stored} to {wide}", f"%s = arith.mulf %f, %x1 : {wide}"]
        if wide != self.type:
            body.append(f"%y = arith.truncf %s : {wide} to {self.type}")
        return self._generic(inputs, f"{rows}x{columns}x{self.type}", 2, body)

    def _nibbles(self, rows: int, columns: int) -> str:
        """Numbers of i4 with a scale and a zero point for each group of 16 columns, which is a loop."""
        groups, is_signed = columns // 16, self._draw.random() < 0.5
        shape, vector = f"{rows}x{groups}x16", f"{rows}x{groups}x{self.type}"
        inputs = [(self._argument(f"{shape}xi4"), f"{shape}xi4", "d0, d1, d2")]
        inputs += [(self._argument(vector), vector, "d0, d1") for _ in range(2)]
        middle = self._line(f"arith.constant {0 if is_signed else 8} : i32")
        body = [f"%w = arith.{'extsi' if is_signed else 'extui'} %x0 : i4 to i32"]
        body += [f"%v = arith.subi %w, {middle} : i32", f"%f = arith.sitofp %v : i32 to {self.type}"]
        body += [f"%c = arith.subf %f, %x1 : {self.type}", f"%y = arith.mulf %c, %x2 : {self.type}"]
        made = self._generic(inputs, f"{shape}x{self.type}", 3, body)
        return self._line(
            f"tensor.collapse_shape {made} [[0], [1, 2]] : tensor<{shape}x{self.type}> into "
            f"tensor<{rows}x{columns}x{self.type}>"
        )

    def _grouped(self, rows: int, columns: int) -> str:
        """Numbers of i8 with a scale for each group of 16 rows, through an expansion of the rows."""
        groups, shape = rows // 16, f"{rows // 16}x16x{columns}"
        given = self._argument(f"{rows}x{columns}xi8")
        grouped = self._line(
            f"tensor.expand_shape {given} [[0, 1], [2]] output_shape [{groups}, 16, {columns}] : "
            f"tensor<{rows}x{columns}xi8> into tensor<{shape}xi8>"
        )
        return self._with_scales(grouped, groups, 16, columns)

    def _words(self, rows: int, columns: int) -> str:
        """Numbers of 4 bits, eight rows in one of i32, by shifts that a constant holds, with a scale for eight rows."""
        groups, source = rows // 8, f"{rows // 8}x{columns}xi32"
        places = self._draw.choice(([0, 4, 8, 12, 16, 20, 24, 28], [0, 16, 4, 20, 8, 24, 12, 28]))
        shifts = self._line(f"arith.constant dense<{[[place] for place in places]}> : tensor<8x1xi32>")
        mask, middle = self._line("arith.constant 15 : i32"), self._line("arith.constant 8 : i32")
        inputs = [(self._argument(source), source, "d0, d2"), (shifts, "8x1xi32", "d1, 0")]
        body = ["%s = arith.shrsi %x0, %x1 : i32", f"%u = arith.andi %s, {mask} : i32"]
        body += [f"%c = arith.subi %u, {middle} : i32", "%y = arith.trunci %c : i32 to i8"]
        unpacked = self._generic(inputs, f"{groups}x8x{columns}xi8", 3, body)
        return self._with_scales(unpacked, groups, 8, columns)

    def _with_scales(self, grouped: str, groups: int, size: int, columns: int) -> str:
        shape = f"{groups}x{size}x{columns}"
        scales = self._argument(f"{groups}x{columns}x{self.type}")
        body = [f"%f = arith.sitofp %x0 : i8 to {self.type}", f"%y = arith.mulf %f, %x1 : {self.type}"]
        inputs = [(grouped, f"{shape}xi8", "d0, d1, d2"), (scales, f"{groups}x{columns}x{self.type}", "d0, d2")]
        made = self._generic(inputs, f"{shape}x{self.type}", 3, body)
        return self._line(
            f"tensor.collapse_shape {made} [[0, 1], [2]] : tensor<{shape}x{self.type}> into "
            f"tensor<{groups * size}x{columns}x{self.type}>"
        )

    def _packed(self, rows: int, columns: int) -> str:
        """Numbers of 4 bits, two rows in one of i8, signed or from 0 to 15, with a scale for each pair of rows."""
        given = self._argument(f"{rows // 2}x{columns}xi8")
        four = self._line("arith.constant 4 : i8")
        body = ["%i = linalg.index 1 : index", "%j = arith.index_cast %i : index to i8"]
        body.append(f"%b = arith.muli %j, {four} : i8")
        if self._draw.random() < 0.5:
            body += [f"%l = arith.subi {four}, %b : i8", "%h = arith.shli %x0, %l : i8"]
            body.append(f"%y = arith.shrsi %h, {four} : i8")
        else:
            mask = self._line("arith.constant 15 : i8")
            body += ["%h = arith.shrui %x0, %b : i8", f"%y = arith.andi %h, {mask} : i8"]
        source = (given, f"{rows // 2}x{columns}xi8", "d0, d2")
        unpacked = self._generic([source], f"{rows // 2}x2x{columns}xi8", 3, body)
        return self._with_scales(unpacked, rows // 2, 2, columns)
