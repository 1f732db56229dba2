"""Times the matmuls of BERT large and the contractions of figures 7 and 11 of Katel et al. beside library calls.

Katel, Khandelwal, Bondhugula, "MLIR-based code generation for GPU tensor cores" (2022). BERT large has a batch of
eight sequences of 384 tokens: the linear layers, and the two products of the attention. The contraction is
C[m, n] = sum over k, l of A[m, k, l] * B[l, k, n], whose figure names no sizes. Problems are built, checked and timed
as in `drawn_forms.py`.

Needs PyTorch on the machine with the GPU, and MLIR and ptxas where kernels are built, there or elsewhere:

    python benchmarks/figures.py
    python benchmarks/figures.py --build kernels
    python benchmarks/figures.py --built kernels
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from common import run
from drawn_forms import forms_parser, run_forms
from forms import Form

_ROWS, _HIDDEN, _WIDE = 8 * 384, 1024, 4096
_HEADS, _TOKENS, _DEPTH = 8 * 16, 384, 64
# m, n, k and l of contractions.
_CONTRACTED = (
    (1024, 1024, 32, 32),
    (2048, 2048, 32, 64),
    (2048, 2048, 64, 32),
    (3072, 1024, 64, 64),
    (4096, 2048, 128, 64),
    (4096, 4096, 64, 64),
    (8192, 8192, 128, 64),
)
FIGURES: dict[str, list[Form]] = {
    "BERT large": [
        *(
            Form("transposed", "mk,nk->mn", {"m": _ROWS, "n": n, "k": k})
            for n, k in ((_HIDDEN, _HIDDEN), (3 * _HIDDEN, _HIDDEN), (_WIDE, _HIDDEN), (_HIDDEN, _WIDE))
        ),
        Form("batched", "bmk,bnk->bmn", {"b": _HEADS, "m": _TOKENS, "n": _TOKENS, "k": _DEPTH}),
        Form("batched", "bmk,bkn->bmn", {"b": _HEADS, "m": _TOKENS, "n": _DEPTH, "k": _TOKENS}),
    ],
    "contraction": [Form("contraction", "mkl,lkn->mn", dict(zip("mnkl", sizes, strict=True))) for sizes in _CONTRACTED],
}


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    return forms_parser(__doc__, "figures")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the problems of both figures.

    Args:
        arguments: of the command line; those of the process unless told.
    """
    args = make_parser().parse_args(arguments)
    run_forms([form for forms in FIGURES.values() for form in forms], args, {})


if __name__ == "__main__":
    run(main)
