"""CUDA graphs of calls that benchmarks time beside PyTorch's, by a stand-in for PyTorch."""

import contextlib
import gc
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="not a checkout")
sys.path.insert(0, str(BENCHMARKS))


def test_a_graph_keeps_the_arrays_of_its_call() -> None:
    """Memory of an array that nothing refers to goes back to the driver with the capture of the next graph."""
    from torch_rounds import captured

    replays = []
    graph = SimpleNamespace(replay=lambda: replays.append(None))
    cuda = SimpleNamespace(
        Stream=object,
        stream=contextlib.nullcontext,
        synchronize=lambda: None,
        CUDAGraph=lambda: graph,
        graph=contextlib.nullcontext,
    )
    array = np.zeros(4)
    seen = weakref.ref(array)
    replay = captured(SimpleNamespace(cuda=cuda), lambda array=array: array.fill(1))
    del array
    gc.collect()
    assert replay is not None and seen() is not None
    replay()
    assert len(replays) == 1
    del replay
    gc.collect()
    assert seen() is None
