"""The table of types in docs/payload.md: what it says a pipeline multiplies is right, and anything else is refused."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from combinations import SEED, combinations, sample
from conftest import PROFILE
from quantized_payloads import extended_matmul
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from test_epilogues import check
from test_types import LAYOUTS, TILES, WARPS, check_numbers, typed

PAGE = Path(__file__).resolve().parents[2] / "docs" / "payload.md"
SIZES = [(1, 1, 1), (33, 37, 41), (64, 64, 64), (7, 128, 31), (128, 1, 96), (101, 16, 8)]
UNLIKE = [(33, 72, 50), (8, 40, 17)]  # of which no two are alike, for operands of two types
NONE = "none"


@dataclass(frozen=True)
class Cell:
    """A cell of the table: the types of A and B, of the sums, those that C may have, and the first target or none."""

    operands: tuple[str, ...]
    sums: str
    stored: tuple[str, ...]
    pipeline: str
    target: str

    def payload(self, drawn: random.Random) -> str:
        """Returns a payload of these types."""
        types = (self.operands[0], self.operands[-1], self.sums, drawn.choice(self.stored))
        sizes = SIZES if len(self.operands) == 1 else UNLIKE
        return typed(*drawn.choice(sizes), types, drawn.choice(LAYOUTS))


def cells() -> list[Cell]:
    """Reads the table."""
    lines = PAGE.read_text().partition("## Types\n")[2].partition("\n## ")[0].splitlines()
    rows = [[text.strip() for text in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    pipelines = [name.strip("`") for name in rows[0][3:]]
    return [
        Cell(tuple(operands.split(", ")), sums, tuple(stored.split(", ")), pipeline, target)
        for operands, sums, stored, *targets in rows[2:]
        for pipeline, target in zip(pipelines, targets)
    ]


CELLS = cells()


@pytest.mark.parametrize("cell", sample([cell for cell in CELLS if cell.target != NONE], 5))
def test_what_the_table_has_is_right(cell: Cell) -> None:
    """With the knobs that `compile` chooses; an earlier target is refused."""
    text = cell.payload(random.Random(f"{SEED} {cell}"))
    print(text)
    check_numbers(text, Request(cell.pipeline, {"target": cell.target}, tuned=True))
    with mlir_context():
        options = library.load(cell.pipeline).knobs["target"].options
        for earlier in options[: options.index(cell.target)]:
            with pytest.raises(StepladderError, match="require target"):
                run_pipeline(text, "payload.mlir", Request(cell.pipeline, {"target": earlier}, tuned=True))


@pytest.mark.parametrize("cell", sample([cell for cell in CELLS if cell.target == NONE], 4))
def test_what_it_does_not_have_is_refused_by_type(cell: Cell) -> None:
    text = cell.payload(random.Random(f"{SEED} {cell}"))
    print(text)
    with mlir_context():
        target = library.load(cell.pipeline).knobs["target"].options[-1]
        with pytest.raises(
            StepladderError,
            match=r"element type of A must be|A and B must have the same element type|does not multiply f16 by bf16",
        ) as caught:
            run_pipeline(text, "payload.mlir", Request(cell.pipeline, {"target": target}, tuned=True))
    assert caught.value.location.startswith("payload.mlir:")


SIGNS = [(a, b) for a in ("extsi", "extui") for b in ("extsi", "extui")]
PIPELINES = {
    "wmma": {**WARPS, "block_k": 64},
    "mma_sync": {**WARPS, "block_k": 64},
    "wgmma": {**TILES, "epilogue": "registers"},
}


@pytest.mark.parametrize("extensions, pipeline", combinations(SIGNS[1:], PIPELINES))
def test_signed_and_unsigned_integers(extensions: tuple[str, str], pipeline: str) -> None:
    """Numbers of i8 that are extended by zeros, of A, B or both."""
    drawn = random.Random(f"{SEED} {extensions} {pipeline}")
    size = [drawn.choice((2, 16, 33)) for _ in "mnk"]
    text = extended_matmul(*size, extensions, accumulate=drawn.random() < 0.5, in_body=drawn.random() < 0.5)
    print(text)
    check(text, pipeline, PIPELINES[pipeline], levels="three" if PROFILE == "random" else "last")


_SATISFIED = re.compile(r"satisfied by (\w+) = (.*)")


@pytest.mark.parametrize("type_, hints", [("f32", 1), ("f64", 1), ("i8", 1), ("f8E5M2", 1)])
def test_defaults_of_the_script_are_refused_with_knobs_that_would_do(type_: str, hints: int) -> None:
    """The defaults of the script are those of f16; its notes lead to knobs that compile other types."""
    sums = {"f64": "f64", "i8": "i32"}.get(type_, "f32")
    text = typed(256, 256, 256, (type_, type_, sums, sums), LAYOUTS[0])
    knobs = {"target": "sm_90"}
    with mlir_context():
        for _ in range(hints):
            with pytest.raises(StepladderError) as caught:
                run_pipeline(text, "payload.mlir", Request("mma_sync", knobs))
            found = _SATISFIED.match(caught.value.notes[0])
            assert found, caught.value.render()
            knobs[found[1]] = found[2].split(" or ")[-1]
        run_pipeline(text, "payload.mlir", Request("mma_sync", knobs))
