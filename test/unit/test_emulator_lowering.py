"""A level that MLIR lowers gives the same results and findings before and after: over random programs."""

import importlib

import numpy as np
import pytest

from combinations import combinations
from stepladder.emulator.core.emulation import Emulation
from stepladder.mlir import bindings
from stepladder.pipeline.context import mlir_context, parse_payload

THREADS = 64
SHARED = f"memref<{THREADS}xi32, #gpu.address_space<workgroup>>"
_OUTLINED = "gpu-kernel-outlining"
_JUMPS = "convert-scf-to-cf"
_LLVM = "expand-strided-metadata,lower-affine,{jumps}convert-gpu-to-nvvm{{{convention}index-bitwidth=64}}"
# Each level by the passes that make it, of the module and of the kernels.
LEVELS = {
    "outlined": (_OUTLINED, ""),
    "jumps in the launch": (f"func.func({_JUMPS})", ""),
    "jumps": (_OUTLINED, _JUMPS),
    "half converted": (_OUTLINED, f"{_JUMPS},convert-arith-to-llvm"),
    "descriptors": (_OUTLINED, _LLVM.format(jumps=f"{_JUMPS},", convention="")),
    "descriptors, reconciled": (
        _OUTLINED,
        _LLVM.format(jumps=f"{_JUMPS},", convention="") + ",reconcile-unrealized-casts",
    ),
    "bare pointers": (
        _OUTLINED,
        _LLVM.format(jumps=f"{_JUMPS},", convention="use-bare-ptr-memref-call-conv ")
        + ",canonicalize,cse,reconcile-unrealized-casts",
    ),
}
FAULTS = (None, "race", "out-of-bounds", "uninitialized")
_BINARY = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minui")


class _Program:
    """A random kernel: what it computes in i32 from two buffers, with branches, loops, shared memory and barriers."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.count = 0

    def new(self) -> str:
        """Returns a new name."""
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str) -> str:
        """Emits an op with a result; returns its name."""
        name = self.new()
        self.lines.append(f"{name} = {text}")
        return name

    def pick(self, values: list[str]) -> str:
        """Returns one of some values."""
        return values[self.random.integers(len(values))]

    def condition(self, values: list[str]) -> str:
        """Emits a comparison that threads may differ in."""
        predicate = ("slt", "ne", "uge")[self.random.integers(3)]
        return self.emit(f"arith.cmpi {predicate}, {self.pick(values)}, {self.pick(values)} : i32")

    def body(self, values: list[str], depth: int, size: int) -> list[str]:
        """Emits ops; returns the values, with those that they made."""
        values = list(values)
        for _ in range(size):
            kind = self.random.integers(8)
            if kind < 4 or depth == 0:
                operation = _BINARY[self.random.integers(len(_BINARY))]
                values.append(self.emit(f"arith.{operation} {self.pick(values)}, {self.pick(values)} : i32"))
            elif kind == 4:
                values.append(self.branch(values, depth))
            elif kind == 5:
                values.append(self.loop(values, depth))
            elif kind == 6:
                shuffled = self.new()
                self.lines.append(f"{shuffled}, {self.new()} = gpu.shuffle xor {self.pick(values)}, %two, %width : i32")
                values.append(shuffled)
            else:
                place = self.emit("arith.andi %t32, %seven : i32")
                index = self.emit(f"arith.index_cast {place} : i32 to index")
                self.lines.append(
                    f"memref.atomic_rmw addi {self.pick(values)}, %A[{index}] : (i32, memref<8xi32>) -> i32"
                )
        return values

    def branch(self, values: list[str], depth: int) -> str:
        """Emits an `scf.if`."""
        condition, name = self.condition(values), self.new()
        self.lines.append(f"{name} = scf.if {condition} -> (i32) {{")
        # What threads exchange or wait for stays outside of branches that they may take differently.
        self.lines.append(f"scf.yield {self.pick(self.body(values, 0, 2))} : i32")
        self.lines.append("} else {")
        self.lines.append(f"scf.yield {self.pick(self.body(values, 0, 2))} : i32")
        self.lines.append("}")
        return name

    def loop(self, values: list[str], depth: int) -> str:
        """Emits an `scf.for`: of as many iterations for all threads, or of some that differ."""
        name, place, carried = self.new(), self.new(), self.new()
        differs = self.random.integers(2)
        self.lines.append(
            f"{name} = scf.for {place} = %c0 to {'%times' if differs else '%c3'} step %c1 "
            f"iter_args({carried} = {self.pick(values)}) -> (i32) {{"
        )
        number = self.emit(f"arith.index_cast {place} : index to i32")
        inner = self.body([*values, number, carried], 0 if differs else depth - 1, 2)
        self.lines.append(f"scf.yield {inner[-1]} : i32")
        self.lines.append("}")
        return name

    def text(self, fault: str | None) -> str:
        """Returns the module, with a fault of `FAULTS` in it."""
        values = self.body(["%x", "%t32", "%two"], 2, 6)
        if fault != "uninitialized":
            self.lines.append(f"memref.store {values[-1]}, %s[%t] : {SHARED}")
        if fault != "race":
            self.lines.append("gpu.barrier")
        exchanged = self.emit(f"memref.load %s[%other] : {SHARED}")
        values = self.body([*values, exchanged], 2, 4)
        # A load that nothing uses would go.
        values.append(self.emit(f"arith.xori {values[-1]}, {exchanged} : i32"))
        values.append(self.emit(f"arith.addi {values[-1]}, {exchanged} : i32"))
        body = "\n".join(self.lines)
        return f"""
        memref.global "private" @s : {SHARED}
        func.func @f(%X: memref<{THREADS}xi32>, %Y: memref<{THREADS}xi32>, %A: memref<8xi32>) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c3 = arith.constant 3 : index
          %last = arith.constant {THREADS - 1} : index
          %threads = arith.constant {THREADS} : index
          gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
              threads(%t, %t1, %t2) in (%n0 = %threads, %n1 = %c1, %n2 = %c1) {{
            %s = memref.get_global @s : {SHARED}
            %two = arith.constant 2 : i32
            %seven = arith.constant 7 : i32
            %width = arith.constant 32 : i32
            %t32 = arith.index_cast %t : index to i32
            %few = arith.andi %t32, %seven : i32
            %times = arith.index_cast %few : i32 to index
            %other = arith.subi %last, %t : index
            %beyond = arith.addi %t, %c1 : index
            %x = memref.load %X[{"%beyond" if fault == "out-of-bounds" else "%t"}] : memref<{THREADS}xi32>
            {body}
            memref.store {values[-1]}, %Y[%t] : memref<{THREADS}xi32>
            gpu.terminator
          }}
          return
        }}"""


def outcome_of(text: str, level: str | None, seed: int) -> tuple[list[list[int]], set[str]]:
    """Returns what the buffers hold after a run at a level, and the kinds of findings."""
    manager = importlib.import_module(f"{bindings.ir.__name__.rpartition('.')[0]}.passmanager").PassManager
    with mlir_context():
        module = parse_payload(text, "program.mlir")
        if level is not None:
            of_module, of_kernels = LEVELS[level]
            pipeline = of_module + (f",gpu.module({of_kernels})" if of_kernels else "")
            manager.parse(f"builtin.module({pipeline})").run(module.operation)
        emulation = Emulation(module)
        inputs = [
            np.random.default_rng(seed).integers(-50, 50, size).astype(np.int32) for size in (THREADS, THREADS, 8)
        ]
        outcome = emulation.run(inputs)
    return [list(array) for array in outcome.arguments], {finding.kind for finding in outcome.findings}


@pytest.mark.parametrize("seed, fault", combinations(range(16), FAULTS))
def test_lowering_changes_neither_results_nor_findings(seed: int, fault: str | None) -> None:
    text = _Program(seed).text(fault)
    results, found = outcome_of(text, None, seed)
    assert found == (set() if fault is None else {fault})
    for level in LEVELS:
        lowered, also_found = outcome_of(text, level, seed)
        assert also_found == found, level
        if fault is None:
            assert lowered == results, level
