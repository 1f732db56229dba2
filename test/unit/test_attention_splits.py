"""Attentions of few queries: heads that share keys are rows of one tile, and clusters split the keys."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepladder
from exported_attention import exported, shared
from stepladder.runtime.bundle import read_any
from stepladder.runtime.errors import StepladderError
from test_attention import attention
from test_exported_attention import compiled, drawn, expected, stages


@pytest.mark.parametrize(
    ("queries", "keys", "depth", "element", "mask", "is_shared"),
    [
        (1, 200, 64, "f16", "", False),
        (1, 450, 128, "bf16", "added", False),
        (1, 70, 64, "bf16", "", True),
        (1, 1000, 64, "f16", "added", True),
        (3, 300, 128, "f16", "added", True),
        (70, 200, 64, "bf16", "", False),
        (150, 333, 64, "f16", "added", False),
        (2, 140, 64, "f16", "causal", True),
    ],
)
@pytest.mark.parametrize("device", ["emulator", pytest.param(0, marks=pytest.mark.gpu, id="GPU")])
@pytest.mark.usefixtures("needs_ptxas")
def test_numbers(
    device: str | int, queries: int, keys: int, depth: int, element: str, mask: str, is_shared: bool
) -> None:
    """With a row without keys in some splits, and one without any, which is zero."""
    text = (shared if is_shared else exported)(queries, keys, depth, element, mask)
    function = compiled(text, device)
    assert stages(function) == ["f_attention_0"]
    (launch,) = function.manifest.launches
    assert launch.kernel.cluster[0] > 1
    arrays = drawn(queries, keys, depth, element)
    arrays[3][-1, : keys - 10] = -np.inf
    if queries > 1:
        arrays[3][0] = -np.inf
    q, k, v, added = arrays
    if is_shared:
        k, v = k[:, :1], v[:, :1]
    got = np.asarray(function(q, k[:, 0], v[:, 0], added) if is_shared else function(*arrays))
    wanted = expected([q, k, v, added], mask)
    assert (got == wanted.astype(got.dtype)).mean() > 0.97
    assert np.abs(got.astype(np.float64) - wanted).max() <= np.abs(wanted).max() * float(ml_dtypes.finfo(got.dtype).eps)


@pytest.mark.usefixtures("needs_ptxas")
def test_keys_are_read_once_for_the_heads_that_share_them() -> None:
    """A block has the queries of both heads; without a cluster there is one block."""
    function = compiled(shared(1, 70, 64, "f16", ""))
    (launch,) = function.manifest.launches
    assert launch.kernel.grid[0] == launch.kernel.cluster[0] and launch.kernel.block == (128, 1, 1)


@pytest.mark.usefixtures("needs_ptxas")
def test_one_kernel_is_chosen_for_one_query() -> None:
    """Kernels of its products would multiply vectors, without matrix units."""
    function = stepladder.compile(exported(1, 3000), target="sm_90a", device="emulator")
    assert isinstance(function, stepladder.Function)
    assert stages(function) == ["f_attention_0"]
    function = stepladder.compile(exported(1, 3000), target="sm_80", device="emulator")
    assert isinstance(function, stepladder.Function)
    assert "f_attention_0" not in stages(function)


@pytest.mark.usefixtures("needs_ptxas")
def test_clusters_of_the_kernel_are_in_the_bundle(tmp_path: Path) -> None:
    """The manifest has a version of its own; a cluster that does not divide the grid is refused."""
    path = tmp_path / "attention.bundle"
    kernel = stepladder.compile(attention(1, 700), target="sm_90a", device="emulator", attention=True)
    assert isinstance(kernel, stepladder.Function)
    kernel.save(str(path))
    manifest = json.loads((path / "manifest.json").read_text())
    (launch,) = manifest["launches"]
    assert manifest["schema_version"] == 11 and launch["kernel"]["cluster"][0] > 1
    assert read_any(path).manifest.launches == kernel.manifest.launches
    launch["kernel"]["grid"][0] += 1
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StepladderError, match="grid' must be a multiple of the cluster"):
        read_any(path)
