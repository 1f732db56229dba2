"""Runs the IR after any step on the CPU, and finds races, deadlocks and stray accesses while it does.

Modules, from the bottom up. What values are: `types`, `values`, `elements`, `reductions`. What executes an op:
`registry`. Layouts that hardware prescribes, in NumPy alone: `fragments` (which thread holds which element),
`shared_memory_layouts` (swizzles, boxes of TMA, descriptors of wgmma). What an access does, checks and counts: `memory`, `shadow`, `findings`,
`clocks`, `sanitizer`, `counters`. IR as a list of instructions: `program`. Threads, blocks and who runs next: `fibers`,
`groups`, `machine`, `warps`. Threads that wait: `synchronization` (barriers), `mbarriers`, `atomics`, `asynchronous`
(groups of copies and products), `tma`, `warpgroups`. What programs print, and functions that MLIR's runner libraries
bring along: `printing`, `host`. What executes ops: `dialects`, one module a dialect or a part of one. A module from its
inputs to its outputs: `emulation`; a matmul, and the IR after each step: `matmul`.
"""

# Instructions that a run may execute unless told otherwise: an endless loop ends.
MAX_STEPS = 50_000_000
