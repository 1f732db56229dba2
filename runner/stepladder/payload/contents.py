"""The contents of the values and buffers of a payload's function, from op to op."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepladder.mlir.bindings import ir
from stepladder.payload.arguments import is_memref
from stepladder.payload.form import Content, Kind
from stepladder.payload.refusal import refuse


@dataclass
class Contents:
    """The contents of a function's values and buffers, so far.

    Attributes:
        function: the payload's function.
        matmul: its one matmul or batch of them.
        values: what each tensor or number holds, by value.
        views: which argument a reshaped buffer is.
        buffers: what each memref argument holds now, by argument number.
        written: the op that wrote each argument.
        as_tensors: the last op that read or wrote each memref argument as a tensor.
        as_buffers: memref arguments that linalg ops wrote.
    """

    function: ir.Operation
    matmul: ir.Operation
    values: dict[ir.Value, Content] = field(default_factory=dict)
    views: dict[ir.Value, int] = field(default_factory=dict)
    buffers: dict[int, Content] = field(default_factory=dict)
    written: dict[int, ir.Operation] = field(default_factory=dict)
    as_tensors: dict[int, ir.Operation] = field(default_factory=dict)
    as_buffers: set[int] = field(default_factory=set)

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
            raise refuse(op, f"{op.name} takes a buffer that is no argument of the function")
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
        """
        number = self.number_of(op.operands[0], op)
        content = self.buffers[number]
        self.values[op.results[0]] = Content(content.kind, content.argument, op)
        if list(op.results[0].uses):
            self.as_tensors[number] = op

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
