"""Random payloads: a contraction, elementwise ops around it, and what else a function may hold."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

WIDTHS = {"f16": 16, "bf16": 16, "f32": 32}
IDENTITY = "affine_map<(i, j) -> (i, j)>"
TYPES = (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32"))


@dataclass
class Payload:
    """A payload's text, and the names of what is in it."""

    text: str
    features: list[str] = field(default_factory=list)


class Writer:
    """Writes one payload; every choice comes from `chosen`, types of inputs and sums from `types`."""

    def __init__(
        self,
        chosen: random.Random,
        types: tuple = TYPES,
        forms: tuple = ("tensors", "normal", "buffers"),
        *,
        columns: bool = True,
    ) -> None:
        self.chosen = chosen
        self.columns = columns
        self.rounding = 35
        self.inputs, self.sums = chosen.choice(types)
        self.m, self.n, self.k = (chosen.choice(sizes) for sizes in ((64, 128), (64, 128), (64, 96, 128)))
        self.form = chosen.choice(forms)
        self.features = [self.form]
        self.arguments: list[tuple[str, str]] = []  # name, type
        self.lines: list[str] = []
        self.head: list[str] = []
        self.count = 0

    def maybe(self, percent: int, feature: str) -> bool:
        """Decides whether a feature is in, and notes it."""
        taken = self.chosen.randrange(100) < percent
        if taken:
            self.features.append(feature)
        return taken

    def new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def number(self, value: float, type_: str) -> str:
        """Writes a constant; returns its name."""
        name = self.new()
        self.line(f"{name} = arith.constant {int(value) if type_[0] == 'i' else float(value)} : {type_}")
        return name

    def tensor(self, name: str, shape: str, *, writable: bool = False) -> str:
        """Adds an argument; returns the tensor that it holds."""
        if self.form == "tensors" or (self.form == "normal" and not writable and self.maybe(8, "mixed")):
            self.arguments.append((name, f"tensor<{shape}>"))
            return name
        self.arguments.append((name, f"memref<{shape}>"))
        if self.form == "buffers":
            return name
        read = self.new()
        self.line(
            f"{read} = bufferization.to_tensor {name} restrict{' writable' if writable else ''} : "
            f"memref<{shape}> to tensor<{shape}>"
        )
        return read

    def generic(self, body: list[str], inputs: list[tuple[str, str, str]], out: tuple[str, str]) -> str:
        """Writes an elementwise op: inputs as (value, type, map), the output as (value, type)."""
        kind = "memref" if self.form == "buffers" else "tensor"
        maps = ", ".join([*(map_ for _, _, map_ in inputs), IDENTITY])
        scalars = [type_.split("x")[-1].rstrip(">") for _, type_, _ in inputs] + [out[1].split("x")[-1]]
        block = ", ".join(f"%x{number}: {type_}" for number, type_ in enumerate(scalars))
        result = self.new()
        head = "" if kind == "memref" else f"{result} = "
        values = ", ".join(value for value, _, _ in inputs)
        types = ", ".join(f"{kind}<{type_}>" for _, type_, _ in inputs)
        self.line(
            f'{head}linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}} '
            f"ins({values} : {types}) outs({out[0]} : {kind}<{out[1]}>) {{"
        )
        self.line(f"^bb0({block}):")
        for inner in body:
            self.line(f"  {inner}")
        self.line(f"  linalg.yield %r : {scalars[-1]}")
        self.line("}" if kind == "memref" else f"}} -> tensor<{out[1]}>")
        return out[0] if kind == "memref" else result

    def empty(self, type_: str) -> str:
        name = self.new()
        self.line(f"{name} = tensor.empty() : tensor<{type_}>")
        return name

    def operand(self, name: str, rows: int, columns: int, *, transposed: bool) -> str:
        shape = f"{columns}x{rows}" if transposed else f"{rows}x{columns}"
        value = self.tensor(name, f"{shape}x{self.inputs}")
        if self.form != "buffers" and self.maybe(4, "prologue"):
            letter = self.inputs[0].replace("b", "f")
            two = self.number(2, self.inputs)
            out = self.empty(f"{shape}x{self.inputs}")
            value = self.generic(
                [f"%r = arith.mul{letter} %x0, {two} : {self.inputs}"],
                [(value, f"{shape}x{self.inputs}", IDENTITY)],
                (out, f"{shape}x{self.inputs}"),
            )
        return value

    def start(self, c: str | None, type_: str) -> str:
        """Writes what the accumulators start from."""
        kind = "memref" if self.form == "buffers" else "tensor"
        outs = c if c is not None else self.empty(type_)
        if self.from_c and c is not None:
            return c
        if self.maybe(4, "from nothing"):
            return outs
        value = 0.0
        if self.maybe(4, "from one"):
            value = 1.0
        elif self.sums[0] != "i" and self.maybe(4, "from -0.0"):
            value = -0.0
        zero = self.number(value, self.sums)
        filled = self.new()
        head, tail = ("", "") if kind == "memref" else (f"{filled} = ", f" -> tensor<{type_}>")
        self.line(f"{head}linalg.fill ins({zero} : {self.sums}) outs({outs} : {kind}<{type_}>){tail}")
        return outs if kind == "memref" else filled

    def product(self, a: str, b: str, start: str, type_: str, a_column: bool, b_column: bool) -> str:
        kind = "memref" if self.form == "buffers" else "tensor"
        a_shape = f"{self.k}x{self.m}" if a_column else f"{self.m}x{self.k}"
        b_shape = f"{self.n}x{self.k}" if b_column else f"{self.k}x{self.n}"
        maps = ""
        if a_column or b_column:
            maps = (
                f"indexing_maps = [affine_map<(m, n, k) -> ({'k, m' if a_column else 'm, k'})>, "
                f"affine_map<(m, n, k) -> ({'n, k' if b_column else 'k, n'})>, affine_map<(m, n, k) -> (m, n)>] "
            )
        result = self.new()
        head, tail = ("", "") if kind == "memref" else (f"{result} = ", f" -> tensor<{type_}>")
        text = (
            f"linalg.matmul {maps}ins({a}, {b} : {kind}<{a_shape}x{self.inputs}>, {kind}<{b_shape}x{self.inputs}>) "
            f"outs({start} : {kind}<{type_}>){tail}"
        )
        if kind == "memref" and self.maybe(6, "in a loop"):
            first, last = self.new(), self.new()
            self.line(f"{first} = arith.constant 0 : index")
            self.line(f"{last} = arith.constant 1 : index")
            self.line(f"scf.for %step = {first} to {last} step {last} {{")
            self.line(f"  {text}")
            self.line("}")
        else:
            self.line(head + text)
        return start if kind == "memref" else result

    def consumer(self, value: str, type_: str) -> str:
        """Writes an elementwise op on the accumulators; returns its result."""
        letter = "i" if self.sums[0] == "i" else "f"
        name = self.chosen.choice(["relu", "scale", "bias", "copy", "square"])
        self.features.append(name)
        inputs = [] if self.form == "buffers" else [(value, type_, IDENTITY)]
        x = "%x0"
        if name == "bias":
            vector = f"{self.n}x{self.sums}"
            bias = self.tensor("%bias" + str(self.count), vector)
            inputs.append((bias, vector, "affine_map<(i, j) -> (j)>"))
        if not inputs:
            inputs = [(value, type_, IDENTITY)]
        two, zero = self.number(2, self.sums), self.number(0, self.sums)
        other = f"%x{len(inputs) - 1}" if name == "bias" and self.form != "buffers" else "%x1"
        body = {
            "relu": [
                f"%p = arith.cmpf ugt, {x}, {zero} : {self.sums}"
                if letter == "f"
                else f"%p = arith.cmpi sgt, {x}, {zero} : {self.sums}",
                f"%r = arith.select %p, {x}, {zero} : {self.sums}",
            ],
            "scale": [f"%r = arith.mul{letter} {x}, {two} : {self.sums}"],
            "bias": [f"%r = arith.add{letter} {x}, {other} : {self.sums}"],
            "copy": [f"%r = arith.add{letter} {x}, {zero} : {self.sums}"],
            "square": [
                f"%q = arith.mul{letter} {x}, {two} : {self.sums}",
                f"%r = arith.sub{letter} %q, {x} : {self.sums}",
            ],
        }[name]
        out = value if self.form == "buffers" else self.empty(type_)
        return self.generic(body, inputs, (out, type_))

    def effects(self, c: str, type_: str) -> None:
        """Writes an effect beside the matmul, of one or another kind."""
        if not self.maybe(8, "effect"):
            return
        buffers = [name for name, kind in self.arguments if kind == f"memref<{type_}>"]
        element = type_.split("x")[-1]
        choices = ["assert", "call", "print"] + (["store", "copy", "fill"] if buffers else [])
        name = self.chosen.choice(choices)
        self.features.append(name)
        if name == "assert":
            flag = self.new()
            self.line(f"{flag} = arith.constant true")
            self.line(f'cf.assert {flag}, "holds"')
        elif name == "print":
            number = self.number(1, "f32")
            self.line(f"vector.print {number} : f32")
        elif name == "call":
            self.head.append(f"func.func private @other{len(self.head)}()")
            self.line(f"func.call @other{len(self.head) - 1}() : () -> ()")
        elif name == "store":
            number = self.number(3, element)
            place = self.new()
            self.line(f"{place} = arith.constant 0 : index")
            self.line(f"memref.store {number}, {buffers[0]}[{place}, {place}] : memref<{type_}>")
        elif name == "fill":
            number = self.number(0, element)
            self.line(f"linalg.fill ins({number} : {element}) outs({buffers[0]} : memref<{type_}>)")
        else:
            copied = self.new()
            self.arguments.append((copied, f"memref<{type_}>"))
            self.line(f"memref.copy {buffers[0]}, {copied} : memref<{type_}> to memref<{type_}>")

    def write(self) -> Payload:
        """Writes the whole function."""
        chosen = self.chosen
        a_column, b_column = (self.columns and chosen.random() < 0.3 for _ in "ab")
        type_ = f"{self.m}x{self.n}x{self.sums}"
        narrow = "f16" if self.inputs == "f16" else "bf16"
        rounds = self.form != "buffers" and self.sums == "f32" and self.maybe(self.rounding, "rounds")
        self.from_c = (not rounds and chosen.random() < 0.4) or self.maybe(3, "C of another type")
        stored = f"{self.m}x{self.n}x{narrow}" if rounds else type_
        a = self.operand("%A", self.m, self.k, transposed=a_column)
        b = (
            a
            if self.m == self.k == self.n and not (a_column or b_column) and self.maybe(20, "A is B")
            else self.operand("%B", self.k, self.n, transposed=b_column)
        )
        has_c = self.from_c or self.form != "tensors" or chosen.random() < 0.4
        c = self.tensor("%C", stored, writable=True) if has_c else None
        begin = c
        if rounds:  # the accumulators begin elsewhere
            begin = self.tensor("%D", type_) if self.from_c else None
        self.effects(c or "", stored)
        value = self.product(a, b, self.start(begin, type_), type_, a_column, b_column)
        self.effects(c or "", stored)
        for _ in range(chosen.choice([0, 0, 0, 0, 0, 0, 0, 1, 1, 2])):
            value = self.consumer(value, type_)
        if rounds:
            out = c if c is not None and chosen.random() < 0.7 else self.empty(stored)
            rounding = f"%r = arith.truncf %x0 : f32 to {narrow}"
            value = self.generic([rounding], [(value, type_, IDENTITY)], (out, stored))
            if self.maybe(4, "rounds twice"):
                body = [f"%s = arith.extf %x0 : {narrow} to f32", rounding.replace("%x0", "%s")]
                value = self.generic(body, [(value, stored, IDENTITY)], (self.empty(stored), stored))
        returned, results = "return", ""
        if self.form == "tensors":
            returned, results = f"return {value} : tensor<{stored}>", f" -> tensor<{stored}>"
            if self.maybe(4, "two results"):
                returned, results = (
                    f"return {value}, {value} : tensor<{stored}>, tensor<{stored}>",
                    f" -> (tensor<{stored}>, tensor<{stored}>)",
                )
        elif self.form == "normal":
            target = "%C"
            if self.maybe(4, "written elsewhere"):
                self.arguments.append(("%E", f"memref<{stored}>"))
                target = "%E"
            write = (
                f"bufferization.materialize_in_destination {value} in restrict writable {{}} : "
                f"(tensor<{stored}>, memref<{stored}>) -> ()"
            )
            self.line(write.format(target))
            if self.maybe(4, "written twice"):
                self.arguments.append(("%F", f"memref<{stored}>"))
                self.line(write.format("%F"))
        self.effects(c or "", stored)
        if self.maybe(15, "unused argument"):
            self.arguments.append(("%unused", chosen.choice(["f32", "index", "memref<4x4xf32>", "tensor<3xi8>"])))
        if self.form != "tensors" or chosen.random() < 0.3:
            chosen.shuffle(self.arguments)
        name = chosen.choice(["matmul", "main", "f$1", "forward"])
        signature = ", ".join(f"{argument}: {kind}" for argument, kind in self.arguments)
        return Payload(
            "\n".join(
                [*self.head, f"func.func @{name}({signature}){results} {{", *self.lines, f"  {returned}", "}", ""]
            ),
            self.features,
        )


def random_payload(seed: int, *types_and_forms: tuple, columns: bool = True) -> Payload:
    """Returns the payload of a seed; further arguments as for `Writer`."""
    return Writer(random.Random(seed), *types_and_forms, columns=columns).write()
