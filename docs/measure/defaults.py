"""Makes the pipelines' default knobs from what was measured: transforms/defaults/PIPELINE.json.

    python docs/measure/defaults.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NAME = re.compile(r"(\w+)_sizes_(\w+)")
_BITS = {"f16": 16, "f32": 32, "i8": 8, "i32": 32}
# Knobs that say where a kernel runs, not how.
_NOT_TUNED = ("target",)


def _entry(problem: dict, bundle: dict) -> dict:
    knobs = {name: value for name, value in bundle["knobs"].items() if name not in _NOT_TUNED}
    return {"m": problem["m"], "n": problem["n"], "k": problem["k"], "a_bits": _BITS[problem["a_type"]],
            "c_bits": _BITS[problem["c_type"]], "knobs": knobs}


def main() -> None:
    """Writes a file for every pipeline that was measured over sizes, with the types that were measured beside them."""
    pipelines: dict[str, list[dict]] = {}
    card = ""
    results = ROOT / "docs" / "results"
    for path in sorted(results.glob("*_sizes_*.json")):
        pipeline, _ = _NAME.fullmatch(path.stem).groups()
        for measured in json.loads(path.read_text())["sizes"].values():
            card = measured["card"]["name"]
            pipelines.setdefault(pipeline, []).append(
                _entry(measured["problem"], measured["bundles"][measured["best"]]))
    for path in sorted(results.glob("*_types.json")):
        problems = pipelines[path.stem.removesuffix("_types")]
        for layouts in json.loads(path.read_text())["types"].values():
            measured = layouts["row-row"]
            if measured["problem"]["a_type"] in ("i8", "f32"):  # of one setting each; 16-bit types have their sizes
                problems.append(_entry(measured["problem"], measured["bundles"]["large"]))
    for pipeline, problems in pipelines.items():
        target = ROOT / "transforms" / "defaults" / f"{pipeline}.json"
        target.parent.mkdir(exist_ok=True)
        lines = ",\n".join("    " + json.dumps(problem) for problem in problems)
        target.write_text(f'{{\n  "measured_on": "{card}",\n  "made_by": "python docs/measure/defaults.py",\n'
                          f'  "problems": [\n{lines}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
