"""The contents of the values and buffers of a payload's function, from op to op."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import users_of
from stepladder.mlir.windows import strided_reads, window_of
from stepladder.payload.arguments import is_memref
from stepladder.payload.form import Content, Kind
from stepladder.payload.refusal import refuse
from stepladder.runtime.problem import Window


def divides_batch(op: ir.Operation) -> bool:
    """Returns whether a reshape is of a batch of products that is stored with several strides between its matrices.

    Args:
        op: a `tensor.reshape`.
    """
    users = users_of(op.results[0])
    stores = [user for user in users if user.name == "bufferization.materialize_in_destination"]
    window = window_of(stores[0].operands[1]) if len(users) == len(stores) == 1 else None
    source_shape, result_shape = (
        tuple(ir.RankedTensorType(value.type).shape) for value in (op.operands[0], op.results[0])
    )
    return window is not None and bool(window.batch) and window.extents(source_shape) == result_shape


def joins_batch(op: ir.Operation) -> bool:
    """Returns whether a reshape is of an A or B with several strides between its matrices, to those of one batch.

    Args:
        op: a `tensor.reshape`.
    """
    read = strided_reads(op)
    window = None if read is None else window_of(read.operands[0])
    source_shape, result_shape = (
        tuple(ir.RankedTensorType(value.type).shape) for value in (op.operands[0], op.results[0])
    )
    return (
        window is not None
        and bool(window.batch)
        and result_shape[0] == math.prod(window.batch)
        and window.extents(result_shape) == source_shape
    )


@dataclass
class Contents:
    """The contents of a function's values and buffers, so far.

    Attributes:
        function: the payload's function.
        matmul: its one matmul or batch of them.
        values: the content of each tensor or scalar, by SSA value.
        views: which argument a reshaped buffer is.
        buffers: what each memref argument holds now, by argument number.
        written: the op that wrote each argument.
        as_tensors: the last op that read or wrote each memref argument as a tensor.
        as_buffers: memref arguments that linalg ops wrote.
        windows: the parts of each memref argument that are read or written as tensors, None for all of it, and where.
    """

    function: ir.Operation
    matmul: ir.Operation
    values: dict[ir.Value, Content] = field(default_factory=dict)
    views: dict[ir.Value, int] = field(default_factory=dict)
    buffers: dict[int, Content] = field(default_factory=dict)
    written: dict[int, ir.Operation] = field(default_factory=dict)
    as_tensors: dict[int, ir.Operation] = field(default_factory=dict)
    as_buffers: set[int] = field(default_factory=set)
    windows: dict[int, list[tuple[Window | None, ir.Operation]]] = field(default_factory=dict)

    def number_of(self, buffer: ir.Value, op: ir.Operation) -> int:
        """Returns which argument a buffer is.

        Args:
            buffer: an argument of the function, or a view of one.
            op: the one that takes the buffer, which the message names.

        Raises:
            StepladderError: a buffer that an op in the function makes.
        """
        if buffer in self.views:
            return self.views[buffer]
        if not isinstance(buffer.owner, ir.Block):
            raise refuse(op, f"{op.name} has a buffer operand that is not an argument of the function")
        return ir.BlockArgument(buffer).arg_number

    def content_of(self, operand: ir.Value, op: ir.Operation) -> Content:
        """Returns what an operand, a tensor or a buffer, holds when an op takes it.

        Args:
            operand: a tensor or a buffer whose makers were followed before.
            op: the one that takes it, which messages name.

        Raises:
            StepladderError: a tensor that a `bufferization.to_tensor` without `restrict` reads, or a buffer that is no
                argument.
        """
        content = self.buffers[self.number_of(operand, op)] if is_memref(operand) else self.values[operand]
        if is_memref(operand) and window_of(operand) is not None:  # `front` reads it as a tensor
            raise refuse(
                op, f"{op.name} accesses a part of a buffer", "accepted: tensors that are read from such parts"
            )
        if content.read is not None and "restrict" not in content.read.attributes:
            raise refuse(
                content.read,
                "bufferization.to_tensor without 'restrict': pipelines need to know that no two buffers overlap",
                "accepted: bufferization.to_tensor %buffer restrict : ...",
            )
        return content

    def note_read(self, op: ir.Operation) -> None:
        """Notes that a tensor holds what a buffer holds now.

        Args:
            op: a `bufferization.to_tensor`.

        Raises:
            StepladderError: a buffer that an op before has written: kernels read all buffers as they are at first.
        """
        number = self.number_of(op.operands[0], op)
        if number in self.written and list(op.results[0].uses):
            raise refuse(
                op,
                f"{op.name} reads argument {number} after it is written",
                "accepted: the tensor that is written, or a read before",
            )
        self.note_window(number, op.operands[0], op)
        content = self.buffers[number]
        self.values[op.results[0]] = Content(content.kind, content.argument, op)
        if list(op.results[0].uses):
            self.as_tensors[number] = op

    def note_window(self, number: int, buffer: ir.Value, op: ir.Operation) -> None:
        """Notes which part of an argument an op reads or writes as a tensor.

        Args:
            number: of the argument.
            buffer: the argument, or a view of it.
            op: the one that takes the buffer.
        """
        self.windows.setdefault(number, []).append((window_of(buffer), op))

    def window_of_argument(self, number: int, role: str) -> Window | None:
        """Returns the one part of an argument that a function reads or writes, None for all of it.

        Args:
            number: of the argument.
            role: of the argument, which messages name.

        Raises:
            StepladderError: several parts, or a part of an argument that only elementwise ops take.
        """
        windows = self.windows.get(number, [])
        for window, op in windows:
            if window != windows[0][0]:
                raise refuse(op, f"{op.name} accesses a second part of argument {number}, which is {role.upper()}")
            if window is not None and role != "c":
                raise refuse(
                    op,
                    f"{op.name} accesses a part of argument {number}, which is {role.upper()}",
                    "accepted: A, B and C as parts of buffers, and others as whole buffers",
                )
        return windows[0][0] if windows else None

    def operand_windows(self, roles: Mapping[int, str]) -> dict[str, Window]:
        """Returns the parts of buffers that A, B and C are, by role, of those that are not whole buffers.

        Args:
            roles: of the arguments, by index.

        Raises:
            StepladderError: as `window_of_argument`.
        """
        reads = [self.values[operand].read for operand in list(self.matmul.operands)[:2] if operand in self.values]
        windows = {role: window_of(read.operands[0]) for role, read in zip("ab", reads) if read is not None}
        for number, role in roles.items():
            if role not in ("a", "b", "ab"):
                windows[role] = self.window_of_argument(number, role)
            for window, op in self.windows.get(number, []):
                is_joined = all(user.name == "tensor.reshape" for result in op.results for user in users_of(result))
                if window is not None and window.batch and role != "c" and not is_joined:
                    raise refuse(op, f"{op.name} reads {role.upper()} with several strides between matrices")
        return {role: window for role, window in windows.items() if window is not None}

    def store(self, op: ir.Operation, kind: Kind, target: Content) -> None:
        """Notes that an op's output, of which `target` is what it held, holds `kind` from now on.

        Args:
            op: the one that writes; its last operand is the output.
            kind: what the output holds from now on.
            target: what the output held, as `content_of` returns it.

        Raises:
            StepladderError: a tensor that a `bufferization.to_tensor` without `writable` reads, or a buffer that is no
                argument.
        """
        output = op.operands[len(op.operands) - 1]
        if not is_memref(output):
            if target.read is not None and "writable" not in target.read.attributes:
                raise refuse(
                    target.read,
                    "bufferization.to_tensor without 'writable', and C is written through it",
                    "accepted: bufferization.to_tensor %C restrict writable : ...",
                )
            self.values[op.results[0]] = Content(kind, target.argument)
            return
        number = self.number_of(output, op)
        self.buffers[number] = Content(kind, number)
        self.written[number] = op
        self.as_buffers.add(number)
