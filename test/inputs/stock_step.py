"""Runs each step of wmma_upstream alone in a stock mlir-opt, on the dump of the step before it, and then all at once.

    stock_step.py MLIR_OPT TRANSFORMS DUMPS WORK [PIPELINE STEP,...]

DUMPS is what `stepladder-opt --pipeline wmma_upstream --dump-dir` left. For each step a pipeline of that one step is cut
out of wmma_upstream.mlir: the same declarations, the same knobs, one `transform.include`. The stock mlir-opt must leave
as many operations of each kind as stepladder-opt did. Prints a line for each step. With PIPELINE, only the named steps
of that pipeline: those that wmma_upstream does not have.
"""

import collections
import re
import subprocess
import sys
from pathlib import Path

mlir_opt, transforms, dumps, work = sys.argv[1], *map(Path, sys.argv[2:5])
pipeline, only = (sys.argv[5], sys.argv[6].split(",")) if len(sys.argv) > 5 else ("wmma_upstream", [])
ELSEWHERE = {"copy_asynchronously", "swizzle_shared_memory", "pipeline_copies", "bypass_l1"}  # in mma_sync
work.mkdir(parents=True, exist_ok=True)
INCLUDE = re.compile(r" *(?:(%\w+) = )?transform\.include @(\w+) failures\(propagate\) \((.*)\)\n? *: .*\n")
RENAMED = {"nvvm.barrier0": "nvvm.barrier"}  # between LLVM 22 and the bindings
OPERATION = re.compile(r"^\s*(?:%[\w:, ]+ = )?\"?([a-z]\w*\.[\w.]+|call|return|module)\b", re.MULTILINE)


def driver(step: str) -> Path:
    """Writes a pipeline that includes `step` alone, and returns its path."""
    script = (transforms / f"{pipeline}.mlir").read_text()

    def keep(include):
        return re.sub(r"%(kernels|nvvm)\b(?=[,)])", "%module", include.group(0)) if include.group(2) == step else ""

    path = work / f"{step}_alone.mlir"
    path.write_text(INCLUDE.sub(keep, script).replace(f"@{pipeline}(", f"@{step}_alone("))
    return path


def counts(text: str) -> collections.Counter:
    """Returns operation name -> how often it occurs; constants are left out, they come and go with folding."""
    return collections.Counter(RENAMED.get(name, name) for name in OPERATION.findall(text)
                               if name not in ("arith.constant", "llvm.mlir.constant", "ub.poison"))


def agrees(what: str, entry_point: str, script: Path, before: Path, after: Path) -> bool:
    """Runs a named sequence over `before` and tells whether the outcome has the operations of `after`."""
    # Passes run in the order in which they are named.
    done = subprocess.run([mlir_opt, str(before),
                           f"--transform-preload-library=transform-library-paths={transforms / 'steps'},{script}",
                           f"--transform-interpreter=entry-point={entry_point}"], capture_output=True, text=True)
    if done.returncode:
        print(f"{what}: fails: {done.stderr[:500]}")
        return False
    ours, stock = counts(after.read_text()), counts(done.stdout)
    different = {name: (ours[name], stock[name]) for name in ours | stock if ours[name] != stock[name]}
    print(f"{what}: {f'(stepladder-opt, stock): {different}' if different else 'same operations'}")
    return bool(ours) and not different


files = sorted(dumps.glob("*.mlir"))
steps = [after.stem.partition("-")[2] for after in files[1:]]
results = [agrees(step, f"{step}_alone", driver(step), before, after)
           for step, before, after in zip(steps, files, files[1:]) if not only or step in only]
if only:
    sys.exit(not all(results) or len(results) != len(only))
results.append(agrees("wmma_upstream", "wmma_upstream", transforms / "wmma_upstream.mlir", files[0], files[-1]))

uncovered = {path.stem for path in (transforms / "steps").glob("*.mlir")} - set(steps) - ELSEWHERE
print(f"steps of upstream ops that did not run: {', '.join(sorted(uncovered)) or 'none'}")
sys.exit(not all(results) or bool(uncovered))
