"""Calls on arrays of CuPy and JAX that a kernel or a function was launched on before: nothing is checked twice.

Arrays of CuPy are identified by their addresses, shapes, strides and element types, like tensors of PyTorch. An array
of JAX is immutable, so that the object identifies it, as long as it is not deleted.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from stepladder.api.results import stream_of
from stepladder.api.views import jax_module, torch_module

# Sets of arrays and streams that are kept for a kernel or a function.
_KEPT = 4096

Form = tuple[object, ...]


class Loaded(Protocol):
    """A kernel or a function on a GPU."""

    def launcher(self, addresses: tuple[int, ...], stream: int) -> Callable[[], None]:
        """Returns a function that enqueues it on buffers at these addresses, any number of times.

        Args:
            addresses: of the operands, in the order of the manifest.
            stream: its handle.
        """
        ...


def _of_cupy(array: Any) -> Form:  # noqa: ANN401
    return array.data.ptr, array.shape, array.strides, array.dtype


def _of_torch(tensor: Any) -> Form | None:  # noqa: ANN401
    if tensor.requires_grad or tensor.is_neg():
        return None
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device


# Arrays of JAX that live, by their `id`, with numbers that no other one gets.
_seen: dict[int, tuple[weakref.ref[Any], Form]] = {}
_numbers = itertools.count()


def _of_jax(array: Any) -> Form | None:  # noqa: ANN401
    entry = _seen.get(id(array))
    return None if entry is None or entry[0]() is not array or array.is_deleted() else entry[1]


def _note_jax(array: Any) -> None:  # noqa: ANN401
    key = id(array)
    entry = _seen.get(key)
    if entry is None or entry[0]() is not array:
        _seen[key] = weakref.ref(array, lambda _: _seen.pop(key, None)), ("jax", next(_numbers))


# The form of an array, by its class.
_READERS: dict[type, Callable[[Any], Form | None]] = {}


def _reader(array: object) -> Callable[[Any], Form | None] | None:
    """Returns what reads arrays of the class of one, which is noted; None for classes of other libraries."""
    kind, torch, jax = type(array), torch_module(), jax_module()
    if torch is not None and (kind is torch.Tensor or kind is torch.nn.Parameter):
        return _READERS.setdefault(kind, _of_torch)
    if kind is getattr(sys.modules.get("cupy"), "ndarray", None):
        return _READERS.setdefault(kind, _of_cupy)
    if jax is not None and isinstance(array, jax.Array):
        _note_jax(array)
        return _READERS.setdefault(kind, _of_jax)
    return None


def _forms(arrays: Sequence[object]) -> tuple[Form, ...] | None:
    """Returns what is known of arrays; None where one is not known."""
    forms: list[Form] = []
    for array in arrays:
        reader = _READERS.get(type(array))
        form = None if reader is None else reader(array)
        if form is None:
            return None
        forms.append(form)
    return tuple(forms)


def _allocation(array: Any) -> Callable[[], Any] | None:  # noqa: ANN401
    """Returns a function that returns a new array of the form of one of CuPy; None for other libraries."""
    cupy: Any = sys.modules.get("cupy")
    if cupy is None or type(array) is not cupy.ndarray:
        return None
    shape, dtype, device = array.shape, array.dtype, array.device.id
    empty, current = cupy.empty, cupy.cuda.runtime.getDevice

    def allocate() -> Any:  # noqa: ANN401
        if current() == device:
            return empty(shape, dtype)
        with cupy.cuda.Device(device):
            return empty(shape, dtype)

    return allocate


def _handle(out: Any, stream: object) -> int:  # noqa: ANN401
    """Returns the handle of the stream of a call; None is the one that the library of a result uses now."""
    if stream is not None:
        return stream_of(stream)
    if _READERS[type(out)] is _of_cupy:
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    return stream_of(None, out.device.index, out)


def _numbered(stream: int) -> int:
    """Returns the handle of a stream, of which the default one has two (`CU_STREAM_LEGACY` is 1)."""
    return 0 if stream == 1 else stream


class KnownArrays:
    """The sets of arrays, not all of PyTorch, that a kernel or a function was launched on."""

    def __init__(self) -> None:
        self._launches: dict[tuple[object, ...], Callable[[], None]] = {}
        self._allocators: dict[tuple[Form, ...], Sequence[Callable[[], Any]]] = {}
        self._lock = threading.Lock()

    def launch(
        self, arrays: tuple[object, ...], outs: tuple[object, ...] | None, stream: object
    ) -> Sequence[object] | None:
        """Launches on arrays that are known.

        Args:
            arrays, stream: of the call.
            outs: the results that are given; None for new ones.

        Returns:
            The results; None, and nothing is launched, where the arrays are not known.
        """
        if not self._launches:
            return None
        forms = _forms(arrays)
        if forms is None:
            return None
        if outs is None:
            allocators = None if stream is not None else self._allocators.get(forms)
            if allocators is None:
                return None
            outs = tuple([allocate() for allocate in allocators])
        of_outs = _forms(outs)
        if of_outs is None:
            return None
        launch = self._launches.get((_numbered(_handle(outs[0], stream)), forms, of_outs))
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
        """Notes arrays that were launched on; sets whose libraries use different streams are not noted.

        Args:
            arrays: the inputs.
            outs: the results.
            is_new: whether the call made the results.
            loaded: the kernel or the function on their GPU.
            addresses, stream: what it was launched with.
        """
        readers = {_reader(array) for array in (*arrays, *outs)}
        # Of JAX beside at most one library: which stream is the current one depends on it.
        if None in readers or len(readers - {_of_jax}) != 1 or _reader(outs[0]) is _of_jax:
            return
        forms, of_outs = _forms(arrays), _forms(outs)
        if forms is None or of_outs is None:
            return
        allocations = [_allocation(array) for array in outs]
        with self._lock:
            if len(self._launches) >= _KEPT:
                self._launches.clear()
                self._allocators.clear()
            if is_new and all(allocations):
                self._allocators[forms] = [allocate for allocate in allocations if allocate is not None]
            self._launches[_numbered(stream), forms, of_outs] = loaded.launcher(addresses, stream)
