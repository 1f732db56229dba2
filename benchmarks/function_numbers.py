"""The numbers of functions of public models: what they compute, random arguments, and errors of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import stepladder
from model_functions import EPSILON


@dataclass(frozen=True)
class Library:
    """The operations that functions are of, on arrays of a library.

    Attributes:
        linear: x W^T.
        silu, relu: activations.
        norm: the RMS norm of x with a weight.
        attend: of queries (sequences x heads x tokens x width), keys and values of fewer heads: the softmax of the
            scaled scores, times the values; tokens attend to those before them if `is_causal`.
        joined: arrays, one behind the other along the last axis, of the element type of another one.
    """

    linear: Callable[[Any, Any], Any]
    silu: Callable[[Any], Any]
    relu: Callable[[Any], Any]
    norm: Callable[[Any, Any], Any]
    attend: Callable[[Any, Any, Any, bool], Any]
    joined: Callable[[Sequence[Any], Any], Any]


def numpy_attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, is_causal: bool) -> np.ndarray:
    """Returns what `Library.attend` does.

    Args:
        q, k, v: queries, keys and values.
        is_causal: whether tokens attend to those before them.
    """
    k, v = (np.repeat(item, q.shape[1] // k.shape[1], axis=1) for item in (k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if is_causal:
        scores = np.where(np.tri(q.shape[2], dtype=bool), scores, -np.inf)
    parts = np.exp(scores - scores.max(-1, keepdims=True))
    return parts / parts.sum(-1, keepdims=True) @ v


def library_of(torch: Any) -> Library:  # noqa: ANN401
    """Returns PyTorch's operations.

    Args:
        torch: the module.
    """
    functional = torch.nn.functional

    def rms_norm(x: Any, weight: Any) -> Any:  # noqa: ANN401
        return functional.rms_norm(x, weight.shape, weight, EPSILON)

    def attend(q: Any, k: Any, v: Any, is_causal: bool) -> Any:  # noqa: ANN401
        return functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=True)

    def joined(parts: Sequence[Any], like: Any) -> Any:  # noqa: ANN401
        return torch.cat(parts, -1).to(like.dtype)

    return Library(functional.linear, functional.silu, torch.relu, rms_norm, attend, joined)


def expected(kind: str, x: Any, weights: Sequence[Any], library: Library) -> tuple:  # noqa: ANN401
    """Returns the results of a function, computed with the operations of a library.

    Args:
        kind: of the function.
        x: the input.
        weights: in the order of the arguments, with factors of the rotary embedding and caches.
        library: the operations.
    """
    linear = library.linear
    if kind == "projections":
        return tuple(linear(x, weight) for weight in weights)
    if kind == "mlp":
        return (linear(library.relu(linear(x, weights[0])), weights[1]),)
    if kind == "attention":
        return _attention(x, weights, library)
    scale, (gate, up, down) = weights[:-3], weights[-3:]
    inner = library.norm(x, *scale) if scale else x
    y = linear(library.silu(linear(inner, gate)) * linear(inner, up), down)
    return (x + y if scale else y,)


def _attention(x: Any, weights: Sequence[Any], library: Library) -> tuple:  # noqa: ANN401
    """Returns the results of an attention block; caches, if there are any, are written in place."""
    cos, sin, *caches, scale, wq, wk, wv, wo = weights
    half = cos.shape[-1]
    inner = library.norm(x, scale)

    def heads(weight: Any) -> Any:  # noqa: ANN401
        return library.linear(inner, weight).reshape(x.shape[0], -1, 2 * half)

    def rotated(y: Any) -> Any:  # noqa: ANN401
        left, right, c, s = y[..., :half], y[..., half:], cos[:, None], sin[:, None]
        return library.joined([left * c - right * s, right * c + left * s], y)

    q, k, v = rotated(heads(wq)), rotated(heads(wk)), heads(wv)
    if caches:  # of tokens of as many sequences, each the last one of its own
        for cache, new in zip(caches, (k, v)):
            cache[:, :, -1] = new
        keys, values = caches
        y = library.attend(q[:, :, None], keys, values, False)
    else:
        q, k, v = (item.swapaxes(0, 1)[None] for item in (q, k, v))
        y = library.attend(q, k, v, True).swapaxes(1, 2)
    y = library.linear(y.reshape(x.shape[0], -1), wo)
    return (x + y, *caches)


def random_arrays(function: stepladder.Function) -> list[np.ndarray]:
    """Returns arguments: normal numbers, divided by the root of the rows' length in weights; cosines and sines of
    random angles, where arguments are f32.

    Args:
        function: whose arguments they are.
    """
    generator = np.random.default_rng(0)
    angles: list[np.ndarray] = []
    arrays = []
    for number, item in enumerate(function.inputs):
        array = generator.standard_normal(item.shape, np.float32)
        if item.type == "f32":
            angles = angles or [np.cos(array), np.sin(array)]
            arrays.append(angles.pop(0))
            continue
        is_weight = number > 0 and array.ndim == 2
        arrays.append((array / np.float32(array.shape[1] ** 0.5 if is_weight else 1.0)).astype(ml_dtypes.bfloat16))
    return arrays


def error_of(result: np.ndarray, reference: np.ndarray) -> float:
    """Returns the norm of the error over that of the numbers.

    Args:
        result, reference: arrays of one shape.
    """
    return float(np.linalg.norm(result.astype(np.float64) - reference) / np.linalg.norm(reference))


def distance(result: Any, reference: Any) -> float:  # noqa: ANN401
    """Returns the norm of the error over that of the numbers; infinite for NaN.

    Args:
        result, reference: tensors of one shape.
    """
    error = float((result.double() - reference.double()).norm() / reference.double().norm())
    return error if error == error else float("inf")
