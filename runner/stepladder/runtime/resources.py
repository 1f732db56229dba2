"""Where transform scripts and ready-made payloads are: in the wheel, or in the checkout the package runs from."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def transforms_dir() -> Path:
    """Returns the folder of the pipelines, with their steps in `steps/`."""
    installed = _PACKAGE / "transforms"
    return installed if installed.is_dir() else _PACKAGE.parents[1] / "transforms"


def payloads_dir() -> Path:
    """Returns the folder of the ready-made payloads."""
    return _PACKAGE / "payload" / "library"
