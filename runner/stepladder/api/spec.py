"""The description of a matmul: sizes, element types, layouts and the epilogue; and its payload as MLIR."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

from stepladder.api.errors import ArgumentError
from stepladder.api.recording import Epilogue, Op
from stepladder.runtime.element_types import ELEMENT_TYPES
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import LARGEST_SIZE

_LOOPS = "i, j"


def sums_of(type_: str) -> str:
    """Returns the element type in which products are summed where none is given: `i32`, `f64` or `f32`.

    Args:
        type_: element type of A and B, by MLIR's name.
    """
    return "i32" if type_.startswith("i") else "f64" if type_ == "f64" else "f32"


@dataclass(frozen=True)
class MatmulSpec:
    """A matmul, or a batch of them: C = AB, C = AB + C, or C = f(AB).

    Attributes:
        m, n, k: extents; A is m x k, B is k x n, C is m x n and row-major.
        a_type: element type of A and B, by MLIR's name.
        c_type: element type of C; that of the accumulator if None.
        acc_type: element type in which products are summed; that of `sums_of` if None.
        a_layout, b_layout: `row`, or `column` for an operand in the memory of its transpose.
        batch: how many matmuls; None for one without this dimension.
        broadcast: the operands without the batch dimension: ``, `a`, `b` or `ab`.
        accumulate: C = AB + C in place.
        epilogue: elementwise ops on AB, or on AB + C; None for none.
    """

    m: int
    n: int
    k: int
    a_type: str = "f16"
    c_type: str | None = None
    acc_type: str | None = None
    a_layout: str = "row"
    b_layout: str = "row"
    batch: int | None = None
    broadcast: str = ""
    accumulate: bool = False
    epilogue: Epilogue | None = None

    @property
    def sums(self) -> str:
        """The type of the accumulator."""
        return self.acc_type or sums_of(self.a_type)

    @property
    def stored(self) -> str:
        """The type of C."""
        return self.c_type or self.sums

    def text(self) -> str:
        """Returns the payload.

        Raises:
            ArgumentError: a value that is no size, element type, layout or epilogue.
            StepladderError: sizes or types that no matmul has.
        """
        self._check()
        in_place = self.accumulate and self.sums != self.stored
        if self.epilogue is None and not in_place:
            from stepladder.payload.writing import matmul_text  # with it come MLIR's bindings

            return matmul_text(
                self.m,
                self.n,
                self.k,
                a_type=self.a_type,
                b_type=self.a_type,
                acc_type=self.sums,
                c_type=self.stored,
                accumulate=self.accumulate,
                a_layout=self.a_layout,
                b_layout=self.b_layout,
                batch=self.batch,
                broadcast=self.broadcast,
            )
        if self.batch is not None:
            raise StepladderError(
                "elementwise ops on the products of a batch are not compiled",
                notes=["accepted: an epilogue where B is one matrix, and A's batch is part of m"],
            )
        return _Writer(self).text()

    def _check(self) -> None:
        """Refuses values that a payload cannot be written of."""
        sizes = {"m": self.m, "n": self.n, "k": self.k, **({} if self.batch is None else {"batch": self.batch})}
        for name, size in sizes.items():
            if not isinstance(size, numbers.Integral) or isinstance(size, bool):
                raise ArgumentError(f"{name} = {size!r} of a MatmulSpec; accepted: integers")
            if size > LARGEST_SIZE:
                raise ArgumentError(f"{name} = {size} of a MatmulSpec; accepted: sizes of at most {LARGEST_SIZE}")
        for name in ("a_type", "c_type", "acc_type"):
            type_ = getattr(self, name)
            if type_ not in ELEMENT_TYPES and (type_ is not None or name == "a_type"):
                raise ArgumentError(f"{name} = {type_!r} of a MatmulSpec; accepted: {', '.join(ELEMENT_TYPES)}")
        for name, layout in (("a_layout", self.a_layout), ("b_layout", self.b_layout)):
            if layout not in ("row", "column"):
                raise ArgumentError(f"{name} = {layout!r} of a MatmulSpec; accepted: 'row' and 'column'")
        if self.epilogue is not None and not isinstance(self.epilogue, Epilogue):
            raise ArgumentError(
                f"epilogue = {self.epilogue!r} of a MatmulSpec; accepted: a traced one; functions are for `matmul`"
            )


class _Writer:
    """Writes the payload of a matmul with elementwise ops: one `linalg.generic` on the product."""

    def __init__(self, spec: MatmulSpec) -> None:
        self.spec = spec
        self.epilogue = spec.epilogue or Epilogue((Op("input", (), spec.sums, "0"),), 0)

    def text(self) -> str:
        """Returns the payload."""
        spec, sums = self.spec, self.spec.sums
        a = f"{spec.m}x{spec.k}" if spec.a_layout == "row" else f"{spec.k}x{spec.m}"
        b = f"{spec.k}x{spec.n}" if spec.b_layout == "row" else f"{spec.n}x{spec.k}"
        buffers = {"A": f"{a}x{spec.a_type}", "B": f"{b}x{spec.a_type}", "C": f"{spec.m}x{spec.n}x{spec.stored}"}
        for number, operand in enumerate(self.epilogue.operands):
            buffers[f"D{number}"] = "x".join(map(str, (*operand.shape, operand.type)))
        head = ", ".join(f"%{name}: memref<{type_}>" for name, type_ in buffers.items())
        product = f"tensor<{spec.m}x{spec.n}x{sums}>"
        lines = [f"func.func @matmul({head}) {{"]
        for name, type_ in buffers.items():
            writable = " writable" if name == "C" else ""
            lines.append(
                f"  %{name.lower()} = bufferization.to_tensor %{name} restrict{writable} : "
                f"memref<{type_}> to tensor<{type_}>"
            )
        zero = "0" if sums.startswith("i") else "0.0"
        lines += [
            f"  %zero = arith.constant {zero} : {sums}",
            f"  %empty = tensor.empty() : {product}",
            f"  %start = linalg.fill ins(%zero : {sums}) outs(%empty : {product}) -> {product}",
            f"  %product = linalg.matmul {self._maps()}",
            f"      ins(%a, %b : tensor<{buffers['A']}>, tensor<{buffers['B']}>) outs(%start : {product}) -> {product}",
            *self._generic(product, buffers),
            f"  bufferization.materialize_in_destination %result in restrict writable %C : "
            f"(tensor<{buffers['C']}>, memref<{buffers['C']}>) -> ()",
            "  return",
            "}",
            "",
        ]
        return "\n".join(lines)

    def _maps(self) -> str:
        spec = self.spec
        if spec.a_layout == spec.b_layout == "row":
            return ""
        orders = ("m, k" if spec.a_layout == "row" else "k, m", "k, n" if spec.b_layout == "row" else "n, k", "m, n")
        return f"indexing_maps = [{', '.join(f'affine_map<(m, n, k) -> ({order})>' for order in orders)}]"

    def _generic(self, product: str, buffers: dict[str, str]) -> list[str]:
        spec, operands = self.spec, self.epilogue.operands
        results = [_LOOPS, *(", ".join(loop or "0" for loop in operand.loops) for operand in operands), _LOOPS]
        maps = ", ".join(f"affine_map<({_LOOPS}) -> ({result})>" for result in results)
        names = ["%product", *(f"%d{number}" for number in range(len(operands)))]
        types = [product, *(f"tensor<{buffers[f'D{number}']}>" for number in range(len(operands)))]
        inputs = [f"%x0: {spec.sums}", *(f"%x{number}: {item.type}" for number, item in enumerate(operands, start=1))]
        c = f"tensor<{buffers['C']}>"
        return [
            f"  %result = linalg.generic {{indexing_maps = [{maps}],",
            '      iterator_types = ["parallel", "parallel"]}',
            f"      ins({', '.join(names)} : {', '.join(types)}) outs(%c : {c}) {{",
            f"  ^bb0({', '.join(inputs)}, %held: {spec.stored}):",
            *(f"    {line}" for line in self._body()),
            f"  }} -> {c}",
        ]

    def _body(self) -> list[str]:
        lines, start = [], "%x0"
        if self.spec.accumulate:
            kind = "i" if self.spec.sums.startswith("i") else "f"
            initial, more = self._widened("%held", self.spec.stored, self.spec.sums, "%wide")
            lines += [*more, f"%sum = arith.add{kind} %x0, {initial} : {self.spec.sums}"]
            start = "%sum"
        names: list[str] = []
        for number, op in enumerate(self.epilogue.ops):
            if op.name == "input":
                names.append(start if op.text == "0" else f"%x{op.text}")
                continue
            names.append(f"%v{number}")
            lines.append(f"%v{number} = {self._op(op, names)}")
        result, type_ = names[self.epilogue.result], self.epilogue.type
        if type_ != self.spec.stored:
            result, more = self._stored(result, type_)
            lines += more
        return [*lines, f"linalg.yield {result} : {self.spec.stored}"]

    def _op(self, op: Op, names: list[str]) -> str:
        operands = ", ".join(names[number] for number in op.operands)
        if op.name == "arith.constant":
            return f"arith.constant {op.text} : {op.type}"
        source_type = self.epilogue.ops[op.operands[-1]].type
        if op.name in ("arith.cmpf", "arith.cmpi"):
            return f"{op.name} {op.text}, {operands} : {source_type}"
        if op.name in ("arith.extf", "arith.truncf", "arith.sitofp", "arith.extsi"):
            return f"{op.name} {operands} : {source_type} to {op.type}"
        return f"{op.name} {operands} : {op.type}"

    def _widened(self, name: str, source_type: str, type_: str, result: str) -> tuple[str, list[str]]:
        if source_type == type_:
            return name, []
        op = "arith.extsi" if source_type.startswith("i") else "arith.extf"
        return result, [f"{result} = {op} {name} : {source_type} to {type_}"]

    def _stored(self, name: str, type_: str) -> tuple[str, list[str]]:
        """Rounds the result to C's type."""
        c_type = self.spec.stored
        if c_type.startswith("i"):
            raise StepladderError(
                f"the epilogue's result is {type_}, and C is {c_type}: accepted is a C of floating point, or of {type_}"
            )
        lines = []
        if type_.startswith("i"):
            lines.append(f"%float = arith.sitofp {name} : {type_} to f32")
            name, type_ = "%float", "f32"
        elif type_ != "f32" and type_ != c_type:
            lines.append(f"%full = arith.extf {name} : {type_} to f32")
            name, type_ = "%full", "f32"
        if type_ != c_type:
            lines.append(f"%rounded = arith.truncf {name} : {type_} to {c_type}")
            name = "%rounded"
        return name, lines
