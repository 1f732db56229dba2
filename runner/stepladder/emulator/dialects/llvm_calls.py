"""llvm: functions, calls and returns. `core.control_flow` executes jumps and branches.

In a kernel the instructions of a function replace its call. The emulator implements functions without a body: printf,
assertions, NVIDIA's library of elementary functions (libdevice), and built-ins of OpenCL C (`opencl`).
"""

from __future__ import annotations

import re

import numpy as np

from stepladder.emulator.core import host as runtime
from stepladder.emulator.core import values
from stepladder.emulator.core.fibers import Fiber, Left
from stepladder.emulator.core.printing import formatted
from stepladder.emulator.core.program import Builder, Instruction, decode_attributes
from stepladder.emulator.core.registry import EXECUTED, executes, lowers
from stepladder.emulator.core.types import Scalar, text_of
from stepladder.emulator.core.values import Value
from stepladder.emulator.dialects import cf, math, opencl  # noqa: F401  (registers what is looked up)
from stepladder.emulator.dialects.func import call, define, find, put_in_place
from stepladder.emulator.hardware import synchronization
from stepladder.emulator.memory import pointers
from stepladder.mlir.bindings import ir
from stepladder.mlir.llvm_layouts import layout
from stepladder.runtime.errors import StepladderError

_BYTE = Scalar("i8", np.dtype(np.int8), 8)

# Functions of libdevice by the op of math or arith that they are.
_LIBDEVICE = {
    **{
        name: f"math.{name}"
        for name in (
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atan2",
            "atanh",
            "cbrt",
            "ceil",
            "copysign",
            "cos",
            "cosh",
            "erf",
            "erfc",
            "exp",
            "exp2",
            "expm1",
            "floor",
            "fma",
            "log",
            "log10",
            "log1p",
            "log2",
            "round",
            "rsqrt",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "trunc",
        )
    },
    "fabs": "math.absf",
    "pow": "math.powf",
    "powi": "math.fpowi",
    "fmod": "arith.remf",
    "fmin": "arith.minnumf",
    "fmax": "arith.maxnumf",
    "rint": "math.roundeven",
    "abs": "math.absi",
}
_ALSO_FAST = ("cos", "exp", "log", "log10", "log2", "pow", "sin", "tan")


@lowers("llvm.func")
def lower_func(builder: Builder, op: ir.Operation) -> None:
    """`llvm.func`: a kernel, by its module's name and its own, or a function of the host."""
    is_kernel = "nvvm.kernel" in op.attributes or "gpu.kernel" in op.attributes
    if builder.modules and not is_kernel:
        return
    outer, builder.in_kernel = builder.in_kernel, is_kernel
    define(builder, op, "::".join([*builder.modules, op.attributes["sym_name"].value]))
    builder.in_kernel = outer


@executes("llvm.return")
def return_(fiber: Fiber, op: Instruction, *results: Value) -> None:
    """The thread ends, or the function of the host."""
    if fiber.group.is_host:
        fiber.group.state["returned"] = list(results)
    else:
        synchronization.leave(fiber)
    raise Left


@executes("nvvm.exit")
def exit_(fiber: Fiber, op: Instruction) -> None:
    """The thread ends."""
    synchronization.leave(fiber)
    raise Left


@executes("llvm.unreachable")
def unreachable(fiber: Fiber, op: Instruction) -> None:
    """An instruction that no thread may reach."""
    fiber.group.sanitizer.report(
        "order", f"{fiber.group.thread_name(fiber.lanes[0])} executes what is stated to be unreachable", op
    )
    synchronization.leave(fiber)
    raise Left


@lowers("llvm.call")
def lower_call(builder: Builder, op: ir.Operation) -> None:
    """`llvm.call`: of a function with a body, or of one that the emulator provides."""
    if "callee" not in op.attributes:
        raise StepladderError(f"the emulator does not support {op.name} of a pointer", location=builder.location)
    symbol = op.attributes["callee"].value
    if builder.in_kernel and put_in_place(builder, op, symbol):
        return
    callee = find(op, symbol)
    attributes = decode_attributes(op)
    if not builder.in_kernel and callee is not None and list(callee.regions[0].blocks):
        run = call
    elif symbol == "vprintf":
        run, attributes["parts"] = _vprintf, _promoted(op.operands[1])
    elif symbol == "__assertfail":
        run = _assertfail
    elif (op_name := _libdevice(symbol)) is not None:
        run = EXECUTED[op_name]
    elif (built_in := opencl.find(symbol)) is not None:
        run = built_in
    elif symbol in runtime.FUNCTIONS and not builder.in_kernel:
        run = _call_runtime
    else:
        raise StepladderError(
            f"there is no function @{symbol} with a body, and the emulator does not provide it",
            location=builder.location,
        )
    builder.emit(op.name, run, builder.used(op.operands), builder.defined(op.results), attributes)


def _call_runtime(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    """Calls a function that the emulator provides, on the host: numbers are those of its one thread."""
    numbers = (fiber.first(value) if isinstance(value, np.ndarray) else value for value in operands)
    return runtime.FUNCTIONS[op.attributes["callee"]](fiber, op, *numbers)


def _libdevice(symbol: str) -> str | None:
    """Returns the op that a function of libdevice is, or None."""
    match = re.fullmatch(r"__nv_(fast_)?(\w+?)(f?)", symbol)
    if not match:
        return None
    fast, name, _ = match.groups()
    return _LIBDEVICE.get(name) if not fast or name in _ALSO_FAST else None


def _promoted(buffer: Value) -> list[tuple]:
    """Returns bytes and types of what printf's arguments are in memory: the fields of a struct on the stack."""
    definition = buffer.owner
    if not isinstance(definition, ir.Block) and definition.name == "llvm.alloca":
        form = layout(str(ir.TypeAttr(definition.attributes["elem_type"]).value))
        if form.kind == "struct":
            return [(offset, part.name, part.bytes) for offset, part in zip(form.offsets, form.parts)]
    return []


def _vprintf(fiber: Fiber, op: Instruction, text: Value, arguments: Value) -> Value:
    """Prints, one thread after the other."""
    form = pointers.text_at(fiber, op, fiber.first(text))
    columns = []
    for offset, name, size in op.attributes["parts"]:
        dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16}.get(name, np.dtype(f"i{size}"))
        element = Scalar(name, np.dtype(dtype), 8 * size)
        numbers = pointers.read(fiber, op, arguments + offset, element)
        columns.append((values.lanes(np.asarray(numbers), fiber.count), max(32, 8 * size)))
    for lane in fiber.lanes:
        runtime.say(fiber, formatted(form, [(column[lane], width) for column, width in columns]))
    return 0


def _assertfail(
    fiber: Fiber, op: Instruction, message: Value, file: Value, line: Value, function: Value, size: Value
) -> None:
    """Says that an assertion does not hold; the threads end at the `llvm.unreachable` or the return after it."""
    text, file_name, name = (pointers.text_at(fiber, op, fiber.first(part)) for part in (message, file, function))
    cf.fail(fiber, op, text, (file_name, name, int(fiber.first(line))), fiber.active)


@executes("llvm.alloca")
def alloca(fiber: Fiber, op: Instruction, count: Value) -> Value:
    """Memory on a thread's stack; in a loop it is the same again."""
    group = fiber.group
    form = layout(text_of(op.attributes["elem_type"]))
    size = form.bytes * int(np.max(count[fiber.lanes] if isinstance(count, np.ndarray) else count))
    if group.is_host:
        return group.machine.heap.allocate(size, "the stack").address
    if op.number not in group.private or group.private[op.number].size < size:
        group.private[op.number] = group.own_memory(size)
    return group.private[op.number].address
