"""Payloads that the rule refuses."""

import pytest

from stepladder.payload.matmul import find_matmul
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import StepladderError


def refusal(text: str, message: str) -> StepladderError:
    """Returns the one error of a payload that the rule refuses with a message, a pattern, at a line of the payload."""
    with mlir_context(), pytest.raises(StepladderError, match=message) as raised:
        find_matmul(parse_payload(text, "payload.mlir"))
    assert raised.value.location.startswith("payload.mlir:")
    return raised.value
