"""Tuning: building and measuring."""

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from stepladder.cli.main import main as stepladder_main
from stepladder.measure.tuning import measuring
from stepladder.measure.tuning.database import (
    Database,
)
from stepladder.measure.tuning.plan import Plan, Problem, Setting, read_plan, write_plan
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline import tuning_build as building
from stepladder.pipeline.codegen.toolchain import tool_versions
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.functions.build import build_function
from stepladder.pipeline.functions.matmul_parts import Part, matmul_parts
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request
from stepladder.runtime.bundle import Bundle, read_bundle
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError
from tuning_files import TOOLS, entry

# Building.

REQUEST = Request("wmma", {"target": "sm_80"})
PARTS = [Part(matmul_text(64, 64, k), f"{k}.mlir", REQUEST) for k in (64, 128)]


def test_a_plan_has_the_best_settings_of_every_payload(tmp_path: Path) -> None:
    plan = building.make_plan(PARTS, 3)
    assert [problem.name for problem in plan.problems] == ["64.mlir", "128.mlir"] and plan.count == 6
    assert len({setting.bundle for problem in plan.problems for setting in problem.settings}) == 6
    write_plan(tmp_path / "plan", plan)
    write_plan(tmp_path / "plan", plan)
    assert read_plan(tmp_path / "plan") == plan
    with pytest.raises(StepladderError, match="the plan of another tuning"):
        write_plan(tmp_path / "plan", replace(plan, target="sm_86"))


def test_a_plan_begins_with_what_compile_takes() -> None:
    """Measured knobs come before those of the cost model, and once."""
    text = matmul_text(4096, 4096, 4096, c_type="f16", accumulate=False)
    request = Request("wgmma", {"target": "sm_90a"})
    with mlir_context():
        query = read_query(library.load("wgmma"), request, text, "large.mlir")
        measured = knob_choice.measured_choice(query)
    assert measured is not None and measured.source.kind == knob_choice.MEASURED
    (problem,) = building.make_plan([Part(text, "large.mlir", request)], 3).problems
    assert len(problem.settings) == 3 and problem.settings[0].microseconds > 0
    alike = [measured.knobs.items() <= setting.knobs.items() for setting in problem.settings]
    assert alike == [True, False, False]
    (alone,) = building.make_plan([Part(text, "large.mlir", request)], 1).problems
    assert alone.settings[0].knobs == problem.settings[0].knobs


def test_equal_layers_of_a_model_are_one_problem() -> None:
    lines = []
    equal = replace(PARTS[0], name="again.mlir")
    plan = building.make_plan([PARTS[0], equal, PARTS[1]], 1, lines.append)
    assert lines == ["again.mlir is the same problem as 64.mlir, which is measured for both"]
    assert [(problem.name, problem.settings[0].bundle) for problem in plan.problems] == [
        ("64.mlir", "000/00"),
        ("128.mlir", "001/00"),
    ]


def _plan_text(problems: list[dict]) -> str:
    fields = {"schema_version": 1, "pipeline": "wmma", "digest": "d", "target": "sm_80", "tool_versions": {}}
    return json.dumps({**fields, "problems": problems})


@pytest.mark.parametrize(
    "text, said",
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "nested too deeply to be a plan"),
        ("null", "the plan must be an object"),
        ('{"schema_version": 9}', "the plan is of version 9, and this stepladder reads 1"),
        ('{"schema_version": 1, "pipeline": 3}', "field 'pipeline' must be a string, got 3"),
        (_plan_text([]), "field 'problems' is empty: there is nothing to measure"),
        (_plan_text([{"name": "a", "key": "b", "settings": []}]), r"field 'problems\[0\].settings' is empty"),
    ],
)
def test_a_damaged_plan_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(StepladderError, match=said):
        read_plan(tmp_path)


def test_building_goes_on_where_it_stopped_and_says_what_cannot_be_built(tmp_path: Path) -> None:
    plan = building.make_plan(PARTS[:1], 2)
    bad = Setting({"block_m": 32, "block_n": 64, "warp_m": 64}, 1.0, "000/09")  # a warp tile of twice the block's rows
    plan = replace(plan, problems=(replace(plan.problems[0], settings=(*plan.problems[0].settings, bad)),))
    lines = []
    building.build_plan(tmp_path, plan, PARTS[:1], 2, lines.append)
    message = "cannot be built: step 'map_copies_to_threads': block_m must be a multiple of warp_m"
    assert len(lines) == 3 and sum(message in line for line in lines) == 1
    assert sorted(path.name for path in (tmp_path / "000").iterdir()) == ["00", "01", "09.refused"]
    again = []
    building.build_plan(tmp_path, plan, PARTS[:1], 2, again.append)
    assert again == ["3 of 3 kernels are there already"]


def test_built_kernels_have_all_their_files(tmp_path: Path) -> None:
    """A kernel in front of the matmul copies rows of 17 elements."""
    parts = [Part(matmul_text(16, 17, 17, c_type="f32"), "odd.mlir", Request("wgmma", {"target": "sm_90a"}))]
    plan = building.make_plan(parts, 1)
    building.build_plan(tmp_path, plan, parts, 1, lambda line: None)
    built = read_bundle(tmp_path / plan.problems[0].settings[0].bundle)
    assert built.front and not any(name.startswith("ir/") for name in built.manifest.files)


LAYERS = """
func.func @layers(%x: tensor<32x64xf16>, %w: tensor<3x64x64xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %halves = tensor.empty() : tensor<32x64xf16>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %h = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> tensor<32x64xf16> {
    %b = tensor.extract_slice %w[%i, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<3x64x64xf16> to tensor<64x64xf16>
    %p = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf32>)
        -> tensor<32x64xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]} ins(%p : tensor<32x64xf32>) outs(%halves : tensor<32x64xf16>) {
    ^bb0(%s: f32, %o: f16):
      %t = arith.truncf %s : f32 to f16
      linalg.yield %t : f16
    } -> tensor<32x64xf16>
    scf.yield %r : tensor<32x64xf16>
  }
  %last = tensor.extract_slice %w[2, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<3x64x64xf16> to tensor<64x64xf16>
  %y = linalg.matmul ins(%h, %last : tensor<32x64xf16>, tensor<64x64xf16>) outs(%z : tensor<32x64xf32>)
      -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
"""


def test_matmuls_of_a_function_are_tuned_apart(tmp_path: Path) -> None:
    with mlir_context():
        parts = matmul_parts(LAYERS, "layers.mlir", Request("wgmma", {"target": "sm_90a"}, constant_weights=True))
    assert [part.name for part in parts] == ["layers.mlir:layers_matmul_0", "layers.mlir:layers_matmul_2"]
    plan = building.make_plan(parts, 1)
    assert len(plan.problems) == 2 and all(
        item.settings[0].knobs["launch_trigger"] == "early" for item in plan.problems
    )
    building.build_plan(tmp_path, plan, parts, 1, lambda line: None)
    stored = [read_bundle(tmp_path / item.settings[0].bundle).manifest.problem.c_type for item in plan.problems]
    assert stored == ["f16", "f32"]


def test_a_function_takes_what_was_tuned_for_its_matmuls(tmp_path: Path) -> None:
    request = Request("wgmma", {"target": "sm_90a"}, tuned=True, database=tmp_path / "tuning.json", gpu="h200")
    with mlir_context():
        plan = building.make_plan(matmul_parts(LAYERS, "layers.mlir", request), 3)
    last = [item.settings[-1].knobs for item in plan.problems]
    for item, knobs in zip(plan.problems, last):
        tuned = entry(item.key, digest=plan.digest, knobs=knobs, tool_versions=tool_versions())
        Database(tmp_path / "tuning.json").add(tuned)
    with mlir_context():
        kernels = build_function(LAYERS, "layers.mlir", request).bundle.kernels
    built = [made.manifest.knobs for made in kernels.values() if isinstance(made, Bundle)]
    assert all(knobs.items() <= own.items() for knobs, own in zip(last, built, strict=True))


# Measuring.


def fake_worker(tmp_path: Path, body: str) -> list[str]:
    """A process that measures: `body` sees `excluded`, and `say`, and ends with a line of its own."""
    path = tmp_path / "worker.py"
    path.write_text(
        "import json, sys, time\nfolder, number, *excluded = sys.argv[1:]\n"
        "def say(**fields): print(json.dumps(fields), flush=True)\n"
        "def win(name, others={'000/00': 3.0}): say(result={'gpu': 'NVIDIA H200', 'winner': name, 'microseconds': 2.0,"
        " 'of_cublas': 1.1, 'apart': True, 'measured': 1, 'medians': others | {name: 2.0}})\n" + body
    )
    return [sys.executable, str(path)]


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    settings = [
        [Setting({"block_m": 64 * place}, 1.0, f"{number:03d}/{place:02d}") for place in range(3)]
        for number in range(2)
    ]
    write_plan(
        tmp_path / "plan",
        Plan(
            "wgmma",
            "d",
            "sm_90a",
            TOOLS,
            tuple(Problem(f"{number}.mlir", f"problem {number}", tuple(own)) for number, own in enumerate(settings)),
        ),
    )
    return tmp_path / "plan"


def measure(planned: Path, tmp_path: Path, body: str, **options: bool | float) -> tuple:
    lines, database = [], Database(tmp_path / "tuning.json")
    entries = measuring.measure_plan(
        planned, database, progress=lines.append, worker=fake_worker(tmp_path, body), **options
    )
    return entries, lines, database


def test_winners_are_stored_one_by_one_and_not_measured_again(planned: Path, tmp_path: Path) -> None:
    entries, lines, database = measure(planned, tmp_path, "say(candidate='000/00'); win(f'{int(number):03d}/01')")
    assert [one.knobs for one in entries] == [{"block_m": 64}] * 2 and database.entries() == entries
    assert "2.0 us, 1.100 of cuBLAS: block_m=64, 1.50 x the default knobs" in lines[0]
    assert "measured before" in measure(planned, tmp_path, "say(error='no', status=1)")[1][1]
    with pytest.raises(StepladderError, match="no"):
        measure(planned, tmp_path, "say(error='no', status=1)", again=True)


def test_the_command_prints_a_table_and_writes_json(
    planned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = fake_worker(tmp_path, "win(f'{int(number):03d}/01')")
    monkeypatch.setattr(measuring, "measure_plan", functools.partial(measuring.measure_plan, worker=worker))
    words = ["tune", "measure", "--folder", str(planned), "--database", str(tmp_path / "tuning.json"), "--json"]
    assert stepladder_main([*words, str(tmp_path / "tuned.json")]) == 0
    printed = capsys.readouterr().out
    assert "The fastest settings on NVIDIA H200" in printed and "geometric mean 1.100, least 1.100" in printed
    tuned = json.loads((tmp_path / "tuned.json").read_text())
    assert [(one["payload"], one["knobs"], one["of_cublas"]) for one in tuned] == [
        ("0.mlir", {"block_m": 64}, 1.1),
        ("1.mlir", {"block_m": 64}, 1.1),
    ]
    assert [(one["knobs"], one["predicted_microseconds"], one["microseconds"]) for one in tuned[0]["candidates"]] == [
        ({"block_m": 0}, 1.0, 3.0),
        ({"block_m": 64}, 1.0, 2.0),
        ({"block_m": 128}, 1.0, None),
    ]
    assert [one["check"] for one in tuned[0]["candidates"]] == ["PASS", "PASS", None]
    assert stepladder_main([*words, str(tmp_path / "no folder" / "tuned.json")]) == 2
    assert stepladder_main(["tune", "build", "0.mlir", "--pipeline", "wgmma", "--folder", "f", "--json", "-"]) == 2


@pytest.mark.parametrize(
    "body, reason, check",
    [
        (
            "say(candidate='000/02'); time.sleep(60) if '000/02' not in excluded else win('000/01')",
            "no result within 1 s",
            None,
        ),
        (
            "say(candidate='000/02'); sys.exit(139) if '000/02' not in excluded else win('000/01')",
            "ended with status 139",
            None,
        ),
        ("say(excluded='000/02', reason='wrong results: 5 of 64'); win('000/01')", "wrong results: 5 of 64", "FAIL"),
    ],
)
def test_a_kernel_that_hangs_breaks_or_is_wrong_is_excluded_and_named(
    planned: Path, tmp_path: Path, body: str, reason: str, check: str | None
) -> None:
    found = measuring.measure_problem(planned, 0, worker=fake_worker(tmp_path, body), patience=1.0)
    assert found.result["winner"] == "000/01" and reason in found.excluded["000/02"]
    plan = read_plan(planned)
    (planned / "plan.json").unlink()
    write_plan(planned, replace(plan, problems=plan.problems[:1]))
    (planned / "000").mkdir()
    (planned / "000" / "00.refused").write_text("step 'a' refuses it\n")
    entries, lines, database = measure(planned, tmp_path, body.replace("/01')", "/01', {})"), patience=1.0)
    assert any("excluded: block_m=128" in line and reason in line for line in lines)
    assert reason in entries[0].excluded["block_m=128"] and database.entries() == entries
    unbuilt, winner, excluded = entries[0].candidates
    assert (unbuilt.check, unbuilt.reason) == (None, "cannot be built: step 'a' refuses it")
    assert (winner.check, winner.microseconds, winner.reason) == ("PASS", 2.0, "")
    assert (excluded.check, excluded.microseconds) == (check, None) and reason in excluded.reason


@pytest.mark.parametrize(
    "body, said",
    [
        ("time.sleep(60)", "does not come back: at its start"),
        ("say(candidate='cublas'); sys.exit(1)", "does not come back: cublas"),
        ("say(candidate='000/00'); say(excluded='000/00', reason='x'); sys.exit(1)", "000/00"),
    ],
)
def test_a_process_that_fails_by_itself_ends_the_measurement(
    planned: Path, tmp_path: Path, body: str, said: str
) -> None:
    with pytest.raises(StepladderError, match=said):
        measuring.measure_problem(planned, 0, worker=fake_worker(tmp_path, body), patience=1.0)


def test_without_a_gpu_nothing_is_executed_or_stored(planned: Path, tmp_path: Path) -> None:
    body = f"say(error='no usable GPU; no kernel was launched', status={NOT_EXECUTED})"
    with pytest.raises(StepladderError) as raised:
        measure(planned, tmp_path, body)
    assert raised.value.status == NOT_EXECUTED and not (tmp_path / "tuning.json").exists()


def test_an_interruption_keeps_what_was_measured_and_ends_the_process(planned: Path, tmp_path: Path) -> None:
    body = (
        "open(folder + '/pid', 'w').write(str(__import__('os').getpid()))\n"
        "win('000/01') if number == '0' else (say(candidate='001/00'), time.sleep(60))"
    )

    def interrupt() -> None:
        while len(Database(tmp_path / "tuning.json", lambda line: None).entries()) < 1:
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        measure(planned, tmp_path, body)
        time.sleep(5)
    thread.join()
    assert len(Database(tmp_path / "tuning.json").entries()) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int((planned / "pid").read_text()), 0)


@pytest.mark.parametrize("number, jobs", [(signal.SIGINT, 1), (signal.SIGTERM, 2), (signal.SIGKILL, 2)])
def test_an_interrupted_build_keeps_whole_bundles(tmp_path: Path, number: signal.Signals, jobs: int) -> None:
    """No process is left, which would keep standard error open."""
    for payload in PARTS:
        (tmp_path / payload.name).write_text(payload.text)
    files = [str(tmp_path / payload.name) for payload in PARTS]
    command = [
        sys.executable,
        "-m",
        "stepladder",
        "tune",
        "build",
        *files,
        "--pipeline",
        "wmma",
        "--target",
        "sm_80",
        "--top",
        "4",
        "--jobs",
        str(jobs),
        "--folder",
        str(tmp_path / "plan"),
    ]
    runner = os.pathsep.join(path for path in sys.path if path.endswith("runner"))
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": runner})
    first = process.stderr.readline()
    process.send_signal(number)
    rest = process.communicate(timeout=120)[1]
    status = 130 if number == signal.SIGINT else -number
    assert first.startswith("1 of 8") and process.returncode == status and "Traceback" not in rest
    plan = read_plan(tmp_path / "plan")

    there = [
        setting.bundle
        for problem in plan.problems
        for setting in problem.settings
        if (tmp_path / "plan" / setting.bundle).exists()
    ]
    assert 1 <= len(there) < 8
    for name in there:
        read_bundle(tmp_path / "plan" / name)
