"""The database of tuned knobs, and what compiling takes from it."""

import json
import multiprocessing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from stepladder.cli.main import main
from stepladder.measure.tuning.database import (
    SCHEMA_VERSION,
    Database,
    problem_key,
)
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import knob_choice, library
from stepladder.pipeline.codegen.toolchain import tool_versions
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.knob_query import read_query
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_pipeline
from stepladder.runtime.errors import StepladderError
from tuning_files import TOOLS, entry

# The database.


def test_an_entry_comes_back_and_is_replaced_by_a_later_one_of_its_key(tmp_path: Path) -> None:
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
        ("{", "damaged", "is damaged: not valid JSON"),
        ("[" * 100_000, "damaged", "is damaged: JSON nested too deeply"),
        ("[]", "damaged", "is damaged: the tuning database must be an object, got []"),
        (
            json.dumps({"schema_version": 1, "entries": [{"gpu": 1}]}),
            "damaged",
            "is damaged: field 'entries[0].gpu' must be a string, got 1",
        ),
        (
            json.dumps({"schema_version": 1, "entries": [{**asdict(entry()), "knobs": {"block_m": [64]}}]}),
            "damaged",
            "is damaged: field 'entries[0].knobs.block_m' must be the value of a knob, got [64]",
        ),
        (
            json.dumps({"schema_version": 1, "entries": [{**asdict(entry()), "microseconds": "fast"}]}),
            "damaged",
            "is damaged: field 'entries[0].microseconds' must be a number",
        ),
        (
            json.dumps({"schema_version": SCHEMA_VERSION + 1, "entries": []}),
            "newer",
            f"of version {SCHEMA_VERSION + 1}",
        ),
    ],
)
def test_a_damaged_or_newer_file_is_not_used_and_set_aside_by_who_adds(
    tmp_path: Path, text: str, suffix: str, said: str
) -> None:
    path = tmp_path / "tuning.json"
    path.write_text(text)
    lines = []
    database = Database(path, lines.append)
    assert database.entries() == [] and path.read_text() == text
    assert said in lines[0] and "neither used nor changed" in lines[0]
    database.add(entry())
    assert [found.knobs for found in database.entries()] == [{"block_m": 64}]
    assert (tmp_path / f"tuning.json.{suffix}-1").read_text() == text and f"{suffix}-1" in lines[1]
    path.write_text(text)
    database.add(entry())
    assert (tmp_path / f"tuning.json.{suffix}-2").read_text() == text


def add_many(path: Path, start: int) -> None:
    for number in range(start, start + 20):
        Database(path).add(entry(problem=str(number)))


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add_many, args=(path, start)) for start in (0, 100)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(Database(path).entries()) == 40


def test_a_database_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    database = Database(tmp_path / "file" / "tuning.json")
    for write in (database.check_writable, lambda: database.add(entry())):
        with pytest.raises(StepladderError, match="cannot write the tuning database"):
            write()
    with pytest.raises(StepladderError, match="it is a folder"):
        Database(tmp_path).check_writable()


def test_a_database_that_cannot_be_written_is_named_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    database = str(tmp_path / "file" / "tuning.json")
    for words in (["measure", "--folder", str(tmp_path / "none")], ["none.mlir"]):
        assert main(["tune", *words, "--database", database]) == 2
        assert "cannot write the tuning database" in capsys.readouterr().err


# Compiling takes what the database has.


def test_compiling_takes_tuned_knobs_before_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = matmul_text(1024, 1024, 1024, accumulate=False)
    path = tmp_path / "tuning.json"
    request = Request("wgmma", {"target": "sm_90a"}, through="tile_to_blocks", tuned=True, database=path)
    monkeypatch.setattr("stepladder.pipeline.codegen.toolchain.tool_versions", lambda: TOOLS)

    def run() -> Run:
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
    assert found.knob_source.kind == knob_choice.TUNED and "tuning on NVIDIA H200" in found.knob_source.text
    assert (found.knobs["block_n"], found.knobs["persistent_blocks"], found.knobs["block_m"]) == (96, 12, 128)
    request = replace(request, settings={"target": "sm_90a", "block_n": 64})
    assert run().knobs["block_n"] == 64  # what is set is kept


def test_knobs_that_the_pipeline_does_not_accept_give_way(tmp_path: Path) -> None:
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
