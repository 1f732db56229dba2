"""Registers of `wgmma`: those of accumulators, and products with A in registers."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir import types
from stepladder.mlir.bindings import ir, llvm

A_REGISTERS = 4  # of a thread, for 64 rows of A in registers
STEP_BYTES = 32  # of one instruction along k, for every element type


def registers_type(accumulator: ir.Type) -> tuple[ir.Type, ir.Type]:
    """Returns the struct of registers that holds an accumulator, and its member for each 64 rows.

    A register holds one element of f32 or i32, or two adjacent f16 elements of a row.

    Args:
        accumulator: type of the accumulator of a warpgroup.
    """
    type_ = types.accumulator_vector(accumulator)
    rows, columns = type_.shape
    element = types.name_of(type_.element_type)
    registers, register = (columns // 4, "i32") if element == "f16" else (columns // 2, element)
    block = f"!llvm.struct<({', '.join([register] * registers)})>"
    inner = block.removeprefix("!llvm.")
    return ir.Type.parse(f"!llvm.struct<({', '.join([inner] * (rows // MMA_ROWS))})>"), ir.Type.parse(block)


class RegisterProduct:
    """Products of 64 rows with A in registers, as inline PTX: NVVM's op takes both operands from shared memory.

    Source: PTX ISA, wgmma.mma_async: the first operand may be a vector of four registers.

    Args:
        mma: the op; its first operand is a vector of elements of A.
        element: PTX's name of the type of A and B.
    """

    def __init__(self, mma: ir.Operation, element: str) -> None:
        _, self.registers = registers_type(mma.results[0].type)
        _, columns = types.accumulator_vector(mma.results[0].type).shape
        is_packed = "i32" in str(self.registers)
        self.count = columns // 4 if is_packed else columns // 2
        self.register_type = ir.IntegerType.get_signless(32) if is_packed else ir.F32Type.get()
        self.register = "r" if is_packed else "f"
        step_k = STEP_BYTES // types.byte_width(ir.VectorType(mma.operands[0].type).element_type)
        sums = "f16" if is_packed else "f32"
        self.text = f"wgmma.mma_async.sync.aligned.m{MMA_ROWS}n{columns}k{step_k}.{sums}.{element}.{element} "

    def members(self, struct: ir.Value, position: Sequence[int]) -> list[ir.Value]:
        """Returns the registers of 64 rows, at the current insertion point.

        Args:
            struct: with the registers.
            position: of those of the rows.
        """
        return [llvm.extractvalue(self.register_type, struct, [*position, number]) for number in range(self.count)]

    def add_to(
        self, sums: Sequence[ir.Value] | None, a: Sequence[ir.Value], b: ir.Value, transposed: bool | None = None
    ) -> ir.Value:
        """Returns the registers of 64 rows after a step of k, at the current insertion point.

        Args:
            sums: the registers before; None where the product replaces what they hold.
            a: four registers of 32 bits.
            b: matrix descriptor of the step.
            transposed: whether B is contiguous along n; None of types that are contiguous along k.
        """
        outputs = [f"={self.register}"] * self.count
        inputs = [] if sums is None else list(map(str, range(self.count)))
        names = [f"${number}" for number in range(self.count)]
        first = self.count + len(inputs)
        of_a = [f"${first + number}" for number in range(A_REGISTERS)]
        ending = "" if transposed is None else f", {int(transposed)}"
        keeps = int(sums is not None)
        operands = f"{{{', '.join(names)}}}, {{{', '.join(of_a)}}}, ${first + A_REGISTERS}, {keeps}, 1, 1{ending};"
        return llvm.inline_asm(
            self.registers,
            [*(sums or ()), *a, b],
            self.text + operands,
            ",".join([*outputs, *inputs, *["r"] * A_REGISTERS, "l"]),
            has_side_effects=True,
            asm_dialect=ir.Attribute.parse("0 : i64"),
        )
