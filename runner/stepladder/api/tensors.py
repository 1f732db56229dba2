"""Calls on tensors of PyTorch that a kernel was launched on before: nothing is checked twice.

The checks of a call depend on addresses, shapes, strides, element types and devices alone. A call where all of these
are known is looked up and launched.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stepladder.api.results import stream_of
from stepladder.api.views import torch_module

if TYPE_CHECKING:
    from stepladder.api.gpu import LoadedKernel

_KEPT = 4096


class KnownTensors:
    """The sets of tensors that a kernel was launched on.

    Args:
        dtype: name of the element type of a new result; None where the kernel needs `out`.
    """

    def __init__(self, dtype: str | None) -> None:
        self._dtype = dtype
        self._known: dict[object, tuple[LoadedKernel, tuple[int, ...]]] = {}
        self._lock = threading.Lock()

    def launch(self, arrays: Sequence[object], out: object, stream: object, shape: tuple[int, ...]) -> object | None:
        """Launches the kernel on tensors that are known.

        Args:
            arrays, out, stream: of the call.
            shape: of a new result.

        Returns:
            The result; None, and nothing is launched, where the tensors are not known.
        """
        torch: Any = torch_module()
        if torch is None or not self._known:
            return None
        tensors: list[Any] = list(arrays) if out is None else [*arrays, out]
        for tensor in tensors:
            if not is_plain(tensor, torch) or (tensor.requires_grad and torch.is_grad_enabled()):
                return None
        device = tensors[0].device
        made = out
        if out is None:
            if self._dtype is None or stream is not None or device.type != "cuda":
                return None
            made = torch.empty(shape, dtype=getattr(torch, self._dtype), device=device)
            tensors.append(made)
        found = self._known.get(_key(tensors))
        if found is None:
            return None
        loaded, addresses = found
        loaded.launch(addresses, stream_of(stream, device.index, made))
        return made

    def remember(self, arrays: Sequence[object], out: object, loaded: LoadedKernel, addresses: tuple[int, ...]) -> None:
        """Notes tensors that the kernel was launched on.

        Args:
            arrays: the inputs.
            out: C.
            loaded: the kernel on their GPU.
            addresses: what it was launched with.
        """
        torch: Any = torch_module()
        if torch is None or not arrays or not all(is_plain(item, torch) for item in (*arrays, out)):
            return
        with self._lock:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[_key([*arrays, out])] = loaded, addresses


def is_plain(array: object, torch: Any) -> bool:  # noqa: ANN401
    """Tells whether an array is a tensor of PyTorch's own classes."""
    kind = type(array)
    return kind is torch.Tensor or kind is torch.nn.Parameter


def _key(tensors: Sequence[Any]) -> object:
    """Returns all that the checks of a call depend on."""
    return tuple([(item.data_ptr(), item.shape, item.stride(), item.dtype, item.device) for item in tensors])
