"""Arguments of the Python interface that say how something is compiled: each bad one is refused by its name."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from stepladder import MatmulSpec

SPEC = MatmulSpec(16, 16, 32)


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("pipeline", 3, "the name or the file of a pipeline"),
        ("target", None, "the name of a GPU architecture, such as 'sm_90a'"),
        ("target", 90, "the name of a GPU architecture"),
        ("device", None, "'auto', 'emulator', and the ordinal of a GPU"),
        ("device", 1.5, "'auto', 'emulator', and the ordinal of a GPU"),
        ("device", True, "'auto', 'emulator', and the ordinal of a GPU"),
        ("function", 3, "the name of a function, or None"),
        ("without", "swizzle", "a sequence of names of steps"),
        ("without", 3, "a sequence of names of steps"),
        ("without", [3], "a sequence of names of steps"),
        ("plugins", "own.py", "a sequence of files"),
        ("plugins", [3], "a sequence of files"),
        ("constant_weights", 1, "True and False"),
    ],
)
def test_options(name: str, value: object, accepted: str) -> None:
    with pytest.raises(stepladder.ArgumentError) as caught:
        stepladder.compile(SPEC, **{"target": "sm_80", "device": "emulator", name: value})
    assert caught.value.message.startswith(f"argument '{name}' is {value!r}; accepted: {accepted}")


def test_knobs_of_numpy() -> None:
    options = {"target": "sm_90a", "device": "emulator"}
    kernel = stepladder.compile(SPEC, stages=np.int64(2), swap_operands=np.bool_(False), **options)
    assert kernel is not None and kernel.manifest.knobs["stages"] == 2
    message = r"argument 'stages' is .*; accepted as a knob: integers"
    for value in (2.0, np.float32(2), np.ones(2), None):
        with pytest.raises(stepladder.ArgumentError, match=message):
            stepladder.compile(SPEC, stages=value, **options)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"m": "16"}, "m = '16' of a MatmulSpec; accepted: integers"),
        ({"n": 16.0}, "n = 16.0 of a MatmulSpec; accepted: integers"),
        ({"k": True}, "k = True of a MatmulSpec; accepted: integers"),
        ({"batch": "x"}, "batch = 'x' of a MatmulSpec; accepted: integers"),
        ({"n": 2**63}, "n = 9223372036854775808 of a MatmulSpec; accepted: sizes of at most 9223372036854775807"),
        ({"a_type": "f8"}, "a_type = 'f8' of a MatmulSpec; accepted: f16, bf16"),
        ({"a_type": None}, "a_type = None of a MatmulSpec; accepted: f16, bf16"),
        ({"c_type": "float"}, "c_type = 'float' of a MatmulSpec; accepted: f16, bf16"),
        ({"acc_type": 32}, "acc_type = 32 of a MatmulSpec; accepted: f16, bf16"),
        ({"b_layout": "diagonal"}, "b_layout = 'diagonal' of a MatmulSpec; accepted: 'row' and 'column'"),
        ({"epilogue": "relu"}, "epilogue = 'relu' of a MatmulSpec; accepted: a traced one"),
    ],
)
def test_specs(fields: dict[str, object], message: str) -> None:
    with pytest.raises(stepladder.ArgumentError) as caught:
        stepladder.compile(MatmulSpec(**{"m": 16, "n": 16, "k": 32, **fields}), target="sm_80", device="emulator")
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"specs": SPEC}, "argument 'specs' is a MatmulSpec; accepted: several of MatmulSpec"),
        ({"specs": 3}, "argument 'specs' is a int"),
        ({"specs": [SPEC], "workers": 0}, "argument 'workers' is 0; accepted: numbers of at least 1"),
        ({"specs": [SPEC], "workers": "all"}, "argument 'workers' is 'all'"),
    ],
)
def test_precompile(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(stepladder.ArgumentError, match=message):
        stepladder.precompile(**arguments, target="sm_80")
