"""LLVM IR to PTX, as a process of its own.

    python -m stepladder.pipeline.codegen.llvm_backend CHIP < kernel.ll > kernel.ptx

A second argument names NVIDIA's library of elementary functions (libdevice), which is linked into the module.
LLVM ends the process when it cannot select an instruction, so `ptx` runs this in a process of its own: one that
`llvm_server` forks, or, where there is no fork, one that runs this module.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import llvmlite.binding as llvm

from stepladder.runtime.processes import end_with_starter

_TRIPLE = "nvptx64-nvidia-cuda"
# LLVM takes the first version of PTX that has the chip; products of fp8 by mma.sync came later than theirs.
_PTX_OF_FP8 = "+ptx84"
# More than 4352 bytes of parameters, as kernels of several matmuls have with their TMA descriptors, came later as well.
_PTX_OF_PARAMETERS = "+ptx81"
_DESCRIPTOR = re.compile(r"byval\(\[128 x i8\]\)")
_DESCRIPTORS = 32  # that leave room for pointers
_FP8_PRODUCT = re.compile(r"llvm\.nvvm\.mma\.\S*\.e[45]m[23]\.")
# sm_89 came before its conversions to fp8; GPUs after it have them from the beginning.
_PTX_OF_FP8_CASTS = "+ptx81"
# So did asynchronous stores to the shared memory of a cluster.
_PTX_OF_STORES = "+ptx81"
_FP8_CAST = re.compile(r"llvm\.nvvm\.ff\.to\.e[45]m[23]x2")


def _features(llvm_ir: str, chip: str) -> str:
    """Returns the version of PTX that a module needs, where it is not the first that has the chip."""
    if _FP8_PRODUCT.search(llvm_ir):
        return _PTX_OF_FP8
    if chip == "sm_89" and _FP8_CAST.search(llvm_ir):
        return _PTX_OF_FP8_CASTS
    if "st.async" in llvm_ir:
        return _PTX_OF_STORES
    return _PTX_OF_PARAMETERS if len(_DESCRIPTOR.findall(llvm_ir)) > _DESCRIPTORS else ""


# By path: libraries that are parsed and not linked yet; linking takes the module.
_libraries: dict[str, llvm.ModuleRef] = {}


def parse_library(library: str) -> None:
    """Parses libdevice, for the next module that it is linked into; once, in a process that forks others.

    Args:
        library: its path.

    Raises:
        OSError, RuntimeError: it cannot be read.
    """
    if library not in _libraries:
        _libraries[library] = llvm.parse_bitcode(Path(library).read_bytes())


def _link(module: llvm.ModuleRef, library: str, machine: llvm.TargetMachine) -> None:
    """Links libdevice into a module, and drops its functions that no other one calls: it has hundreds, and to verify
    and to simplify them all takes longer than the code of most kernels."""
    parse_library(library)
    functions = _libraries.pop(library)
    functions.triple, functions.data_layout = module.triple, module.data_layout
    names = [function.name for function in functions.functions if not function.is_declaration]
    module.link_in(functions)
    for name in names:
        module.get_function(name).linkage = llvm.Linkage.internal
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


def to_ptx(llvm_ir: str, chip: str, library: str | None = None) -> str:
    """Returns the PTX of an LLVM IR module, optimized at O3 for `chip`, such as "sm_80".

    Args:
        llvm_ir: text of the module, without a target.
        chip: the GPU's architecture, as LLVM names it.
        library: the path of libdevice, for a module that calls its functions.

    Raises:
        RuntimeError: LLVM does not parse or verify the module.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(_TRIPLE).create_target_machine(cpu=chip, features=_features(llvm_ir, chip), opt=3)
    header = f'target triple = "{_TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'
    module = llvm.parse_assembly(header + llvm_ir)
    if library is not None:
        _link(module, library, machine)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    # Vectors are those of the IR; the vectorizer of loops fails an assertion for some loops over f16.
    options.loop_vectorization = False
    # Copies of a loop around wgmma cost registers, of which accumulators take most.
    options.loop_unrolling = "wgmma.mma_async" not in llvm_ir
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


def main() -> None:
    """Translates standard input to standard output, by the arguments of the command."""
    sys.stdout.write(to_ptx(sys.stdin.read(), *sys.argv[1:]))


if __name__ == "__main__":
    end_with_starter()
    main()
