"""The drawn matmuls that `drawn_forms.py` times: transposed operands, batches, epilogues and contractions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from draw import MAX_BYTES, MAX_OPERATIONS, log_uniform
from fused_epilogues import CASES

SEED, COUNT = 20261126, 80
MIN, MAX, MAX_OF_BATCH = 64, 8192, 2048

# Dimensions of A, B and C, as `einsum` writes them: m, n, k and b, and the parts of a dimension of a contraction.
_TRANSPOSED = ("km,kn->mn", "mk,nk->mn", "km,nk->mn")
_BATCHED = ("bmk,bkn->bmn", "bmk,bnk->bmn", "bkm,bkn->bmn", "bmk,kn->bmn")
_FUSED = ("mk,kn->mn", "mk,nk->mn")
_FEW_ROWS = ("bmk,bkn->bmn", "bmk,bnk->bmn")
# Of batches of few rows: matmuls, rows, columns, k, and bytes.
_MATMULS, _ROWS, _COLUMNS, _DEPTHS, _BYTES = (2, 64), (2, 48), (64, 14336), (64, 4096), (2e6, 6e8)
_CONTRACTIONS = ("mkl,lkn->mn", "mkl,kln->mn", "mpk,kn->mpn", "mpk,nk->nmp", "kmp,kn->mpn", "mkp,kln->mpln")


@dataclass(frozen=True)
class Form:
    """A problem.

    Attributes:
        kind: one of `KINDS`.
        spec: the dimensions of A, B and C, as `einsum` writes them.
        sizes: the extent of each dimension.
        epilogue: one of `fused_epilogues.CASES`, or empty.
    """

    kind: str
    spec: str
    sizes: dict[str, int] = field(hash=False)
    epilogue: str = ""

    @property
    def dimensions(self) -> tuple[str, str, str]:
        """The dimensions of A, B and C."""
        inputs, result = self.spec.split("->")
        a, b = inputs.split(",")
        return a, b, result

    @property
    def flops(self) -> int:
        """Multiplications and additions of the product."""
        return 2 * math.prod(self.sizes[letter] for letter in set(self.spec) if letter.isalpha())

    @property
    def bytes(self) -> int:
        """Bytes of A, B and C."""
        return 2 * sum(math.prod(self.shape(dimensions)) for dimensions in self.dimensions)

    @property
    def name(self) -> str:
        """The form and its sizes, for tables."""
        sizes = ", ".join(f"{letter} = {size}" for letter, size in self.sizes.items())
        return f"{self.spec}{f' {self.epilogue}' if self.epilogue else ''}, {sizes}"

    def shape(self, dimensions: str) -> tuple[int, ...]:
        """Returns the extents of some dimensions.

        Args:
            dimensions: as `einsum` writes them.
        """
        return tuple(self.sizes[letter] for letter in dimensions)


def sized(rng: random.Random, kind: str, spec: str, most: int, epilogue: str = "") -> Form:
    """Returns a form of random sizes.

    Args:
        rng: of the random numbers.
        kind, spec, epilogue: as `Form` has them.
        most: the largest extent of a dimension that has no parts.
    """
    letters = sorted({letter for letter in spec if letter.isalpha()})
    parts = {"p", "l"} & set(letters)
    sizes = {}
    for letter in letters:
        if letter == "b":
            sizes[letter] = rng.randrange(2, 65)
        elif letter in parts or ("l" in parts and letter == "k"):
            sizes[letter] = log_uniform(rng, 8, 128, 8)
        else:
            sizes[letter] = log_uniform(rng, MIN, most, 8)
    return Form(kind, spec, sizes, epilogue)


KINDS: dict[str, Callable[[random.Random], Form]] = {
    "transposed": lambda rng: sized(rng, "transposed", rng.choice(_TRANSPOSED), MAX),
    "batched": lambda rng: sized(rng, "batched", rng.choice(_BATCHED), MAX_OF_BATCH),
    "fused": lambda rng: sized(rng, "fused", rng.choice(_FUSED), MAX, rng.choice(list(CASES))),
    "contraction": lambda rng: sized(rng, "contraction", rng.choice(_CONTRACTIONS), MAX_OF_BATCH),
}


def draw(count: int = COUNT, seed: int = SEED) -> list[Form]:
    """Returns `count` problems; the kinds alternate.

    Args:
        count, seed: as for `draw.draw`.
    """
    rng = random.Random(seed)
    forms: list[Form] = []
    while len(forms) < count:
        form = list(KINDS.values())[len(forms) % len(KINDS)](rng)
        if form.flops <= MAX_OPERATIONS / 4 and form.bytes <= MAX_BYTES / 4:
            forms.append(form)
    return forms


def draw_few_rows(count: int, seed: int) -> list[Form]:
    """Returns `count` batches of matmuls with few rows, as experts and heads have where a language model decodes.

    Args:
        count, seed: as for `draw.draw`.
    """
    rng = random.Random(seed)
    forms: list[Form] = []
    while len(forms) < count:
        sizes = {"b": log_uniform(rng, *_MATMULS, 1), "m": log_uniform(rng, *_ROWS, 1)}
        sizes |= {"n": log_uniform(rng, *_COLUMNS, 8), "k": log_uniform(rng, *_DEPTHS, 8)}
        form = Form("batched", rng.choice(_FEW_ROWS), sizes)
        if sizes["b"] > 1 and sizes["m"] > 1 and _BYTES[0] <= form.bytes <= _BYTES[1]:
            forms.append(form)
    return forms
