"""llvm.inline_asm: PTX in text, of the forms that nvvm's and nvgpu's ops become; it runs as those ops do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from stepladder.emulator.core.fibers import Fiber
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import lowers
from stepladder.emulator.core.values import Value, lanes
from stepladder.emulator.dialects import nvvm_text, nvvm_wgmma
from stepladder.emulator.dialects.llvm import Held
from stepladder.emulator.hardware.asynchronous import AccumulatorRegisters
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import StepladderError

_OPERAND = re.compile(r"\$(\d+)")
_MNEMONIC = re.compile(r"(?<![\w.])(?!setp)[a-z]+\.[a-z_:]+")

# A product of wgmma, as MLIR writes it: p says whether the sums are kept; then come the signs of A and B, and for
# types of 16 bits whether they are transposed.
_PRODUCT = re.compile(
    r"\{ \.reg \.pred p; setp\.ne\.b32 p, \$(?P<keeps>\d+), 0; "
    r"wgmma\.mma_async\.sync\.aligned\.m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)\.(?P<sums>\w+)\.(?P<a>\w+)\.(?P<b>\w+)"
    r"(?P<saturates>\.satfinite)? \{(?P<held>[^}]*)\}, "
    r"\$(?P<left>\d+), \$(?P<right>\d+), p(?P<rest>[^;]*); \}"
)


@lowers("llvm.inline_asm")
def lower_inline_asm(builder: Builder, op: ir.Operation) -> None:
    """`llvm.inline_asm`: what its text says."""
    attributes = decode_attributes(op)
    text = " ".join(attributes["asm_string"].split())
    constraints = [constraint for constraint in attributes["constraints"].split(",") if constraint[:1] != "~"]
    outputs = sum(1 for constraint in constraints if constraint.startswith("="))
    mnemonic = _MNEMONIC.search(text)
    product = _PRODUCT.fullmatch(text)
    if product:
        run = _multiplication(product, constraints, outputs)
    else:
        run = nvvm_text.run_text(_OPERAND.sub(lambda found: _renamed(int(found[1]), outputs), text))
    is_one_result = outputs <= 1 or product is not None
    if run is None or mnemonic is None or not is_one_result or len(constraints) - outputs != len(op.operands):
        raise StepladderError(
            f"the emulator does not know the PTX of {op.name}: {text[:200]}", location=builder.location
        )
    # Messages and counters say which instruction it is.
    name = f"{op.name} {mnemonic[0]}"
    builder.emit(name, run, builder.used(op.operands), builder.defined(op.results), attributes)


def _renamed(number: int, outputs: int) -> str:
    """Returns the name that nvvm.inline_ptx has for an operand: those that are written come first."""
    return f"{{$w{number}}}" if number < outputs else f"{{$r{number - outputs}}}"


def _multiplication(found: re.Match, constraints: list[str], outputs: int) -> Callable | None:
    """Returns what executes a product; None where its operands are not as MLIR orders them."""
    held = [int(number) for number in _OPERAND.findall(found["held"])]
    rest = [int(number) for number in _OPERAND.findall(found["rest"])]
    # The sums that are read are the registers that are written.
    if (
        held != list(range(outputs))
        or constraints[outputs : 2 * outputs] != [str(number) for number in held]
        or len(rest) not in (2, 4)
    ):
        return None
    left, right, keeps = (int(found[name]) - outputs for name in ("left", "right", "keeps"))

    def execute(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
        if "form" not in op.cache:
            numbers = [int(operands[number - outputs]) for number in rest]
            transposed = numbers[2:] or [0, 0]
            op.cache["form"] = nvvm_wgmma.Product(
                int(found["m"]),
                int(found["n"]),
                int(found["k"]),
                found["a"],
                found["b"],
                found["sums"],
                (not transposed[0], not transposed[1]),
                (numbers[0] < 0, numbers[1] < 0),
                bool(operands[keeps]),
                bool(found["saturates"]),
            )
            nvvm_wgmma.check_product(op, op.cache["form"])
        return nvvm_wgmma.multiply(
            fiber, op, op.cache["form"], _sums(fiber, op, operands[:outputs]), operands[left], operands[right]
        )

    return execute


def _sums(fiber: Fiber, op: Instruction, operands: Sequence[Value]) -> AccumulatorRegisters:
    """Returns the sums that an instruction adds to: those of another one, which may be in flight, or numbers."""
    first = operands[0]
    if all(isinstance(value, Held) for value in operands) and all(
        value.sums is first.sums and value.place == place for place, value in enumerate(operands)
    ):
        return first.sums
    values = [value.sums.read(fiber, op)[:, value.place] if isinstance(value, Held) else value for value in operands]
    kind = next((value.dtype for value in values if isinstance(value, (np.ndarray, np.floating))), np.dtype(np.int32))
    return AccumulatorRegisters(np.stack([lanes(value, fiber.count) for value in values], axis=1).astype(kind))
