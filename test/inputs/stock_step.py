"""Runs every step of upstream ops alone in a stock mlir-opt, on the dump of the step before it, and one pipeline whole.

    stock_step.py MLIR_OPT TRANSFORMS WORK DUMPS...

Each folder of DUMPS is called as the pipeline that left it (`stepladder-opt --pipeline NAME --dump-dir NAME`), the
first wmma_upstream, whose knobs by default are those of the literals in the steps. From the others only those steps are
run that no folder before had. For each step a pipeline of that one step is cut out of the script: its declarations,
also those that the runner supplies, the same knobs, one `transform.include`. The stock mlir-opt must leave as many
operations of each kind as stepladder-opt did. Prints a line for each step.
"""

import collections
import itertools
import re
import subprocess
import sys
from pathlib import Path

from stepladder.pipeline import scripts
from stepladder.pipeline.context import mlir_context

mlir_opt, transforms, work, *folders = sys.argv[1], *map(Path, sys.argv[2:])
work.mkdir(parents=True, exist_ok=True)
INCLUDE = re.compile(r" *(?:(%\w+) = )?transform\.include @(\w+) failures\(propagate\) \((.*)\)\n? *: .*\n")
RENAMED = {"nvvm.barrier0": "nvvm.barrier"}  # between LLVM 22 and the bindings
# What LLVM 22 folds where the bindings do not, by step.
FOLDED = {"narrow_indices": ("arith.index_cast", "arith.index_castui")}
OPERATION = re.compile(r"^\s*(?:%[\w:, ]+ = )?\"?([a-z]\w*\.[\w.]+|call|return|module)\b", re.MULTILINE)


def driver(pipeline: str, step: str) -> Path:
    """Writes a pipeline that includes `step` alone, and returns its path."""
    script = scripts.declared(transforms / f"{pipeline}.mlir")

    def keep(include: re.Match[str]) -> str:
        return re.sub(r"%(kernels|nvvm)\b(?=[,)])", "%module", include.group(0)) if include.group(2) == step else ""

    path = work / f"{step}_alone.mlir"
    path.write_text(INCLUDE.sub(keep, script).replace(f"@{pipeline}(", f"@{step}_alone("))
    return path


def counts(text: str) -> collections.Counter:
    """Returns operation name -> how often it occurs; constants are left out, they come and go with folding."""
    return collections.Counter(
        RENAMED.get(name, name)
        for name in OPERATION.findall(text)
        if name not in ("arith.constant", "llvm.mlir.constant", "ub.poison")
    )


def agrees(what: str, entry_point: str, script: Path, before: Path, after: Path) -> bool:
    """Runs a named sequence over `before` and tells whether the outcome has the operations of `after`."""
    # Passes run in the order in which they are named.
    done = subprocess.run(
        [
            mlir_opt,
            str(before),
            f"--transform-preload-library=transform-library-paths={transforms / 'steps'},{script}",
            f"--transform-interpreter=entry-point={entry_point}",
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(f"{what}: fails: {done.stderr[:500]}")
        return False
    ours, stock = counts(after.read_text()), counts(done.stdout)
    different = {
        name: (ours[name], stock[name])
        for name in ours | stock
        if ours[name] != stock[name] and name not in FOLDED.get(what, ())
    }
    print(f"{what}: {f'(stepladder-opt, stock): {different}' if different else 'same operations'}")
    return bool(ours) and not different


# Steps include these, pipelines do not; test/stock/generalize_elementwise.test runs one of them alone.
shared = {"canonicalize", "drop_batch_dimension", "generalize_elementwise"}
# Ops and passes of XeGPU and XeVM differ between LLVM 22 and the bindings.
xe = {path.stem for path in (transforms / "steps").glob("*.mlir") if re.search(r"xegpu|xevm", path.read_text())}
upstream = {path.stem for path in (transforms / "steps").glob("*.mlir")} - shared - xe
ran: set[str] = set()
results = []
for folder in folders:
    files = sorted(folder.glob("*.mlir"))
    for before, after in itertools.pairwise(files):
        step = after.stem.partition("-")[2]
        if step in upstream - ran:
            ran.add(step)
            with mlir_context():
                script = driver(folder.name, step)
            results.append(agrees(step, f"{step}_alone", script, before, after))
    if folder.name == "wmma_upstream":
        results.append(agrees(folder.name, folder.name, transforms / "wmma_upstream.mlir", files[0], files[-1]))

print(f"steps of upstream ops that did not run: {', '.join(sorted(upstream - ran)) or 'none'}")
sys.exit(not all(results) or ran != upstream)
