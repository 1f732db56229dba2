"""Calls on tensors of PyTorch that a kernel or a function was launched on before: nothing is checked twice.

The checks of a call depend on addresses, shapes, strides, element types and devices alone. A call where all of these
are known is looked up and launched: by one comparison with tensors that were accepted before, then by addresses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from stepladder.api.known_arrays import KnownArrays, Loaded
from stepladder.api.results import stream_of
from stepladder.api.views import torch_module

# Sets of addresses and streams that are kept for tensors of one form, and forms of a kernel or a function.
_KEPT = 4096
_FORMS = 16


class _Known:
    """Tensors of one form that were launched on: their classes, shapes, strides, element types and device.

    Args:
        torch: the module.
        tensors: the inputs, and results that a call gives.
        made: results that a call makes.

    Attributes:
        is_same: tells whether tensors are of this form.
        launches: what enqueues, by the stream and addresses.
        device: ordinal of their GPU.
        needs_gradient: whether one of them does, so that a call is refused where gradients are recorded.
        allocate: functions that return a new tensor each, for the results.
        address, stream, records: PyTorch's functions: the address of a tensor, the handle of the current stream of a
            GPU, and whether gradients are recorded.
    """

    def __init__(self, torch: Any, tensors: Sequence[Any], allocated: Sequence[Any]) -> None:  # noqa: ANN401
        self.is_same = _comparison(torch, tensors)
        self.launches: dict[tuple[int, ...], Callable[[], None]] = {}
        self.device: int = tensors[0].device.index
        self.needs_gradient = any(tensor.requires_grad for tensor in tensors)
        self.allocate = [_allocation(torch, tensor) for tensor in allocated]
        self.address: Callable[[Any], int] = torch.Tensor.data_ptr
        self.stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", None) or _current_stream
        self.records: Callable[[], bool] = torch.is_grad_enabled


class KnownTensors:
    """The sets of tensors that a kernel or a function was launched on."""

    def __init__(self) -> None:
        # By the number of tensors that a call gives, of calls that give the results and of calls that do not.
        self._given: dict[int, list[_Known]] = {}
        self._allocated: dict[int, list[_Known]] = {}
        self._others = KnownArrays()
        self._lock = threading.Lock()

    def launch(
        self, arrays: tuple[object, ...], outs: tuple[object, ...] | None, stream: object
    ) -> Sequence[object] | None:
        """Launches on tensors that are known.

        Args:
            arrays, stream: of the call.
            outs: the results that are given; None for new ones.

        Returns:
            The results; None, and nothing is launched, where the tensors are not known.
        """
        forms, tensors = (self._allocated, arrays) if outs is None else (self._given, arrays + outs)
        for known in forms.get(len(tensors), ()):
            if known.is_same(*tensors):
                break
        else:
            return self._others.launch(arrays, outs, stream)
        if known.needs_gradient and known.records():
            return None
        if outs is None:
            if stream is not None:
                return None
            outs = tuple([allocate() for allocate in known.allocate])
            tensors += outs
        handle = known.stream(known.device) if stream is None else stream_of(stream)
        launch = known.launches.get((handle, *map(known.address, tensors)))
        if launch is None:
            return None
        launch()
        return outs

    def remember(
        self,
        arrays: Sequence[object],
        outs: Sequence[object],
        is_new: bool,
        loaded: Loaded,
        addresses: tuple[int, ...],
        stream: int,
    ) -> None:
        """Notes tensors that were launched on.

        Args:
            arrays: the inputs.
            outs: the results.
            is_new: whether the call made the results.
            loaded: the kernel or the function on their GPU.
            addresses, stream: what it was launched with.
        """
        torch: Any = torch_module()
        if not arrays:
            return
        if torch is None or not all(is_plain(item, torch) for item in (*arrays, *outs)):
            self._others.remember(arrays, outs, is_new, loaded, addresses, stream)
            return
        arguments: list[Any] = [*arrays] if is_new else [*arrays, *outs]
        tensors: list[Any] = [*arrays, *outs]
        with self._lock:
            forms = (self._allocated if is_new else self._given).setdefault(len(arguments), [])
            known = next((item for item in forms if item.is_same(*arguments)), None)
            if known is None:
                known = _Known(torch, arguments, outs if is_new else ())
                forms[:] = [known, *forms[: _FORMS - 1]]
            if len(known.launches) >= _KEPT:
                known.launches.clear()
            known.launches[(stream, *map(known.address, tensors))] = loaded.launcher(addresses, stream)


def is_plain(array: object, torch: Any) -> bool:  # noqa: ANN401
    """Returns whether an array is a tensor of PyTorch's own classes.

    Args:
        array: of any type.
        torch: the module.
    """
    kind = type(array)
    return kind is torch.Tensor or kind is torch.nn.Parameter


def _guards(torch: Any) -> Any:  # noqa: ANN401
    """Returns the module of PyTorch with what the guards of its compiler are made of; None where there is none."""
    return getattr(getattr(torch._C, "_dynamo", None), "guards", None)


def _current_stream(device: int) -> int:
    return torch_module().cuda.current_stream(device).cuda_stream


def _allocation(torch: Any, like: Any) -> Callable[[], Any]:  # noqa: ANN401
    """Returns a function that returns a new tensor of the form of another one."""
    shape, strides, dtype, device = tuple(like.shape), like.stride(), like.dtype, like.device
    # As the code of PyTorch's compiler allocates: on the current GPU, without the objects of its Python interface.
    fast = getattr(_guards(torch), "_empty_strided_cuda", None)
    index = device.index

    def allocate() -> Any:  # noqa: ANN401
        if fast is not None and torch._C._cuda_getDevice() == index:
            return fast(shape, strides, dtype)
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)

    return allocate


def _comparison(torch: Any, tensors: Sequence[Any]) -> Callable[..., bool]:  # noqa: ANN401
    """Returns a function that compares tensors with the form of these: class, shape, strides, element type, device."""
    guards = getattr(_guards(torch), "TensorGuards", None)
    # A guard takes one tensor twice for another form.
    if guards is not None and len({id(tensor) for tensor in tensors}) == len(tensors):
        return guards(
            *tensors,
            dynamic_dims_sizes=[list(tensor.shape) for tensor in tensors],
            dynamic_dims_strides=[list(tensor.stride()) for tensor in tensors],
        ).check
    forms = [_form(tensor) for tensor in tensors]

    def is_same(*given: Any) -> bool:  # noqa: ANN401
        try:
            return all(is_plain(item, torch) for item in given) and [_form(item) for item in given] == forms
        except RuntimeError:  # of tensors without dense memory
            return False

    return is_same


def _form(tensor: Any) -> tuple[object, ...]:  # noqa: ANN401
    return (
        type(tensor),
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        tensor.device,
        tensor.is_neg(),
        tensor.requires_grad,
    )
