"""`stepladder tune`: its database, its plan, and both halves; what measures is a process that the tests write."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from stepladder.codegen.toolchain import tool_versions
from stepladder.measure.tuning import halving, measuring
from stepladder.measure.tuning.database import (
    SCHEMA_VERSION,
    Database,
    Entry,
    problem_key,
)
from stepladder.measure.tuning.plan import Plan, Problem, Setting, read_plan, write_plan
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline import tuning_build as building
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import NOT_EXECUTED, StepladderError

TOOLS = {"stepladder": "1", "ptxas": "13.0.88"}


def entry(problem="64x64x64", gpu="NVIDIA H200", date="2026-11-21", **fields):
    values = dict(
        gpu=gpu,
        target="sm_90a",
        problem=problem,
        pipeline="wgmma",
        digest="d",
        knobs={"block_m": 64},
        microseconds=2.0,
        of_cublas=1.1,
        measured=8,
        date=date,
        tool_versions=TOOLS,
    )
    return Entry(**{**values, **fields})


# The database.


def test_an_entry_comes_back_and_is_replaced_by_a_later_one_of_its_key(tmp_path):
    database = Database(tmp_path / "deep" / "tuning.json")
    assert database.find("64x64x64", "d", "sm_90a") == []
    for added in (entry(), entry(date="2026-11-22", microseconds=1.5), entry("8x8x8"), entry(gpu="NVIDIA H100")):
        database.add(added)
    assert [found.microseconds for found in database.find("64x64x64", "d", "sm_90a", "NVIDIA H200")] == [1.5]
    assert len(database.entries()) == 3
    assert database.find("64x64x64", "other", "sm_90a") == database.find("64x64x64", "d", "sm_80") == []


@pytest.mark.parametrize(
    "text, suffix, said",
    [
        ("{", "damaged", "is damaged"),
        ('{"entries": [{"gpu": 1}]}', "damaged", "is damaged"),
        ("[]", "damaged", "is damaged"),
        (
            json.dumps({"schema_version": SCHEMA_VERSION + 1, "entries": []}),
            "newer",
            f"of version {SCHEMA_VERSION + 1}",
        ),
    ],
)
def test_a_damaged_or_newer_file_is_not_used_and_set_aside_by_who_adds(tmp_path, text, suffix, said):
    path = tmp_path / "tuning.json"
    path.write_text(text)
    lines = []
    database = Database(path, lines.append)
    assert database.entries() == [] and path.read_text() == text
    assert said in lines[0] and "left alone" in lines[0]
    database.add(entry())
    assert [found.knobs for found in database.entries()] == [{"block_m": 64}]
    assert (tmp_path / f"tuning.json.{suffix}-1").read_text() == text and f"{suffix}-1" in lines[1]
    path.write_text(text)
    database.add(entry())
    assert (tmp_path / f"tuning.json.{suffix}-2").read_text() == text


def add_many(path, start):
    for number in range(start, start + 20):
        Database(path).add(entry(problem=str(number)))


def test_two_processes_lose_nothing_of_each_other(tmp_path):
    path = tmp_path / "tuning.json"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add_many, args=(path, start)) for start in (0, 100)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(Database(path).entries()) == 40


def test_a_database_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StepladderError, match="cannot write the tuning database"):
        Database(tmp_path / "file" / "tuning.json").add(entry())


# Compiling takes what the database has.


def test_compiling_takes_tuned_knobs_before_all_others(tmp_path, monkeypatch, capsys):
    text = matmul_text(1024, 1024, 1024, accumulate=False)
    path = tmp_path / "tuning.json"
    request = Request("wgmma", {"target": "sm_90a"}, through="tile_to_blocks", tuned=True, database=path)
    monkeypatch.setattr("stepladder.codegen.toolchain.tool_versions", lambda: TOOLS)

    def run():
        with mlir_context():
            return run_pipeline(text, "payload.mlir", request)

    assert run().knob_source.kind == knob_choice.MEASURED
    with mlir_context():
        pipeline = library.load("wgmma")
        asked = read_query(pipeline, request, text, "payload.mlir")
        own = entry(
            problem_key(asked.problem),
            digest=knob_choice.digest(pipeline),
            knobs={"block_n": 96, "persistent_blocks": 12},
        )
    Database(path).add(replace(own, tool_versions={"stepladder": "0"}))
    assert run().knob_source.kind == knob_choice.MEASURED
    assert "other versions of the tools" in capsys.readouterr().err
    Database(path).add(own)
    found = run()
    assert found.knob_source.kind == knob_choice.TUNED and "tuned on NVIDIA H200" in found.knob_source.text
    assert (found.knobs["block_n"], found.knobs["persistent_blocks"], found.knobs["block_m"]) == (96, 12, 128)
    request = replace(request, settings={"target": "sm_90a", "block_n": 64})
    assert run().knobs["block_n"] == 64  # what is set stays


def test_knobs_that_the_pipeline_does_not_accept_give_way(tmp_path):
    """An entry of a text that was changed by hand: its knobs are refused, and the next source is asked."""
    text = matmul_text(1024, 1024, 1024, accumulate=False)
    path = tmp_path / "tuning.json"
    request = Request("wgmma", {"target": "sm_90a"}, through="pack_shared_memory", tuned=True, database=path)
    with mlir_context():
        pipeline = library.load("wgmma")
        asked = read_query(pipeline, request, text, "payload.mlir")
        Database(path).add(
            entry(
                problem_key(asked.problem),
                digest=knob_choice.digest(pipeline),
                tool_versions=tool_versions(),
                knobs={"stages": 8, "block_n": 256},
            )
        )
    with mlir_context():
        assert run_pipeline(text, "payload.mlir", request).knob_source.kind == knob_choice.MEASURED


# Successive halving.


def rounds_of(times, noise=lambda name, number: 1.0):
    calls = []

    def measure(names):
        calls.append(list(names))
        return {name: times[name] * noise(name, len(calls)) for name in names}

    return measure, calls


def test_the_fastest_wins_and_the_slow_leave_early():
    times = {f"k{number}": 10.0 + number for number in range(8)} | {"cublas": 12.0}
    measure, calls = rounds_of(times)
    found = halving.select([name for name in times if name != "cublas"], "cublas", measure)
    assert found.winner == "k0" and found.apart and found.microseconds() == 10.0
    assert found.of_reference() == pytest.approx(1.2)
    assert len(calls[0]) == 9 and len(found.samples["k7"]) == halving.ROUNDS < len(found.samples["k0"])
    assert all(call[0] == "cublas" for call in calls)


def test_two_that_cannot_be_told_apart_end_after_the_most_rounds():
    measure, calls = rounds_of(
        {"a": 10.0, "b": 10.0}, lambda name, number: 1.05 if (name == "a") == (number % 2) else 1.0
    )
    found = halving.select(["a", "b"], None, measure)
    assert not found.apart and len(calls) == halving.MOST_ROUNDS and found.of_reference() is None


def test_one_alone_wins():
    measure, calls = rounds_of({"a": 10.0})
    assert halving.select(["a"], None, measure).winner == "a" and len(calls) == halving.ROUNDS


# Building.

REQUEST = Request("wmma", {"target": "sm_80"})
PAYLOADS = [building.Payload(matmul_text(64, 64, k), f"{k}.mlir") for k in (64, 128)]


def test_a_plan_has_the_best_settings_of_every_payload(tmp_path):
    plan = building.make_plan(PAYLOADS, REQUEST, 3)
    assert [problem.name for problem in plan.problems] == ["64.mlir", "128.mlir"] and plan.count == 6
    assert len({setting.bundle for problem in plan.problems for setting in problem.settings}) == 6
    write_plan(tmp_path / "plan", plan)
    write_plan(tmp_path / "plan", plan)
    assert read_plan(tmp_path / "plan") == plan
    with pytest.raises(StepladderError, match="the plan of another tuning"):
        write_plan(tmp_path / "plan", replace(plan, target="sm_86"))
    with pytest.raises(StepladderError, match="the same problem as '64.mlir'"):
        building.make_plan([PAYLOADS[0], replace(PAYLOADS[0], name="again.mlir")], REQUEST, 1)


@pytest.mark.parametrize(
    "text, said", [("{", "damaged"), ('{"schema_version": 9, "problems": []}', "damaged"), ("null", "damaged")]
)
def test_a_damaged_plan_is_refused(tmp_path, text, said):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(StepladderError, match=said):
        read_plan(tmp_path)


def test_building_goes_on_where_it_stopped_and_says_what_cannot_be_built(tmp_path):
    plan = building.make_plan(PAYLOADS[:1], REQUEST, 2)
    bad = Setting({"block_m": 256, "block_n": 256, "warp_m": 16}, 1.0, "000/09")  # 256 does not divide 64
    plan = replace(plan, problems=(replace(plan.problems[0], settings=(*plan.problems[0].settings, bad)),))
    lines = []
    building.build_plan(tmp_path, plan, PAYLOADS[:1], REQUEST, 2, lines.append)
    assert len(lines) == 3 and sum("cannot be built: step 'tile_to_blocks': m must be" in line for line in lines) == 1
    assert sorted(path.name for path in (tmp_path / "000").iterdir()) == ["00", "01", "09.refused"]
    again = []
    building.build_plan(tmp_path, plan, PAYLOADS[:1], REQUEST, 2, again.append)
    assert again == ["3 of 3 kernels are there already"]


# Measuring.


def fake_worker(tmp_path, body):
    """A process that measures: `body` sees `excluded`, and `say`, and ends with a line of its own."""
    path = tmp_path / "worker.py"
    path.write_text(
        "import json, sys, time\nfolder, number, *excluded = sys.argv[1:]\n"
        "def say(**fields): print(json.dumps(fields), flush=True)\n"
        "def win(name): say(result={'gpu': 'NVIDIA H200', 'winner': name, 'microseconds': 2.0,"
        " 'of_cublas': 1.1, 'apart': True, 'measured': 1, 'medians': {'000/00': 3.0, name: 2.0}})\n" + body
    )
    return [sys.executable, str(path)]


@pytest.fixture
def planned(tmp_path):
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


def measure(planned, tmp_path, body, **options):
    lines, database = [], Database(tmp_path / "tuning.json")
    entries = measuring.measure_plan(
        planned, database, progress=lines.append, worker=fake_worker(tmp_path, body), **options
    )
    return entries, lines, database


def test_winners_are_stored_one_by_one_and_not_measured_again(planned, tmp_path):
    entries, lines, database = measure(planned, tmp_path, "say(candidate='000/00'); win(f'{int(number):03d}/01')")
    assert [one.knobs for one in entries] == [{"block_m": 64}] * 2 and database.entries() == entries
    assert "2.0 us, 1.100 of cuBLAS: block_m=64, 1.50 x the model's first choice" in lines[0]
    assert "measured before" in measure(planned, tmp_path, "say(error='no', status=1)")[1][1]
    with pytest.raises(StepladderError, match="no"):
        measure(planned, tmp_path, "say(error='no', status=1)", again=True)


@pytest.mark.parametrize(
    "body, reason",
    [
        (
            "say(candidate='000/02'); time.sleep(60) if '000/02' not in excluded else win('000/01')",
            "no result within 1 s",
        ),
        (
            "say(candidate='000/02'); sys.exit(139) if '000/02' not in excluded else win('000/01')",
            "ended with status 139",
        ),
        ("say(excluded='000/02', reason='wrong numbers: 5 of 64'); win('000/01')", "wrong numbers: 5 of 64"),
    ],
)
def test_a_kernel_that_hangs_breaks_or_is_wrong_is_excluded_and_named(planned, tmp_path, body, reason):
    found = measuring.measure_problem(planned, 0, worker=fake_worker(tmp_path, body), patience=1.0)
    assert found.result["winner"] == "000/01" and reason in found.excluded["000/02"]
    plan = read_plan(planned)
    (planned / "plan.json").unlink()
    write_plan(planned, replace(plan, problems=plan.problems[:1]))
    entries, lines, _ = measure(planned, tmp_path, body, patience=1.0)
    assert any("excluded: block_m=128" in line and reason in line for line in lines)
    assert reason in entries[0].excluded["block_m=128"]


@pytest.mark.parametrize(
    "body, said",
    [
        ("time.sleep(60)", "does not come back: at its start"),
        ("say(candidate='cublas'); sys.exit(1)", "does not come back: cublas"),
        ("say(candidate='000/00'); say(excluded='000/00', reason='x'); sys.exit(1)", "000/00"),
    ],
)
def test_a_process_that_fails_by_itself_ends_the_measurement(planned, tmp_path, body, said):
    with pytest.raises(StepladderError, match=said):
        measuring.measure_problem(planned, 0, worker=fake_worker(tmp_path, body), patience=1.0)


def test_without_a_gpu_nothing_is_executed_or_stored(planned, tmp_path):
    body = f"say(error='no usable GPU; nothing was executed', status={NOT_EXECUTED})"
    with pytest.raises(StepladderError) as raised:
        measure(planned, tmp_path, body)
    assert raised.value.status == NOT_EXECUTED and not (tmp_path / "tuning.json").exists()


def test_an_interruption_keeps_what_was_measured_and_ends_the_process(planned, tmp_path):
    body = (
        "open(folder + '/pid', 'w').write(str(__import__('os').getpid()))\n"
        "win('000/01') if number == '0' else (say(candidate='001/00'), time.sleep(60))"
    )

    def interrupt():
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


def test_an_interrupted_build_keeps_whole_bundles(tmp_path):
    for payload in PAYLOADS:
        (tmp_path / payload.name).write_text(payload.text)
    files = [str(tmp_path / payload.name) for payload in PAYLOADS]
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
        "1",
        "--folder",
        str(tmp_path / "plan"),
    ]
    runner = os.pathsep.join(path for path in sys.path if path.endswith("runner"))
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": runner})
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=120)[1]
    assert first.startswith("1 of 8") and process.returncode == 130 and "Traceback" not in rest
    plan = read_plan(tmp_path / "plan")
    from stepladder.runtime.bundle import read_bundle

    there = [
        setting.bundle
        for problem in plan.problems
        for setting in problem.settings
        if (tmp_path / "plan" / setting.bundle).exists()
    ]
    assert 1 <= len(there) < 8
    for name in there:
        read_bundle(tmp_path / "plan" / name)
