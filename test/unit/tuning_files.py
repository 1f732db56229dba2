"""Entries of tuning databases for the tests."""

from stepladder.measure.tuning.database import (
    Entry,
)

TOOLS = {"stepladder": "1", "ptxas": "13.0.88"}


def entry(
    problem: str = "64x64x64",
    gpu: str = "NVIDIA H200",
    date: str = "2026-11-21",
    **fields: dict[str, int | str] | float | str,
) -> Entry:
    values = {
        "gpu": gpu,
        "target": "sm_90a",
        "problem": problem,
        "pipeline": "wgmma",
        "digest": "d",
        "knobs": {"block_m": 64},
        "microseconds": 2.0,
        "of_cublas": 1.1,
        "measured": 8,
        "date": date,
        "tool_versions": TOOLS,
    }
    return Entry(**{**values, **fields})
