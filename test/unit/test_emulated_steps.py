"""`run` without a GPU ends where the emulator takes more steps than `--backend auto` gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepladder import emulator
from stepladder.cli.main import main
from stepladder.payload.writing import matmul_text
from stepladder.runtime.errors import NOT_EXECUTED

pytestmark = pytest.mark.usefixtures("needs_ptxas")

_SUM = """func.func @f(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = arith.addf %x, %x : tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
"""


@pytest.mark.parametrize("text", [matmul_text(32, 32, 32), _SUM], ids=["matmul", "function"])
def test_what_takes_long_is_not_executed(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    payload, bundle = tmp_path / "payload.mlir", str(tmp_path / "bundle")
    payload.write_text(text)
    assert main(["compile", str(payload), "--target", "sm_80", "-o", bundle]) == 0
    monkeypatch.setenv("STEPLADDER_DEVICE", "99")
    monkeypatch.setattr(emulator, "EMULATED_STEPS", 20)
    assert main(["run", bundle]) == NOT_EXECUTED
    assert "note: stopped after 20 steps, at" in capsys.readouterr().err
