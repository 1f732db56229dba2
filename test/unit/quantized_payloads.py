"""Random payloads of quantized matmuls: i8 with zero points, as named ops and as front ends write them out, and what
makes narrow integers of the sums."""

from __future__ import annotations

import random

_FORMS = ("named", "body", "separate")
_ENDS = ("sums", "signed", "unsigned", "scaled", "clamped")


class QuantizedPayload:
    """A function on tensors: sums of products of i8 less zero points, and elementwise ops on them.

    Args:
        seed: what is drawn.
        sizes: extents of rows and columns to draw from: of tiles of 32 x 32, some are multiples, others odd.

    Attributes:
        text: the payload.
        kind: what was drawn, for messages.
    """

    def __init__(self, seed: int, sizes: tuple[int, ...] = (32, 64, 33, 40)) -> None:
        self._draw = draw = random.Random(seed)
        self._lines: list[str] = []
        self.m, self.n = (draw.choice(sizes) for _ in range(2))
        self.k = draw.choice((32, 64, 48, 40))
        self.batch = draw.choice((0, 0, 0, 2))
        self.form = draw.choice(_FORMS)
        self.zeros = [draw.choice((0, 3, -5, 128, -128, draw.randrange(-128, 128))) for _ in "ab"]
        self.turned = self.form != "named" and draw.random() < 0.4
        self.unsigned = [self.form != "named" and draw.random() < 0.3 for _ in "ab"]
        self.accumulates = draw.random() < 0.3
        self.end = draw.choice(_ENDS)
        given = random.Random(seed + 1)
        kinds = {"named": ("", "number"), "body": ("", "number", "vector")}.get(self.form, ("",))
        self.given = [given.choice(kinds) for _ in "ab"]
        self.wide = [given.choice(("i8", "i32")) if kind == "vector" else "i32" for kind in self.given]
        self.kind = f"{self.form}, {self.given}, zero points {self.zeros}, unsigned {self.unsigned}, {self.end}"
        outer = [self.batch] if self.batch else []
        self._shapes = [
            "x".join(map(str, [*outer, *shape]))
            for shape in ((self.m, self.k), (self.n, self.k) if self.turned else (self.k, self.n), (self.m, self.n))
        ]
        a, b, c = self._shapes
        arguments = [f"%A: tensor<{a}xi8>", f"%B: tensor<{b}xi8>", f"%s: tensor<{self.n}xf32>"]
        arguments += [f"%C: tensor<{c}xi32>"] if self.accumulates else []
        for name, kind, type_, extent in zip("ab", self.given, self.wide, (self.m, self.n)):
            arguments += [f"%z{name}: {f'tensor<{extent}x{type_}>' if kind == 'vector' else 'i32'}"] if kind else []
        if not self.accumulates:
            self._line("%zero = arith.constant 0 : i32")
            self._line(f"%e = tensor.empty() : tensor<{c}xi32>")
            self._line(f"%zeros = linalg.fill ins(%zero : i32) outs(%e : tensor<{c}xi32>) -> tensor<{c}xi32>")
        for name, zero, kind in zip("ab", self.zeros, self.given):
            self._line("" if kind else f"%z{name} = arith.constant {zero} : i32")
        self._start = "%C" if self.accumulates else "%zeros"
        {"named": self._named, "body": self._body, "separate": self._separate}[self.form]()
        result = self._ended()
        body = "\n  ".join(self._lines)
        self.text = f"func.func @f({', '.join(arguments)}) -> {result} {{\n  {body}\n  return %r : {result}\n}}\n"

    def _line(self, text: str) -> None:
        self._lines.append(text)

    def _maps(self) -> list[str]:
        outer = "b, " if self.batch else ""
        axes = ("m, k", "n, k" if self.turned else "k, n", "m, n")
        return [f"affine_map<({outer}m, n, k) -> ({outer}{axis})>" for axis in axes]

    def _named(self) -> None:
        name = "quantized_batch_matmul" if self.batch else "quantized_matmul"
        a, b, c = self._shapes
        self._line(
            f"%p = linalg.{name} ins(%A, %B, %za, %zb : tensor<{a}xi8>, tensor<{b}xi8>, i32, i32) "
            f"outs({self._start} : tensor<{c}xi32>) -> tensor<{c}xi32>"
        )

    def _body(self) -> None:
        """Zero points in the body of the contraction."""
        a, b, c = self._shapes
        casts = ["arith.extui" if is_unsigned else "arith.extsi" for is_unsigned in self.unsigned]
        iterators = ", ".join(['"parallel"'] * (3 if self.batch else 2) + ['"reduction"'])
        inputs = [("%A", f"tensor<{a}xi8>", "%x: i8"), ("%B", f"tensor<{b}xi8>", "%y: i8")]
        maps, zeros = self._maps(), ["%za", "%zb"]
        for place, (name, extent) in enumerate((("m", self.m), ("n", self.n))):
            if self.given[place] == "vector":
                inputs.append((zeros[place], f"tensor<{extent}x{self.wide[place]}>", f"%{name}: {self.wide[place]}"))
                maps.insert(-1, maps[0].partition(" -> ")[0] + f" -> ({name})>")
                zeros[place] = f"%{name}" if self.wide[place] == "i32" else f"%{name}w"
        self._line(
            f"%p = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{iterators}]}} "
            f"ins({', '.join(value for value, *_ in inputs)} : {', '.join(type_ for _, type_, _ in inputs)}) "
            f"outs({self._start} : tensor<{c}xi32>) {{"
        )
        self._line(f"^bb0({', '.join(each for *_, each in inputs)}, %t: i32):")
        for zero in (zero for zero in zeros if zero.endswith("w")):
            self._line(f"  {zero} = arith.extsi {zero[:-1]} : i8 to i32")
        self._line(f"  %u = {casts[0]} %x : i8 to i32")
        self._line(f"  %v = arith.subi %u, {zeros[0]} : i32")
        self._line(f"  %w = {casts[1]} %y : i8 to i32")
        self._line(f"  %q = arith.subi %w, {zeros[1]} : i32")
        self._line("  %d = arith.muli %v, %q : i32")
        self._line("  %o = arith.addi %t, %d : i32")
        self._line("  linalg.yield %o : i32")
        self._line(f"}} -> tensor<{c}xi32>")

    def _separate(self) -> None:
        """Zero points in ops of their own, on integers of 16 or 32 bits, in front of a product of i32."""
        a, b, c = self._shapes
        for name, shape, is_unsigned in zip("AB", self._shapes, self.unsigned):
            wide = self._draw.choice(("i16", "i32"))
            zero = self.zeros["AB".index(name)]
            rank = 3 if self.batch else 2
            maps = ", ".join(["affine_map<(d0, d1, d2) -> (d0, d1, d2)>" if rank == 3 else "#whole"] * 2)
            maps = maps.replace("#whole", "affine_map<(d0, d1) -> (d0, d1)>")
            iterators = ", ".join(['"parallel"'] * rank)
            types = [wide, "i32"] if wide == "i16" else [wide]
            self._line(f"%{name}z = arith.constant {zero} : {wide}")
            value, given = f"%{name}", "i8"
            for number, type_ in enumerate(types):
                cast = "extui" if is_unsigned and number == 0 else "extsi"
                self._line(f"%{name}e{number} = tensor.empty() : tensor<{shape}x{type_}>")
                self._line(
                    f"%{name}{number} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} "
                    f"ins({value} : tensor<{shape}x{given}>) outs(%{name}e{number} : tensor<{shape}x{type_}>) {{"
                )
                self._line(f"^bb0(%x: {given}, %o: {type_}):")
                self._line(f"  %u = arith.{cast} %x : {given} to {type_}")
                self._line(f"  %v = arith.subi %u, %{name}z : {type_}" if number == 0 else "")
                self._line(f"  linalg.yield {'%v' if number == 0 else '%u'} : {type_}")
                self._line(f"}} -> tensor<{shape}x{type_}>")
                value, given = f"%{name}{number}", type_
            self._line("")
            setattr(self, f"_{name}", value)
        name = "batch_matmul" if self.batch else "matmul"
        self._line(
            f"%p = linalg.{name} indexing_maps = [{', '.join(self._maps())}] "
            f"ins({self._A}, {self._B} : tensor<{a}xi32>, tensor<{b}xi32>) "
            f"outs({self._start} : tensor<{c}xi32>) -> tensor<{c}xi32>"
        )

    def _ended(self) -> str:
        """Writes what follows the sums; returns the type of the result."""
        shape = self._shapes[2]
        signs = {"signed": (-128.0, 127.0), "unsigned": (0.0, 255.0)}
        if self.end == "sums":
            self._lines = [line.replace("%p = ", "%r = ") for line in self._lines]
            return f"tensor<{shape}xi32>"
        scale = ["%f = arith.sitofp %x : i32 to f32", "%c = arith.constant 0.0078125 : f32"]
        scale += ["%g = arith.mulf %f, %c : f32", "%h = arith.mulf %g, %y : f32"]
        if self.end in signs:
            least, largest = signs[self.end]
            element = "i8"
            body = [*scale, "%i = math.roundeven %h : f32", f"%l = arith.constant {least} : f32"]
            body += [f"%z = arith.constant {self._draw.choice((0.0, 5.0, 17.0))} : f32", "%j = arith.addf %i, %z : f32"]
            body += [f"%m = arith.constant {largest} : f32", "%n = arith.maximumf %j, %l : f32"]
            body += ["%o = arith.minimumf %n, %m : f32"]
            body += [f"%q = arith.{'fptosi' if least else 'fptoui'} %o : f32 to i8"]
        elif self.end == "scaled":
            element = self._draw.choice(("f16", "f32"))
            body = [*scale, "%q = arith.truncf %h : f32 to f16" if element == "f16" else "%q = arith.addf %h, %h : f32"]
        else:
            element = "i8"
            body = ["%l = arith.constant -128 : i32", "%m = arith.constant 127 : i32"]
            body += ["%n = arith.maxsi %x, %l : i32", "%o = arith.minsi %n, %m : i32"]
            body += ["%q = arith.trunci %o : i32 to i8"]
        loops = "b, m, n" if self.batch else "m, n"
        is_scaled = self.end != "clamped"
        axes = (loops, "n", loops) if is_scaled else (loops, loops)
        maps = ", ".join(f"affine_map<({loops}) -> ({each})>" for each in axes)
        iterators = ", ".join(['"parallel"'] * loops.count(",") + ['"parallel"'])
        self._line(f"%re = tensor.empty() : tensor<{shape}x{element}>")
        self._line(
            f"%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} "
            f"ins(%p{', %s' * is_scaled} : tensor<{shape}xi32>{f', tensor<{self.n}xf32>' * is_scaled}) "
            f"outs(%re : tensor<{shape}x{element}>) {{"
        )
        self._line(f"^bb0(%x: i32, {'%y: f32, ' * is_scaled}%t: {element}):")
        self._lines += [f"  {line}" for line in body]
        self._line(f"  linalg.yield %q : {element}")
        self._line(f"}} -> tensor<{shape}x{element}>")
        return f"tensor<{shape}x{element}>"


def _extended(name: str, shape: str, extension: str) -> str:
    """Returns an op that extends a tensor of i8."""
    identity = "affine_map<(i, j) -> (i, j)>"
    return f"""  %{name}_e = tensor.empty() : tensor<{shape}xi32>
  %{name}_x = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = ["parallel", "parallel"]}}
      ins(%{name} : tensor<{shape}xi8>) outs(%{name}_e : tensor<{shape}xi32>) {{
  ^bb0(%in: i8, %out: i32):
    %w = arith.{extension} %in : i8 to i32
    linalg.yield %w : i32
  }} -> tensor<{shape}xi32>
"""


def extended_matmul(
    m: int, n: int, k: int, extensions: tuple[str, str], *, accumulate: bool = False, in_body: bool = True
) -> str:
    """Returns a matmul of i8 without zero points, whose operands are extended as given.

    Args:
        m, n, k: sizes.
        extensions: of A and B: extsi or extui.
        accumulate: whether C is added.
        in_body: whether the product extends them itself, not ops before it.
    """
    a, b, c = f"{m}x{k}", f"{k}x{n}", f"tensor<{m}x{n}xi32>"
    names, type_ = (("A", "B"), "i8") if in_body else (("A_x", "B_x"), "i32")
    before = "" if in_body else _extended("A", a, extensions[0]) + _extended("B", b, extensions[1])
    casts = [f"    %{name}_w = arith.{cast} %{name} : i8 to i32\n" for name, cast in zip("ab", extensions)]
    body = f"{''.join(casts)}    %p = arith.muli %a_w, %b_w : i32" if in_body else "    %p = arith.muli %a, %b : i32"
    maps = ", ".join(f"affine_map<(i, j, l) -> {map_}>" for map_ in ("(i, l)", "(l, j)", "(i, j)"))
    return f"""func.func @f(%A: tensor<{a}xi8>, %B: tensor<{b}xi8>, %C: {c}) -> {c} {{
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : {c}
  %zeros = linalg.fill ins(%zero : i32) outs(%e : {c}) -> {c}
{before}  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%{names[0]}, %{names[1]} : tensor<{a}x{type_}>, tensor<{b}x{type_}>)
      outs({"%C" if accumulate else "%zeros"} : {c}) {{
  ^bb0(%a: {type_}, %b: {type_}, %c: i32):
{body}
    %s = arith.addi %c, %p : i32
    linalg.yield %s : i32
  }} -> {c}
  return %r : {c}
}}
"""
