"""Graphs of PyTorch with complex tensors as graphs of real and imaginary parts: four matmuls for one, for example.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from stepladder.api.decompositions import fourier_transforms
from stepladder.runtime.errors import StepladderError

COMPLEX = (torch.complex32, torch.complex64, torch.complex128)


class _Pair:
    """A tensor of complex numbers: real and imaginary parts of the same shape and type."""

    def __init__(self, real: torch.Tensor, imaginary: torch.Tensor) -> None:
        self.real, self.imaginary = real, imaginary

    @property
    def conjugate(self) -> _Pair:
        """The complex conjugate."""
        return _Pair(self.real, -self.imaginary)


def _pair(value: Any) -> _Pair:  # noqa: ANN401
    """Returns values of any kind as complex ones."""
    if isinstance(value, _Pair):
        return value
    if isinstance(value, complex):
        return _Pair(value.real, value.imag)  # pyright: ignore[reportArgumentType]
    return _Pair(value, torch.zeros_like(value) if isinstance(value, torch.Tensor) else 0)  # pyright: ignore[reportArgumentType]


def _is_pair(value: object) -> bool:
    return isinstance(value, (_Pair, complex))


def _add(x: Any, y: Any, *, alpha: Any = 1) -> _Pair:  # noqa: ANN401
    x, y = _pair(x), _multiply(y, alpha) if alpha != 1 else _pair(y)
    return _Pair(x.real + y.real, x.imaginary + y.imaginary)


def _subtract(x: Any, y: Any, *, alpha: Any = 1) -> _Pair:  # noqa: ANN401
    return _add(x, y, alpha=-alpha)


def _multiply(x: Any, y: Any) -> Any:  # noqa: ANN401
    return _product(x, y, lambda a, b: a * b)


def _product(x: Any, y: Any, times: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401
    """Returns a product of complex numbers, or of these and real ones.

    Args:
        x, y: the operands.
        times: the product of real ones.
    """
    if not _is_pair(x) and not _is_pair(y):
        return _pair(times(x, y))
    if not _is_pair(y):
        x = _pair(x)
        return _Pair(times(x.real, y), times(x.imaginary, y))
    y = _pair(y)
    if not _is_pair(x):
        return _Pair(times(x, y.real), times(x, y.imaginary))
    x = _pair(x)
    return _Pair(
        times(x.real, y.real) - times(x.imaginary, y.imaginary),
        times(x.real, y.imaginary) + times(x.imaginary, y.real),
    )


def _reciprocal(x: Any) -> _Pair:  # noqa: ANN401
    """Returns reciprocals, of values scaled so that squares are in range."""
    x = _pair(x)
    if not isinstance(x.real, torch.Tensor):
        return _pair(1 / complex(x.real, x.imaginary))
    largest = torch.maximum(x.real.abs(), x.imaginary.abs())
    real, imaginary = x.real / largest, x.imaginary / largest
    norm = (real * real + imaginary * imaginary) * largest
    return _Pair(real / norm, -imaginary / norm)


def _divide(x: Any, y: Any) -> _Pair:  # noqa: ANN401
    if _is_pair(y):
        return _multiply(x, _reciprocal(y))
    x = _pair(x)
    return _Pair(x.real / y, x.imaginary / y)


def _size(x: Any) -> torch.Tensor:  # noqa: ANN401
    """Returns absolute values, of values scaled so that squares are in range."""
    real, imaginary = x.real.abs(), x.imaginary.abs()
    largest = torch.maximum(real, imaginary)
    scale = torch.where((largest > 0) & (largest < float("inf")), largest, 1.0)
    return scale * torch.sqrt((real / scale).square() + (imaginary / scale).square())


def _exponential(x: Any) -> _Pair:  # noqa: ANN401
    size = torch.exp(x.real)
    return _Pair(size * torch.cos(x.imaginary), size * torch.sin(x.imaginary))


def _added(product: Callable[[Any, Any], Any]) -> Callable[..., _Pair]:
    """Returns an op that adds a product to a tensor, as `addmm` does.

    Args:
        product: of two real tensors.
    """

    def op(c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> _Pair:  # noqa: ANN401
        term = _multiply(_product(a, b, product), alpha)
        return term if beta == 0 else _add(term, _multiply(c, beta))

    return op


def _cast(x: Any, *, dtype: torch.dtype | None = None, **_: object) -> Any:  # noqa: ANN401
    """Returns a copy in another type; of a real one, the real parts."""
    if dtype is None:
        return x
    if dtype not in COMPLEX:
        return (x.real if isinstance(x, _Pair) else x).to(dtype)
    x = _pair(x)
    return _Pair(x.real.to(dtype.to_real()), x.imaginary.to(dtype.to_real()))


def _full_like(value: float) -> Callable[..., _Pair]:
    def op(x: Any, **_: object) -> _Pair:  # noqa: ANN401
        return _Pair(torch.full_like(x.real, value), torch.zeros_like(x.real))

    return op


def _copied(x: Any, y: Any, *_: object) -> Any:  # noqa: ANN401
    """Returns what is written to a tensor in the shape and the type of it."""
    if not isinstance(x, _Pair):
        return y.real.expand(x.shape).to(x.dtype)
    y = _pair(y)
    return _Pair(*(part.expand(x.real.shape).to(x.real.dtype) for part in (y.real, y.imaginary)))


def _direction(x: Any) -> _Pair:  # noqa: ANN401
    """Returns numbers divided by their absolute values, and 0 for 0."""
    size = _size(x)
    return _divide(x, torch.where(size > 0, size, 1.0))


def _is_equal(x: Any, y: Any) -> torch.Tensor:  # noqa: ANN401
    x, y = _pair(x), _pair(y)
    return (x.real == y.real) & (x.imaginary == y.imaginary)


def _parts(x: Any) -> fourier_transforms.Parts:  # noqa: ANN401
    return (x.real, x.imaginary) if isinstance(x, _Pair) else (x, None)


_aten = torch.ops.aten
# By name: an underscore begins the names of ATen's ops without a function of PyTorch.
_NAMED = {
    "_conj": lambda x: x.conjugate,
    "_conj_physical": lambda x: x.conjugate,
    "_to_copy": _cast,
    "_assert_tensor_metadata": lambda *_, **__: None,
    "_fft_c2c": lambda x, *rest: _Pair(*fourier_transforms.of_complex(_parts(x), *rest)),
    "_fft_r2c": lambda x, *rest: _Pair(*fourier_transforms.of_real(x, *rest)),
    "_fft_c2r": lambda x, *rest: fourier_transforms.to_real(_parts(x), *rest),
}
_OPS: dict[Any, Callable[..., Any]] = {
    **{getattr(_aten, name).default: function for name, function in _NAMED.items()},
    _aten.complex.default: _Pair,
    _aten.view_as_complex.default: lambda x: _Pair(x.select(-1, 0), x.select(-1, 1)),
    _aten.view_as_real.default: lambda x: torch.stack((x.real, x.imaginary), -1),
    _aten.polar.default: lambda size, angle: _Pair(size * torch.cos(angle), size * torch.sin(angle)),
    _aten.real.default: lambda x: x.real,
    _aten.imag.default: lambda x: x.imaginary,
    _aten.conj_physical.default: lambda x: x.conjugate,
    _aten.resolve_conj.default: lambda x: x,
    _aten.abs.default: _size,
    _aten.sgn.default: _direction,
    _aten.copy.default: _copied,
    _aten.angle.default: lambda x: torch.atan2(x.imaginary, x.real),
    _aten.exp.default: _exponential,
    _aten.reciprocal.default: _reciprocal,
    torch.ops.prims.convert_element_type.default: lambda x, dtype: _cast(x, dtype=dtype),
    _aten.zeros_like.default: _full_like(0.0),
    _aten.ones_like.default: _full_like(1.0),
    _aten.full_like.default: lambda x, value, **_: _multiply(_full_like(1.0)(_pair(x)), value),
    _aten.mm.default: lambda a, b: _product(a, b, torch.mm),
    _aten.bmm.default: lambda a, b: _product(a, b, torch.bmm),
    _aten.addmm.default: _added(torch.mm),
    _aten.baddbmm.default: _added(torch.bmm),
    **dict.fromkeys((_aten.add.Tensor, _aten.add.Scalar), _add),
    **dict.fromkeys((_aten.sub.Tensor, _aten.sub.Scalar), _subtract),
    **dict.fromkeys((_aten.mul.Tensor, _aten.mul.Scalar), _multiply),
    **dict.fromkeys((_aten.div.Tensor, _aten.div.Scalar), _divide),
    **dict.fromkeys((_aten.eq.Tensor, _aten.eq.Scalar), _is_equal),
    **dict.fromkeys((_aten.ne.Tensor, _aten.ne.Scalar), lambda x, y: ~_is_equal(x, y)),
}
# Ops that make complex numbers of real ones.
_MAKERS = (
    *(_aten.complex.default, _aten.view_as_complex.default, _aten.polar.default),
    getattr(_aten, "_fft_r2c").default,  # noqa: B009
)
# Ops of which each part of the result is that of the parts: views, copies, sums.
_BY_PARTS = frozenset(
    (
        *("alias", "cat", "clone", "constant_pad_nd", "cumsum", "detach", "diagonal", "embedding", "expand", "flip"),
        *("gather", "index", "index_select", "lift_fresh_copy", "mean", "neg", "permute", "repeat", "reshape", "roll"),
        *("select", "select_scatter", "slice", "slice_scatter", "split", "split_with_sizes", "squeeze", "sum", "t"),
        *("transpose", "tril", "triu", "unbind", "unfold", "unsqueeze", "view", "where", "_reshape_copy"),
        "_unsafe_view",
    )
)


class _Parts(torch.fx.Interpreter):
    """Computes a graph with pairs in place of tensors of complex numbers.

    Args:
        graph_module: the graph.
        constants: its tensors of complex numbers, by name.
    """

    def __init__(self, graph_module: torch.fx.GraphModule, constants: dict[str, _Pair]) -> None:
        super().__init__(graph_module)
        self.extra_traceback = False  # refusals have messages of one line
        self._constants = constants

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        return self._constants.get(target) or super().get_attr(target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        leaves = pytree.tree_leaves((args, kwargs), is_leaf=_is_pair)
        is_made = any(isinstance(item, torch.dtype) and item in COMPLEX for item in leaves)
        if not is_made and not any(map(_is_pair, leaves)) and target not in _MAKERS:
            return super().call_function(target, args, kwargs)
        if not hasattr(target, "overloadpacket"):  # no op: an element of a tuple
            return target(*args, **kwargs)
        if target in _OPS:
            return _OPS[target](*args, **kwargs)
        name = target.overloadpacket.__name__
        if is_made and name in ("full", "zeros", "ones", "empty", "empty_strided", "scalar_tensor"):
            return self._created(target, args, kwargs)
        if name not in _BY_PARTS:
            raise StepladderError(f"the module has complex numbers ('{target}'), which kernels do not support")

        def part(of: str) -> Any:  # noqa: ANN401
            def chosen(value: Any) -> Any:  # noqa: ANN401
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    value = _pair(value)
                return getattr(_pair(value), of) if _is_pair(value) else value

            arguments, keywords = pytree.tree_map(chosen, (args, kwargs), is_leaf=_is_pair)
            return target(*arguments, **keywords)

        real, imaginary = part("real"), part("imaginary")
        if isinstance(real, (tuple, list)):
            return [_Pair(*parts) for parts in zip(real, imaginary)]
        return _Pair(real, imaginary)

    @staticmethod
    def _created(target: Any, args: Any, kwargs: Any) -> _Pair:  # noqa: ANN401
        """Returns new values, all the same."""
        keywords = {**kwargs, "dtype": kwargs["dtype"].to_real()}
        real = target(*(item.real if isinstance(item, complex) else item for item in args), **keywords)
        imaginary = next((item.imag for item in args if isinstance(item, complex)), 0.0)
        return _Pair(real, torch.full_like(real, imaginary))


class Reals(torch.nn.Module):
    """A graph with complex tensors as a module of real and imaginary parts; its inputs and results are real.

    Args:
        graph_module: the graph.
    """

    def __init__(self, graph_module: torch.fx.GraphModule) -> None:
        super().__init__()
        self._graph = graph_module
        self._constants = {
            node.target: _Pair(value.real.clone(), value.imag.clone())
            for node in graph_module.graph.nodes
            if node.op == "get_attr" and is_complex(value := _attribute(graph_module, node.target))
        }

    def forward(self, *values: torch.Tensor) -> Any:  # noqa: ANN401
        """Returns the results of the graph.

        Args:
            values: its inputs.
        """
        return _Parts(self._graph, self._constants).run(*values)


def _attribute(module: Any, name: str) -> Any:  # noqa: ANN401
    for part in name.split("."):
        module = getattr(module, part)
    return module


def is_complex(value: object) -> bool:
    """Returns whether a value is a complex tensor.

    Args:
        value: of any kind.
    """
    return getattr(value, "dtype", None) in COMPLEX
