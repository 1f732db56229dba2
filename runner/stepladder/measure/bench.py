"""Benchmarks of bundles, cuBLAS and the ceiling of `mma.sync`, in one process, on the same random data."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import numpy as np

from stepladder.measure.baselines import cublas, refuse_unsupported, sums_in_tensor_core
from stepladder.measure.ceiling import find_instruction, measure_ceiling
from stepladder.measure.power import NOTE, Monitor, find_monitor
from stepladder.measure.report import describe_bundle
from stepladder.measure.rotation import CACHES, copies_of, in_turn, operand_bytes, repeated
from stepladder.measure.timing import REFERENCES, Contestant, measure_rounds
from stepladder.runtime.bundle import Bundle, Problem
from stepladder.runtime.device import Device
from stepladder.runtime.element_types import element_type
from stepladder.runtime.errors import FAILED, StepladderError
from stepladder.runtime.kernel import Kernel
from stepladder.runtime.launch import DeviceExecutor, MatmulBuffers
from stepladder.runtime.reference import Program, matmul_program
from stepladder.verify.check import check_exact
from stepladder.verify.inputs import INTEGER_C, further_inputs, integer_range, random_inputs

SCHEMA_VERSION = 1
MINIMUM_ROUNDS = 7
SEED = 0

# C = AB + C in place grows with every launch. C is reset before it leaves this range (of f16), also where C is f32, so
# that all types are timed on similar data.
LARGEST_C = 30000.0
# i32 accumulators must not wrap.
LARGEST_INTEGER_C = float(2**31 - 1 - INTEGER_C)
# The baseline's computation if elementwise ops follow the product.
MATMUL_ALONE = "the matmul alone, without the elementwise ops around it"
# How many standard deviations the largest element of a large matrix has.
LARGEST_NORMAL = 6.0

# Enqueues a kernel.
Launch = Callable[[], object]


def bench_bundles(
    bundles: Sequence[Bundle],
    *,
    baseline: str = "cublas",
    ceiling: bool = False,
    modes: Sequence[str] = ("burst",),
    rounds: int = MINIMUM_ROUNDS,
    check: bool = True,
    rotate: bool = False,
    keeps_early: bool = True,
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """Measures bundles of one problem against a baseline, on the GPU.

    Args:
        bundles: kernels for the same problem; they share the buffers.
        baseline: `cublas` or `none`.
        ceiling: whether to measure the ceiling of `mma.sync` too, in the same rounds.
        modes: names of `timing.MODES`.
        rounds: at least MINIMUM_ROUNDS.
        check: whether to run the exact check first: on every kernel, against its bundle's reference program, and on the
            baseline, against the problem.
        rotate: whether launches go through copies of all operands of more than twice the L2 cache together.
        keeps_early: whether kernels may start while the launch before ends that load weights before they wait for it:
            no launch here writes weights.
        command: the command line, for the result.

    Returns:
        The result, as JSON data: date, GPU (`card`), problem, bundles, and under `modes` what `measure_rounds` returns.

    Raises:
        StepladderError: the problems differ, or their types have no baseline or ceiling (status BAD_INPUT); a kernel
            fails the exact check (FAILED); there is no GPU (NOT_EXECUTED).
    """
    problem = _one_problem(bundles)
    if rounds < MINIMUM_ROUNDS:
        raise StepladderError(f"at least {MINIMUM_ROUNDS} rounds are needed for a median with a spread, got {rounds}")
    by_name = dict(zip(_unique_names(bundles), bundles, strict=True))
    # Before the GPU is opened.
    if baseline == "cublas":
        refuse_unsupported(problem)
    if ceiling:
        find_instruction(_compute_type(problem), problem.acc_type)
    with Device() as device, ExitStack() as stack:
        card = device.describe()
        count = copies_of(problem, card["l2_bytes"]) if rotate else 1
        copies = [stack.enter_context(MatmulBuffers(device, problem)) for _ in range(count)]
        result: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "command": list(command),
            "card": card,
            "problem": asdict(problem),
            "rounds": rounds,
            "checked": check,
            **({} if keeps_early else {"written_weights": True}),
        }
        launches, result["bundles"] = _load(device, by_name, copies, check=check, keeps_early=keeps_early)
        if rotate:
            result["rotation"] = _rotation(problem, count, card["l2_bytes"])
        operands = copies
        if baseline == "cublas":
            # Where elementwise ops make A or B, the library multiplies matrices like those that they make.
            if problem.is_prepared:
                operands = [stack.enter_context(MatmulBuffers(device, problem.alone)) for _ in copies]
            fast_accum = sums_in_tensor_core(bundles)
            launches["cublas"], result["baseline"] = _cublas(problem, operands, fast_accum=fast_accum, check=check)
        resets = [prepare_data(buffers, bundles[0].constants()) for buffers in copies]
        resets += [prepare_data(buffers) for buffers in operands if buffers not in copies]
        restore, restore_every = _reset_all(resets, count)
        contestants = [
            Contestant(name, problem.flops, in_turn(of_copies), restore, restore_every, count)
            for name, of_copies in launches.items()
        ]
        if ceiling:
            contestant, result["ceiling"] = _ceiling(device, problem)
            contestants.append(contestant)
        monitor = None
        if "sustained" in modes:
            monitor, result["power"] = _monitor(device)
        result["modes"] = measure_rounds(device, contestants, modes, rounds, progress=_say, monitor=monitor)
    return result


def _load(
    device: Device, bundles: Mapping[str, Bundle], copies: Sequence[MatmulBuffers], *, check: bool, keeps_early: bool
) -> tuple[dict[str, list[Launch]], dict[str, dict[str, Any]]]:
    """Loads kernels and, with `check`, runs the exact check of each. Returns the functions that launch each one on each
    copy of the operands, and what a result says of the kernels, by name."""
    launches: dict[str, list[Launch]] = {}
    descriptions: dict[str, dict[str, Any]] = {}
    for name, bundle in bundles.items():
        kernel = device.load(bundle)
        launches[name] = [buffers.launcher(kernel, bundle, keeps_early=keeps_early) for buffers in copies]
        descriptions[name] = describe_bundle(bundle) | _loaded(kernel)
        if check:
            _require_exact(name, copies[0], launches[name][0], bundle.expected(), bundle.manifest.problem)
    return launches, descriptions


def _loaded(kernel: Kernel) -> dict[str, Any]:
    """Returns what a result says of a loaded kernel."""
    return {
        "image": kernel.source,
        "loaded_registers": kernel.registers,
        "loaded_local_memory": kernel.local_memory,
    }


def _ceiling(device: Device, problem: Problem) -> tuple[Contestant, dict[str, Any]]:
    """Returns the fastest loop of `mma.sync` as a contestant, and its description in a result."""
    limit = measure_ceiling(device, problem.acc_type, _compute_type(problem))
    description = {
        "name": "ceiling",
        "warps": limit.warps,
        "tflops": limit.tflops,
        "tflops_by_warps": {str(warps): rate for warps, rate in limit.tflops_by_warps.items()},
    }
    return Contestant("ceiling", limit.flops, limit.enqueue), description


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _one_problem(bundles: Sequence[Bundle]) -> Problem:
    """Returns the problem of all bundles. Raises StepladderError where there are several."""
    problem = bundles[0].manifest.problem
    for bundle in bundles[1:]:
        if bundle.manifest.problem != problem:
            raise StepladderError(
                f"bundles of one measurement must be of one problem: '{bundles[0].path}' is "
                f"{problem.describe()}, '{bundle.path}' is {bundle.manifest.problem.describe()}"
            )
    return problem


def _rotation(problem: Problem, copies: int, l2_bytes: int) -> dict[str, int]:
    """Returns how the operands are rotated, for a result; prints a note where the copies fit in two L2 caches."""
    size = copies * operand_bytes(problem)
    if size <= CACHES * l2_bytes:
        _say(f"note: {copies} copies of the operands fit in the L2 cache twice")
    return {"copies": copies, "bytes": size}


def _monitor(device: Device) -> tuple[Monitor | None, dict[str, str | None]]:
    """Returns what reads the clock and the power of the GPU, None where nothing does, and its description."""
    monitor = find_monitor(device.bus_id)
    if monitor is None:
        _say(f"note: {NOTE}")
    return monitor, {"source": monitor.source if monitor is not None else None}


def _cublas(
    problem: Problem, operands: Sequence[MatmulBuffers], *, fast_accum: bool, check: bool
) -> tuple[list[Launch], dict[str, str]]:
    """Returns functions that enqueue the library's products of each copy of the operands, and its description; with
    `check`, it passes the exact check first."""
    libraries = [cublas(buffers, fast_accum=fast_accum) for buffers in operands]
    description = {"name": "cublas", "provider": libraries[0].provider}
    if problem.has_epilogue or problem.is_prepared:
        description["computes"] = MATMUL_ALONE
        _say(f"note: cublas computes {MATMUL_ALONE}")
    # Once for each product of a pair: on B again, which takes as long.
    launches = [repeated(library.enqueue, problem.products) for library in libraries]
    if check:
        _require_exact("cublas", operands[0], launches[0], matmul_program(problem.alone), problem.alone)
    return launches, description


Reset = tuple[Callable[[], None] | None, int | None]


def _reset_all(resets: Sequence[Reset], copies: int) -> Reset:
    """Combines the resets of all copies of the operands, which the launches use in turn; see `prepare_data`."""
    functions = [reset for reset, _ in resets if reset is not None]
    period = resets[0][1]

    def restore() -> None:
        for reset in functions:
            reset()

    return restore if functions else None, None if period is None else period * copies


def by_problem(bundles: Sequence[Bundle]) -> list[list[Bundle]]:
    """Returns bundles in groups of one problem, in the order of the first of each group.

    Args:
        bundles: in any order.
    """
    groups: dict[Problem, list[Bundle]] = {}
    for bundle in bundles:
        groups.setdefault(bundle.manifest.problem, []).append(bundle)
    return list(groups.values())


def _unique_names(bundles: Sequence[Bundle]) -> list[str]:
    """Names bundles by their folders, or by their paths where folders share a name."""
    folders = [bundle.path.resolve().name for bundle in bundles]
    names = folders if len(set(folders)) == len(folders) else [str(bundle.path) for bundle in bundles]
    if len(set(names)) != len(names) or set(REFERENCES) & set(names):
        raise StepladderError(
            "bundles of one measurement need different names, other than 'cublas' and 'ceiling'; got "
            + ", ".join(names)
        )
    return names


def _compute_type(problem: Problem) -> str:
    return problem.compute_type or problem.a_type


def _require_exact(name: str, buffers: MatmulBuffers, enqueue: Launch, reference: Program, problem: Problem) -> None:
    """Raises StepladderError with status FAILED if a kernel fails the exact check of a problem."""
    report = check_exact(problem, reference, DeviceExecutor(buffers, enqueue), SEED, buffers.device.ordinal)
    _say(f"{name}: {report.describe()}")
    if not report.passed:
        raise StepladderError(
            f"kernel '{name}' fails the exact check and is not timed: {report.describe()}",
            status=FAILED,
            notes=["--no-check skips the check"],
        )


def prepare_data(buffers: MatmulBuffers, constants: Mapping[str, np.ndarray] | None = None) -> Reset:
    """Fills the operands with random data (`check.random_inputs`), or with the payload's constants, by role.

    Args:
        buffers: of the operands, on the GPU; their content is replaced.
        constants: arrays by role; None for none.

    Returns:
        A function that enqueues the reset of C, and the most launches between two resets; None for both where launches
        do not change their inputs.
    """
    problem = buffers.problem
    a, b, c = random_inputs(problem, SEED)
    weights = constants or {}
    buffers.a.upload(weights.get("a", a))
    buffers.b.upload(weights.get("a" if problem.b_is_a else "b", b))
    buffers.c.upload(c)
    for buffer, array in zip(buffers.further, further_inputs(problem, SEED)):
        buffer.upload(array)
    if not problem.accumulate:
        return None, None
    original = buffers.device.allocate(buffers.c.size)
    original.upload(c)
    return lambda: buffers.c.copy_from(original), launches_before_restore(problem)


def launches_before_restore(problem: Problem) -> int:
    """Returns how many launches of C = AB + C keep C in its range on random inputs; at least 1.

    Where elementwise ops compute C from C, nothing is known of two launches: 1.

    Args:
        problem: which reads C.
    """
    if problem.has_epilogue:
        return 1
    if element_type(problem.acc_type).is_integer:
        # The variance of integers from -r to r - 1 is r^2 / 3.
        limit, variance = LARGEST_INTEGER_C, integer_range(problem) ** 2 / 3
    else:
        limit, variance = LARGEST_C, 1.0
    # One launch adds a product whose elements have the standard deviation sqrt(K), times the variance of A's and B's.
    return max(1, int(limit / (LARGEST_NORMAL * math.sqrt(problem.k) * variance)))
