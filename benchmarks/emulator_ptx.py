"""Lists the instructions of PTX that the emulator executes: docs/results/emulator_ptx.json.

Prints those that are missing without a stated reason, and needs no GPU:

    python benchmarks/emulator_ptx.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import result_parser, run, write_result
from stepladder.emulator.ptx import instructions  # noqa: F401  (registers what it decodes)
from stepladder.emulator.ptx.registry import FAMILIES

# The instructions of PTX, by the groups of the PTX ISA's table of contents.
GROUPS = {
    "integers": (
        "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi szext bmsk dp4a dp2a "
        "add.cc addc sub.cc subc mad.cc madc"
    ),
    "floating point": "testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh",
    "comparison and selection": "set setp selp slct",
    "logic and shifts": "and or xor not cnot lop3 shf shl shr",
    "moves and conversions": (
        "mov prmt ld ldu st st.async st.bulk multimem prefetch prefetchu isspacep cvta cvt cvt.pack mapa getctarank "
        "applypriority discard createpolicy"
    ),
    "asynchronous copies": (
        "cp.async cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.bulk cp.reduce.async.bulk "
        "cp.async.bulk.prefetch cp.async.bulk.tensor cp.reduce.async.bulk.tensor cp.async.bulk.prefetch.tensor "
        "cp.async.bulk.commit_group cp.async.bulk.wait_group tensormap.replace"
    ),
    "synchronization": (
        "bar barrier bar.warp.sync barrier.cluster membar fence fence.proxy fence.mbarrier_init atom red red.async "
        "griddepcontrol elect.sync clusterlaunchcontrol"
    ),
    "mbarriers": (
        "mbarrier.init mbarrier.inval mbarrier.expect_tx mbarrier.complete_tx mbarrier.arrive mbarrier.arrive_drop "
        "cp.async.mbarrier.arrive mbarrier.test_wait mbarrier.try_wait mbarrier.pending_count tensormap.cp_fenceproxy"
    ),
    "threads of a warp": "shfl.sync shfl vote.sync vote match redux.sync activemask",
    "matrices of a warp": ("wmma.load wmma.store wmma.mma mma.sync mma.sp ldmatrix.sync stmatrix.sync movmatrix.sync"),
    "products of warpgroups": "wgmma.mma_async wgmma.mma_async.sp wgmma.fence wgmma.commit_group wgmma.wait_group",
    "control flow": "bra brx.idx call ret exit",
    "others": "brkpt nanosleep pmevent trap setmaxnreg alloca stacksave stackrestore istypep",
    "packed integers (SIMD)": (
        "vadd2 vadd4 vsub2 vsub4 vavrg2 vavrg4 vabsdiff2 vabsdiff4 vmin2 vmin4 vmax2 vmax4 vset2 vset4"
    ),
    "textures, surfaces and video": "tex tld4 txq suld sust sured suq vadd vsub vabsdiff vmin vmax vshl vshr vmad vset",
    "tensor memory": "tcgen05",
}
# Instructions that are registered under another name.
_LONGER = {
    "wmma.mma": "wmma.mma.sync",
    "mma.sp": "mma.sp.sync",
    **{f"{name}.cc": f"{name}c" for name in ("add", "sub", "mad")},
}
# Reason why the emulator leaves instructions out -> their names.
LEFT_OUT = {
    "Blackwell": "tcgen05 st.bulk clusterlaunchcontrol",
    "textures, surfaces and video, which kernels for matrix units do not use": (
        "tex tld4 txq suld sust sured suq istypep vadd vsub vabsdiff vmin vmax vshl vshr vmad vset"
    ),
    "instructions that newer ones replace": "shfl vote",
    "several GPUs": "multimem",
    "functions and stacks, which LLVM inlines in kernels": "alloca stacksave stackrestore",
    "the emulator's token is the phase alone": "mbarrier.pending_count",
}


def is_known(name: str) -> bool:
    """Returns whether the emulator decodes an instruction.

    Args:
        name: of the instruction in the PTX ISA.
    """
    return _LONGER.get(name, name) in FAMILIES


def reason_for(name: str) -> str:
    """Returns the reason why an instruction is left out; an empty text for a gap.

    Args:
        name: of the instruction in the PTX ISA.
    """
    return next((reason for reason, names in LEFT_OUT.items() if name in names.split()), "")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return result_parser(__doc__, "emulator_ptx")


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the instructions that are executed, left out with a reason, and missing.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    groups = {}
    for group, text in GROUPS.items():
        names = text.split()
        missing = [name for name in names if not is_known(name)]
        groups[group] = {
            "known": [name for name in names if name not in missing],
            "left_out": {name: reason_for(name) for name in missing if reason_for(name)},
            "missing": [name for name in missing if not reason_for(name)],
        }
        print(f"{group}: {len(groups[group]['known'])} of {len(names)}; missing: {' '.join(groups[group]['missing'])}")
    write_result(args.result, {"groups": groups})


if __name__ == "__main__":
    run(main)
