"""Lists the ops of MLIR's dialects that the emulator executes: docs/results/emulator_coverage.json.

Prints the missing ops, and needs no GPU:

    python benchmarks/emulator_coverage.py
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

from common import result_parser, run, write_result
from stepladder.emulator import dialects  # noqa: F401  (registers the ops that it executes)
from stepladder.emulator.core import control_flow
from stepladder.emulator.core.registry import EXECUTED, LOWERED
from stepladder.emulator.ptx import inline, nvvm_ops  # noqa: F401  (registers the same)
from stepladder.mlir import bindings

DIALECTS = (
    "affine",
    "arith",
    "async",
    "bufferization",
    "builtin",
    "cf",
    "complex",
    "func",
    "gpu",
    "index",
    "linalg",
    "llvm",
    "math",
    "memref",
    "nvgpu",
    "nvvm",
    "scf",
    "tensor",
    "ub",
    "vector",
)
# Ops that have no instruction of their own: those that end a region of another op.
_ENDS = re.compile(
    r"(affine|async|gpu|linalg|memref|scf|tensor|vector|bufferization)\.(yield|atomic_yield|condition|"
    r"reduce|reduce\.return|forall\.in_parallel|in_parallel|terminator|alloca_scope\.return)"
)
# Reason why the emulator leaves ops out -> pattern of their names.
LEFT_OUT = {
    "Blackwell, or types that no step uses": (
        r"nvvm\.tcgen05\..*|nvvm\.tensormap.*|nvvm\.clusterlaunchcontrol.*|nvvm\.st\.bulk|nvvm\.cvt\..*|"
        r"nvvm\.convert.*"
    ),
    "vector predication, coroutines, exceptions, debug records: not in GPU kernels, or without effect": (
        r"llvm\.intr\.(vp\..*|experimental.*|coro\..*|eh\..*|dbg\..*)"
    ),
    "linkage, exceptions and computed jumps, which kernels do not have": (
        r"llvm\.(mlir\.(alias|ifunc|global_ctors|global_dtors|none)|landingpad|resume|invoke|va_arg|indirectbr|"
        r"blockaddress|blocktag|callbr|intr\.va.*|linker_options|module_flags|dso_local_equivalent|comdat.*|"
        r"call_intrinsic)"
    ),
    "lowered form of async regions: the level above is executed": r"async\.(coro|runtime|call|func|return).*",
    "sparse libraries of the vendor": (
        r"gpu\.(spmm.*|spmv.*|sddmm.*|spgemm.*|create_.*|destroy_.*|set_csr.*|spmat.*|.*dn_.*)"
    ),
    "values that the driver sets": r"nvvm\.read\.ptx\.sreg\.(envreg.*|aggr\.smem\.size|dynamic\.smem\.size)",
    "block-scaled products of Blackwell": r"nvvm\.mma\.(sp\.)?block_scale",
    "the op does not define which thread holds which element": r"gpu\.subgroup_mma_(extract|insert)_thread_local",
    "lowered before execution": r"gpu\.initialize_named_barrier",
    "machines with DMA engines": r"(affine|memref)\.dma_.*",
    "scalable vectors": r"vector\.(scalable.*|vscale)|llvm\.intr\.vscale|llvm\.intr\.get\.active\.lane\.mask",
    "block-scaled types, and CPU modes": r"arith\.(scaling_.*|flush_denormals)",
    "pseudo-random numbers of one benchmark": r"linalg\.fill_rng_2d",
    "compiled code": r"gpu\.(binary|module_to_binary)",
    "decomposed before execution": r"linalg\.(winograd.*|softmax)",
}


def ops_of(dialect: str) -> list[str]:
    """Returns the names of a dialect's ops, as the bindings list them.

    Args:
        dialect: its name.
    """
    package = importlib.import_module(f"{bindings.ir.__name__.rpartition('.')[0]}.dialects")
    names = set()
    for module in pkgutil.iter_modules(package.__path__):
        if re.fullmatch(rf"_{dialect}_(\w+_)?ops_gen|_{dialect}_ops_gen", module.name):
            generated = importlib.import_module(f"{package.__name__}.{module.name}")
            classes = inspect.getmembers(generated, inspect.isclass)
            names |= {getattr(class_, "OPERATION_NAME", None) for _, class_ in classes}
    return sorted(name for name in names if isinstance(name, str) and name.startswith(f"{dialect}."))


def is_known(name: str) -> bool:
    """Returns whether the emulator executes an op, or the op that it ends a region of.

    Args:
        name: of the op.
    """
    return (
        name in EXECUTED
        or name in LOWERED
        or name in (*control_flow.JUMPS, *control_flow.BRANCHES, *control_flow.SWITCHES)
        or bool(_ENDS.fullmatch(name))
    )


def reason_for(name: str) -> str:
    """Returns the reason why an op is left out; an empty text for a gap.

    Args:
        name: of the op.
    """
    return next((reason for reason, pattern in LEFT_OUT.items() if re.fullmatch(pattern, name)), "")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return result_parser(__doc__, "emulator_coverage")


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the ops that are executed, left out with a reason, and missing.

    Args:
        argv: the arguments of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(argv)
    coverage = {}
    for dialect in DIALECTS:
        names = ops_of(dialect)
        missing = [name for name in names if not is_known(name)]
        coverage[dialect] = {
            "ops": len(names),
            "known": len(names) - len(missing),
            "left_out": {name: reason_for(name) for name in missing if reason_for(name)},
            "missing": [name for name in missing if not reason_for(name)],
        }
        print(
            f"{dialect}: {coverage[dialect]['known']} of {len(names)}, {len(coverage[dialect]['left_out'])} left out; "
            f"missing: {' '.join(name.removeprefix(f'{dialect}.') for name in coverage[dialect]['missing'])}"
        )
    write_result(args.result, {"dialects": coverage})


if __name__ == "__main__":
    run(main)
