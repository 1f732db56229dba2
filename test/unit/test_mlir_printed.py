"""Attributes that the bindings have no accessors for: each is read from the text that MLIR prints."""

from collections.abc import Iterator

import numpy as np
import pytest

from stepladder.emulator.core.program import decode_attribute
from stepladder.mlir import printed
from stepladder.mlir.bindings import ir


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.Context(), ir.Location.unknown():
        yield


@pytest.mark.parametrize(
    "text, word",
    [
        ("#gpu<dim x>", "x"),
        ("#gpu<shuffle_mode xor>", "xor"),
        ("#gpu<mma_element_wise addf>", "addf"),
        ("#index<cmp_predicate slt>", "slt"),
        ("#linalg.type_fn<cast_unsigned>", "cast_unsigned"),
        ("#nvvm.mma_layout<row>", "row"),
        ("#nvvm<shfl_kind bfly>", "bfly"),
        ("#nvvm<vote_sync_kind ballot>", "ballot"),
        ("#vector.kind<add>", "add"),
        ("#vector.punctuation<newline>", "newline"),
    ],
)
def test_keywords(text: str, word: str) -> None:
    attribute = ir.Attribute.parse(text)
    assert printed.keyword(attribute) == printed.keyword(str(attribute)) == word


def test_a_plain_word_is_its_own_keyword() -> None:
    assert printed.keyword("signed") == "signed"
    with pytest.raises(ValueError, match="ends with no keyword"):
        printed.keyword("<>")


def test_numbers() -> None:
    assert printed.shape_numbers(ir.Attribute.parse("#nvvm.shape<m = 64, n = 8, k = 16>")) == [64, 8, 16]
    assert printed.constant_range(ir.Attribute.parse("#llvm.constant_range<i32, -1, 8>")) == (-1, 8)


def test_chips() -> None:
    assert printed.chip_of(ir.Attribute.parse('[#nvvm.target<chip = "sm_90a">]')) == "sm_90a"
    assert printed.chip_of(ir.Attribute.parse("[#nvvm.target]")) is None


@pytest.mark.parametrize(
    "text, space",
    [
        ("#gpu.address_space<workgroup>", "shared"),
        ("#gpu.address_space<private>", "private"),
        ("#gpu.address_space<global>", "global"),
        ("3", "shared"),
        ("5", "private"),
        ("1", "global"),
    ],
)
def test_memory_spaces(text: str, space: str) -> None:
    assert printed.memory_space(ir.Attribute.parse(text)) == space


def test_no_memory_space_is_global() -> None:
    assert printed.memory_space(None) == "global"


def test_integer_sets() -> None:
    found, equalities = printed.integer_set(ir.Attribute.parse("affine_set<(d0)[s0] : (d0 - s0 >= 0, d0 mod 2 == 0)>"))
    assert str(found) == "(d0)[s0] -> (d0 - s0, d0 mod 2)"
    assert equalities == [False, True]
    with pytest.raises(ValueError, match="is not an integer set"):
        printed.integer_set("affine_map<(d0) -> (d0)>")


@pytest.mark.parametrize("count", [2, 200])  # numbers one by one, and the bytes of all
@pytest.mark.parametrize(
    "type_, first, second",
    [
        ("i4", 7, -2),
        ("i48", 1 << 40, -3),
        ("bf16", 1.5, -np.inf),
        ("bf16", np.nan, -0.0),
        ("f8E5M2", np.inf, 1.0),
        ("f8E5M2", -np.inf, np.nan),
        ("f8E4M3FN", np.nan, 448.0),
    ],
)
def test_constants_as_the_emulator_reads_them(type_: str, first: float, second: float, count: int) -> None:
    element, expected = ir.Type.parse(type_), np.array([first, second] * (count // 2))
    kind = ir.IntegerAttr if type_.startswith("i") else ir.FloatAttr
    elements = ir.DenseElementsAttr.get([kind.get(element, number) for number in (first, second)] * (count // 2))
    found = np.asarray(decode_attribute(elements)).astype(expected.dtype)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


def test_complex_constants() -> None:
    assert printed.complex_numbers("dense<[(1.0,2.0), (-3.0,0.5)]>") == [1 + 2j, -3 + 0.5j]
