"""Forms of PTX instructions, drawn from the tables of the emulator and beside them, and what ptxas says of them."""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from pathlib import Path

from stepladder.emulator.ptx import form_tables, types
from stepladder.pipeline.codegen.toolchain import find_tool

_HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k() {
  .reg .pred %p<60>;
  .reg .b16 %h<60>;
  .reg .b32 %r<60>;
  .reg .b64 %d<60>;
  .reg .b128 %q<60>;
"""
_FILES = {1: "p", 8: "h", 16: "h", 32: "r", 64: "d", 128: "q"}
# ptxas accepts the first two, which the manual of PTX does not have, and crashes on some of the others.
_UNWRITTEN = re.compile(r"rcp.*\.ftz\.f64|fma\.r[zmp].*bf16.*|ld\..*v8\..*|st\..*param.*")
# The operands of families: types of registers by index of the form's types, "a" for an address, "#" for a word.
OPERANDS = {
    "ld": "0a",
    "st": "a0",
    "ldu": "0a",
    "selp": "000p",
    "slct": "0001",
    **dict.fromkeys(("add", "sub", "mul", "min", "max", "div", "rem", "and", "or", "xor", "copysign"), "000"),
    **dict.fromkeys(("fma", "mad", "sad"), "0000"),
    **dict.fromkeys(("abs", "neg", "rcp", "sqrt", "rsqrt", "sin", "ex2", "tanh", "not", "cnot", "brev", "mov"), "00"),
    **dict.fromkeys(("shl", "shr"), "00#"),
    "bfe": "00##",
    **dict.fromkeys(("mul24", "prmt"), "###"),
    "atom": "0a0",
    "red": "a0",
    "setp": "p00",
    "set": "011",
    "cvt": "01",
    "testp": "p0",
}


def _width(modifier: str) -> int:
    found = types.find(modifier)
    return 128 if found is None else found.width


def _register(width: int, number: int) -> str:
    return f"%{_FILES[width]}{number}"


def _operands(family: str, modifiers: list[str]) -> str | None:
    """Returns operands that fit the types of a form; None where it has too few types."""
    found = [modifier for modifier in modifiers if types.find(modifier) is not None or modifier == "b128"]
    count = next((int(modifier[1]) for modifier in modifiers if re.fullmatch("v[248]", modifier)), 1)
    texts = []
    pattern = OPERANDS[family] + ("0" if family == "atom" and "cas" in modifiers else "")
    pattern += "1" if family == "cvt" and re.fullmatch("(e.m.|b?f16)x2", found[0]) and found[1:] == ["f32"] else ""
    pattern += "p" if {"and", "or", "xor"} & set(modifiers) and family in ("set", "setp") else ""
    pattern += "d" if "L2::cache_hint" in modifiers else ""
    for place, kind in enumerate(pattern, 1):
        if kind == "a":
            texts.append("[%d59]")
        elif kind in "p#d":
            texts.append(_register({"p": 1, "#": 32, "d": 64}[kind], 10 + place))
        elif int(kind) >= len(found) or _width(found[int(kind)]) not in _FILES:
            return None
        else:
            width = _width(found[int(kind)]) * (2 if "wide" in modifiers and place in (1, 4) else 1)
            if width not in _FILES:
                return None
            parts = [_register(width, 10 * place - 9 + part) for part in range(count)]
            texts.append(parts[0] if count == 1 else f"{{{', '.join(parts)}}}")
    return ", ".join(texts)


def drawn(rng: random.Random, family: str, count: int) -> list[tuple[tuple[str, ...], str]]:
    """Returns forms of a family, as opcodes in parts and instructions: of its table, and with one modifier changed.

    Args:
        rng: that draws them.
        family: one of `OPERANDS`.
        count: how many.
    """
    rows = form_tables.FORMS[family]
    known = sorted({name for row in rows for slot in row.split() for name in slot.strip("[]").split("|")})
    found = []
    while len(found) < count:
        slots = [slot for slot in rng.choice(rows).split() if not slot.startswith("[") or rng.random() < 0.3]
        modifiers = [rng.choice(slot.strip("[]").split("|")) for slot in slots]
        if rng.random() < 0.6:
            modifiers[rng.randrange(len(modifiers))] = rng.choice(known)
        operands = _operands(family, modifiers)
        opcode = ".".join((family, *modifiers))
        if operands is not None and len(set(modifiers)) == len(slots) and not _UNWRITTEN.fullmatch(opcode):
            found.append(((family, *modifiers), f"{opcode} {operands};"))
    return found


def refused_by_ptxas(instructions: list[str]) -> dict[str, str]:
    """Returns the instructions that ptxas refuses for sm_90a, with what it says."""
    refused: dict[str, str] = {}
    first = _HEAD.count("\n") + 1
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "forms.ptx"
        while True:
            rest = [instruction for instruction in instructions if instruction not in refused]
            file.write_text(_HEAD + "\n".join(rest) + "\nret;\n}\n")
            command = [find_tool("ptxas"), "-arch=sm_90a", "-O0", file, "-o", Path(folder) / "cubin"]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode == 0:
                return refused
            errors = re.findall(r"line (\d+); error\s*: (.*)", run.stderr + run.stdout)
            assert errors, run.stderr
            refused |= {rest[int(line) - first]: text for line, text in errors}
