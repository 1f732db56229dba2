"""Times functions without matmuls that are drawn by a seed, beside PyTorch in eager mode.

Each is one op, or a short chain, as they are between the matmuls of models: elementwise ops with broadcast and permuted
operands, reductions along some axes, softmaxes and norms along any axis, copies that permute or join, indices of
maxima, selected rows. Kinds, ranks, extents, axes and element types are drawn. Each function is checked with PyTorch's
numbers before it is timed.

Needs MLIR and ptxas where kernels are built, and PyTorch on the machine with the GPU, which may be another one:

    python benchmarks/drawn_ops.py build FOLDER
    python benchmarks/drawn_ops.py measure FOLDER docs/results/drawn_ops.json

Kernels that another version of this repository built are measured in turn with the others, as `before`. Another sample
is drawn by the variable DRAWN_OPS_SEED, of which both halves need the same value.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import function_kernels
from common import main_of_parts, run
from function_texts import generic, tensor_type

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

SEED, COUNT = 20281129, 72
_BYTES = {"f16": 2, "bf16": 2, "f32": 4}
_TORCH = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
_TOLERANCES = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-3}
_SMALL = 1.0e-5  # that a norm adds to the mean
_LEAST, _MOST = 1 << 16, 1 << 25  # elements
# Extents of axes, of which most are multiples of large powers of two, as in models.
_EXTENTS = (1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 40, 56, 64, 77, 80, 96, 112, 128, 197, 256, 320, 384, 512, 577, 640, 768)
_LONG = (1000, 1024, 1280, 1536, 2048, 2560, 3072, 4096, 5120, 8192, 11008, 16384, 32000, 50257)


def _shape(draw: random.Random, rank: int) -> tuple[int, ...]:
    """Returns extents of a tensor of `rank` axes."""
    while True:
        shape = tuple(draw.choice(_EXTENTS if draw.random() < 0.6 else _LONG) for _ in range(rank))
        if _LEAST <= math.prod(shape) <= _MOST:
            return shape


def _wide(value: str, element: str, name: str) -> str:
    """Returns an op that extends an element to f32."""
    if element == "f32":
        return f"    {name} = arith.addf {value}, %zero : f32\n"
    return f"    {name} = arith.extf {value} : {element} to f32\n"


def _narrow(value: str, element: str) -> str:
    """Returns an op that rounds an f32 to the result."""
    if element == "f32":
        return f"    %r = arith.addf {value}, %zero : f32\n"
    return f"    %r = arith.truncf {value} : f32 to {element}\n"


def _function(arguments: Sequence[tuple[Sequence[int], str]], result: str, body: str) -> str:
    parameters = ", ".join(f"%x{place}: {tensor_type(*argument)}" for place, argument in enumerate(arguments))
    zero = "  %zero = arith.constant -0.0 : f32\n"
    return f"func.func @op({parameters}) -> {result} {{\n{zero}{body}  return %y : {result}\n}}\n"


def _made(
    arguments: Sequence[tuple[Sequence[int], str]],
    result: tuple[Sequence[int], str],
    compute: Callable[..., torch.Tensor],
) -> Callable[[], function_kernels.Measured]:
    """Returns what makes the operands; `compute` is PyTorch's computation."""

    def prepare() -> function_kernels.Measured:
        import torch  # pyright: ignore[reportMissingImports]

        torch.manual_seed(0)
        operands = [torch.randn(shape, device="cuda").to(getattr(torch, _TORCH[own])) for shape, own in arguments]
        shape, element = result
        kind = torch.int32 if element == "i32" else getattr(torch, _TORCH[element])
        out = torch.empty(shape, dtype=kind, device="cuda")
        return function_kernels.Measured(operands, [out], lambda: [compute(*operands)], _TOLERANCES.get(element, 0.0))

    return prepare


def _size(*tensors: tuple[Sequence[int], str]) -> int:
    return sum(math.prod(shape) * _BYTES.get(element, 4) for shape, element in tensors)


def _elementwise(draw: random.Random, element: str) -> function_kernels.Case:
    """Returns a gated sum of a matrix, one that is broadcast, and one with permuted axes."""
    rank = draw.choice((2, 2, 3, 3, 4))
    shape = _shape(draw, rank)
    some = sorted(draw.sample(range(rank), draw.randrange(rank)))
    order = list(range(rank))
    if draw.random() < 0.4:
        draw.shuffle(order)
    arguments = [
        (shape, element),
        ([shape[axis] for axis in some], element),
        ([shape[axis] for axis in order], element),
    ]

    def body(names: list[str], _: str) -> str:
        text = "".join(_wide(value, element, f"%w{place}") for place, value in enumerate(names))
        return text + f"    %p = arith.mulf %w0, %w1 : f32\n    %s = arith.addf %p, %w2 : f32\n{_narrow('%s', element)}"

    loops = [(size, "parallel") for size in shape]
    axes = [range(rank), some, order]
    inputs = [(f"%x{place}", element, own) for place, own in enumerate(axes)]
    text = generic("y", loops, inputs, (range(rank), element, ""), body)
    spread = [shape[axis] if axis in some else 1 for axis in range(rank)]
    inverse = [order.index(axis) for axis in range(rank)]
    name = f"x * b{some} + z{order} of {shape} {element}"
    compute = _made(
        arguments,
        (shape, element),
        lambda x, b, z: (x.float() * b.float().view(spread) + z.float().permute(inverse)).to(x.dtype),
    )
    payload = _function(arguments, tensor_type(shape, element), text)
    return function_kernels.Case(name, _size(*arguments, (shape, element)), payload, compute)


def _reduction(draw: random.Random, element: str) -> function_kernels.Case:
    """Returns a sum, or an extremum, along some axes."""
    rank = draw.choice((2, 3, 3, 4))
    shape = _shape(draw, rank)
    axes = sorted(draw.sample(range(rank), draw.randrange(1, rank + (rank < 3))))
    is_sum = draw.random() < 0.6
    kept = [axis for axis in range(rank) if axis not in axes]

    def body(names: list[str], so_far: str) -> str:
        op = "addf" if is_sum else "maximumf"
        return _wide(names[0], element, "%w") + f"    %r = arith.{op} {so_far}, %w : f32\n"

    loops = [(size, "parallel" if axis in kept else "reduction") for axis, size in enumerate(shape)]
    start = "0.0" if is_sum else "0xFF800000"
    text = generic("y", loops, [("%x0", element, range(rank))], (kept, "f32", start), body)
    result = [shape[axis] for axis in kept], "f32"
    compute = _made(
        [(shape, element)],
        result,
        lambda x: x.sum(axes, dtype=_float()) if is_sum else x.amax(axes).float(),
    )
    name = f"{'sum' if is_sum else 'maximum'} along {axes} of {shape} {element}"
    payload = _function([(shape, element)], tensor_type(*result), text)
    return function_kernels.Case(name, _size((shape, element), result), payload, compute)


def _float() -> torch.dtype:
    import torch  # pyright: ignore[reportMissingImports]

    return torch.float32


def _chain(draw: random.Random, element: str) -> function_kernels.Case:
    """Returns a softmax, or an RMS norm, along an axis: in most cases the innermost one."""
    rank = draw.choice((2, 2, 3, 4))
    shape = _shape(draw, rank)
    axis = rank - 1 if draw.random() < 0.75 else draw.randrange(rank)
    is_softmax = draw.random() < 0.5
    kept = [other for other in range(rank) if other != axis]
    loops = [(size, "reduction" if place == axis else "parallel") for place, size in enumerate(shape)]
    all_parallel = [(size, "parallel") for size in shape]
    own = ("%x0", element, range(rank))

    def fold(op: str, term: str) -> Callable[[list[str], str], str]:
        return lambda names, so_far: (
            _wide(names[0], element, "%w")
            + (f"    %d = arith.subf %w, {names[1]} : f32\n    %t = math.exp %d : f32\n" if term == "exp" else "")
            + ("    %t = arith.mulf %w, %w : f32\n" if term == "square" else "")
            + f"    %r = arith.{op} {so_far}, {'%w' if term == 'self' else '%t'} : f32\n"
        )

    def divide(names: list[str], _: str) -> str:
        text = _wide(names[0], element, "%w")
        text += f"    %d = arith.subf %w, {names[1]} : f32\n    %t = math.exp %d : f32\n"
        return f"{text}    %q = arith.divf %t, {names[2]} : f32\n{_narrow('%q', element)}"

    def scale(names: list[str], _: str) -> str:
        text = _wide(names[0], element, "%w") + f"    %n = arith.constant {shape[axis]}.0 : f32\n"
        text += f"    %mean = arith.divf {names[1]}, %n : f32\n"
        text += f"    %small = arith.constant {_SMALL:.1e} : f32\n    %above = arith.addf %mean, %small : f32\n"
        text += "    %scale = math.rsqrt %above : f32\n"
        return f"{text}    %q = arith.mulf %w, %scale : f32\n{_narrow('%q', element)}"

    if is_softmax:
        text = generic("m", loops, [own], (kept, "f32", "0xFF800000"), fold("maximumf", "self"))
        text += generic("s", loops, [own, ("%m", "f32", kept)], (kept, "f32", "0.0"), fold("addf", "exp"))
        inputs = [own, ("%m", "f32", kept), ("%s", "f32", kept)]
        text += generic("y", all_parallel, inputs, (range(rank), element, ""), divide)
    else:
        text = generic("s", loops, [own], (kept, "f32", "0.0"), fold("addf", "square"))
        text += generic("y", all_parallel, [own, ("%s", "f32", kept)], (range(rank), element, ""), scale)

    def compute(x: torch.Tensor) -> torch.Tensor:
        import torch  # pyright: ignore[reportMissingImports]

        if is_softmax:
            return torch.softmax(x, axis)
        if axis == rank - 1:
            return torch.nn.functional.rms_norm(x, (shape[axis],), eps=_SMALL)
        wide = x.float()
        return (wide * (wide.square().mean(axis, keepdim=True) + _SMALL).rsqrt()).to(x.dtype)

    name = f"{'softmax' if is_softmax else 'rms norm'} along {axis} of {shape} {element}"
    payload = _function([(shape, element)], tensor_type(shape, element), text)
    return function_kernels.Case(
        name, 2 * _size((shape, element)), payload, _made([(shape, element)], (shape, element), compute)
    )


def _permutation(draw: random.Random, element: str) -> function_kernels.Case:
    """Returns a copy with permuted axes."""
    rank = draw.choice((2, 3, 3, 4, 4))
    shape, order = _shape(draw, rank), list(range(rank))
    while order == sorted(order):
        draw.shuffle(order)
    result = [shape[axis] for axis in order]
    type_ = tensor_type(result, element)
    text = f"""  %e = tensor.empty() : {type_}
  %y = linalg.transpose ins(%x0 : {tensor_type(shape, element)}) outs(%e : {type_}) permutation = {order}
"""
    compute = _made(
        [(shape, element)], (result, element), lambda x: x.permute(order).clone(memory_format=_contiguous())
    )
    name = f"axes {order} of {shape} {element}"
    return function_kernels.Case(name, 2 * _size((shape, element)), _function([(shape, element)], type_, text), compute)


def _contiguous() -> torch.memory_format:
    import torch  # pyright: ignore[reportMissingImports]

    return torch.contiguous_format


def _join(draw: random.Random, element: str) -> function_kernels.Case:
    """Returns two tensors joined along an axis, or a part of one along it with zeros around."""
    rank = draw.choice((2, 3, 4))
    shape = _shape(draw, rank)
    axis = draw.randrange(rank)
    if draw.random() < 0.5:
        other = [draw.choice(_EXTENTS) if place == axis else size for place, size in enumerate(shape)]
        result = [size + (other[axis] if place == axis else 0) for place, size in enumerate(shape)]
        arguments = [(shape, element), (other, element)]
        types = ", ".join(tensor_type(*argument) for argument in arguments)
        text = f"  %y = tensor.concat dim({axis}) %x0, %x1 : ({types}) -> {tensor_type(result, element)}\n"
        name = f"{shape} and {other} joined along {axis}, {element}"
        compute = _made(arguments, (result, element), lambda x, y: _cat(x, y, axis))
    else:
        before, behind = draw.randrange(1, 9), draw.randrange(1, 9)
        result = [size + (before + behind if place == axis else 0) for place, size in enumerate(shape)]
        arguments = [(shape, element)]
        low, high = ([number if place == axis else 0 for place in range(rank)] for number in (before, behind))
        indices = ", ".join(f"%i{place}: index" for place in range(rank))
        text = f"""  %number = arith.constant 0.0 : {element}
  %y = tensor.pad %x0 low{low} high{high} {{
  ^bb0({indices}):
    tensor.yield %number : {element}
  }} : {tensor_type(shape, element)} to {tensor_type(result, element)}
"""
        name = f"{shape} with {before} and {behind} zeros along {axis}, {element}"
        margins = [0, 0] * (rank - 1 - axis) + [before, behind]
        compute = _made(arguments, (result, element), lambda x: _pad(x, margins))
    payload = _function(arguments, tensor_type(result, element), text)
    return function_kernels.Case(name, _size(*arguments, (result, element)), payload, compute)


def _cat(x: torch.Tensor, y: torch.Tensor, axis: int) -> torch.Tensor:
    import torch  # pyright: ignore[reportMissingImports]

    return torch.cat([x, y], axis)


def _pad(x: torch.Tensor, margins: list[int]) -> torch.Tensor:
    import torch  # pyright: ignore[reportMissingImports]

    return torch.nn.functional.pad(x, margins)


_KINDS = (_elementwise, _elementwise, _reduction, _reduction, _chain, _chain, _permutation, _join)


def draw_cases(seed: int, count: int) -> list[function_kernels.Case]:
    """Returns functions.

    Args:
        seed: of the sample.
        count: how many.
    """
    draw = random.Random(seed)
    return [_KINDS[number % len(_KINDS)](draw, draw.choice(("f16", "bf16", "f32"))) for number in range(count)]


CASES = tuple(draw_cases(int(os.environ.get("DRAWN_OPS_SEED", SEED)), COUNT))
make_parser = partial(function_kernels.parser_for, __doc__, CASES)
main = main_of_parts(make_parser)


if __name__ == "__main__":
    run(main)
