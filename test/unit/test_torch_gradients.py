"""Gradients of PyTorch's layers, as decompositions beside PyTorch's ops, and compiled from traced functions."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import stepladder

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch_mlir") is None,
    reason="needs PyTorch and torch-mlir",
)

Layer = Callable[..., Any]
POOLINGS: dict[str, Layer] = {
    "apart": lambda f, x: f.max_pool2d(x, 2),
    "overlapping": lambda f, x: f.max_pool2d(x, 3, 2, 1),
    "dilated": lambda f, x: f.max_pool2d(x, 2, 1, dilation=2),
    "ceiling": lambda f, x: f.max_pool2d(x, 2, 2, ceil_mode=True),
    "volumes": lambda f, x: f.max_pool3d(x, 2),
    "mean": lambda f, x: f.avg_pool2d(x, 2),
    "padded_mean": lambda f, x: f.avg_pool2d(x, 3, 2, 1),
    "mean_of_image": lambda f, x: f.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "divisor": lambda f, x: f.avg_pool2d(x, 2, divisor_override=3),
    "mean_to_extents": lambda f, x: f.adaptive_avg_pool2d(x, (2, 3)),
    "mean_to_unlike_windows": lambda f, x: f.adaptive_avg_pool2d(x, (3, 4)),
    "maximum_to_unlike_windows": lambda f, x: f.adaptive_max_pool2d(x, (3, 4)),
    "maximum_to_extents": lambda f, x: f.adaptive_max_pool2d(x, (2, 3)),
}
LAYERS: dict[str, tuple[Layer, list[tuple[int, ...]]]] = {
    "groups": (lambda f, x, w: f.conv2d(x, w, padding=1, groups=2), [(2, 4, 5, 4), (6, 2, 3, 3)]),
    "steps": (lambda f, x, w: f.conv2d(x, w, stride=2, groups=4), [(1, 4, 6, 5), (4, 1, 2, 3)]),
    "transposed": (lambda f, x, w: f.conv_transpose2d(x, w, stride=2, padding=1), [(2, 4, 3, 4), (4, 2, 3, 3)]),
    "transposed_groups": (lambda f, x, w: f.conv_transpose1d(x, w, groups=2), [(2, 4, 5), (4, 3, 3)]),
    "attention": (
        lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(1, 2, 6, 4), (1, 2, 6, 4), (1, 2, 6, 4)],
    ),
    "masked_attention": (
        lambda f, q, k, v, m: f.scaled_dot_product_attention(q, k, v, m, scale=0.3),
        [(1, 2, 6, 4), (1, 2, 5, 4), (1, 2, 5, 4), (6, 5)],
    ),
    "replicated": (lambda f, x: f.pad(x, (1, 2, -1, 3), mode="replicate"), [(1, 2, 3, 4)]),
    "diagonal": (lambda f, x, y: f.torch.diagonal_scatter(x, y, -1, 2, 0), [(3, 2, 4), (2, 3)]),
    "places": (lambda f, x, y: f.torch.as_strided_scatter(x, y, (2, 3), (6, 2), 1), [(3, 4), (2, 3)]),
    "bilinear": (lambda f, x: f.interpolate(x, scale_factor=2.0, mode="bilinear"), [(1, 2, 3, 4)]),
    "bilinear_corners": (
        lambda f, x: f.interpolate(x, size=(5, 1), mode="bilinear", align_corners=True),
        [(1, 2, 3, 4)],
    ),
    "linear": (lambda f, x: f.interpolate(x, size=7, mode="linear"), [(1, 2, 4)]),
    "trilinear": (
        lambda f, x: f.interpolate(x, size=(3, 2, 5), mode="trilinear", align_corners=True),
        [(1, 2, 2, 3, 2)],
    ),
    "cubic": (lambda f, x: f.interpolate(x, scale_factor=(1.7, 0.6), mode="bicubic"), [(1, 2, 5, 6)]),
    "samples": (lambda f, x, at: f.grid_sample(x, at, align_corners=False), [(2, 2, 5, 4), (2, 3, 3, 2)]),
    "samples_at_borders": (
        lambda f, x, at: f.grid_sample(x, at.clamp(-1, 1).round(), padding_mode="border", align_corners=True),
        [(1, 2, 5, 4), (1, 3, 3, 2)],
    ),
    "cubic_samples": (
        lambda f, x, at: f.grid_sample(x, 2 * at, "bicubic", "reflection", align_corners=False),
        [(1, 2, 5, 4), (1, 3, 3, 2)],
    ),
    "samples_of_volumes": (
        lambda f, x, at: f.grid_sample(x, 3 * at, padding_mode="reflection", align_corners=True),
        [(1, 2, 3, 4, 3), (1, 2, 3, 2, 3)],
    ),
    "nearest_samples": (
        lambda f, x, at: f.grid_sample(x, at, "nearest", align_corners=True),
        [(1, 2, 3, 4, 3), (1, 2, 3, 2, 3)],
    ),
    **{
        f"distances_{p}": (lambda f, x, y, p=p: f.torch.cdist(x, y, p), [(2, 1, 5, 3), (3, 4, 3)])
        for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))
    },
    "distances_of_0": (lambda f, x: f.torch.cdist(x, x), [(4, 3)]),
    "own_distances": (lambda f, x: f.pdist(x) + f.pdist(x, 1.0), [(5, 3)]),
    "shrinking": (lambda f, x: f.hardshrink(x) + f.softshrink(x, 0.3), [(3, 7)]),
    "shared_heads": (
        lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        [(2, 4, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4)],
    ),
    "elements": (
        lambda f, x: x[:, f.torch.tensor([0, 2, 2])[:, None], :, f.torch.tensor([1, 1, 3])],
        [(2, 3, 4, 5)],
    ),
    "nearest": (lambda f, x: f.interpolate(x, size=(4, 3)), [(1, 2, 3, 5)]),
    "nearest_of_a_scale": (lambda f, x: f.interpolate(x, scale_factor=1.7), [(1, 2, 3)]),
    "nearest_exact": (lambda f, x: f.interpolate(x, size=(2, 5, 4), mode="nearest-exact"), [(1, 2, 3, 4, 2)]),
}


def _check(torch: ModuleType, layer: Layer, inputs: list[Any], read: int) -> None:
    """Compares the traced gradients of the first inputs, decomposed, with PyTorch's."""
    from torch.fx.experimental.proxy_tensor import make_fx  # pyright: ignore[reportMissingImports]

    from stepladder.api.decompositions.table import TABLE

    def gradients(*given: Any) -> Any:  # noqa: ANN401
        *tensors, of_result = given
        return torch.func.vjp(lambda *x: layer(torch.nn.functional, *x, *tensors[read:]), *tensors[:read])[1](of_result)

    graph = make_fx(gradients, decomposition_table=TABLE)(*inputs)
    targets = [str(node.target) for node in graph.graph.nodes]
    assert not [name for name in targets if "backward" in name or "adaptive" in name]
    for got, wanted in zip(graph(*inputs), gradients(*inputs), strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("name", POOLINGS)
def test_gradients_of_poolings(torch: ModuleType, name: str) -> None:
    x = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    result = POOLINGS[name](torch.nn.functional, x)
    _check(torch, POOLINGS[name], [x, torch.randn_like(result)], 1)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers(torch: ModuleType, name: str) -> None:
    layer, shapes = LAYERS[name]
    inputs = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    result = layer(torch.nn.functional, *inputs)
    _check(torch, layer, [*inputs, torch.randn_like(result)], min(len(inputs), 3))


@pytest.mark.parametrize(
    "layer",
    [*(LAYERS[name][0] for name in ("nearest", "replicated", "bilinear")), POOLINGS["mean_to_unlike_windows"]],
    ids=["nearest", "replicated", "bilinear", "mean"],
)
def test_an_infinite_gradient_stays_where_it_is(torch: ModuleType, layer: Layer) -> None:
    x = torch.randn(1, 2, 4, 6, dtype=torch.float64)
    of_result = torch.randn_like(layer(torch.nn.functional, x))
    of_result[0, 1, 1, 1] = torch.inf
    _check(torch, layer, [x, of_result], 1)


@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_gradients_of_an_lstm(torch: ModuleType, is_bidirectional: bool) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx  # pyright: ignore[reportMissingImports]

    from stepladder.api.decompositions.table import TABLE

    layer = torch.nn.LSTM(3, 4, batch_first=True, bidirectional=is_bidirectional, bias=is_bidirectional)
    parameters = {name: value.detach() for name, value in layer.named_parameters()}
    states = torch.randn(2, 1 + is_bidirectional, 2, 4)

    def gradients(*given: Any) -> Any:  # noqa: ANN401
        def loss(parameters: dict[str, Any], x: Any, hidden: Any, cell: Any) -> Any:  # noqa: ANN401
            y, (hidden, cell) = torch.func.functional_call(layer, parameters, (x, (hidden, cell)))
            return y.square().sum() + (hidden.sin() + cell.cos()).sum()

        return torch.func.grad_and_value(loss, (0, 1, 2, 3))(*given)

    given = parameters, torch.randn(2, 3, 3), *states
    assert any("mkldnn" in str(node.target) for node in make_fx(gradients)(*given).graph.nodes)
    graph = make_fx(gradients, decomposition_table=TABLE)(*given)
    assert not any("mkldnn" in str(node.target) for node in graph.graph.nodes)
    torch.testing.assert_close(graph(*given), gradients(*given))


def test_gradients_of_an_attention_are_viewed(torch: ModuleType) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx  # pyright: ignore[reportMissingImports]

    from stepladder.api.decompositions.table import TABLE

    def merged(x: Any) -> Any:  # noqa: ANN401
        heads = x.view(1, 6, 2, 4).transpose(1, 2)
        return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).sum()

    x = torch.randn(1, 6, 8)
    graph = make_fx(make_fx(torch.func.grad(merged))(x), decomposition_table=TABLE)(x)
    torch.testing.assert_close(graph(x), torch.func.grad(merged)(x))


def test_fake_quantization(torch: ModuleType) -> None:
    from stepladder.api.decompositions.table import TABLE

    x, scale, zero = torch.randn(4, 6) * 3, torch.rand(4) / 50 + 0.01, torch.tensor([0, 3, -2, 1], dtype=torch.int32)
    is_on = torch.tensor([1])
    aten = torch.ops.aten
    for op, given in (
        (aten.fake_quantize_per_tensor_affine_cachemask.default, (x, 0.02, 3, -128, 127)),
        (aten.fake_quantize_per_channel_affine_cachemask.default, (x, scale, zero, 0, -128, 127)),
        (
            aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default,
            (x, scale[:1], zero[:1], is_on, -128, 127),
        ),
    ):
        for got, wanted in zip(TABLE[op](*given), op(*given), strict=True):
            torch.testing.assert_close(got, wanted)


def test_a_traced_gradient_is_compiled(torch: ModuleType) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx  # pyright: ignore[reportMissingImports]

    def step(x: Any, w: Any, of_result: Any) -> Any:  # noqa: ANN401
        pooled = torch.func.vjp(lambda x: torch.nn.functional.max_pool2d(x * w, 2), x)
        return x - 0.5 * pooled[1](of_result)[0]

    given = torch.randn(1, 2, 4, 4), torch.randn(4), torch.randn(1, 2, 2, 2)
    kernel = stepladder.compile(make_fx(step)(*given), given, device="emulator", target="sm_80")
    torch.testing.assert_close(kernel(*given), step(*given))


def test_a_gradient_of_complex_numbers_is_compiled(torch: ModuleType) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx  # pyright: ignore[reportMissingImports]

    gradient = torch.func.grad(lambda x: torch.fft.rfft(x).abs().sum())
    x = torch.randn(2, 6)
    x[1] = 0  # where the absolute value has no derivative, 0
    kernel = stepladder.compile(make_fx(gradient)(x), [x], device="emulator", target="sm_80")
    torch.testing.assert_close(kernel(x), gradient(x))


def test_an_attention_with_the_logarithms_of_its_sums(torch: ModuleType) -> None:
    """In whose place PyTorch's decomposition returns the weights."""
    from stepladder.api.decompositions.gradients import TABLE

    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    q, k, v = (torch.randn(1, 2, extent, 4) for extent in (3, 5, 5))
    for options in ({"is_causal": True}, {"attn_mask": torch.randn(3, 5), "scale": 0.3}):
        for one, wanted in zip(TABLE[attention](q, k, v, **options), attention(q, k, v, **options), strict=True):
            torch.testing.assert_close(one, wanted)
