"""The containers that a module of PyTorch takes and returns, and how kernels take the tensors in them.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from stepladder.api.decompositions.complex_tensors import is_complex
from stepladder.api.errors import ArgumentError


def inputs_of(inputs: Sequence[object], keywords: Mapping[str, object]) -> tuple[object, ...]:
    """Returns the inputs of a call as one value.

    Args:
        inputs: those by position.
        keywords: those by keyword.
    """
    return (tuple(inputs), dict(sorted(keywords.items()))) if keywords else tuple(inputs)


class TensorLeaf:
    """Stands for a tensor in a structure."""


@dataclasses.dataclass(frozen=True)
class Structure:
    """The structure of a module's inputs or results, as containers around leaves.

    Attributes:
        spec: PyTorch's description of it.
        leaves: the class `TensorLeaf` for a tensor; what is no tensor as it is.
    """

    spec: Any
    leaves: tuple[object, ...]

    @classmethod
    def of(cls, value: object) -> tuple[Structure, list[torch.Tensor]]:
        """Returns the structure of a value, and its tensors, in order.

        Args:
            value: tensors and others in lists, tuples and dictionaries.
        """
        leaves, spec = pytree.tree_flatten(value)
        constants = tuple(TensorLeaf if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
        return cls(spec, constants), [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def tensors_of(self, inputs: Sequence[object], keywords: Mapping[str, object] | None = None) -> list[torch.Tensor]:
        """Returns the tensors in the inputs of a call.

        Args:
            inputs: the inputs by position.
            keywords: those by keyword.

        Raises:
            ArgumentError: inputs of another structure than that of the example inputs, or with other constants.
        """
        structure, tensors = Structure.of(inputs_of(inputs, keywords or {}))
        if structure.spec != self.spec:
            raise ArgumentError("the inputs are in other containers than the example inputs that were compiled for")
        for number, (leaf, expected) in enumerate(zip(structure.leaves, self.leaves)):
            if type(leaf) is not type(expected) or leaf != expected:
                actual_text, expected_text = (
                    "a tensor" if item is TensorLeaf else repr(item) for item in (leaf, expected)
                )
                raise ArgumentError(f"input {number} is {actual_text}, and the module is compiled for {expected_text}")
        return tensors

    def filled(self, tensors: Sequence[object]) -> Any:  # noqa: ANN401
        """Returns a value of this structure.

        Args:
            tensors: in order.
        """
        rest = iter(tensors)
        return pytree.tree_unflatten([next(rest) if leaf is TensorLeaf else leaf for leaf in self.leaves], self.spec)


@dataclasses.dataclass(frozen=True)
class Form:
    """How kernels take the tensors that are in place of one: contiguous, real, and without signs.

    Attributes:
        dtype: of the tensor.
        order: its axes, the outermost in memory first; None where they are in order.
    """

    dtype: torch.dtype
    order: tuple[int, ...] | None

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Form:
        """Returns the form of a tensor.

        Args:
            tensor: of any strides; ones that are not dense are those that kernels refuse.
        """
        order = None
        if not tensor.is_contiguous():
            order = tuple(sorted(range(tensor.dim()), key=lambda axis: (-tensor.stride(axis), axis)))
            order = order if tensor.permute(order).is_contiguous() else None
        return cls(tensor.dtype, order)

    @property
    def is_plain(self) -> bool:
        """Whether kernels take the tensors as they are."""
        return self.order is None and self.dtype is not torch.uint8 and not is_complex(self)

    def traced(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a tensor as the exported function takes it, of the same memory.

        Args:
            tensor: of this form.
        """
        tensor = tensor if self.order is None else tensor.permute(self.order)
        return real(tensor)

    def taken(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a tensor as kernels take it, of the same memory.

        Args:
            tensor: of this form.
        """
        tensor = self.traced(tensor)
        return tensor.view(torch.int8) if tensor.dtype is torch.uint8 else tensor

    def given(self, value: torch.Tensor) -> torch.Tensor:
        """Returns the tensor that `traced` makes another one of.

        Args:
            value: in the exported function.
        """
        value = torch.view_as_complex(value) if is_complex(self) else value
        if self.order is None:
            return value
        return value.permute(sorted(range(len(self.order)), key=self.order.__getitem__))

    def check(self, name: str, tensor: torch.Tensor) -> None:
        """Refuses a tensor that is not of this form.

        Args:
            name: of the argument.
            tensor: of a call.

        Raises:
            ArgumentError: names the argument.
        """
        if tensor.dtype is not self.dtype and (not self.is_plain or tensor.dtype is torch.uint8 or is_complex(tensor)):
            raise ArgumentError(f"argument '{name}' has elements of {tensor.dtype}; accepted: {self.dtype}")
        if tensor.is_conj():
            raise ArgumentError(
                f"argument '{name}' is a conjugated view, whose memory has the opposite imaginary parts",
                notes=["accepted: x.resolve_conj(), which is a copy"],
            )
        if self.order is None or tensor.dim() != len(self.order) or tensor.permute(self.order).is_contiguous():
            return
        raise ArgumentError(
            f"argument '{name}' has strides {tensor.stride()} in elements; accepted: those of the example input, dense "
            f"with the axes {self.order} in this order in memory"
        )


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of complex numbers as one of their parts, of the same memory; others as they are.

    Args:
        tensor: of any element type.
    """
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor
