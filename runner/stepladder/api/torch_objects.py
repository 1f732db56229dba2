"""What a module changes in objects that are no modules, such as the counters of a cache, while it is traced.

A graph has no such changes: it has the numbers of its trace in each call. PyTorch is an optional package; this module
imports it.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch  # pyright: ignore[reportMissingImports]

from stepladder.api.torch_sources import CALLABLES, captured
from stepladder.runtime.errors import StepladderError

_MOST = 20_000  # objects that are searched
_PLAIN = (str, bytes, int, float, complex, type, types.ModuleType, torch.nn.Module, torch.dtype, torch.device)
_OF_MODULES = frozenset(vars(torch.nn.Module()))


class Objects:
    """The numbers and tensors in the objects that a module refers to.

    Args:
        module: the module.
        inputs: what it is called with, whose containers may hold objects.
    """

    def __init__(self, module: torch.nn.Module, inputs: object) -> None:
        self._found: list[tuple[str, Any, Any, Any]] = []  # name, container, key, value
        self._containers: set[int] = set()
        self._search(module, inputs)

    def check(self) -> None:
        """Refuses changes of numbers, and of tensors by others, and undoes them.

        Raises:
            StepladderError: names the first one.
        """
        changed = [item for item in self._found if _is_changed(item[3], _items(item[1]).get(item[2], item[3]))]
        if not changed:
            return
        name, container, key, value = changed[0]
        new_value = _items(container)[key]
        self.restore()
        if isinstance(new_value, torch.Tensor):
            raise StepladderError(
                f"the module replaces '{name}' of an object that is no module by another tensor",
                notes=["accepted: a cache whose tensors exist before (early_initialization), and writes to these"],
            )
        raise StepladderError(
            f"the module changes '{name}' of an object that is no module from {value!r} to {new_value!r}, and a "
            "compiled module would have the number of the first call in each one",
            notes=[
                "accepted: a tensor that is written in place, such as the positions of a static cache without a "
                "sliding window"
            ],
        )

    def restore(self) -> None:
        """Undoes what a trace changed."""
        for _, container, key, value in self._found:
            items = _items(container)
            if key in items and items[key] is not value:
                items[key] = value

    def _search(self, module: torch.nn.Module, inputs: object) -> None:
        pending: list[tuple[str, Any]] = [("input", inputs)]
        for name, item in module.named_modules():
            ahead = f"{name}." if name else ""
            pending += [(f"{ahead}{key}", value) for key, value in vars(item).items() if key not in _OF_MODULES]
        while pending and len(self._containers) < _MOST:
            name, item = pending.pop()
            if isinstance(item, (*_PLAIN, torch.Tensor)) or item is None or id(item) in self._containers:
                continue
            self._containers.add(id(item))
            for label, key, value in _parts(name, item):
                if key is not None and (value is None or isinstance(value, (int, float, torch.Tensor))):
                    self._found.append((label, item, key, value))
                pending.append((label, value))


def _parts(name: str, item: Any) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401
    """Yields the names, the keys and the values of the parts of an object; keys are None where they do not change."""
    if isinstance(item, CALLABLES):
        yield from ((label, None, value) for label, value in captured(item) if not isinstance(value, CALLABLES))
    elif isinstance(item, (tuple, list, set, frozenset)):
        is_list = isinstance(item, list)
        yield from ((f"{name}[{key}]", key if is_list else None, value) for key, value in enumerate(item))
    elif isinstance(item, dict):
        yield from ((f"{name}[{key!r}]", key, value) for key, value in item.items())
    elif hasattr(item, "__dict__"):
        yield from ((f"{name}.{key}", key, value) for key, value in vars(item).items())


def _items(container: Any) -> Any:  # noqa: ANN401
    """Returns the parts of a container by key, which are those that it has when they are set."""
    if isinstance(container, list):
        return _Numbered(container)
    return container if isinstance(container, dict) else vars(container)


class _Numbered:
    """A list with the interface of a dictionary."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __contains__(self, key: int) -> bool:
        return key < len(self._values)

    def __getitem__(self, key: int) -> Any:  # noqa: ANN401
        return self._values[key]

    def __setitem__(self, key: int, value: Any) -> None:  # noqa: ANN401
        self._values[key] = value

    def get(self, key: int, default: Any) -> Any:  # noqa: ANN401
        """Returns a part, or another value where there is none.

        Args:
            key: its number.
            default: the other value.
        """
        return self._values[key] if key in self else default


def _is_changed(value: Any, new_value: Any) -> bool:  # noqa: ANN401
    """Returns whether a number is another one, or a tensor is in place of another one or of none."""
    if isinstance(new_value, torch.Tensor):
        return new_value is not value
    numbers = isinstance(value, (int, float)) and isinstance(new_value, (int, float))
    return numbers and value != new_value and not (value != value and new_value != new_value)
