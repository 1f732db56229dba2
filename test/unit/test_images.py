"""Which image of a bundle runs on which GPU."""

import pytest

from stepladder.runtime.errors import BAD_INPUT, NOT_EXECUTED, StepladderError
from stepladder.runtime.images import image_for


@pytest.mark.parametrize(
    "target, capability, image",
    [
        ("sm_80", (8, 0), "cubin"),
        ("sm_80", (8, 6), "cubin"),
        ("sm_86", (8, 9), "cubin"),
        ("sm_80", (9, 0), "ptx"),
        ("sm_89", (9, 0), "ptx"),
        ("sm_75", (12, 0), "ptx"),
        ("sm_90a", (9, 0), "cubin"),
        ("sm_120", (12, 1), "cubin"),
    ],
)
def test_image_for(target: str, capability: tuple[int, int], image: str) -> None:
    assert image_for(target, capability, "card") == image


@pytest.mark.parametrize(
    "target, capability",
    [
        ("sm_90a", (10, 0)),
        ("sm_90a", (8, 0)),
        ("sm_90", (8, 9)),
        ("sm_86", (8, 0)),
        ("sm_120", (10, 0)),
    ],
)
def test_wrong_gpu(target: str, capability: tuple[int, int]) -> None:
    with pytest.raises(StepladderError, match="no kernel was launched") as caught:
        image_for(target, capability, "card X")
    assert caught.value.status == NOT_EXECUTED
    assert target in caught.value.message and "card X" in caught.value.message


@pytest.mark.parametrize("target", ["gfx90a", "sm_9", "sm_90x", "90"])
def test_target_that_is_none(target: str) -> None:
    with pytest.raises(StepladderError, match="not of the form") as caught:
        image_for(target, (9, 0), "card")
    assert caught.value.status == BAD_INPUT
