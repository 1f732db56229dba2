"""Which ops of MLIR's dialects the emulator executes: docs/results/emulator_coverage.json.

python benchmarks/coverage.py          prints what is missing as well
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

from pieces import DOCS, write_result

from stepladder.emulator import dialects  # noqa: F401  (registers what executes ops)
from stepladder.emulator.core import control_flow  # noqa: F401  (registers what executes ops)
from stepladder.emulator.core.registry import EXECUTED, LOWERED
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
# What is left out, by patterns of names, and why.
LEFT_OUT = {
    r"nvvm\.tcgen05\..*|nvvm\.tensormap.*|nvvm\.clusterlaunchcontrol.*|nvvm\.st\.bulk|nvvm\.cvt\..*|nvvm\.convert.*": "of Blackwell, or of types that no step here uses",
    r"llvm\.intr\.(vp\..*|experimental.*|coro\..*|eh\..*|dbg\..*|masked.*|vector\.(interleave|deinterleave).*)": "vector predication, coroutines, exceptions and debug records: IR of other targets or of no effect",
    r"llvm\.(mlir\.(alias|ifunc|global_ctors|global_dtors|none)|landingpad|resume|invoke|va_arg|indirectbr|blockaddress|"
    r"blocktag|callbr|intr\.va.*|linker_options|module_flags|dso_local_equivalent|comdat.*|call_intrinsic)": "linkage, exceptions and computed jumps, which kernels do not have",
    r"async\.(coro|runtime|call|func|return).*": "what async regions are lowered to: run the level above",
    r"gpu\.(spmm.*|spmv.*|sddmm.*|spgemm.*|create_.*|destroy_.*|set_csr.*|spmat.*|.*dn_.*)": "sparse libraries of the vendor",
    r"nvvm\.read\.ptx\.sreg\.(envreg.*|aggr\.smem\.size|dynamic\.smem\.size)": "what the driver puts there",
    r"nvvm\.mma\.(sp|block_scale).*|nvgpu\.mma\.sp\.sync": "sparse and block-scaled products: no step makes them",
    r"nvvm\.cp\.async\.bulk\.(global|shared).*|nvvm\.cp\.async\.bulk\.tensor\.reduce": "bulk copies without a tensor map, and reductions, which steps write as PTX",
    r"gpu\.subgroup_mma_(extract|insert)_thread_local": "which thread holds which element is not said by the op",
    r"gpu\.(warp_execute_on_lane_0|initialize_named_barrier)": "lowered before anything runs",
    r"(affine|memref)\.dma_.*": "of machines with DMA engines",
    r"vector\.(scalable.*|vscale)|llvm\.intr\.vscale|llvm\.intr\.get\.active\.lane\.mask": "scalable vectors",
    r"arith\.(scaling_.*|flush_denormals)": "block-scaled types, and modes of a CPU",
    r"linalg\.fill_rng_2d": "pseudo-random numbers of one benchmark",
    r"gpu\.(binary|module_to_binary)": "compiled code",
    r"linalg\.(winograd.*|softmax)": "decomposed before anything runs",
}


def ops_of(dialect: str) -> list[str]:
    """Returns the names of a dialect's ops, as the bindings list them."""
    package = importlib.import_module(f"{bindings.ir.__name__.rpartition('.')[0]}.dialects")
    names = set()
    for module in pkgutil.iter_modules(package.__path__):
        if re.fullmatch(rf"_{dialect}_(\w+_)?ops_gen|_{dialect}_ops_gen", module.name):
            generated = importlib.import_module(f"{package.__name__}.{module.name}")
            names |= {
                found.OPERATION_NAME
                for _, found in inspect.getmembers(generated, inspect.isclass)
                if isinstance(getattr(found, "OPERATION_NAME", None), str)
            }
    return sorted(name for name in names if name.startswith(f"{dialect}."))


def is_known(name: str) -> bool:
    """Returns whether the emulator executes an op, or what it is a part of."""
    return (
        name in EXECUTED
        or name in LOWERED
        or name in (*control_flow.JUMPS, *control_flow.BRANCHES, *control_flow.SWITCHES)
        or bool(_ENDS.fullmatch(name))
    )


def reason_for(name: str) -> str:
    """Returns why an op is left out; empty where it is a gap."""
    return next((reason for pattern, reason in LEFT_OUT.items() if re.fullmatch(pattern, name)), "")


def main(path: Path = DOCS / "results" / "emulator_coverage.json") -> None:
    """Writes which ops are known, left out with a reason, and missing."""
    found = {}
    for dialect in DIALECTS:
        names = ops_of(dialect)
        missing = [name for name in names if not is_known(name)]
        found[dialect] = {
            "ops": len(names),
            "known": len(names) - len(missing),
            "left_out": {name: reason_for(name) for name in missing if reason_for(name)},
            "missing": [name for name in missing if not reason_for(name)],
        }
        print(
            f"{dialect}: {found[dialect]['known']} of {len(names)}, {len(found[dialect]['left_out'])} left out; "
            f"missing: {' '.join(name.removeprefix(f'{dialect}.') for name in found[dialect]['missing'])}"
        )
    write_result(path, {"dialects": found})


if __name__ == "__main__":
    main()
