"""Functions of public models as linalg on tensors of bf16: MLPs, gated MLPs, also with the norm before them and the
residual behind them, and attention projections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """Widths of a model's layers: hidden, of the MLP, of all query heads, of all key or value heads, of a head; and the
    tokens of a cache, with the new one."""

    name: str
    hidden: int
    mlp: int
    query: int
    key: int
    head: int = 128
    context: int = 2048


MODELS = (
    Model("Llama-3-8B", 4096, 14336, 4096, 1024),
    Model("Qwen2.5-7B", 3584, 18944, 3584, 512),
    Model("GPT-NeoX-20B", 6144, 24576, 6144, 6144, 96),
)
EPSILON = 1e-5  # of norms
SMALL = (Model("small", 64, 96, 64, 32, 16, 24),)


class Text:
    """Linalg on tensors of bf16, written op by op."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self.count = 0

    def argument(self, *shape: int, element: str = "bf16", result: int | None = None) -> str:
        """Adds an argument and returns its name.

        Args:
            shape, element: of the tensor.
            result: the number of the result that takes its memory; None for none.
        """
        mark = "" if result is None else f" {{tf.aliasing_output = {result} : i32}}"
        self.arguments.append(f"%a{len(self.arguments)}: {type_of(shape, element)}{mark}")
        return f"%a{len(self.arguments) - 1}"

    def new(self, text: str) -> str:
        """Adds an op, and returns the name of its result.

        Args:
            text: of the op.
        """
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
        empty = self.new(f"tensor.empty() : {type_of(shape)}")
        identities = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (len(operands) + 1))
        types = ", ".join(type_of(shape, element) for element in operands.values())
        names = ", ".join(f"%x{number}: {element}" for number, element in enumerate(operands.values()))
        return self.new(
            f'linalg.generic {{indexing_maps = [{identities}], iterator_types = ["parallel", "parallel"]}} '
            f"ins({', '.join(operands)} : {types}) outs({empty} : {type_of(shape)}) {{\n  ^bb0({names}, %out: bf16):"
            + "".join(f"\n    {line}" for line in body)
            + f"\n    linalg.yield %y : bf16\n  }} -> {type_of(shape)}"
        )

    def rms_norm(self, x: str, m: int, n: int) -> str:
        """Adds x divided by the root of the mean of its squares, times a new weight, and returns its name.

        Args:
            x: the name of the input, m x n.
            m, n: sizes.
        """
        weight = self.argument(n)
        begin = self.new(f"tensor.empty() : {type_of((m,), 'f32')}")
        sums = type_of((m,), "f32")
        zeros = self.new(f"linalg.fill ins(%zero : f32) outs({begin} : {sums}) -> {sums}")
        rows, all_axes = "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (i, j)>"
        squares = self.new(
            f'linalg.generic {{indexing_maps = [{all_axes}, {rows}], iterator_types = ["parallel", "reduction"]}} '
            f"ins({x} : {type_of((m, n))}) outs({zeros} : {sums}) {{\n  ^bb0(%x0: bf16, %sum: f32):\n"
            "    %f = arith.extf %x0 : bf16 to f32\n    %q = arith.mulf %f, %f : f32\n"
            f"    %y = arith.addf %sum, %q : f32\n    linalg.yield %y : f32\n  }} -> {sums}"
        )
        empty = self.new(f"tensor.empty() : {type_of((m, n))}")
        maps = ", ".join([all_axes, rows, "affine_map<(i, j) -> (j)>", all_axes])
        return self.new(
            f'linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}} '
            f"ins({x}, {squares}, {weight} : {type_of((m, n))}, {sums}, {type_of((n,))}) "
            f"outs({empty} : {type_of((m, n))}) {{\n"
            "  ^bb0(%x0: bf16, %x1: f32, %x2: bf16, %out: bf16):\n"
            f"    %count = arith.constant {float(n)} : f32\n    %small = arith.constant {EPSILON:e} : f32\n"
            "    %mean = arith.divf %x1, %count : f32\n    %sum = arith.addf %mean, %small : f32\n"
            "    %root = math.rsqrt %sum : f32\n    %f = arith.extf %x0 : bf16 to f32\n"
            "    %g = arith.mulf %f, %root : f32\n    %t = arith.truncf %g : f32 to bf16\n"
            "    %y = arith.mulf %t, %x2 : bf16\n    linalg.yield %y : bf16\n"
            f"  }} -> {type_of((m, n))}"
        )

    def linear(self, x: str, m: int, k: int, n: int) -> str:
        """Adds x W^T with a new weight, rounded to bf16, and returns its name.

        Args:
            x: the name of the input, m x k.
            m, k, n: sizes; the weight is n x k.
        """
        weight = self.argument(n, k)
        empty = self.new(f"tensor.empty() : {type_of((k, n))}")
        transposed = self.new(
            f"linalg.transpose ins({weight} : {type_of((n, k))}) outs({empty} : {type_of((k, n))}) permutation = [1, 0]"
        )
        begin = self.new(f"tensor.empty() : {type_of((m, n), 'f32')}")
        out = type_of((m, n), "f32")
        zeros = self.new(f"linalg.fill ins(%zero : f32) outs({begin} : {out}) -> {out}")
        operands = f"ins({x}, {transposed} : {type_of((m, k))}, {type_of((k, n))})"
        sums = self.new(f"linalg.matmul {operands} outs({zeros} : {out}) -> {out}")
        return self.elementwise((m, n), {sums: "f32"}, ["%y = arith.truncf %x0 : f32 to bf16"])

    def function(self, name: str, results: dict[str, tuple[int, ...]]) -> str:
        """Returns the text of the function.

        Args:
            name: of the function.
            results: the names of the values that it returns, with their shapes.
        """
        types = ", ".join(type_of(shape) for shape in results.values())
        return (
            f"func.func @{name}({', '.join(self.arguments)}) -> ({types}) {{\n  %zero = arith.constant 0.0 : f32\n"
            "  %one = arith.constant 1.0 : bf16\n"
            + "\n".join(self.lines)
            + f"\n  return {', '.join(results)} : {types}\n}}\n"
        )


def type_of(shape: tuple[int, ...], element: str = "bf16") -> str:
    """Returns the text of a tensor's type.

    Args:
        shape, element: of the tensor.
    """
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def payload(kind: str, model: Model, m: int) -> str:
    """Returns the text of a function.

    Args:
        kind: `mlp` (ReLU), `gated_mlp` (SiLU), `norm_mlp` (x plus the gated MLP of its RMS norm) or `projections`; see
            `attention_functions` for others.
        model: its widths.
        m: rows of the input.
    """
    text = Text()
    x = text.argument(m, model.hidden)
    mlp_shape = (m, model.mlp)
    if kind == "projections":
        results = {text.linear(x, m, model.hidden, n): (m, n) for n in (model.query, model.key, model.key)}
        return text.function(kind, results)
    inner = text.rms_norm(x, m, model.hidden) if kind == "norm_mlp" else x
    h = text.linear(inner, m, model.hidden, model.mlp)
    if kind == "mlp":
        zero = "%z = arith.constant 0.0 : bf16"
        h = text.elementwise(mlp_shape, {h: "bf16"}, [zero, "%y = arith.maximumf %x0, %z : bf16"])
    else:
        sigmoid = ["%n = arith.negf %x0 : bf16", "%e = math.exp %n : bf16", "%d = arith.addf %e, %one : bf16"]
        h = text.elementwise(mlp_shape, {h: "bf16"}, [*sigmoid, "%y = arith.divf %x0, %d : bf16"])
        up = text.linear(inner, m, model.hidden, model.mlp)
        h = text.elementwise(mlp_shape, {h: "bf16", up: "bf16"}, ["%y = arith.mulf %x0, %x1 : bf16"])
    y = text.linear(h, m, model.mlp, model.hidden)
    if kind == "norm_mlp":
        y = text.elementwise((m, model.hidden), {x: "bf16", y: "bf16"}, ["%y = arith.addf %x0, %x1 : bf16"])
    return text.function(kind, {y: (m, model.hidden)})
