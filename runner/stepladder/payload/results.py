"""The results of a payload: the stored functions of the product, and the one that is C."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from stepladder.mlir.bindings import ir
from stepladder.payload.refusal import refuse
from stepladder.runtime.problem import FurtherResult, result_role

RESULT_TYPES = ("f16", "bf16", "f32", "i8", "i32")
MAX_RESULTS = 3  # beside C: those that the manifest of a kernel has roles for


@dataclass
class Results:
    """The stored results of the product, by the index of the argument that each is stored in, or of a new argument.

    Attributes:
        values: the value or the buffer.
        makers: the op that returns or writes it.
        reduced: which are reductions of the product.
    """

    values: dict[int, ir.Value] = field(default_factory=dict)
    makers: dict[int, ir.Operation] = field(default_factory=dict)
    reduced: set[int] = field(default_factory=set)

    def note(self, number: int, value: ir.Value, op: ir.Operation) -> None:
        """Notes that an argument, or a new argument, holds a result.

        Args:
            number: of the argument; a result that is returned has the number of a new argument, after those of the
                function.
            value: what is stored there.
            op: the one that makes the value.
        """
        self.values[number], self.makers[number] = value, op

    def choose_c(self, read: Container[int | None]) -> int:
        """Returns which result is C: the one whose buffer is read too, or else the first; no reduction.

        Args:
            read: indices of the arguments that are read.

        Raises:
            StepladderError: several results whose buffers are read, or reductions alone.
        """
        matrices = [number for number in self.values if number not in self.reduced]
        if not matrices:
            op = self.makers[min(self.values)]
            raise refuse(
                op,
                f"{op.name} has only reductions of the product as results",
                "accepted: reductions beside the product, or an elementwise function of it",
            )
        read_results = [number for number in self.values if number in read]
        if len(read_results) > 1:
            op = self.makers[read_results[1]]
            raise refuse(
                op,
                f"{op.name} computes a second result, argument {read_results[1]}, that is also read",
                "accepted: several results, of which the initial value of one is read",
            )
        return read_results[0] if read_results else min(matrices)

    def further(self, c: int, roles: dict[int, str]) -> tuple[FurtherResult, ...]:
        """Gives the results beside C their roles; returns what they are.

        Args:
            c: number of C.
            roles: by index of the argument; grows.

        Raises:
            StepladderError: too many, or one that overwrites an operand.
        """
        numbers = sorted(number for number in self.values if number != c)
        if len(numbers) > MAX_RESULTS:
            op = self.makers[numbers[MAX_RESULTS]]
            raise refuse(
                op, f"{1 + len(numbers)} results of one product are stored; accepted: at most {1 + MAX_RESULTS}"
            )
        results = []
        for place, number in enumerate(numbers):
            if number in roles:
                text = f"the result overwrites argument {number}, which is {roles[number].upper()}"
                raise refuse(self.makers[number], f"{text}; a result must be a different argument")
            type_ = ir.ShapedType(self.values[number].type)
            if str(type_.element_type) not in RESULT_TYPES:
                accepted = f"accepted as elements of a result: {', '.join(RESULT_TYPES)}"
                raise refuse(self.makers[number], f"a result of {type_.element_type}", accepted)
            roles[number] = result_role(place)
            results.append(FurtherResult(str(type_.element_type), tuple(type_.shape)))
        return tuple(results)
