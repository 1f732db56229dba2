"""Functions of public models as linalg on tensors of bf16: MLPs, gated MLPs, also with the norm before them and the
residual behind them, and attention projections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """Widths of a model's layers: hidden, of the MLP, of all query heads, of all key or value heads."""

    name: str
    hidden: int
    mlp: int
    query: int
    key: int


MODELS = (
    Model("Llama-3-8B", 4096, 14336, 4096, 1024),
    Model("Qwen2.5-7B", 3584, 18944, 3584, 512),
    Model("GPT-NeoX-20B", 6144, 24576, 6144, 6144),
)
EPSILON = 1e-5  # of norms
SMALL = (Model("small", 64, 96, 64, 32),)


class Text:
    """Linalg on tensors of bf16, written op by op."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self.count = 0

    def argument(self, *shape: int) -> str:
        """Adds an argument and returns its name.

        Args:
            shape: of the tensor.
        """
        self.arguments.append(f"%a{len(self.arguments)}: {_type(shape)}")
        return f"%a{len(self.arguments) - 1}"

    def _new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def elementwise(self, shape: tuple[int, int], operands: dict[str, str], body: Sequence[str]) -> str:
        """Returns the result of an elementwise op.

        Args:
            shape: of the result and the operands.
            operands: value -> element type.
            body: ops on %x0, %x1 and so on that make %y, of bf16.
        """
        empty = self._new(f"tensor.empty() : {_type(shape)}")
        same = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (len(operands) + 1))
        types = ", ".join(_type(shape, element) for element in operands.values())
        names = ", ".join(f"%x{number}: {element}" for number, element in enumerate(operands.values()))
        return self._new(
            f'linalg.generic {{indexing_maps = [{same}], iterator_types = ["parallel", "parallel"]}} '
            f"ins({', '.join(operands)} : {types}) outs({empty} : {_type(shape)}) {{\n  ^bb0({names}, %out: bf16):"
            + "".join(f"\n    {line}" for line in body)
            + f"\n    linalg.yield %y : bf16\n  }} -> {_type(shape)}"
        )

    def rms_norm(self, x: str, m: int, n: int) -> str:
        """Adds x divided by the root of the mean of its squares, times a new weight, and returns its name.

        Args:
            x: the name of the input, m x n.
            m, n: sizes.
        """
        weight = self.argument(n)
        begin = self._new(f"tensor.empty() : {_type((m,), 'f32')}")
        sums = _type((m,), "f32")
        zeros = self._new(f"linalg.fill ins(%zero : f32) outs({begin} : {sums}) -> {sums}")
        rows, all_ = "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (i, j)>"
        squares = self._new(
            f'linalg.generic {{indexing_maps = [{all_}, {rows}], iterator_types = ["parallel", "reduction"]}} '
            f"ins({x} : {_type((m, n))}) outs({zeros} : {sums}) {{\n  ^bb0(%x0: bf16, %sum: f32):\n"
            "    %f = arith.extf %x0 : bf16 to f32\n    %q = arith.mulf %f, %f : f32\n"
            f"    %y = arith.addf %sum, %q : f32\n    linalg.yield %y : f32\n  }} -> {sums}"
        )
        empty = self._new(f"tensor.empty() : {_type((m, n))}")
        maps = ", ".join([all_, rows, "affine_map<(i, j) -> (j)>", all_])
        return self._new(
            f'linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}} '
            f"ins({x}, {squares}, {weight} : {_type((m, n))}, {sums}, {_type((n,))}) "
            f"outs({empty} : {_type((m, n))}) {{\n"
            "  ^bb0(%x0: bf16, %x1: f32, %x2: bf16, %out: bf16):\n"
            f"    %count = arith.constant {float(n)} : f32\n    %small = arith.constant {EPSILON:e} : f32\n"
            "    %mean = arith.divf %x1, %count : f32\n    %sum = arith.addf %mean, %small : f32\n"
            "    %root = math.rsqrt %sum : f32\n    %f = arith.extf %x0 : bf16 to f32\n"
            "    %g = arith.mulf %f, %root : f32\n    %t = arith.truncf %g : f32 to bf16\n"
            "    %y = arith.mulf %t, %x2 : bf16\n    linalg.yield %y : bf16\n"
            f"  }} -> {_type((m, n))}"
        )

    def linear(self, x: str, m: int, k: int, n: int) -> str:
        """Adds x W^T with a new weight, rounded to bf16, and returns its name.

        Args:
            x: the name of the input, m x k.
            m, k, n: sizes; the weight is n x k.
        """
        weight = self.argument(n, k)
        empty = self._new(f"tensor.empty() : {_type((k, n))}")
        transposed = self._new(
            f"linalg.transpose ins({weight} : {_type((n, k))}) outs({empty} : {_type((k, n))}) permutation = [1, 0]"
        )
        begin = self._new(f"tensor.empty() : {_type((m, n), 'f32')}")
        out = _type((m, n), "f32")
        zeros = self._new(f"linalg.fill ins(%zero : f32) outs({begin} : {out}) -> {out}")
        sums = self._new(
            f"linalg.matmul ins({x}, {transposed} : {_type((m, k))}, {_type((k, n))}) outs({zeros} : {out}) -> {out}"
        )
        return self.elementwise((m, n), {sums: "f32"}, ["%y = arith.truncf %x0 : f32 to bf16"])

    def function(self, name: str, results: dict[str, tuple[int, int]]) -> str:
        """Returns the text of the function.

        Args:
            name: of the function.
            results: the names of the values that it returns, with their shapes.
        """
        types = ", ".join(_type(shape) for shape in results.values())
        return (
            f"func.func @{name}({', '.join(self.arguments)}) -> ({types}) {{\n  %zero = arith.constant 0.0 : f32\n"
            "  %one = arith.constant 1.0 : bf16\n"
            + "\n".join(self.lines)
            + f"\n  return {', '.join(results)} : {types}\n}}\n"
        )


def _type(shape: tuple[int, ...], element: str = "bf16") -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def payload(kind: str, model: Model, m: int) -> str:
    """Returns the text of a function.

    Args:
        kind: `mlp` (ReLU), `gated_mlp` (SiLU), `norm_mlp` (x plus the gated MLP of its RMS norm) or `projections`.
        model: its widths.
        m: rows of the input.
    """
    text = Text()
    x = text.argument(m, model.hidden)
    wide = (m, model.mlp)
    if kind == "projections":
        results = {text.linear(x, m, model.hidden, n): (m, n) for n in (model.query, model.key, model.key)}
        return text.function(kind, results)
    inner = text.rms_norm(x, m, model.hidden) if kind == "norm_mlp" else x
    h = text.linear(inner, m, model.hidden, model.mlp)
    if kind == "mlp":
        zero = "%z = arith.constant 0.0 : bf16"
        h = text.elementwise(wide, {h: "bf16"}, [zero, "%y = arith.maximumf %x0, %z : bf16"])
    else:
        sigmoid = ["%n = arith.negf %x0 : bf16", "%e = math.exp %n : bf16", "%d = arith.addf %e, %one : bf16"]
        h = text.elementwise(wide, {h: "bf16"}, [*sigmoid, "%y = arith.divf %x0, %d : bf16"])
        up = text.linear(inner, m, model.hidden, model.mlp)
        h = text.elementwise(wide, {h: "bf16", up: "bf16"}, ["%y = arith.mulf %x0, %x1 : bf16"])
    y = text.linear(h, m, model.mlp, model.hidden)
    if kind == "norm_mlp":
        y = text.elementwise((m, model.hidden), {x: "bf16", y: "bf16"}, ["%y = arith.addf %x0, %x1 : bf16"])
    return text.function(kind, {y: (m, model.hidden)})
