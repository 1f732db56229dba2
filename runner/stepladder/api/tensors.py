"""Calls on tensors of PyTorch that a kernel or a function was launched on before: nothing is checked twice.

The checks of a call depend on addresses, shapes, strides, element types and devices alone. A call where all of these
are known is looked up and launched.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

from stepladder.api.results import stream_of
from stepladder.api.views import torch_module

_KEPT = 4096


class Loaded(Protocol):
    """A kernel or a function on a GPU."""

    def launch(self, addresses: tuple[int, ...], stream: int) -> None:
        """Enqueues it on buffers at these addresses.

        Args:
            addresses: of the operands, in the order of the manifest.
            stream: its handle.
        """


class KnownTensors:
    """The sets of tensors that a kernel or a function was launched on.

    Args:
        dtypes: names of the element types of new results, in order; None where `out` is needed.
    """

    def __init__(self, dtypes: Sequence[str] | None) -> None:
        self._dtypes = dtypes
        self._known: dict[object, tuple[Loaded, tuple[int, ...]]] = {}
        self._lock = threading.Lock()

    def launch(
        self, arrays: Sequence[object], outs: Sequence[object] | None, stream: object, shapes: Sequence[tuple[int, ...]]
    ) -> Sequence[object] | None:
        """Launches on tensors that are known.

        Args:
            arrays, stream: of the call.
            outs: the results that are given; None for new ones.
            shapes: of new results.

        Returns:
            The results; None, and nothing is launched, where the tensors are not known.
        """
        torch: Any = torch_module()
        if torch is None or not self._known:
            return None
        tensors: list[Any] = list(arrays) if outs is None else [*arrays, *outs]
        records = torch.is_grad_enabled()
        for tensor in tensors:
            if not is_plain(tensor, torch) or (records and tensor.requires_grad):
                return None
        device = tensors[0].device
        made = outs
        if made is None:
            if self._dtypes is None or stream is not None or device.type != "cuda":
                return None
            made = [
                torch.empty(shape, dtype=getattr(torch, dtype), device=device)
                for shape, dtype in zip(shapes, self._dtypes)
            ]
            tensors += made
        found = self._known.get(_key(tensors))
        if found is None:
            return None
        loaded, addresses = found
        loaded.launch(addresses, stream_of(stream, device.index, made[0]))
        return made

    def remember(
        self, arrays: Sequence[object], outs: Sequence[object], loaded: Loaded, addresses: tuple[int, ...]
    ) -> None:
        """Notes tensors that were launched on.

        Args:
            arrays: the inputs.
            outs: the results.
            loaded: the kernel or the function on their GPU.
            addresses: what it was launched with.
        """
        torch: Any = torch_module()
        if torch is None or not arrays or not all(is_plain(item, torch) for item in (*arrays, *outs)):
            return
        with self._lock:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[_key([*arrays, *outs])] = loaded, addresses


def is_plain(array: object, torch: Any) -> bool:  # noqa: ANN401
    """Tells whether an array is a tensor of PyTorch's own classes.

    Args:
        array: of any type.
        torch: the module.
    """
    kind = type(array)
    return kind is torch.Tensor or kind is torch.nn.Parameter


def _key(tensors: Sequence[Any]) -> object:
    """Returns all that the checks of a call depend on."""
    return tuple([(item.data_ptr(), item.shape, item.stride(), item.dtype, item.device) for item in tensors])
