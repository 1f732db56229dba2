"""Paths of resources: transform scripts and payloads, in the wheel or in the checkout, and the cache."""

from __future__ import annotations

import os
from pathlib import Path

from stepladder.runtime.errors import StepladderError

_PACKAGE = Path(__file__).resolve().parents[1]


def transforms_dir() -> Path:
    """Returns the folder of the pipelines, with their steps in `steps/`."""
    folder = _PACKAGE / "transforms"
    return folder if folder.is_dir() else _PACKAGE.parents[1] / "transforms"


def pipeline_names() -> list[str]:
    """Returns the names of the pipelines that come with the package."""
    return sorted(path.stem for path in transforms_dir().glob("*.mlir"))


def payloads_dir() -> Path:
    """Returns the folder of the ready-made payloads."""
    return _PACKAGE / "payload" / "library"


def user_dir(variable: str, default: str) -> Path:
    """Returns the package's folder among a user's files of one kind.

    Args:
        variable: of the environment, which names the folder of all packages: XDG_CACHE_HOME, XDG_DATA_HOME.
        default: that folder in the user's home, where the variable is not set.

    Raises:
        StepladderError: the variable is not set, and the user has no home folder.
    """
    if folder := os.environ.get(variable):
        return Path(folder) / "stepladder"
    try:
        return Path.home() / default / "stepladder"
    except RuntimeError:
        raise StepladderError(
            "the user has no home folder: HOME is not set, and the system does not know the user",
            notes=[f"set HOME, or {variable}"],
        ) from None


def cache_dir() -> Path:
    """Returns the folder of what can be made anew: STEPLADDER_CACHE_DIR, else `stepladder` in the user's cache.

    Raises:
        StepladderError: as `user_dir`.
    """
    folder = os.environ.get("STEPLADDER_CACHE_DIR")
    return Path(folder) if folder else user_dir("XDG_CACHE_HOME", ".cache")
