"""Large constants, such as weights: arguments of the compiled function, with data in the bundle."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.mlir import printed
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import users_of, walk
from stepladder.payload.refusal import refuse
from stepladder.payload.signature import set_signature
from stepladder.runtime.element_types import BUFFER_TYPES

if TYPE_CHECKING:
    import numpy as np

# As MLIR prints a resource: its alignment and its bytes, in hexadecimal.
_HEX = re.compile(r'"0x([0-9A-Fa-f]*)"')
_ALIGNMENT_BYTES = 4


@dataclass(frozen=True)
class ConstantData:
    """The elements of a constant, as a row-major buffer holds them: element type, extents and bytes."""

    type: str
    shape: tuple[int, ...]
    data: bytes
    location: ir.Location


def constants_of(function: ir.Operation) -> list[ir.Operation]:
    """Returns the constants of a function that are tensors of several elements, in order.

    Args:
        function: of the payload, on tensors or buffers.
    """
    return [op for op in walk(function, "arith.constant") if _is_many(op)]


def _is_many(op: ir.Operation) -> bool:
    type_ = op.results[0].type
    if not isinstance(type_, ir.RankedTensorType):
        return False
    if isinstance(type_.element_type, ir.ComplexType):  # the bindings do not know its attribute
        raise refuse(op, "arith.constant of a complex type, which kernels do not support")
    value = op.attributes["value"]
    return str(value).startswith("dense_resource<") or (isinstance(value, ir.DenseElementsAttr) and not value.is_splat)


def integers_of(op: ir.Operation) -> list[int] | None:
    """Returns the elements of a constant of integers, in row-major order; None for one of another type, or without
    them.

    Args:
        op: one of `constants_of`.
    """
    import numpy as np  # few payloads have constants

    type_ = ir.RankedTensorType(op.results[0].type)
    element = BUFFER_TYPES.get(str(type_.element_type))
    if element is None or not element.is_integer or element.bits < 8:
        return None
    data = _bytes_of(op, element.dtype)
    return np.frombuffer(data, element.dtype).tolist() if len(data) == math.prod(type_.shape) * element.bytes else None


def lift(function: ir.Operation) -> dict[int, ConstantData]:
    """Makes arguments of the constants of a function, after those that it has: tensors, or the buffers that they are
    read as.

    Args:
        function: with a body; it is changed.

    Returns:
        The data by argument number.

    Raises:
        StepladderError: a constant whose elements are not in the payload, or of a type without buffers.
    """
    body = function.regions[0].blocks[0]
    constants: dict[int, ConstantData] = {}
    for op in constants_of(function):
        constants[len(body.arguments)] = _data_of(op)
        users = users_of(op.results[0])
        source = users[0] if [user.name for user in users] == ["bufferization.to_buffer"] else op
        argument = body.add_argument(source.results[0].type, op.location)
        source.results[0].replace_all_uses_with(argument)
        for item in dict.fromkeys((source, op)):
            item.erase()
    set_signature(function)
    return constants


def check_constants(constants: Mapping[int, ConstantData], roles: Mapping[int, str]) -> None:
    """Raises StepladderError for a constant that a kernel would write: C = AB + C in place of it.

    Args:
        constants: content by argument number.
        roles: of the arguments, by index.
    """
    for number, constant in constants.items():
        if roles.get(number) == "c":
            raise refuse(
                constant,
                "the initial value is a constant, which the kernel would overwrite",
                "accepted: constants as A or B",
            )


def _data_of(op: ir.Operation) -> ConstantData:
    type_ = ir.RankedTensorType(op.results[0].type)
    element = BUFFER_TYPES.get(str(type_.element_type))
    shape = tuple(type_.shape)
    if element is None:
        raise refuse(op, f"a constant of {type_.element_type}", f"accepted: constants of {', '.join(BUFFER_TYPES)}")
    size = math.prod(shape) * element.bytes
    data = _bytes_of(op, element.dtype)
    if len(data) > size:
        raise refuse(op, f"the constant has {len(data)} bytes of data", f"accepted: {size} bytes for {type_}")
    if len(data) < size:
        raise refuse(
            op,
            f"the data of the constant is not in the payload: {len(data)} bytes of {size}",
            "accepted: constants with their data; MLIR leaves it out where it elides large ones",
        )
    return ConstantData(element.name, shape, data, op.location)


def _bytes_of(op: ir.Operation, dtype: np.dtype) -> bytes:
    """Returns the bytes of a constant's elements; fewer where the payload does not have them all."""
    value = op.attributes["value"]
    if str(value).startswith("dense_resource<"):
        module = ir.Module.create(op.location)  # prints the resources that ops in it use
        module.body.append(op.clone())
        blobs = _HEX.findall(str(module))
        return bytes.fromhex(blobs[-1])[_ALIGNMENT_BYTES:] if blobs else b""
    return printed.dense_numbers(value, dtype).tobytes()
