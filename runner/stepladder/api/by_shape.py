"""Kernels of sources whose arguments have dynamic dimensions: one for each set of shapes, compiled on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from stepladder.api.building import exclusive
from stepladder.api.errors import ArgumentError, not_copied, shape_text
from stepladder.api.function import Function
from stepladder.api.kernel import Kernel
from stepladder.api.kernel_cache import KernelCache
from stepladder.api.options import plain
from stepladder.api.views import View, as_signed, view_of
from stepladder.runtime.problem import LARGEST_SIZE

Shape = tuple[int, ...]
# Sets of shapes whose kernels an object keeps.
_KEPT = 128


@dataclass(frozen=True)
class Argument:
    """An argument of which some dimensions may differ from call to call.

    Attributes:
        name: for messages.
        type: MLIR's name of the element type.
        shape: extents; None for one that may differ.
    """

    name: str
    type: str
    shape: tuple[int | None, ...]

    @property
    def text(self) -> str:
        """The shape as MLIR writes it, `?x32` for example."""
        return "x".join("?" if extent is None else str(extent) for extent in self.shape)

    def check(self, view: View) -> None:
        """Checks the arguments of a call, before a kernel is compiled for it.

        Args:
            view: of the array.

        Raises:
            ArgumentError: another element type, or another static extent.
        """
        if view.type != self.type:
            raise ArgumentError(f"argument '{self.name}' has elements of {view.type}; accepted: {self.type}")
        is_like = len(view.shape) == len(self.shape) and all(
            accepted in (None, extent) for extent, accepted in zip(view.shape, self.shape)
        )
        if not is_like:
            raise ArgumentError(f"argument '{self.name}' is {shape_text(view.shape)}; accepted: {self.text}")


class ByShape:
    """Kernels of a function on tensors with dynamic dimensions, called on arrays of any sizes of these.

    Made by `stepladder.compile`. The first call with a set of shapes compiles its kernel, or takes it from the cache.

    Args:
        arguments: of the function.
        compile_for: returns the kernel, or the function of several, for the shapes of the arguments.

    Attributes:
        arguments: as given.
    """

    def __init__(
        self, arguments: Sequence[Argument], compile_for: Callable[[Sequence[Shape]], Kernel | Function]
    ) -> None:
        self.arguments = tuple(arguments)
        self._compiled = compile_for
        self._kernels = KernelCache[Kernel | Function](_KEPT)

    def __repr__(self) -> str:
        shapes = ", ".join(
            "x".join("?" if size is None else str(size) for size in item.shape) for item in self.arguments
        )
        return f"<stepladder.ByShape ({shapes}), {len(self._kernels.kernels)} compiled>"

    def __reduce__(self) -> NoReturn:
        not_copied(self)

    def kernel(self, *arrays: object) -> Kernel | Function:
        """Returns the kernel for the shapes of some arrays, and compiles it for a new shape.

        Args:
            arrays: of the function's arguments, in order.

        Raises:
            ArgumentError: an argument that the function does not take.
            StepladderError: as `stepladder.compile`, for these shapes.
        """
        shapes = tuple(getattr(array, "shape", None) for array in arrays)
        return self._kernels.find(shapes) or self._new(arrays, shapes)

    def _new(self, arrays: Sequence[object], key: object) -> Kernel | Function:
        if len(arrays) != len(self.arguments):
            raise ArgumentError(f"{len(arrays)} arrays were passed, and the function takes {len(self.arguments)}")
        views = [view_of(item.name, as_signed(array), None) for item, array in zip(self.arguments, arrays)]
        for item, view in zip(self.arguments, views):
            item.check(view)
        with self._kernels.only_one(key):
            kernel = self._kernels.find(key)
            if kernel is None:
                kernel = self._compiled([view.shape for view in views])
                self._kernels.keep(key, kernel)
        return kernel

    def __call__(self, *arrays: object, out: object = None, stream: object = None) -> Any:  # noqa: ANN401
        """Runs the kernel for the shapes of the arrays; arguments and errors as of `kernel` and `Function.__call__`."""
        return self.kernel(*arrays)(*arrays, out=out, stream=stream)


def dynamic_arguments(text: str, name: str, function: str | None) -> list[Argument] | None:
    """Returns the arguments of a payload on tensors with dynamic dimensions; None where all are static.

    Args:
        text: the payload.
        name: its file, for messages.
        function: name of the function that is compiled, or None.

    Raises:
        StepladderError: text that does not parse; or dynamic dimensions of buffers, whose results have no sizes.
    """
    from stepladder.payload.binding import dynamic_shapes
    from stepladder.pipeline.context import mlir_context, parse_payload

    with exclusive, mlir_context():
        shapes = dynamic_shapes(parse_payload(text, name), function)
    return None if shapes is None else [Argument(f"argument {number}", *shape) for number, shape in enumerate(shapes)]


def sizes_of(arguments: Sequence[Argument], shapes: Sequence[Shape]) -> dict[str, int]:
    """Returns the sizes of dynamic dimensions by the names of `payload.binding`.

    Args:
        arguments: of the function.
        shapes: theirs in a call.
    """
    return {
        f"arg{number}.{axis}": size
        for number, (argument, shape) in enumerate(zip(arguments, shapes))
        for axis, (static, size) in enumerate(zip(argument.shape, shape))
        if static is None
    }


def sizes_in(bind: object) -> dict[str, int]:
    """Returns the sizes that a caller gives dynamic dimensions.

    Args:
        bind: sizes by name; None for none.

    Raises:
        ArgumentError: no mapping of names to sizes of at least 0, or one that no shape has.
    """
    if bind is None:
        return {}
    if not isinstance(bind, Mapping):
        raise ArgumentError(f"argument 'bind' is a {type(bind).__name__}; accepted: sizes by name, as {{'M': 256}}")
    sizes = {name: plain(size) for name, size in bind.items()}
    for name, size in sizes.items():
        if not isinstance(name, str) or not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ArgumentError(
                f"argument 'bind' has {name!r}: {bind[name]!r}; accepted: names with sizes of at least 0"
            )
        if size > LARGEST_SIZE:
            raise ArgumentError(f"argument 'bind' has {name!r}: {size}; accepted: sizes of at most {LARGEST_SIZE}")
    return {name: size for name, size in sizes.items() if isinstance(size, int)}


def static_text(text: str, name: str, sizes: Mapping[str, int], function: str | None) -> str:
    """Returns a payload whose dynamic dimensions have sizes; errors as of `context.bound_text`.

    Args:
        text: MLIR.
        name: its file, for messages.
        sizes: by the names of `payload.binding`.
        function: name of the function that is compiled, or None.
    """
    from stepladder.pipeline.context import bound_text, mlir_context

    with exclusive, mlir_context():
        return bound_text(text, name, sizes, function)
