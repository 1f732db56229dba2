"""Epilogues whose warps store their rows of a box of C by themselves: right at each step and as machine code.

STEPLADDER_TEST_PROFILE=random runs all combinations.
"""

import pytest

from combinations import combinations, sample
from conftest import assert_right_at_some_steps
from epilogue_payloads import payload
from reduction_payloads import Reduced, reduction_payload
from stepladder.payload.writing import matmul_text
from test_epilogues import TILES, check

WARPS = {**TILES, "stages": 2, "store_threads": 32}
# Types of A and B, of the sums and of C, whether C is added to, and how many matmuls there are.
TYPES = (
    ("bf16", "f32", "bf16", False, None),
    ("f16", "f32", "f32", True, 2),
    ("f16", "f16", "f16", True, None),
    ("f16", "f32", "f16", False, 3),
)
FORMS = (
    {"block_n": 64},
    {"block_n": 48, "epilogue_stages": 1},
    {"schedule": "pingpong", "block_m": 128},
    {"block_m": 256, "consumer_warpgroups": 2, "block_n": 16},
)


@pytest.mark.parametrize("types, form", combinations(TYPES, FORMS))
def test_right_at_some_steps(types: tuple[str, str, str, bool, int | None], form: dict[str, int | str]) -> None:
    inputs, sums, stored, accumulate, batch = types
    text = matmul_text(
        135, 72, 40, a_type=inputs, b_type=inputs, acc_type=sums, c_type=stored, accumulate=accumulate, batch=batch
    )
    assert_right_at_some_steps(text, "wgmma", {**WARPS, **form})


OTHERS = (
    payload("add_matrix", 72, 48, 40, stored="f16"),
    payload("bias_gelu", 72, 40, 72, stored="f16"),
    reduction_payload(72, 48, 40, (Reduced("sum", 1), Reduced("max", 0)), stored="f16"),
)


@pytest.mark.parametrize("text", sample(OTHERS, 1))
def test_right_after_the_product(text: str) -> None:
    check(text, "wgmma", WARPS, levels="last")


def test_a_warp_beyond_c_reads_no_c() -> None:
    """C is read where it is stored: a warp whose rows lie beyond C would read the last one, which another stores."""
    text = matmul_text(32, 136, 80, c_type="f16", a_layout="column")
    check(text, "wgmma", {**WARPS, "block_m": 128, "block_n": 64}, levels="last")
