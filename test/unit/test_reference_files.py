"""Edited `reference.json`: each field is checked where the file is read."""

import functools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import make_manifest, make_problem
from stepladder.cli import main as cli
from stepladder.runtime.bundle import parse_reference, read_bundle, write_bundle
from stepladder.runtime.errors import BAD_INPUT, StepladderError
from stepladder.runtime.reference import REFERENCE, matmul_program


def _set(*path: str | int) -> Callable[[object], Callable[[dict], None]]:
    """Returns an edit of JSON data: the last name or number of a path gets a value."""

    def with_value(value: object) -> Callable[[dict], None]:
        def edit(data: dict) -> None:
            *outer, last = path
            for step in outer:
                data = data[step]
            data[last] = value

        return edit

    return with_value


_FIRST, _SECOND, _THIRD = (functools.partial(_set, "arguments", number) for number in range(3))
_ZEROS, _PRODUCT = (functools.partial(_set, "instructions", number) for number in range(2))
_MULF = functools.partial(_PRODUCT, "body", 0)


# The program is 2 of a zero, and 5 of the product of 0 and 1, of whose body 10 to 14 are values.
@pytest.mark.parametrize(
    "edit, message",
    [
        (_set("version")(2), "'version' is 2, and this version of stepladder reads 1"),
        (_set("version")("1"), "'version' must be an integer"),
        (_set("arguments")(3), "'arguments' must be a list of objects, got 3"),
        (_FIRST("shape")([64, None]), "'arguments[0].shape' must be a list of integers of at least 0"),
        (_FIRST("shape")([2**30, 2**30]), "'arguments[0].shape' must have at most 1099511627776 elements"),
        (_SECOND("value")(0), "'arguments[1].value' defines value 0 again"),
        (_FIRST("type")("tf32"), "'instructions[1].inputs' has 0, of tf32: values that are read must be"),
        (_THIRD("after")(99), "'arguments[2].after' refers to value 99, which is not yet defined"),
        (_THIRD("after")(0), "'arguments[2].after' must be of 64x96xf32, got 64x32xf32"),
        (_ZEROS("kind")("loop"), "'instructions[0].kind' must be one of constant, empty"),
        (_ZEROS("number")(0), "'instructions[0].number' must be a floating-point number in hexadecimal"),
        (_ZEROS("number")("0x1p99999"), "'instructions[0].number' must be a floating-point number in hexadecimal"),
        (_ZEROS("type")("i8"), "'instructions[0].number' must be an integer of i8"),
        (_PRODUCT("body")(None), "'instructions[1].body' must be a list of objects"),
        (_PRODUCT("inputs")([0]), "'instructions[1].maps' must have 2 entries, got 3"),
        (
            _PRODUCT("inputs")([0, 5]),
            "'instructions[1].inputs' refers to value 5, which is not yet defined",
        ),
        (_PRODUCT("maps", 0)([2, 0]), "'instructions[1].maps[0]' must have loops of as many iterations as 64x32xf32"),
        (_PRODUCT("maps", 0)([0, 0]), "'instructions[1].maps[0]' must have each loop once"),
        (_PRODUCT("maps", 0)([0, 9]), "'instructions[1].maps[0]' must be a loop of 'sizes' for each axis"),
        (_PRODUCT("sizes")([64, 96, 32, 3]), "'instructions[1].maps' must have all 4 loops of 'sizes', got 3"),
        (_PRODUCT("types")(["f16"]), "'instructions[1].types' must be those of 'yields' and 'outputs'"),
        (_PRODUCT("yields")([13]), "'instructions[1].body' must fold the values of loops that no output has"),
        (_PRODUCT("results")([0]), "'instructions[1].results' defines value 0 again"),
        (_PRODUCT("outputs")([]), "'instructions[1].outputs' must have a value at least"),
        (_MULF("name")("arith.convertf"), "'instructions[1].body[0].name' must be an op that a reference program"),
        (_MULF("name")("arith.bitcast"), "'instructions[1].body[0].operands' must be 1 for arith.bitcast, got 2"),
        (_MULF("name")("arith.muli"), "'instructions[1].body[0].operands' must be integers for arith.muli, got f32"),
        (_MULF("name")("math.exp"), "'instructions[1].body[0].operands' must be 1 for math.exp, got 2"),
        (_MULF("type")("f16"), "'instructions[1].body[0].type' must be f32 for arith.mulf, got f16"),
        (_MULF("operand_type")("i8"), "'instructions[1].body[0].operand_type' must be that of the last operand"),
        (_MULF("result")(10), "'instructions[1].body[0].result' defines value 10 again"),
        (_MULF("operands")([10, 0]), "'instructions[1].body[0].operands' has 0, of 64x32xf32: a body reads scalars"),
        (_MULF("attribute")(1), "'instructions[1].body[0].attribute' must be null for arith.mulf, got 1"),
    ],
)
def test_other_files_are_refused(edit: Callable[[dict], None], message: str) -> None:
    data = json.loads(matmul_program(make_problem(64, 96, 32, accumulate=False, inputs="f32")).to_text())
    edit(data)
    with pytest.raises(StepladderError, match=re.escape(message)) as caught:
        parse_reference(json.dumps(data).encode(), "folder/reference.json")
    assert caught.value.location == "folder/reference.json" and caught.value.status == BAD_INPUT


def test_programs_of_other_operands_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = make_manifest(make_problem(64, 96, 32, accumulate=False))
    program = matmul_program(manifest.problem)
    for number, changes, message in (
        (0, {"role": "d0"}, "'arguments[0].role' must be one of a, b, c, got \"d0\""),
        (2, {"type": "f16", "after": None}, "'arguments[2].type' must be f32, as in the manifest, got \"f16\""),
        (0, {"role": "b"}, "'arguments[0].shape' must have 3072 elements, as in the manifest, got [64, 32]"),
    ):
        arguments = list(program.arguments)
        arguments[number] = replace(arguments[number], **changes)
        edited = replace(program, arguments=tuple(arguments))
        write_bundle(tmp_path / "bundle", manifest, b"cubin", "ptx", {}, reference=edited)
        assert cli.main(["run", str(tmp_path / "bundle")]) == BAD_INPUT
        assert f"bundle/reference.json: error: field {message}\n" in capsys.readouterr().err
    written = [replace(item, after=None) for item in program.arguments]
    write_bundle(tmp_path / "bundle", manifest, b"cubin", "ptx", {}, reference=replace(program, arguments=written))
    with pytest.raises(StepladderError, match=re.escape("'results' and 'arguments' must write 'c' once, got 0 times")):
        read_bundle(tmp_path / "bundle")
    whole = [*program.arguments[:2], replace(program.arguments[2], after=3)]
    zeros = replace(program, arguments=whole, instructions=program.instructions[:1])
    write_bundle(tmp_path / "bundle", manifest, b"cubin", "ptx", {}, reference=zeros)
    with pytest.raises(StepladderError, match="'instructions' must have 1 or more reductions, got 0"):
        read_bundle(tmp_path / "bundle")


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(StepladderError, match=r"not valid JSON .*; the bundle is truncated or was edited"):
        parse_reference(b"{", REFERENCE)
    with pytest.raises(StepladderError, match="not UTF-8 text; the bundle is truncated or was edited"):
        parse_reference(b"\xff", REFERENCE)


_PART = {"type": "f32", "source": 0, "offsets": [0, 0], "sizes": [1, 8], "strides": [1, 1], "result": 9}


@pytest.mark.parametrize(
    "instruction, message",
    [
        ({"kind": "reshape", "shape": [3]}, "shape' must have the elements of 'source', of 64x32xf32"),
        ({"kind": "slice", "kept": [1, 0]}, "kept' must be axes of 'source' in ascending order, got [1, 0]"),
        ({"kind": "slice", "kept": [0]}, "kept' must have all axes of more than one element, got [0]"),
        (
            {"kind": "slice", "kept": [1], "sizes": [1, 33]},
            "sizes' must end within the extents [64, 32], got [1, 33]",
        ),
        (
            {"kind": "insert", "target": 0, "shape": [64, 32]},
            "sizes' must have the elements of 'source', of 64x32xf32",
        ),
        (
            {"kind": "insert", "target": 0, "shape": [32, 64]},
            "shape' must be that of 'target', of 64x32xf32, got [32, 64]",
        ),
    ],
)
def test_parts_of_other_tensors_are_refused(instruction: dict, message: str) -> None:
    data = json.loads(matmul_program(make_problem(64, 96, 32, accumulate=False, inputs="f32")).to_text())
    data["instructions"].append({**_PART, **instruction})
    with pytest.raises(StepladderError, match=re.escape(f"field 'instructions[2].{message}")):
        parse_reference(json.dumps(data).encode(), "folder/reference.json")
