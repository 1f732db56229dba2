"""The types that arithmetic instructions take: those that ptxas (CUDA 13.0) accepts for sm_90a with some modifiers.

A type that ptxas refuses would be executed as one of the same size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.emulator.ptx import types

if TYPE_CHECKING:
    from stepladder.emulator.ptx.site import Site

_INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
_WIDE = ("f32", "f64")
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", *_WIDE, "f32x2")
_PAIRS = ("u16x2", "s16x2")
_BITS = ("b16", "b32", "b64")
_KNOWN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "min", "max"), (*_INTEGERS, *_PAIRS, *_FLOATS)),
    **dict.fromkeys(("sub", "mul"), (*_INTEGERS, *_FLOATS)),
    **dict.fromkeys(("abs", "neg"), ("s16", "s32", "s64", *_FLOATS)),
    **dict.fromkeys(("and", "or", "xor", "not"), ("pred", *_BITS)),
    **dict.fromkeys(("cnot", "shl"), _BITS),
    **dict.fromkeys(("popc", "clz", "brev", "bfi"), ("b32", "b64")),
    **dict.fromkeys(("mul24", "mad24", "dp4a", "dp2a"), ("u32", "s32")),
    **dict.fromkeys(("rcp", "sqrt", "rsqrt", "copysign"), _WIDE),
    **dict.fromkeys(("sin", "cos", "lg2"), ("f32",)),
    **dict.fromkeys(("ex2", "tanh"), ("f16", "f16x2", "bf16", "bf16x2", "f32")),
    **dict.fromkeys(("rem", "sad"), _INTEGERS),
    **dict.fromkeys(("div", "mad"), (*_INTEGERS, *_WIDE)),
    "shr": (*_BITS, *_INTEGERS),
    "bfe": ("u32", "s32", "u64", "s64"),
    "fma": _FLOATS,
}


def check(site: Site) -> None:
    """Refuses an instruction of a type that ptxas does not have it for.

    Args:
        site: the instruction.

    Raises:
        StepladderError: such a type.
    """
    opcode = site.statement.opcode
    known = _KNOWN.get(opcode[0])
    if known is None:
        return
    found = types.find(opcode[-1])
    if found is not None and str(found) not in known:
        raise site.error(f"of .{found}: expected one of {', '.join(known)}")
