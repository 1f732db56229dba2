"""Payloads and modules with dynamic dimensions in Python: kernels for each set of shapes, compiled on first use."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stepladder
from stepladder.api import building
from stepladder.api.kernel_cache import KernelCache

if TYPE_CHECKING:
    from torch import Tensor

pytestmark = pytest.mark.usefixtures("needs_ptxas")

MLP = """func.func @mlp(%x: tensor<?x32xf16>, %w: tensor<32x16xf16>, %v: tensor<16x8xf16>) -> tensor<?x8xf16> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x32xf16>
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty(%m) : tensor<?x16xf16>
  %s = linalg.fill ins(%zero : f16) outs(%e : tensor<?x16xf16>) -> tensor<?x16xf16>
  %h = linalg.matmul ins(%x, %w : tensor<?x32xf16>, tensor<32x16xf16>) outs(%s : tensor<?x16xf16>) -> tensor<?x16xf16>
  %f = tensor.empty(%m) : tensor<?x8xf16>
  %t = linalg.fill ins(%zero : f16) outs(%f : tensor<?x8xf16>) -> tensor<?x8xf16>
  %y = linalg.matmul ins(%h, %v : tensor<?x16xf16>, tensor<16x8xf16>) outs(%t : tensor<?x8xf16>) -> tensor<?x8xf16>
  return %y : tensor<?x8xf16>
}
"""
BUFFERS = """func.func @f(%A: memref<?x32xf16>, %B: memref<32x32xf16>, %C: memref<?x32xf32>) {
  linalg.matmul ins(%A, %B : memref<?x32xf16>, memref<32x32xf16>) outs(%C : memref<?x32xf32>)
  return
}
"""


def options(**others: object) -> dict[str, object]:
    return {"device": "emulator", "target": "sm_90a", **others}


def test_a_kernel_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    w, v = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((32, 16), (16, 8)))
    function = stepladder.compile(MLP, **options())
    assert isinstance(function, stepladder.ByShape)
    for tokens in (3, 9, 3, 0):
        x = rng.integers(-2, 3, (tokens, 32)).astype(np.float16)
        assert np.array_equal(function(x, w, v), x @ w @ v)
    assert function.kernel(x, w, v) is function.kernel(x + 1, w, v)
    assert "(?x32, 32x16, 16x8), 3 compiled" in repr(function)
    # A new process: from the cache on disk.
    monkeypatch.setattr(building, "_functions", type(building._functions)())
    monkeypatch.setattr(building, "_compile_any", lambda job: pytest.fail("compiled again"))
    out = np.empty((9, 8), np.float16)
    x = rng.integers(-2, 3, (9, 32)).astype(np.float16)
    assert stepladder.compile(MLP, **options())(x, w, v, out=out) is out
    assert np.array_equal(out, x @ w @ v)


@pytest.mark.parametrize(
    ("index", "array", "message"),
    [
        (0, np.ones((3, 33), np.float16), r"argument 'argument 0' is 3 x 33; accepted: \?x32"),
        (0, np.ones(32, np.float16), r"argument 'argument 0' is 32; accepted: \?x32"),
        (1, np.ones((32, 16), np.float32), "argument 'argument 1' has elements of f32; accepted: f16"),
        (2, None, "argument 'argument 2' is a NoneType"),
    ],
)
def test_arrays_that_are_refused(index: int, array: object, message: str) -> None:
    arrays = [np.ones(shape, np.float16) for shape in ((3, 32), (32, 16), (16, 8))]
    arrays[index] = array
    function = stepladder.compile(MLP, **options())
    with pytest.raises(stepladder.ArgumentError, match=message):
        function(*arrays)
    with pytest.raises(stepladder.ArgumentError, match="1 arrays were passed, and the function takes 3"):
        function(arrays[0])


def test_sizes_that_are_given() -> None:
    kernel = stepladder.compile(BUFFERS, **options(bind={"M": np.int64(8)}))
    assert isinstance(kernel, stepladder.Kernel) and kernel.signature.out.shape == (8, 32)
    with pytest.raises(
        stepladder.StepladderError, match=r"argument 0 is memref<\?x32xf16>, in a function with dynamic"
    ):
        stepladder.compile(BUFFERS, **options())
    for bind, message in (
        (3, "argument 'bind' is a int"),
        ({"M": -1}, "argument 'bind' has 'M': -1; accepted"),
        ({"M": "8"}, "argument 'bind' has 'M': '8'; accepted"),
        ({"M": 2**63, "N": 8, "K": 8}, "'M': 9223372036854775808; accepted: sizes of at most 9223372036854775807"),
    ):
        with pytest.raises(stepladder.ArgumentError, match=message):
            stepladder.compile(BUFFERS, **options(bind=bind))
    with pytest.raises(stepladder.ArgumentError, match="argument 'bind' is for payloads; a MatmulSpec has sizes"):
        stepladder.compile(stepladder.MatmulSpec(8, 8, 8), **options(bind={"M": 8}))
    with pytest.raises(stepladder.ArgumentError, match=r"argument 'dynamic_shapes' is for a torch\.nn"):
        stepladder.compile(MLP, **options(dynamic_shapes=()))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_a_module_for_each_shape() -> None:
    pytest.importorskip("torch_mlir.fx")
    import torch

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(32, 16, dtype=torch.float16)

        def forward(self, x: Tensor, others: dict[str, Tensor]) -> dict[str, Tensor]:
            return {"y": torch.relu(self.layer(x)) + others["bias"], "mean": x.float().mean((0, 1))}

    layer, tokens = Layer(), torch.export.Dim("tokens", max=8)
    example = torch.randn(2, 4, 32).half(), {"bias": torch.randn(4, 16).half()}
    shapes = {0: torch.export.Dim("batch"), 1: tokens}, {"bias": {0: tokens}}
    compiled = stepladder.compile(layer, example, **options(dynamic_shapes=shapes))
    with torch.no_grad():
        for batch, count in ((2, 4), (1, 3)):
            layer.layer.weight.mul_(0.5)  # parameters are read where they are
            given = torch.randn(batch, count, 32).half(), {"bias": torch.randn(count, 16).half()}
            got, wanted = compiled(*given), layer(*given)
            assert all((got[name].float() - wanted[name].float()).abs().max() < 1e-2 for name in ("y", "mean"))
        for batch, count, bias, message in (
            (2, 9, 9, "the inputs have shapes that the module was exported without: not .* <= 8"),
            (2, 4, 3, "the inputs have shapes that the module was exported without"),
        ):
            with pytest.raises(stepladder.ArgumentError, match=message):
                compiled(torch.randn(batch, count, 32).half(), {"bias": torch.randn(bias, 16).half()})
        with pytest.raises(stepladder.ArgumentError, match=r"'input 0' is 2 x 4 x 33; accepted: \?x\?x32"):
            compiled(torch.randn(2, 4, 33).half(), example[1])
    with pytest.raises(stepladder.StepladderError, match="is not exported with these dynamic_shapes: Constraints viol"):
        stepladder.compile(layer, example, **options(dynamic_shapes=({2: torch.export.Dim("width")}, {"bias": None})))
    with pytest.raises(stepladder.ArgumentError, match="argument 'dynamic_shapes' is a int"):
        stepladder.compile(layer, example, **options(dynamic_shapes=3))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_one_tensor_as_two_examples() -> None:
    pytest.importorskip("torch_mlir.fx")
    import torch

    class Scores(torch.nn.Module):
        def forward(self, query: Tensor, key: Tensor) -> Tensor:
            return query @ key.T + query

    query, key = torch.randn(16, 16).half(), torch.randn(16, 16).half()
    got = stepladder.compile(Scores(), (query, query), **options())(query, key)
    assert (got.float() - Scores()(query.float(), key.float())).abs().max() < 2e-2


def test_nothing_is_kept_of_a_kernel_that_does_not_compile() -> None:
    cache = KernelCache[str]()
    with pytest.raises(ValueError, match="refused"), cache.only_one("shapes"):
        raise ValueError("refused")
    assert not cache.running and cache.find("shapes") is None
