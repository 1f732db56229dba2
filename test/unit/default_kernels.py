"""The kernels that `compile` chooses by default: their knobs, and the problems that these were measured for."""

import json

import pytest

from stepladder.payload.writing import matmul_text
from stepladder.runtime.resources import transforms_dir

TYPE_OF_BITS = {16: "f16", 32: "f32"}


def defaults() -> list:
    """Every set of default knobs once, with the edges and the types of a problem that it was measured for."""
    found = {}
    for pipeline in ("wmma", "mma_sync", "wgmma"):
        measured = json.loads((transforms_dir() / "defaults" / f"{pipeline}.json").read_text())
        for entry in measured["problems"]:
            knobs, size = dict(entry["knobs"]), tuple(entry[axis] for axis in "mnk")
            if knobs.get("persistent_blocks"):  # few, so that each takes several tiles of a small problem
                knobs["persistent_blocks"] = 2 * knobs["cluster_m"] * knobs["cluster_n"]
            knobs["target"] = "sm_90a" if pipeline == "wgmma" else "sm_90"
            edges = [length % knobs[f"block_{axis}"] for axis, length in zip("mnk", size)]
            types = entry["a_bits"], entry["c_bits"]
            if entry["a_bits"] == 32:
                knobs["allow_tf32"] = True
            if all(bits in TYPE_OF_BITS for bits in types):
                key = pipeline, *knobs.values(), *edges, *types
                found.setdefault(key, pytest.param(pipeline, knobs, size, types, id=f"{pipeline}-{size}-{types}"))
    return list(found.values())


def default_payload(pipeline: str, size: tuple[int, int, int], types: tuple[int, int]) -> str:
    """Returns the payload of one of the `defaults`: C = AB on `wgmma`, else C = AB + C with accumulators like C."""
    operands, c_type = (TYPE_OF_BITS[bits] for bits in types)
    rounds = pipeline == "wgmma"
    return matmul_text(
        *size,
        a_type=operands,
        b_type=operands,
        c_type=c_type,
        acc_type="f32" if rounds else c_type,
        accumulate=not rounds,
    )
