"""The timeline of a run: what warps execute and wait for, and what is in flight."""

import pytest

from stepladder.emulator.core.emulation import Emulation
from stepladder.emulator.core.timeline import Timeline
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline


def _trace(text: str) -> list[dict]:
    with mlir_context():
        emulation = Emulation(parse_payload(text, "kernel.mlir"))
        timeline = Timeline()
        emulation.run(emulation.random_inputs(0), timeline=timeline)
    return timeline.to_json()["traceEvents"]


def _rows(events: list[dict], name: str) -> set[int]:
    return {e["tid"] for e in events if e["name"] == "thread_name" and e["args"]["name"] == name}


@pytest.fixture(scope="module")
def events() -> list[dict]:
    text = matmul_text(128, 128, 1024, a_type="f16", b_type="f16", acc_type="f32", c_type="f32", accumulate=False)
    settings = {"block_m": 128, "block_n": 128, "stages": 2, "persistent_blocks": 1, "epilogue": "tma"}
    with mlir_context():
        lowered = run_pipeline(text, "matmul.mlir", Request("wgmma", settings))
        return _trace(str(lowered.module))


def test_loads_of_a_stage_are_in_flight_while_wgmma_computes_another(events: list[dict]) -> None:
    flights = [event for event in events if event["ph"] == "X"]
    loads = [event for event in flights if event["tid"] in _rows(events, "TMA loads")]
    products = [event for event in flights if event["tid"] in _rows(events, "wgmma")]
    assert len(loads) >= 2 * 16 and products  # boxes of A and B in 16 steps of k
    assert any(
        load["ts"] < product["ts"] + product["dur"] and product["ts"] < load["ts"] + load["dur"]
        for load in loads
        for product in products
    )
    assert _rows(events, "TMA stores")


def test_the_producer_waits_for_a_free_stage(events: list[dict]) -> None:
    waits = [event for event in events if event["name"].startswith("wait: ")]
    assert any("mbarrier" in event["args"]["for"] for event in waits)
    assert all(event["dur"] > 0 for event in waits)


def test_events_of_a_row_do_not_overlap(events: list[dict]) -> None:
    rows: dict[tuple[int, int], list[dict]] = {}
    for event in events:
        if event["ph"] == "X":
            rows.setdefault((event["pid"], event["tid"]), []).append(event)
    for row in rows.values():
        row.sort(key=lambda event: (event["ts"], event["dur"]))
        for before, after in zip(row, row[1:]):
            assert before["ts"] + before["dur"] <= after["ts"], (before, after)


def test_a_deadlock_shows_what_each_warp_waits_for() -> None:
    events = _trace(
        """
        func.func @main() {
          %c1 = arith.constant 1 : index
          %c32 = arith.constant 32 : index
          %c64 = arith.constant 64 : index
          gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
              threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
            %first = arith.cmpi ult, %tx, %c32 : index
            scf.if %first {
              nvvm.barrier id = %id number_of_threads = %n
            }
            gpu.terminator
          }
          return
        }
        """.replace(
            "gpu.launch",
            "%id = arith.constant 1 : i32\n          %n = arith.constant 64 : i32\n          gpu.launch",
        )
    )
    waits = [event for event in events if event["name"].startswith("wait: nvvm.barrier")]
    assert len(waits) == 1 and "32 of 64 threads" in waits[0]["args"]["for"]
