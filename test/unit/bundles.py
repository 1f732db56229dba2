"""What the tests of bundles share: changes of manifests, and what reading refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.errors import BAD_INPUT, StepladderError


def edit_manifest(path: Path, change: Callable[..., object]) -> None:
    file = path / "manifest.json"
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))


def change(path: str, value: Any) -> Callable[..., None]:  # noqa: ANN401
    """Returns a change of a manifest: `path` to the field, dotted, and its new value."""

    def apply(data: Any) -> None:  # noqa: ANN401
        *outer, last = [int(name) if name.isdigit() else name for name in path.split(".")]
        for name in outer:
            data = data[name]
        data[last] = value

    return apply


def refusal(path: Path) -> str:
    with pytest.raises(StepladderError) as caught:
        read_bundle(path)
    assert caught.value.status == BAD_INPUT
    return caught.value.render()
