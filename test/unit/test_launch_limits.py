"""Findings about launches, for limits that no small module reaches."""

import pytest

from stepladder.emulator.core.program import Instruction
from stepladder.emulator.hardware.launch_limits import KIND, check_launch
from stepladder.emulator.memory.findings import Findings

ONE = [1, 1, 1]


def messages(grid=ONE, block=ONE, cluster=ONE, shared=0, **attributes) -> list[str]:
    findings = Findings()
    names = {name.replace("nvvm_", "nvvm."): given for name, given in attributes.items()}
    check_launch(findings, Instruction("gpu.launch_func", lambda: None), grid, block, cluster, shared, names)
    # One launch has one finding of a kind: the first that is wrong.
    assert all(finding.kind == KIND for finding in findings)
    return [finding.message for finding in findings]


@pytest.mark.parametrize(
    "launch, message",
    [
        ({"grid": [2**31, 1, 1]}, "a grid of 2147483648 x 1 x 1"),
        ({"grid": [1, 65536, 1]}, "1 to 65535 blocks are possible along y"),
        ({"grid": [0, 1, 1]}, "a grid of 0 x 1 x 1"),
        ({"cluster": [17, 1, 1]}, "a cluster of 17 blocks"),
        ({"grid": [4, 1, 1], "known_grid_size": [2, 1, 1]}, "known_grid_size is 2 x 1 x 1"),
        ({"block": [32, 4, 1], "nvvm_reqntid": [128]}, "a block of 32 x 4 x 1, and the kernel's nvvm.reqntid is 128"),
        ({"block": [256, 1, 1], "nvvm_maxntid": [128, 1, 1]}, "nvvm.maxntid is 128 x 1 x 1"),
    ],
)
def test_what_no_launch_may_ask(launch, message) -> None:
    [found] = messages(**launch)
    assert message in found


@pytest.mark.parametrize(
    "launch",
    [
        {"grid": [2**31 - 1, 65535, 65535], "block": [1024, 1, 1], "cluster": [16, 1, 1], "shared": 227 * 1024},
        {"block": [128, 1, 1], "nvvm_reqntid": [128]},
        {"block": [32, 4, 1], "nvvm_maxntid": [128, 1, 1], "known_block_size": [32, 4, 1]},
    ],
)
def test_what_fits(launch) -> None:
    assert messages(**launch) == []
