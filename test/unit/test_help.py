"""What all commands have in common: long options, exit statuses in the help, one meaning of --json."""

import argparse
import json
import re
from pathlib import Path

import pytest

from stepladder.cli import main as cli
from stepladder.cli import opt
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import catalog, library


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Returns the parser of every command, by the name that it is called by."""
    found = {"stepladder-opt": opt._parser()}
    for name in cli.COMMANDS:
        commands = next(
            action for action in cli._parser([name])._actions if isinstance(action, argparse._SubParsersAction)
        )
        found[f"stepladder {name}"] = commands.choices[name]
    return found


@pytest.mark.parametrize("command", ["stepladder", *parsers()])
def test_exit_statuses_are_in_the_help(command: str) -> None:
    parser = cli._parser([]) if command == "stepladder" else parsers()[command]
    statuses = parser.format_help().split("exit status", 1)[1].split("examples:")[0]
    assert re.search(r"\b0\b", statuses) and re.search(r"\b2\b", statuses)


@pytest.mark.parametrize("command", parsers())
def test_every_option_has_a_long_form_and_a_description(command: str) -> None:
    for action in parsers()[command]._actions:
        if action.option_strings:
            assert any(option.startswith("--") for option in action.option_strings), action.option_strings
        assert action.help, action.dest


def test_json_is_one_option() -> None:
    found = [
        (action.option_strings, action.metavar, action.help)
        for parser in parsers().values()
        for action in parser._actions
        if "--json" in action.option_strings
    ]
    assert len(found) > 3 and all(entry == found[0] for entry in found)


def test_json_on_standard_output_is_all_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "matmul.mlir"
    file.write_text(matmul_text(16, 16, 16))
    for arguments in (["list", "--json", "-"], ["emulate", str(file), "--json", "-"]):
        assert cli.main(arguments) == 0
        captured = capsys.readouterr()
        assert json.loads(captured.out)
        assert captured.err


def test_json_is_written_beside_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "steps", "--pipeline", "wmma", "--json", str(tmp_path / "steps.json")]) == 0
    assert "tile_to_blocks" in capsys.readouterr().out
    assert json.loads((tmp_path / "steps.json").read_text())[0]["pipeline"] == "wmma"


@pytest.mark.parametrize("pipeline", library.pipeline_names())
def test_every_knob_is_described(pipeline: str) -> None:
    rows = catalog.rows("knobs", pipeline)
    assert rows and all(row["what it is"] for row in rows)
