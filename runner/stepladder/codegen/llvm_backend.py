"""LLVM IR to PTX, as a process of its own: `python -m stepladder.codegen.llvm_backend CHIP < kernel.ll > kernel.ptx`.

LLVM ends the process when it cannot select an instruction, so `stepladder.codegen.ptx` runs this module in a child.
"""

from __future__ import annotations

import sys

import llvmlite.binding as llvm

_TRIPLE = "nvptx64-nvidia-cuda"


def to_ptx(llvm_ir: str, chip: str) -> str:
    """Returns the PTX of an LLVM IR module, optimized at O3 for `chip`, such as "sm_80".

    Args:
        llvm_ir: text of the module, without a target.
        chip: the GPU's architecture, as LLVM names it.

    Raises:
        RuntimeError: LLVM does not parse or verify the module.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(_TRIPLE).create_target_machine(cpu=chip, opt=3)
    header = f'target triple = "{_TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'
    module = llvm.parse_assembly(header + llvm_ir)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    # Copies of a loop around wgmma cost registers, where accumulators leave few.
    options.loop_unrolling = "wgmma.mma_async" not in llvm_ir
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


if __name__ == "__main__":
    sys.stdout.write(to_ptx(sys.stdin.read(), sys.argv[1]))
