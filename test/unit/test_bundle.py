"""The bundle format: what is written is read back, and what is damaged is refused by name."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bundles import edit_manifest, refusal
from conftest import make_descriptor, make_manifest, make_problem
from stepladder.runtime.bundle import read_bundle, write_bundle


def test_round_trip(bundle: Path) -> None:
    read = read_bundle(bundle)
    assert read.cubin == b"\x7fELF cubin"
    assert read.ptx == ".version 8.0\n"
    assert (bundle / "ir/00-input.mlir").read_text() == "module {}\n"
    assert sorted(read.manifest.files) == ["ir/00-input.mlir", "kernel.cubin", "kernel.ptx"]
    written = make_manifest().to_json() | {"files": read.manifest.files}
    assert json.loads(json.dumps(read.manifest.to_json())) == json.loads(json.dumps(written))


def test_manifest_fields(bundle: Path) -> None:
    data = json.loads((bundle / "manifest.json").read_text())
    assert next(iter(data)) == "schema_version"
    assert set(data) == {
        "schema_version",
        "kernel_name",
        "target",
        "arguments",
        "tma_descriptors",
        "grid",
        "block",
        "cluster",
        "static_shared_memory",
        "dynamic_shared_memory",
        "registers",
        "spills",
        "problem",
        "pipeline",
        "steps",
        "without",
        "knobs",
        "tool_versions",
        "files",
        "dependent_launch",
        "function",
        "other_functions",
    }
    assert set(data["problem"]) == {
        "kind",
        "m",
        "n",
        "k",
        "a_type",
        "b_type",
        "acc_type",
        "c_type",
        "accumulate",
        "a_layout",
        "b_layout",
        "compute_type",
        "batch",
        "a_broadcast",
        "b_broadcast",
        "b_is_a",
    }
    assert set(data["arguments"][0]) == {"name", "role", "element_type", "shape", "access", "descriptor", "data"}


def test_descriptors(tma_bundle: Path) -> None:
    manifest = read_bundle(tma_bundle).manifest
    assert manifest.tma_descriptors == (
        make_descriptor("a", (64, 64), swizzle="128b", l2_promotion="256b"),
        make_descriptor("b", (64, 64), oob_fill="nan"),
    )
    assert [(item.role, item.descriptor) for item in manifest.arguments] == [("b", 1), ("c", None), ("a", 0)]
    assert (manifest.cluster, manifest.dependent_launch) == ((1, 2, 1), True)
    data = json.loads((tma_bundle / "manifest.json").read_text())
    assert data["tma_descriptors"][0] == {
        "role": "a",
        "element_type": "f16",
        "shape": [64, 64],
        "strides": [128],
        "box": [64, 64],
        "element_strides": [1, 1],
        "interleave": "none",
        "swizzle": "128b",
        "l2_promotion": "256b",
        "oob_fill": "zero",
    }


def test_bundles_without_descriptors_take_pointers(bundle: Path) -> None:
    """Bundles made before there were descriptors have neither field."""

    def strip(data: dict[str, object]) -> None:
        del data["dependent_launch"]
        for argument in data["arguments"]:
            del argument["descriptor"]

    edit_manifest(bundle, strip)
    manifest = read_bundle(bundle).manifest
    assert {argument.descriptor for argument in manifest.arguments} == {None}
    assert manifest.dependent_launch is False


@pytest.mark.parametrize(
    "name, value, message",
    [
        (
            "role",
            "d",
            'must be one of a, b, c, d0, d1, d2, d3, d4, d5, d6, d7, r0, r1, r2, w0, w1, w2, w3, w4, w5, got "d"',
        ),
        ("element_type", 16, "must be a string, got 16"),
        ("shape", [64, 0], "must be a list of positive integers, got [64, 0]"),
        ("shape", [], "must have 1 to 5 dimensions, got 0"),
        ("shape", [1] * 6, "must have 1 to 5 dimensions, got 6"),
        ("strides", [128, 2], "must be 1 positive integers, got [128, 2]"),
        ("box", [64], "must be 2 positive integers, got [64]"),
        ("box", "64x64", "must be a list of positive integers"),
        ("element_strides", [1, 2], "must be 1 in every dimension, got [1, 2]"),
        ("interleave", "8b", 'must be one of none, 16b, 32b, got "8b"'),
        ("swizzle", "96b", 'must be one of none, 32b, 64b, 128b, got "96b"'),
        ("l2_promotion", None, "must be a string, got null"),
        ("oob_fill", "one", 'must be one of zero, nan, got "one"'),
    ],
)
def test_wrong_descriptor(tma_bundle: Path, name: str, value: int | list[int] | str | None, message: str) -> None:
    edit_manifest(tma_bundle, lambda data: data["tma_descriptors"][1].update({name: value}))
    text = refusal(tma_bundle)
    assert f"field 'tma_descriptors[1].{name}' {message}" in text
    assert text.startswith(f"{tma_bundle / 'manifest.json'}: error: ")


def test_every_field_of_a_descriptor_is_required(tma_bundle: Path) -> None:
    descriptor = json.loads((tma_bundle / "manifest.json").read_text())["tma_descriptors"][0]
    for name in descriptor:
        edit_manifest(
            tma_bundle,
            lambda data, name=name: data.update(
                tma_descriptors=[{key: value for key, value in descriptor.items() if key != name}] * 2
            ),
        )
        assert f"field 'tma_descriptors[0].{name}' is missing" in refusal(tma_bundle)


@pytest.mark.parametrize(
    "index, message",
    [
        (2, "is 2, and 'tma_descriptors' has 2"),
        (-1, "must be at least 0, got -1"),
        ("0", 'must be an integer, got "0"'),
        (0, "is 0, and 'tma_descriptors[0]' is of role 'a', not 'b'"),
    ],
)
def test_wrong_descriptor_of_an_argument(tma_bundle: Path, index: int | str, message: str) -> None:
    edit_manifest(tma_bundle, lambda data: data["arguments"][0].update(descriptor=index))
    assert f"field 'arguments[0].descriptor' {message}" in refusal(tma_bundle)


@pytest.mark.parametrize("products", [{"compute_type": "tf32"}, {"fits_tf32": True}])
def test_layouts_and_products(tmp_path: Path, products: dict[str, str | bool]) -> None:
    problem = make_problem(2, 3, 5, inputs="f32", a_layout="column", b_layout="column", **products)
    write_bundle(tmp_path / "bundle", make_manifest(problem), b"", "", {})
    read = read_bundle(tmp_path / "bundle").manifest
    assert read.problem == problem
    assert {argument.role: argument.shape for argument in read.arguments} == {"a": (5, 2), "b": (3, 5), "c": (2, 3)}


def test_bundles_without_layouts_are_row_major(bundle: Path) -> None:
    """Bundles of the first version of the layout had none of these fields."""
    edit_manifest(bundle, lambda data: [data["problem"].pop(name) for name in ("a_layout", "b_layout", "compute_type")])
    problem = read_bundle(bundle).manifest.problem
    assert problem == make_problem()
    assert (problem.a_layout, problem.b_layout, problem.compute_type) == ("row", "row", "f16")


@pytest.mark.parametrize(
    "fields, text",
    [
        ({}, "C = AB + C, 64 x 64 x 64, f16 x f16 -> f32 (f32 accumulation)"),
        ({"a_layout": "column"}, "C = AB + C, 64 x 64 x 64, f16 x f16 -> f32 (f32 accumulation), A column-major"),
        (
            {"inputs": "i8", "acc_type": "i32", "c_type": "i32", "accumulate": False, "b_layout": "column"},
            "C = AB, 64 x 64 x 64, i8 x i8 -> i32 (i32 accumulation), B column-major",
        ),
        (
            {"inputs": "f32", "fits_tf32": True},
            "C = AB + C, 64 x 64 x 64, f32 x f32 -> f32 (exact tf32 products, f32 accumulation)",
        ),
        (
            {"inputs": "f32", "compute_type": "tf32", "a_layout": "column", "b_layout": "column"},
            "C = AB + C, 64 x 64 x 64, f32 x f32 -> f32 (tf32 products, f32 accumulation), A and B column-major",
        ),
    ],
)
def test_description(fields: dict[str, bool | str], text: str) -> None:
    assert make_problem(**fields).describe() == text


def test_no_such_folder(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["kernel.cubin", "kernel.ptx", "manifest.json", "ir/00-input.mlir"])
def test_missing_file(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    assert f"'{bundle / name}' is missing" in refusal(bundle)


@pytest.mark.parametrize("name", ["kernel.cubin", "kernel.ptx", "ir/00-input.mlir"])
def test_truncated_file(bundle: Path, name: str) -> None:
    os.truncate(bundle / name, 5)
    assert f"'{bundle / name}' is truncated or was edited" in refusal(bundle)


def test_truncated_manifest(bundle: Path) -> None:
    os.truncate(bundle / "manifest.json", 40)
    message = refusal(bundle)
    assert f"{bundle / 'manifest.json'}:" in message
    assert "not valid JSON" in message


def test_manifest_that_is_not_text(bundle: Path) -> None:
    (bundle / "manifest.json").write_bytes(b"\xff\xfe")
    assert "not UTF-8 text" in refusal(bundle)


def test_half_of_a_surrogate_pair(bundle: Path) -> None:
    """JSON has it, but no file and no terminal takes it."""
    edit_manifest(bundle, lambda data: data.update(kernel_name="\ud800"))
    assert "a text has half of a surrogate pair" in refusal(bundle)


def test_manifest_that_is_not_an_object(bundle: Path) -> None:
    (bundle / "manifest.json").write_text("[1]")
    assert "the manifest must be an object, got [1]" in refusal(bundle)


def test_other_schema_version(bundle: Path) -> None:
    edit_manifest(bundle, lambda data: data.update(schema_version=3))
    assert "field 'schema_version' is 3, and this version of stepladder reads 1, 2, 4" in refusal(bundle)


def test_every_field_is_required(bundle: Path) -> None:
    fields = json.loads((bundle / "manifest.json").read_text())
    for name in fields.keys() - {"dependent_launch", "function", "other_functions"}:
        without = {key: value for key, value in fields.items() if key != name}
        (bundle / "manifest.json").write_text(json.dumps(without))
        assert f"field '{name}' is missing" in refusal(bundle)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda data: data.update(registers="many"), "field 'registers' must be an integer, got \"many\""),
        (lambda data: data.update(registers=True), "field 'registers' must be an integer, got true"),
        (lambda data: data.update(registers=-1), "field 'registers' must be at least 0, got -1"),
        (lambda data: data.update(target=80), "field 'target' must be a string, got 80"),
        (lambda data: data.update(grid=[1, 2]), "field 'grid' must be 3 positive integers, got [1, 2]"),
        (lambda data: data.update(block=[0, 1, 1]), "field 'block' must be 3 positive integers, got [0, 1, 1]"),
        (lambda data: data.update(steps=["tile", 1]), "field 'steps' must be a list of strings"),
        (lambda data: data.update(tma_descriptors=[1]), "field 'tma_descriptors[0]' must be an object, got 1"),
        (lambda data: data.update(dependent_launch=1), "field 'dependent_launch' must be true or false, got 1"),
        (lambda data: data["problem"].update(accumulate=1), "field 'problem.accumulate' must be true or false, got 1"),
        (lambda data: data["problem"].update(m=0), "field 'problem.m' must be at least 1, got 0"),
        (
            lambda data: data["problem"].update(a_layout="diagonal"),
            "field 'problem.a_layout' must be one of row, column, got \"diagonal\"",
        ),
        (lambda data: data["problem"].update(b_layout=None), "field 'problem.b_layout' must be a string, got null"),
        (
            lambda data: data["problem"].update(compute_type="tf32"),
            "field 'problem.compute_type' must be one of f16, got \"tf32\"",
        ),
        (lambda data: data["problem"].update(kind="conv"), "field 'problem.kind' must be one of matmul, got \"conv\""),
        (
            lambda data: data["arguments"][1].update(role="x"),
            "field 'arguments[1].role' must be one of a, b, c, d0, d1, d2, d3, d4, d5, d6, d7, r0, r1, r2, "
            'w0, w1, w2, w3, w4, w5, got "x"',
        ),
        (lambda data: data["arguments"][0].pop("shape"), "field 'arguments[0].shape' is missing"),
        (lambda data: data["spills"].update(loads=None), "field 'spills.loads' must be an integer, got null"),
        (lambda data: data["knobs"].update(block_n={}), "field 'knobs.block_n' must be the value of a knob, got {}"),
        (lambda data: data["knobs"].update(stages=1.5), "field 'knobs.stages' must be the value of a knob, got 1.5"),
        (lambda data: data.update(knobs=[]), "field 'knobs' must be an object, got []"),
        (lambda data: data["files"].update({"../secret": "0"}), "names '../secret', which is outside the bundle"),
        (lambda data: data["files"].pop("kernel.ptx"), "field 'files' does not list 'kernel.ptx'"),
    ],
)
def test_wrong_field(bundle: Path, change: Callable[..., object], message: str) -> None:
    edit_manifest(bundle, change)
    text = refusal(bundle)
    assert message in text
    assert text.startswith(f"{bundle / 'manifest.json'}: error: ")


@pytest.mark.parametrize(
    "text, message",
    [
        ("[" * 100_000, "JSON nested too deeply to be a manifest"),
        ('{"a":' * 100_000, "JSON nested too deeply to be a manifest"),
        ('{"registers": ' + "9" * 5000 + "}", "not a manifest ("),
    ],
)
def test_manifest_that_json_cannot_take(bundle: Path, text: str, message: str) -> None:
    (bundle / "manifest.json").write_text(text)
    assert message in refusal(bundle)


def test_ptx_that_is_not_text(bundle: Path) -> None:
    write_bundle(bundle, make_manifest(), b"", "", {})
    (bundle / "kernel.ptx").write_bytes(b"\xff\xfe")
    digest = hashlib.sha256(b"\xff\xfe").hexdigest()
    edit_manifest(bundle, lambda data: data["files"].update({"kernel.ptx": digest}))
    assert f"bundle file '{bundle / 'kernel.ptx'}' is not UTF-8 text" in refusal(bundle)
