"""Paths of resources: transform scripts and payloads, in the wheel or in the checkout, and the cache."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def transforms_dir() -> Path:
    """Returns the folder of the pipelines, with their steps in `steps/`."""
    installed = _PACKAGE / "transforms"
    return installed if installed.is_dir() else _PACKAGE.parents[1] / "transforms"


def payloads_dir() -> Path:
    """Returns the folder of the ready-made payloads."""
    return _PACKAGE / "payload" / "library"


def cache_dir() -> Path:
    """Returns the folder of what can be made anew: STEPLADDER_CACHE_DIR, else `stepladder` in the user's cache."""
    return Path(
        os.environ.get("STEPLADDER_CACHE_DIR")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepladder"
    )
