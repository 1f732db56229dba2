"""Payloads with other functions, nested modules, and names that PTX does not take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stepladder.payload.matmul import find_matmul
from stepladder.payload.selection import select
from stepladder.pipeline.build import build
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.bundle import read_bundle
from stepladder.runtime.errors import BAD_INPUT, StepladderError

KNOBS = {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32}


def product(name: str, size: int = 64) -> str:
    a = f"memref<{size}x{size}xf16>"
    c = f"memref<{size}x{size}xf32>"
    return (
        f"func.func @{name}(%A: {a}, %B: {a}, %C: {c}) {{\n"
        f"  linalg.matmul ins(%A, %B : {a}, {a}) outs(%C : {c})\n  return\n}}\n"
    )


OTHER = "func.func @relu(%x: f32) -> f32 {\n  %z = math.absf %x : f32\n  return %z : f32\n}\n"


@pytest.mark.parametrize(
    "text, name, function, others, entry",
    [
        (product("f"), None, "f", (), "f"),
        (OTHER + product("f"), None, "f", ("relu",), "f"),
        ("func.func private @print(f32)\n" + product("f"), None, "f", ("print",), "f"),
        ("memref.global @weights : memref<4xf32>\n" + product("f"), None, "f", (), "f"),
        ("module {\nmodule @inner {\n" + product("f") + "}\n" + OTHER + "}\n", None, "f", ("relu",), "f"),
        (product("f") + product("g", 128), "g", "g", ("f",), "g"),
        (product('"my matmul"'), None, "my matmul", (), "my_matmul"),
        (product("main.1"), None, "main.1", (), "main_1"),
        (product('"1st"'), None, "1st", (), "f_1st"),
        (product('"größe"'), "größe", "größe", (), "gr__e"),
    ],
)
def test_selected(text: str, name: str | None, function: str, others: tuple[str, ...], entry: str) -> None:
    with mlir_context():
        found = select(parse_payload(text, "payload.mlir"), name)
        assert (found.function, found.others) == (function, others)
        (alone,) = [op.operation.attributes["sym_name"].value for op in found.module.body.operations]
        assert alone == entry
        assert find_matmul(found.module).problem.m == (128 if name == "g" else 64)
        run = run_pipeline(text, "payload.mlir", Request("mma_sync", KNOBS, function=name))
    assert f"@{entry}_kernel" in run.steps[-1].text


@pytest.mark.parametrize(
    "text, name, message",
    [
        (product("f") + product("g"), None, r"payload.mlir:5:1: error: 2 functions in the payload; .*: @f, @g"),
        (product("f") + product("g"), "h", r"no function @h with a body"),
        ("func.func private @h()\n" + product("g"), "h", r"no function @h with a body"),
    ],
)
def test_refused(text: str, name: str | None, message: str) -> None:
    with mlir_context(), pytest.raises(StepladderError) as caught:
        run_pipeline(text, "payload.mlir", Request("mma_sync", KNOBS, function=name))
    assert caught.value.status == BAD_INPUT
    assert re.search(message, caught.value.render())
    assert caught.value.notes


def test_the_bundle_names_the_functions(tmp_path: Path) -> None:
    text = OTHER + product('"my matmul"') + product("g", 128)
    with mlir_context():
        build(text, "payload.mlir", Request("mma_sync", KNOBS, function="my matmul")).write(tmp_path / "bundle")
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert (manifest["function"], manifest["other_functions"]) == ("my matmul", ["relu", "g"])
    assert manifest["kernel_name"] == "my_matmul_kernel"
    found = read_bundle(tmp_path / "bundle")
    assert (found.manifest.function, found.manifest.other_functions) == ("my matmul", ("relu", "g"))
    whole = (tmp_path / "bundle" / "ir" / "00-input.mlir").read_text()
    assert all(name in whole for name in ("@relu", '@"my matmul"', "@g"))


def test_powers_with_constant_exponents_become_products() -> None:
    """Front ends write x^2 of a norm and x^3 of GELU so."""
    text = """func.func @f(%x: f32) -> f32 {
      %two = arith.constant 2 : i64
      %y = math.fpowi %x, %two : f32, i64
      return %y : f32
    }"""
    with mlir_context():
        selected = str(select(parse_payload(text, "f")).module)
    assert "arith.mulf" in selected and "math.fpowi" not in selected
