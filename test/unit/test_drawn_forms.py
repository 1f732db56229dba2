"""The drawn matmuls that `benchmarks/drawn_forms.py` times: what is drawn, and that payloads compute what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import stepladder
from combinations import sample
from small_integers import integers
from test_epilogues import TILES

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
drawn_forms = pytest.importorskip("drawn_forms", reason="not a checkout")
forms = pytest.importorskip("forms", reason="not a checkout")

SIZES = {"m": 24, "n": 16, "k": 8, "b": 2, "p": 3, "l": 4}


def small(form: forms.Form) -> forms.Form:
    sizes = {letter: SIZES[letter] for letter in form.sizes}
    return forms.Form(form.kind, form.spec, sizes, form.epilogue)


FORMS = list({(form.spec, form.epilogue): small(form) for form in forms.draw(200)}.values())


def test_kinds_alternate_and_a_longer_list_begins_with_the_shorter_one() -> None:
    drawn = forms.draw(12)
    assert [form.kind for form in drawn] == list(forms.KINDS) * 3
    assert forms.draw(20)[:12] == drawn
    assert all(forms.MIN <= form.sizes["n"] <= forms.MAX for form in drawn)


@pytest.mark.parametrize("form", sample(FORMS, 4), ids=lambda form: f"{form.spec} {form.epilogue}")
def test_a_payload_computes_its_spec(form: forms.Form) -> None:
    kernel = stepladder.compile(drawn_forms.payload(form), pipeline="wgmma", device="emulator", **TILES)
    read = drawn_forms.operand_of(form)
    dimensions = (*form.dimensions[:2], *([read] if read else []))
    arrays = [integers(seed, *form.shape(each)).astype(np.float16) for seed, each in enumerate(dimensions)]
    found = kernel(*arrays)
    a, b, *rest = (array.astype(np.float64) for array in arrays)
    expected = np.einsum(form.spec, a, b) + (rest[0] if rest else 0)
    if "relu" in form.epilogue:
        expected = np.maximum(expected, 0)
    if "gelu" in form.epilogue:
        expected *= 0.5 * (1 + np.tanh(0.7978846 * (expected + 0.044715 * expected**3)))
    np.testing.assert_allclose(found, expected, rtol=2.0**-10, atol=2.0**-10 * np.abs(expected).max())
