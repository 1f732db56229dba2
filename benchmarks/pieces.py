"""What the measurements share, and the tables and plots of all documents are made with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def said_command() -> list[str]:
    """Returns the command line as a result says it: a path outside of the checkout is its last part."""
    return [Path(word).name if Path(word).is_absolute() else word for word in sys.argv]


def result(name: str) -> dict:
    """Returns what was measured: docs/results/NAME.json."""
    return json.loads((DOCS / "results" / f"{name}.json").read_text())


def write_result(path: Path, measured: dict) -> None:
    """Replaces a result as a whole: a call that is cut off leaves the one before."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(measured) + "\n")
    part.replace(path)


def table(rows: list[dict[str, str]]) -> str:
    """Returns rows, which have the same columns, as a table in Markdown."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(row[column] for column in head) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def where(measured: dict) -> str:
    """Returns card, driver and day of a measurement."""
    card = measured["card"]
    return f"{card['name']}, driver for CUDA {card['driver_cuda_version']}, {measured['date'][:10]}"


def median(measured: dict, kernel: str, mode: str = "burst") -> float:
    """Returns a kernel's median TFLOP/s in what `bench` measured."""
    return measured["modes"][mode]["kernels"][kernel]["tflops_spread"]["median"]


def ratio(measured: dict, kernel: str, other: str, mode: str = "burst") -> str:
    """Returns the median ratio of two kernels in what `bench` measured."""
    spread = measured["modes"][mode]["ratios"][kernel][other]["spread"]
    return f"{spread['median']:.3f}"


def save(figure, path: Path) -> None:
    """Writes a plot."""
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    # Neither a date nor random ids: the same results give the same file.
    figure.savefig(path, metadata={"Date": None})
