"""LLVM IR to SPIR-V, as a process of its own.

    python -m stepladder.pipeline.codegen.spirv_backend < kernel.ll > kernel.spv

LLVM ends the process when it cannot select an instruction, so `spirv` runs this module in a child.
"""

from __future__ import annotations

import re
import sys

import llvmlite.binding as llvm

from stepladder.runtime.processes import end_with_starter

_TRIPLE = "spirv64v1.2-unknown-unknown"  # the version that OpenCL 2.2 and Level Zero take
_EXTENSIONS = "+SPV_INTEL_cache_controls,+SPV_INTEL_subgroups,+SPV_EXT_shader_atomic_float_add"
# MLIR calls the shuffle of SPIR-V 1.3; that of Intel's extension is the same function in SPIR-V 1.2.
_SHUFFLE = re.compile(r"@_Z(17|21)(sub_group_shuffle(?:_xor)?)")
# A cache hint: the pointer that it is of, and the text that says level and control.
_HINT = re.compile(
    r"^(?P<indent> *)(?P<name>%[\w.]+) = (?P<call>(?:tail )?call (?P<type>ptr addrspace\(1\)) @llvm\.ptr\.annotation"
    r"[\w.]*\((?:ptr addrspace\(1\)) (?:[a-z]+ )*)(?P<pointer>[%@][\w.]+)(?P<middle>, ptr addrspace\(1\) )"
    r"(?P<text>@[\w.]+)(?P<rest>,.*)$",
    re.MULTILINE,
)


def with_shuffles_of_intel(llvm_ir: str) -> str:
    """Returns LLVM IR in which shuffles of lanes are functions of Intel's extension.

    Args:
        llvm_ir: as text.
    """
    return _SHUFFLE.sub(lambda match: f"@_Z{int(match[1]) + len('intel_')}intel_{match[2]}", llvm_ir)


def separated(llvm_ir: str) -> str:
    """Returns LLVM IR in which each cache hint has a pointer of its own.

    The back end decorates the pointer that a hint is of. Optimized code uses one pointer for loads and for prefetches,
    so that its decoration would be of all of them, and there several times. spirv-val takes one decoration a pointer,
    so that two levels of caches are two pointers; that of the first level comes last, which is what the call takes.

    Args:
        llvm_ir: as text, with the metadata of cache hints.
    """
    hints = {match["name"]: match for match in _HINT.finditer(llvm_ir)}
    text_of = {name: match["text"] for name, match in hints.items()}
    for name, match in hints.items():
        pointer = match["pointer"]
        if pointer in hints and hints[pointer]["pointer"] not in hints:  # the second of two levels
            text_of[name], text_of[pointer] = text_of[pointer], text_of[name]

    def separate(hint: re.Match[str]) -> str:
        separate_pointer = f"%hinted.{hint['name'][1:]}"
        return (
            f"{hint['indent']}{separate_pointer} = getelementptr i8, {hint['type']} {hint['pointer']}, i64 0\n"
            f"{hint['indent']}{hint['name']} = {hint['call']}{separate_pointer}{hint['middle']}{text_of[hint['name']]}"
            f"{hint['rest']}"
        )

    return _HINT.sub(separate, llvm_ir)


def to_spirv(llvm_ir: str) -> bytes:
    """Returns the SPIR-V module of an LLVM IR module, optimized at O3.

    Args:
        llvm_ir: text of the module, without a target.

    Raises:
        RuntimeError: LLVM does not parse or verify the module.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("stepladder", f"--spirv-ext={_EXTENSIONS}")
    machine = llvm.Target.from_triple(_TRIPLE).create_target_machine(opt=0)
    header = f'target triple = "{_TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'
    module = llvm.parse_assembly(header + with_shuffles_of_intel(llvm_ir))
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    # The loop over k has the instructions that a target's own compiler schedules; copies of it would be in its way.
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(llvm.parse_assembly(separated(str(module))))


if __name__ == "__main__":
    end_with_starter()
    sys.stdout.buffer.write(to_spirv(sys.stdin.read()))
