"""llvm: intrinsics of WMMA for bf16, which the nvvm dialect has no ops for."""

from __future__ import annotations

import re

from stepladder.emulator.core.program import Builder
from stepladder.emulator.core.registry import lowers
from stepladder.emulator.dialects import nvvm_wmma
from stepladder.mlir.bindings import ir
from stepladder.runtime.errors import StepladderError

_SHAPE = r"llvm\.nvvm\.wmma\.m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)\."
_LOAD = re.compile(_SHAPE + r"load\.(?P<frag>[ab])\.(?P<layout>row|col)\.stride\.(?P<eltype>bf16)\.p[03]")
_MULTIPLY = re.compile(_SHAPE + r"mma\.(?P<layoutA>row|col)\.(?P<layoutB>row|col)\.(?P<eltypeA>bf16)")


@lowers("llvm.call_intrinsic")
def lower_call(builder: Builder, op: ir.Operation) -> None:
    """`llvm.call_intrinsic`: as the op of nvvm that the intrinsic would be of."""
    name = ir.StringAttr(op.attributes["intrin"]).value
    for form, run, others in ((_LOAD, nvvm_wmma.load, {}), (_MULTIPLY, nvvm_wmma.mma, {"eltypeB": "f32"})):
        if match := form.fullmatch(name):
            attributes = {
                key: int(text) if text.isdigit() else text for key, text in match.groupdict().items()
            } | others
            builder.emit(name, run, builder.used(op.operands), builder.defined(op.results), attributes)
            return
    raise StepladderError(f"the emulator does not support the intrinsic {name}", location=builder.location)
