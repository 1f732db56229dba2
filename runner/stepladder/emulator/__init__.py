"""Executes the IR after any step on the CPU, and reports races, deadlocks and invalid accesses.

The package `core` has programs, control flow and the machine. `memory` has memory, pointers and the sanitizer.
`hardware` has the units of the GPU: barriers, mbarriers, asynchronous copies, TMA, fragments, layouts and counters.
`dialects` executes the ops, one or several modules a dialect. `core/emulation.py` executes a module from its inputs to
its outputs; `matmul.py` executes a matmul, and the IR after each step of a pipeline.
"""

# Instructions that a run may execute by default: an endless loop ends.
MAX_STEPS = 50_000_000

# Limit up to which `stepladder run` chooses the emulator, in steps of a launch: minutes of one core.
EMULATED_STEPS = 2**23
