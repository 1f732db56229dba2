"""Programs that no pipeline here makes, in IR and in PTX, with faults to plant into them.

A program is a file in test/inputs/emulator/faults. Its head says how the kernel is launched (`// launch:`, where
`reversed=1` lets the blocks begin with the last) and what it is given (`// arguments:`, as `stepladder emulate
--arguments`); `EXPECTED` has what it computes. A comment in front of a line is a fault of that line:

    //! NAME: FINDS                 the line is dropped
    //!2 NAME: FINDS                two lines are
    //! NAME: FINDS: OLD => NEW     OLD, where it stands first in the line, becomes NEW

FINDS are kinds of findings of which one must be found (`race|numbers`), or several each (`race, numbers`); "numbers"
stands for a wrong result, and "endless" for more instructions than `MAX_STEPS`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stepladder.emulator.core.expected import compare
from stepladder.emulator.core.launched import BoundKernel, Launch
from stepladder.emulator.core.module_kernel import ModuleKernel
from stepladder.emulator.memory.findings import Finding
from stepladder.emulator.ptx.arguments import from_texts
from stepladder.emulator.ptx.kernel import Kernel
from stepladder.emulator.ptx.parser import parse
from stepladder.mlir import bindings
from stepladder.pipeline.context import parse_payload
from stepladder.runtime.errors import FAILED, StepladderError

FOLDER = Path(__file__).resolve().parents[1] / "inputs" / "emulator" / "faults"
MAX_STEPS = 20_000  # the longest program takes a tenth
LOWERING = (
    "builtin.module(gpu.module(convert-nvgpu-to-nvvm,expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    "convert-vector-to-llvm,convert-gpu-to-nvvm{index-bitwidth=64},reconcile-unrealized-casts))"
)
NUMBERS, ENDLESS = "numbers", "endless"

_HEAD = re.compile(r"// (launch|arguments): (.*)")
_FAULT = re.compile(r"\s*//!(?P<lines>\d*) (?P<name>[^:]+): (?P<finds>[^:]+?)(?:: (?P<old>.+?) => (?P<new>.*))?")
_ARGUMENT = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _neighbours(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, 1)
    return padded[:-2] + 2 * x + padded[2:]


# By file: what the last argument holds afterwards, of what all held before.
EXPECTED = {
    "reduction.mlir": lambda x, y: x.reshape(2, 128).sum(axis=1),
    "transpose.mlir": lambda x, y: x.T,
    "scan.mlir": lambda x, y: x.cumsum(),
    "histogram.mlir": lambda x, y: np.bincount(x & 15, minlength=16),
    "softmax.mlir": lambda x, y: _softmax(x),
    "mma_sync.mlir": lambda a, b, c, d: a.astype(np.float32) @ b.astype(np.float32) + c,
    "cp_async.mlir": lambda x, y: x[:, 252::-4] + 1,
    "tma.mlir": lambda x, y: x + 1,
    "cluster.mlir": lambda x, y: x + x.reshape(2, 2, 32)[:, ::-1].ravel(),
    "remote_store.mlir": lambda x, y: x + x.reshape(2, 2, 32)[:, ::-1].ravel(),
    "last_block.mlir": lambda x, parts, count, y: x.sum(keepdims=True),
    "wmma.mlir": lambda a, b, d: a.astype(np.float32) @ b.astype(np.float32),
    "warps.ptx": lambda x, y: x.reshape(2, 128).sum(axis=1),
    "cp_async_pipeline.ptx": lambda x, y: x + 1,
    "bulk.ptx": lambda x, y: x + 1,
    "flag.ptx": lambda x, t, f, y: 2 * x + 1,
    "wgmma.ptx": lambda a, b, d: a.astype(np.float32) @ b.astype(np.float32).T,
    "wgmma_registers.ptx": lambda a, b, d: a.astype(np.float32) @ b.astype(np.float32).T,
    "multicast.ptx": lambda x, y: np.stack([x, x + 1]),
    "named.ptx": lambda x, y: x[:, ::-1],
    "tickets.mlir": lambda x, count, y: 3 * x,
    "proxies.ptx": lambda x, t, y: 2 * x.sum(axis=0),
    "handshake.mlir": lambda x, t, f, y: x + 1,
    "remote.ptx": lambda x, y: x.reshape(2, 128)[:, ::-1].ravel(),
    "sent.ptx": lambda x, y: x.reshape(2, 128)[:, ::-1].ravel(),
    "gathered.ptx": lambda x, y: np.repeat(x.reshape(2, 16, 8).sum(axis=1), 2, axis=0).ravel(),
    "reduced.ptx": lambda x, y: np.repeat(x.reshape(2, 2, 64).sum(axis=1), 2, axis=0),
    "rows.mlir": lambda x, y: x.max(axis=1),
    "stencil.mlir": lambda x, y: _neighbours(x),
}


@dataclass(frozen=True)
class Fault:
    """A fault of a file: `count` lines from `line` are dropped, or `old` becomes `new` in the first.

    Attributes:
        finds: sets of kinds, of each of which one must be found.
    """

    file: str
    name: str
    finds: tuple[frozenset[str], ...]
    line: int
    count: int = 1
    old: str = field(default="", repr=False)
    new: str = field(default="", repr=False)

    def plant(self, text: str) -> str:
        """Returns the program with the fault in it."""
        lines = text.split("\n")
        if self.old:
            lines[self.line] = lines[self.line].replace(self.old, self.new, 1)
        else:
            lines[self.line : self.line + self.count] = [""] * self.count
        return "\n".join(lines)


def text_of(file: str) -> str:
    """Returns a program."""
    return (FOLDER / file).read_text()


def faults_of(file: str) -> list[Fault]:
    """Returns the faults that a file describes."""
    found: list[Fault] = []
    waiting: list[re.Match[str]] = []
    for number, line in enumerate(text_of(file).split("\n")):
        fault = _FAULT.fullmatch(line)
        assert fault is not None or "//!" not in line, line
        if fault is not None:
            waiting.append(fault)
            continue
        for part in waiting:
            finds = tuple(frozenset(kind.strip() for kind in kinds.split("|")) for kinds in part["finds"].split(","))
            count = int(part["lines"] or 1)
            found.append(Fault(file, part["name"], finds, number, count, part["old"] or "", part["new"] or ""))
        waiting = []
    return found


def _launch(sizes: dict[str, str]) -> Launch:

    def extents(name: str) -> tuple[int, int, int]:
        x, y, z = (*map(int, sizes.get(name, "1").split(",")), 1, 1)[:3]
        return x, y, z

    return Launch(extents("grid"), extents("block"), extents("cluster"), int(sizes.get("dynamic", 0)))


def bound(text: str, file: str, head: dict[str, str], *, lowered: bool = False) -> BoundKernel:
    """Returns the kernel of a program with its arguments and its launch; that of a module needs its context.

    With `lowered` it is in the LLVM dialect, as MLIR lowers it.
    """
    arguments = from_texts(_ARGUMENT.findall(head["arguments"]))
    launch = _launch(dict(item.split("=") for item in head["launch"].split()))
    if file.endswith(".ptx"):
        return Kernel(parse(text, file), None, file).bound(arguments, launch)
    module = parse_payload(text, file)
    if lowered:
        bindings.passmanager.PassManager.parse(LOWERING).run(module.operation)
    return ModuleKernel(module, None, file).bound(arguments, launch)


def check(text: str, file: str, *, lowered: bool = False) -> tuple[set[str], list[Finding]]:
    """Returns the kinds of findings of a run on integers, "numbers" where the result is wrong, and the findings."""
    head = {found[1]: found[2] for found in map(_HEAD.fullmatch, text.split("\n")[:6]) if found}
    kernel = bound(text, file, head, lowered=lowered)
    generator = np.random.default_rng(7)
    inputs = []
    for argument, array in zip(kernel.arguments, kernel.random_inputs(7)):
        is_random = argument.is_memory and not argument.fill
        inputs.append(generator.integers(-8, 9, array.shape).astype(array.dtype) if is_random else array)
    try:
        outcome = kernel.run(inputs, max_steps=MAX_STEPS, reverses_blocks="reversed" in head["launch"])
    except StepladderError as error:
        if error.status != FAILED:
            raise
        return {ENDLESS}, []
    held = outcome.arguments[-1]
    assert held is not None
    kinds = {finding.kind for finding in outcome.findings}
    wrong = compare("result", held, np.asarray(EXPECTED[file](*inputs)).astype(held.dtype))
    return (kinds | {NUMBERS} if wrong else kinds), outcome.findings
