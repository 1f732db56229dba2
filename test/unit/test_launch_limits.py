"""Findings about launches, for limits that no small module reaches."""

import pytest

from stepladder.emulator.core.program import Instruction
from stepladder.emulator.hardware.launch_limits import KIND, Asked, check_launch
from stepladder.emulator.memory.findings import Findings

ONE = [1, 1, 1]


def messages(
    grid: list[int] = ONE,
    block: list[int] = ONE,
    cluster: list[int] = ONE,
    shared: int = 0,
    static: int = 0,
    registers: int | None = None,
    chips: tuple[str, ...] = (),
    **attributes: object,
) -> list[str]:
    findings = Findings()
    names = {name.replace("nvvm_", "nvvm."): given for name, given in attributes.items()}
    asked = Asked(grid, block, cluster, shared, static, registers)
    check_launch(findings, Instruction("gpu.launch_func", lambda: None), asked, names, chips)
    # One launch has one finding, with all that is wrong.
    assert all(finding.kind == KIND for finding in findings)
    return [finding.message for finding in findings]


@pytest.mark.parametrize(
    "launch, message",
    [
        ({"grid": [3, 1, 1], "cluster": [2, 1, 1]}, "a grid of 3 x 1 x 1, which clusters of 2 x 1 x 1 do not divide"),
        ({"grid": [2**31, 1, 1]}, "a grid of 2147483648 x 1 x 1"),
        ({"grid": [1, 65536, 1]}, "1 to 65535 blocks along y"),
        ({"grid": [0, 1, 1]}, "a grid of 0 x 1 x 1"),
        ({"grid": [17, 1, 1], "cluster": [17, 1, 1]}, "a cluster of 17 blocks"),
        ({"grid": [4, 1, 1], "known_grid_size": [2, 1, 1]}, "known_grid_size is 2 x 1 x 1"),
        ({"block": [32, 4, 1], "nvvm_reqntid": [128]}, "a block of 32 x 4 x 1, and the kernel's nvvm.reqntid is 128"),
        ({"block": [256, 1, 1], "nvvm_maxntid": [128, 1, 1]}, "nvvm.maxntid is 128 x 1 x 1"),
        (
            {"grid": [4, 1, 1], "cluster": [2, 1, 1], "nvvm_cluster_dim": [4, 1, 1]},
            "a cluster of 2 x 1 x 1, and the kernel's nvvm.cl",
        ),
        ({"grid": [4, 1, 1], "cluster": [4, 1, 1], "nvvm_cluster_max_blocks": 2}, "nvvm.cluster_max_blocks is 2"),
        ({"grid": [4, 1, 1], "cluster": [2, 1, 1], "known_cluster_size": [1, 1, 1]}, "known_cluster_size is 1 x 1 x 1"),
        # Of the targets that a module names, one has to take it.
        (
            {"grid": [4, 1, 1], "cluster": [2, 1, 1], "chips": ("sm_80",)},
            "a cluster of 2 blocks; at most 1 on sm_80",
        ),
        ({"shared": 200 * 1024, "chips": ("sm_86", "sm_80")}, "at most 166912 on sm_80"),
        (
            {"shared": 50000, "static": 50000, "chips": ("sm_90",)},
            "50000 bytes of static shared memory per block; at most 49152",
        ),
        (
            {"block": [1000, 1, 1], "registers": 65},
            "with up to 65 registers each (maxnreg), 73728 in all; at most 65536",
        ),
    ],
)
def test_what_no_launch_may_ask(launch: dict[str, int | list[int] | tuple[str, ...]], message: str) -> None:
    [found] = messages(**launch)
    assert message in found


@pytest.mark.parametrize(
    "launch",
    [
        {"grid": [2**31 - 1, 65535, 65535], "block": [1024, 1, 1], "cluster": [1, 5, 3], "shared": 227 * 1024},
        {"block": [128, 1, 1], "nvvm_reqntid": [128]},
        {"block": [384, 1, 1], "registers": 168, "static": 48 * 1024, "shared": 163 * 1024, "chips": ("sm_80",)},
        {
            "grid": [4, 1, 1],
            "cluster": [2, 1, 1],
            "chips": ("sm_80", "sm_90a"),
            "nvvm_cluster_dim": [2],
            "nvvm_cluster_max_blocks": 2,
        },
        {"shared": 50000, "static": 50000},
        {"shared": 50000, "static": 50000, "chips": ("sm_90a",)},
        {"grid": [4, 1, 1], "cluster": [2, 1, 1], "shared": 200 * 1024, "chips": ("sm_80", "sm_100a")},
        {"block": [32, 4, 1], "nvvm_maxntid": [128, 1, 1], "known_block_size": [32, 4, 1]},
    ],
)
def test_what_fits(launch: dict[str, int | list[int] | tuple[str, ...]]) -> None:
    assert messages(**launch) == []
