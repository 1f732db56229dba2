"""Functions with several kernels on a GPU: streams, threads, graphs, and the backend of `torch.compile`."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import stepladder

if TYPE_CHECKING:
    from torch import Tensor, dtype

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch"),
]


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    torch.manual_seed(0)
    return torch


def random(torch: ModuleType, *shape: int, dtype: dtype) -> Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype)


def close(got: Tensor, wanted: Tensor, tolerance: float = 1e-2) -> None:
    assert got.shape == wanted.shape
    assert (got.double() - wanted.double()).abs().max() <= tolerance * max(1.0, wanted.abs().max().item())


def test_numbers_are_placed_in_the_memory_of_the_gpu(torch: ModuleType) -> None:
    """Each call has its own, on the stream of the call."""
    from test_numbers import SCALED_LAYERS

    function = stepladder.compile(SCALED_LAYERS)
    x, w = torch.ones(16, 32, device="cuda").half(), torch.eye(32, device="cuda").half()
    for stream in (None, torch.cuda.Stream()):
        torch.cuda.synchronize()
        made = [function(alpha, x, w, shift, True, stream=stream) for alpha, shift in ((0.5, 3), (2, -(2**40)))]
        torch.cuda.synchronize()
        assert torch.all(made[0] == 3.5) and torch.all(made[1] == 2.0 - 2**40)


def test_states_are_written_and_read_in_a_result(torch: ModuleType) -> None:
    from test_placed_parts import STATES

    function = stepladder.compile(STATES)
    assert function.manifest.schema_version == 9
    x, w = random(torch, 8, 32, dtype=torch.float16), random(torch, 32, 32, dtype=torch.float16) / 6
    for _ in range(20):  # at last as a graph
        states, last = function(x, w)
    wanted = [x]
    for _ in range(4):
        wanted.append((wanted[-1].float() @ w.float()).half())
    close(states, torch.stack(wanted[1:]))
    assert torch.equal(states[-1], last)


def test_buffers_that_are_read_and_written_are_changed(torch: ModuleType) -> None:
    from test_functions_in_python import ROWS

    function = stepladder.compile(ROWS)
    a, b = random(torch, 4, 1, 32, dtype=torch.float32), random(torch, 4, 32, 16, dtype=torch.float32)
    start = random(torch, 4, 1, 16, dtype=torch.float32)
    held = start.clone()
    for calls in range(1, 21):  # at last as a graph
        assert function(a, b, held) is held
        close(held, start.double() + calls * (a.double() @ b.double()), 1e-5)


def test_buffers_that_are_changed_in_their_place_or_as_copies(torch: ModuleType) -> None:
    from test_functions_in_python import DOUBLED

    function = stepladder.compile(DOUBLED)
    a, b, c, d = (random(torch, *shape, dtype=torch.float16) for shape in ((8, 16), (16, 8), (8, 8), (8, 8)))
    wanted = 2 * c, (a.float() @ b.float()).half() + d
    for _ in range(20):  # at last as a graph
        held, apart = (c.clone(), d.clone()), (torch.empty_like(c), torch.empty_like(d))
        function(a, b, *held, out=apart)
        assert torch.equal(held[0], c) and torch.equal(apart[0], wanted[0])
        close(apart[1], wanted[1])
        assert function(a, b, *held)[0] is held[0]
        assert torch.equal(held[0], wanted[0])
        close(held[1], wanted[1])


@pytest.mark.parametrize("target", ["sm_80", ""])
def test_merged_heads(torch: ModuleType, target: str) -> None:
    text = (Path(__file__).parents[1] / "inputs" / "payloads" / "merged_heads.mlir").read_text()
    kernel = stepladder.compile(text, **({"target": target} if target else {}))
    p, v = random(torch, 3, 40, 56, dtype=torch.float16), random(torch, 3, 56, 24, dtype=torch.float16)
    wanted = (p.float() @ v.float()).half().permute(1, 0, 2).reshape(40, 72)
    close(kernel(p, v), wanted)


def test_functions_on_streams_from_threads_and_in_a_graph(torch: ModuleType) -> None:
    """Each stream has a workspace of its own; a known set of tensors is launched without a check, later as a graph."""
    function = stepladder.compile((Path(__file__).parents[1] / "inputs" / "functions" / "chain.mlir").read_text())
    arrays = [random(torch, *item.shape, dtype=torch.bfloat16) / item.shape[-1] ** 0.5 for item in function.inputs]
    x, w, v = arrays
    wanted = function(*arrays).clone()
    close(wanted, (x.double() @ w.double()) @ v.double(), 2e-2)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(50):
                    got = function(*arrays)
                    assert torch.equal(got, wanted)
        except BaseException as error:
            errors.append(error)

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    out = torch.empty_like(wanted)
    for _ in range(12):  # the last ones replay a graph
        out.zero_()
        assert function(*arrays, out=out) is out
        assert torch.equal(out, wanted)
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(10):
            function(*arrays, out=out)
        torch.cuda.synchronize()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    names = [event.key for event in profile.key_averages()]
    assert not [name for name in names if "memcpy" in name.lower() or "memset" in name.lower()], names
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function(*arrays, out=out)
    out.zero_()
    for _ in range(1000):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, wanted)


def test_the_backend_of_torch_compile(torch: ModuleType) -> None:
    pytest.importorskip("torch_mlir.fx")
    from stepladder.api import torch_backend

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(256)
            self.gate, self.up, self.down = (torch.nn.Linear(*sizes) for sizes in ((256, 512), (256, 512), (512, 256)))

        def forward(self, x: Tensor) -> Tensor:
            h = self.norm(x)
            return x + self.down(torch.nn.functional.silu(self.gate(h)) * self.up(h))

    module = Block().cuda().bfloat16()
    x = random(torch, 4, 16, 256, dtype=torch.bfloat16)
    compiled = torch.compile(module, backend=torch_backend.backend)
    with torch.no_grad():
        close(compiled(x), module(x))
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            compiled(x)
            torch.cuda.synchronize()
    names = " ".join(event.key for event in profile.key_averages())
    assert "main_matmul_kernel" in names and "memcpy" not in names.lower(), names
    compiled(x.clone().requires_grad_()).sum().backward()
    mine = module.up.weight.grad.clone()
    module.zero_grad()
    module(x).sum().backward()
    close(mine, module.up.weight.grad, 3e-2)
