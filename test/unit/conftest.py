"""What the unit tests share: bundles to start from, whether a GPU is there, and how random tests draw their examples.

Tests of random examples draw the same ones in every run. With STEPLADDER_TEST_PROFILE=random they draw new ones, ten
times as many; pytest's option --hypothesis-seed=N then repeats a run.
"""

import gc
import math
import os
import signal
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

# Tests run side by side, a process a core: NumPy's threads would only be in each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No test reads or writes the user's tuning database.
os.environ["STEPLADDER_TUNING_DATABASE"] = os.path.join(tempfile.gettempdir(), "stepladder-none", "tuning.json")

# Knobs are chosen alike on all machines.
os.environ["STEPLADDER_GPU"] = "h200"

# A shell without job control starts what runs in the background with SIGINT ignored, and tests interrupt processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests run from a checkout too that is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runner"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "inputs"))

from stepladder.runtime.bundle import (
    Argument,
    Manifest,
    Problem,
    TmaDescriptor,
    write_bundle,
)
from stepladder.runtime.errors import StepladderError

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import WorkStealingScheduling

# How many times its own number of examples a test draws, by profile.
PROFILES = {"repeatable": 1, "random": 10}
PROFILE = os.environ.get("STEPLADDER_TEST_PROFILE") or "repeatable"
DEFAULT_EXAMPLES = 100


def examples(count: int) -> int:
    """Returns how many examples a test draws that draws `count` of them in the profile `repeatable`."""
    return count * PROFILES[PROFILE]


if PROFILE not in PROFILES:
    raise pytest.UsageError(f"STEPLADDER_TEST_PROFILE must be one of {', '.join(PROFILES)}, got '{PROFILE}'")
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("random", derandomize=False, max_examples=examples(DEFAULT_EXAMPLES), print_blob=True)
settings.load_profile(PROFILE)


def gpu_is_missing() -> str:
    """Returns why no kernel can run here, or an empty string."""
    from stepladder.runtime.device import Device

    try:
        with Device():
            return ""
    except StepladderError as error:
        return error.message


NO_GPU = gpu_is_missing()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(reason=f"needs an NVIDIA GPU: {NO_GPU}")
    for item in items:
        if NO_GPU and item.get_closest_marker("gpu") is not None:
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Keeps what was imported and collected out of garbage collection: full ones would search it again and again.

    The rest is searched less often than by default: tests leave little garbage in cycles, and many objects to search.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20 * gc.get_threshold()[0], *gc.get_threshold()[1:])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "WorkStealingScheduling":
    """Idle workers take over tests of busy ones: a few tests take as long as a hundred others."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: runs on an NVIDIA GPU")


def make_problem(
    m: int = 64,
    n: int = 64,
    k: int = 64,
    acc_type: str = "f32",
    c_type: str = "f32",
    accumulate: bool = True,
    inputs: str = "f16",
    **fields: str | int | bool,
) -> Problem:
    """A problem of f16 or other `inputs`; `fields` are further ones of Problem: layouts and the products' type."""
    return Problem(m, n, k, inputs, inputs, acc_type, c_type, accumulate, **fields)


def make_manifest(problem: Problem | None = None, **changes: str | int | bool | tuple[object, ...]) -> Manifest:
    problem = problem or make_problem()
    arguments = (
        Argument("arg0", "c", problem.c_type, problem.c_shape, "readwrite" if problem.accumulate else "write"),
        Argument("arg1", "a", problem.a_type, problem.a_shape, "read"),
        Argument("arg2", "b", problem.b_type, problem.b_shape, "read"),
    )
    fields = {
        "kernel_name": "matmul",
        "target": "sm_80",
        "arguments": arguments,
        "problem": problem,
        "grid": (1, 64, 1),
        "block": (64, 1, 1),
        "static_shared_memory": 0,
        "dynamic_shared_memory": 0,
        "registers": 32,
        "spills": {"stores": 0, "loads": 0},
        "pipeline": "wmma",
        "steps": ("tile_to_blocks", "lower_to_nvvm"),
        "without": ("pad_shared_memory",),
        "knobs": {"block_m": 128, "prefetch": "register"},
        "tool_versions": {"ptxas": "13.0.88"},
    }
    return Manifest(**(fields | changes))


def make_descriptor(
    role: str, shape: tuple[int, ...], element_type: str = "f16", **changes: str | tuple[object, ...]
) -> TmaDescriptor:
    """A descriptor of a dense row-major buffer, with boxes of up to 64 x 64 elements; `changes` are its fields."""
    size = 4 if element_type.endswith("32") else 2 if element_type.endswith("16") else 1
    strides = [math.prod(shape[number:]) * size for number in range(1, len(shape))]
    fields = {
        "strides": tuple(strides),
        "box": tuple(min(extent, 64) for extent in shape),
        "element_strides": (1,) * len(shape),
    }
    return TmaDescriptor(role, element_type, tuple(shape), **fields | changes)


@pytest.fixture(scope="session", autouse=True)
def llvm_server() -> None:
    """LLVM's back end is loaded once."""
    import back_end

    back_end.use()


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes packages unimportable."""

    def remove(*names: str) -> None:
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return remove


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "matmul.bundle"
    write_bundle(path, make_manifest(), b"\x7fELF cubin", ".version 8.0\n", {"00-input.mlir": "module {}\n"})
    return path


@pytest.fixture
def tma_bundle(tmp_path: Path) -> Path:
    """B by its descriptor, then C by a pointer and A by its descriptor."""
    arguments = (
        Argument("B", "b", "f16", (64, 64), "read", 1),
        Argument("C", "c", "f32", (64, 64), "readwrite"),
        Argument("A", "a", "f16", (64, 64), "read", 0),
    )
    descriptors = (
        make_descriptor("a", (64, 64), swizzle="128b", l2_promotion="256b"),
        make_descriptor("b", (64, 64), oob_fill="nan"),
    )
    path = tmp_path / "tma.bundle"
    write_bundle(
        path,
        make_manifest(
            arguments=arguments, tma_descriptors=descriptors, cluster=(1, 2, 1), dependent_launch=True, target="sm_90a"
        ),
        b"",
        "",
        {},
    )
    return path


@pytest.fixture(scope="module")
def needs_ptxas() -> None:
    """Skips the tests of a module where ptxas is not installed."""
    from stepladder.pipeline.codegen import toolchain

    try:
        toolchain.find_tool("ptxas")
    except StepladderError as error:
        pytest.skip(error.message)


@pytest.fixture(scope="module")
def torch(needs_ptxas: None) -> ModuleType:
    """PyTorch, with a seed."""
    import torch

    torch.manual_seed(0)
    return torch


def some_steps(*case: object) -> Callable[[int], bool]:
    """Returns whether the IR of a step is executed, by its index: that of one of three, by a hash of the case, so that
    cases which are alike share the steps; in the profile `random`, that of each."""
    first = zlib.crc32(repr(case).encode())
    return lambda number: PROFILE == "random" or (number + first) % 3 == 0


def assert_right_at_some_steps(text: str, pipeline: str, knobs: dict[str, bool | int | str]) -> None:
    """Compiles a payload, and executes the IR after some steps on the emulator, which knows that of most.

    Args:
        text: the payload; `pipeline`, `knobs`: that it is compiled by.
    """
    from stepladder.emulator.matmul import check_steps
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request

    reports = []
    with mlir_context():
        request = Request(pipeline, knobs)
        check_steps(text, "payload.mlir", request, reports.append, is_chosen_step=some_steps(text, pipeline, knobs))
    assert [report.step for report in reports if report.passed is False] == []
    assert sum(report.passed is True for report in reports) * 2 > len(reports)
