"""Kernels of Triton and Pallas for `hopper.py beside`; Pallas is timed by its own profiler.

The kernel for Triton follows the persistent matmul of its documentation: TMA descriptors made on the host, grouped
tiles, a flattened loop over tiles. That of Pallas is its example `hopper_matmul_mgpu`.
"""

from __future__ import annotations

import functools
import itertools
import os
import statistics
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from stepladder.measure.baselines import cublas
from stepladder.measure.timing import MODES, Contestant, Runner
from stepladder.runtime.device import Device

if TYPE_CHECKING:
    from duel import Operands

# Triton: block_m, block_n, block_k, stages, warps, whether the loop over tiles is flattened.
TRITON_CONFIGS = (
    (128, 256, 64, 3, 8, True),
    (128, 256, 64, 3, 8, False),
    (128, 256, 64, 4, 8, False),
    (256, 128, 64, 3, 8, True),
    (128, 128, 64, 4, 4, True),
    (128, 128, 64, 4, 8, False),
)
GROUP = 8
# Pallas: tile_m, tile_n of a warpgroup; rows or columns of tiles in a group.
MOSAIC_TILES = ((128, 128), (256, 64), (128, 64), (64, 128))
MOSAIC_WIDTHS = (4, 8, 16)
MOSAIC_ITERATIONS = 10
MOSAIC_ROUNDS = 7


def triton_contestants(operands: Operands, notes: dict[str, str], versions: dict[str, str]) -> list[Contestant]:
    """Returns a contestant for every configuration that compiles and computes the right numbers.

    Args:
        operands: of the problem, on the GPU.
        notes: gets the reasons of failures, by the name of the configuration.
        versions: gets the version of Triton.
    """
    try:
        import triton  # pyright: ignore[reportMissingImports]
        from triton.tools.tensor_descriptor import TensorDescriptor  # pyright: ignore[reportMissingImports]

        from triton_matmul import matmul
    except ImportError as error:
        notes["triton"] = f"not installed: {error}"
        return []
    versions["triton"] = triton.__version__
    kernel: Any = matmul  # subscripted by the grid: `triton.jit` has no types
    torch, problem, device = operands.torch, operands.problem, operands.device
    # On the stream that is timed and captured.
    stream = torch.cuda.ExternalStream(device.stream, device=f"cuda:{device.ordinal}")
    contestants = []
    expected = operands.a.float() @ operands.b.float()
    device.synchronize()
    for block_m, block_n, block_k, stages, warps, flat in TRITON_CONFIGS:
        name = f"triton-{block_m}x{block_n}x{block_k}-s{stages}-w{warps}" + ("-flat" if flat else "")
        a = TensorDescriptor.from_tensor(operands.a, [block_m, block_k])
        b = TensorDescriptor.from_tensor(operands.b, [block_k, block_n])
        c = TensorDescriptor.from_tensor(operands.c, [block_m, block_n])
        tiles = -(-problem.m // block_m) * -(-problem.n // block_n)
        blocks = min(device.multiprocessors, tiles)

        arguments = (a, b, c, problem.m, problem.n, problem.k, block_m, block_n, block_k, GROUP, blocks, flat)
        launch = functools.partial(kernel[(blocks,)], *arguments, num_stages=stages, num_warps=warps)

        def enqueue(launch: Callable[[], object] = launch) -> None:
            with torch.cuda.stream(stream):
                launch()

        try:
            operands.c.fill_(float("nan"))
            device.synchronize()
            enqueue()
            device.synchronize()
        except Exception as error:  # whatever Triton raises for a configuration that does not compile
            notes[name] = f"failed: {type(error).__name__}: {str(error).strip()[-160:]}"
            continue
        error = float((operands.c.float() - expected).abs().max() / expected.abs().max())
        if error < 5e-3:
            contestants.append(Contestant(name, problem.flops, enqueue))
        else:
            notes[name] = f"wrong: error {error:.3g} of the largest element"
    return contestants


def measure_mosaic(device: Device, size: int, notes: dict[str, str], versions: dict[str, str]) -> dict[str, Any] | None:
    """Times the matmul of Pallas by its profiler (CUPTI), between bursts of cuBLAS.

    Args:
        device: the GPU.
        size: M = N = K.
        notes: gets the reason of a failure.
        versions: gets the version of JAX.

    Returns:
        The times; None where Pallas is not installed, or fails.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax  # pyright: ignore[reportMissingImports]
        import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
        from jax.experimental.mosaic.gpu import profiler  # pyright: ignore[reportMissingImports]
        from jax.experimental.pallas.ops.gpu import hopper_matmul_mgpu as pallas  # pyright: ignore[reportMissingImports]

        versions["jax"] = jax.__version__
        if jax.default_backend() != "gpu":
            notes["mosaic"] = "JAX sees no GPU"
            return None
    except Exception as error:  # a plugin that does not fit its JAX raises other errors than ImportError
        notes["mosaic"] = f"not installed: {type(error).__name__}: {str(error)[:160]}"
        return None
    try:
        return _mosaic(device, size, jax, jnp, profiler, pallas)
    except Exception as error:
        notes["mosaic"] = f"failed: {type(error).__name__}: {str(error)[:300]}"
        return None


def _mosaic(
    device: Device, size: int, jax: ModuleType, jnp: ModuleType, profiler: ModuleType, pallas: ModuleType
) -> dict[str, Any]:
    import duel
    from stepladder.runtime.bundle import Problem

    a, b = (jax.random.normal(jax.random.key(seed), (size, size), jnp.float16) for seed in range(2))
    expected = jnp.matmul(a, b, preferred_element_type=jnp.float32).block_until_ready()
    flops = 2 * size**3
    sides: Iterable[Any] = pallas.MatmulDimension
    timed: dict[str, float] = {}
    failed: dict[str, str] = {}
    kernels: dict[str, Callable] = {}
    for (tile_m, tile_n), width, side in itertools.product(MOSAIC_TILES, MOSAIC_WIDTHS, sides):
        name = f"{tile_m}x{tile_n}-g{width}-wg{side}"
        config = pallas.TuningConfig(
            tile_m=tile_m,
            tile_n=tile_n,
            tile_k=64,
            max_concurrent_steps=4,
            grid_minor_dim=pallas.MatmulDimension.N,
            grid_tile_width=width,
            wg_dimension=side,
        )
        kernel = functools.partial(pallas.matmul, config=config)
        try:
            product, milliseconds = profiler.measure(kernel, iterations=3)(a, b, None)
            error = float(jnp.abs(product.astype(jnp.float32) - expected).max() / jnp.abs(expected).max())
        except Exception as problem:  # tiles that do not fit
            failed[name] = f"{type(problem).__name__}: {str(problem)[:120]}"
            continue
        if error < 5e-3:
            timed[name], kernels[name] = flops / statistics.median(milliseconds) / 1e9, kernel
        else:
            failed[name] = f"error {error:.3g} of the largest element"
    if not timed:
        raise RuntimeError(f"no configuration runs: {failed}")
    best = max(timed, key=lambda name: timed[name])
    problem = Problem(size, size, size, "f16", "f16", "f32", "f16", False)
    with duel.Operands(device, problem) as operands:
        operands.fill_random()
        baseline = Runner(device, Contestant("cublas", flops, cublas(operands.buffers).enqueue))
        rates, ratios = [], []
        previous_rate = baseline.measure(MODES["burst"])["tflops"]
        for _ in range(MOSAIC_ROUNDS):
            milliseconds = profiler.measure(kernels[best], iterations=MOSAIC_ITERATIONS)(a, b, None)[1]
            next_rate = baseline.measure(MODES["burst"])["tflops"]
            rates.append(flops / statistics.median(milliseconds) / 1e9)
            ratios.append(2 * rates[-1] / (previous_rate + next_rate))
            previous_rate = next_rate
        baseline.free()
    return {"best": best, "tflops": rates, "ratios": ratios, "tried": timed, "failed": failed}
