"""Plug-ins: what is refused when one is loaded, and what installed packages bring."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepladder.extension import plugins
from stepladder.extension.lib import dialect
from stepladder.mlir.bindings import ir
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError

IMPORT = "from stepladder.extension import *\n"
OP = """
class Op({dialect}.Operation, name="{name}"):
    target: Handle

@transform_op(Op)
def rewrite(payload, op, rewriter):
    walk(payload, "func.func")[0].attributes["seen"] = ir.UnitAttr.get()
"""
SCRIPT = """
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @step(%module: !transform.any_op {{transform.readonly}}) {{
    "{op}"(%module) : (!transform.any_op) -> ()
    transform.yield
  }}
  transform.named_sequence @{pipeline}(%module: !transform.any_op {{transform.consumed}}) {{
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }}
}}
"""
PAYLOAD = (
    "func.func @f(%A: memref<8x8xf16>, %B: memref<8x8xf16>, %C: memref<8x8xf32>) {"
    "linalg.matmul ins(%A, %B : memref<8x8xf16>, memref<8x8xf16>) outs(%C : memref<8x8xf32>) return }"
)


def op(name: str, in_dialect: str = "Tc") -> str:
    return IMPORT + OP.format(dialect=in_dialect, name=name)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def written(text: str | bytes, name: str = "plugin.py") -> str:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return written


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = dialect.registered()
    monkeypatch.setattr(plugins, "_files", {})
    monkeypatch.setattr(plugins, "_owners", {})
    yield
    dialect.restore(before)


def test_an_op_is_known_to_contexts_made_afterwards(write: Callable[..., str]) -> None:
    plugins.load_file(write(op("mine")))
    pipeline = write(SCRIPT.format(op="tc.mine", pipeline="seen"), "seen.mlir")
    for _ in range(2):
        with mlir_context():
            run = run_pipeline(PAYLOAD, "payload.mlir", Request(pipeline))
            assert "attributes {seen}" in run.steps[0].text


def test_a_file_is_loaded_once(write: Callable[..., str]) -> None:
    path = write(op("mine"))
    plugins.load_files([path, path, os.path.relpath(path)])
    assert plugins.files() == (path,)


@pytest.mark.parametrize(
    "text, message",
    [
        ("x = (", "is not valid Python: '\\(' was never closed"),
        ("\\0", "is not valid Python"),
        (
            "import nothing_here",
            "raised ModuleNotFoundError at .*plugin.py:1 in <module>: No module named 'nothing_here'",
        ),
        ("raise SystemExit(3)", "raised SystemExit at .*plugin.py:1"),
        ("x = 1", "defines no op"),
        (op("insert_barrier").partition("@")[0], "defines tc.insert_barrier, which stepladder defines"),
        (op("Mine"), "cannot be loaded: name of operation should not contain uppercase letters"),
        (
            op("mine").replace("target: Handle", "target: Handle\n    limit: ir.BoolAttr"),
            "cannot be loaded: AttributeError",
        ),
        (
            op("mine").replace("target", "payload"),
            "raised TypeError at .*plugin.py:6 in <module>: tc.mine has no field",
        ),
        (
            op("mine").replace("target: Handle", "target: Handle\n    a: HandleResult\n    b: HandleResult"),
            "tc.mine has several results",
        ),
        (op("mine") + "transform_op(Op)(rewrite)", "tc.mine has an implementation already"),
        (IMPORT + "@transform_op\ndef f(p, o, r): pass", "f is not an op of a dialect"),
        (
            IMPORT + "class L(Dialect, name='linalg'): pass\n" + op("mine", "L"),
            "dialect 'linalg', which is one of MLIR's",
        ),
        (IMPORT + "class T(Dialect, name='tc'): pass\n" + op("mine", "T"), "dialect 'tc', which stepladder defines"),
        (IMPORT + "class M(Dialect, name='my op'): pass\n" + op("mine", "M"), "invalid dialect name"),
        ("from __future__ import annotations\n" + op("mine"), "the type of field 'target' of tc.mine is a text"),
        (
            "from __future__ import annotations\n" + op("mine").partition("@")[0],
            "the type of field 'target' of tc.mine is a text",
        ),
    ],
)
def test_plugins_that_are_refused(write: Callable[..., str], text: str, message: str) -> None:
    before = dialect.registered()
    with pytest.raises(StepladderError, match=message):
        plugins.load_file(write(text.replace("\\0", "\0")))
    assert dialect.registered() == before and plugins.files() == ()
    with mlir_context():
        ir.Module.parse("module {}")


def test_two_plugins_of_one_dialect_are_refused(write: Callable[..., str]) -> None:
    first = write(IMPORT + "class M(Dialect, name='mine'): pass\n" + op("a", "M"), "first.py")
    plugins.load_file(first)
    message = "second.py' defines the dialect 'mine', which plug-in '.*first.py' defines"
    with pytest.raises(StepladderError, match=message):
        plugins.load_file(write(IMPORT + "class M(Dialect, name='mine'): pass\n" + op("b", "M"), "second.py"))


@pytest.mark.parametrize("path", ["missing.py", "."])
def test_no_file(path: str) -> None:
    with pytest.raises(StepladderError, match=f"cannot read plug-in '{path}'"):
        plugins.load_file(path)


def test_the_error_keeps_the_traceback(write: Callable[..., str]) -> None:
    with pytest.raises(StepladderError) as error:
        plugins.load_file(write("def f():\n    return 1 // 0\nf()\n"))
    assert "line 3, in <module>" in error.value.traceback and "line 2, in f" in error.value.traceback
    assert "--verbose-errors" in error.value.render() and "Traceback" not in error.value.render()
    assert "Traceback" in error.value.render(verbose=True)


@pytest.fixture
def installed(tmp_path: Path, write: Callable[..., str]) -> Callable[..., object]:
    """Returns a function that runs stepladder-opt beside an installed package whose module has some text."""

    def run(text: str) -> subprocess.CompletedProcess:
        metadata = tmp_path / "site" / "barriers-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: barriers\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[stepladder.plugins]\nmine = barriers_of_mine\n")
        (tmp_path / "site" / "barriers_of_mine.py").write_text(text)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), *filter(None, sys.path)])}
        payload = write(PAYLOAD, "payload.mlir")
        pipeline = write(SCRIPT.format(op="mine.seen", pipeline="seen"), "seen.mlir")
        return subprocess.run(
            [sys.executable, "-m", "stepladder.cli.opt", payload, "--pipeline", pipeline],
            capture_output=True,
            text=True,
            env=environment,
        )

    return run


def test_an_installed_package_brings_its_ops(installed: Callable[..., object]) -> None:
    done = installed(IMPORT + "class Mine(Dialect, name='mine'): pass\n" + op("seen", "Mine"))
    assert done.returncode == 0, done.stderr
    assert "attributes {seen}" in done.stdout and done.stderr == ""


def test_an_installed_package_that_fails_is_warned_about(installed: Callable[..., object]) -> None:
    done = installed("import nothing_here\n")
    assert done.returncode == 2
    assert done.stderr.count("warning:") == 1 and "Traceback" not in done.stderr
    assert "plug-in 'mine' of package 'barriers' raised ModuleNotFoundError" in done.stderr
    assert "'mine.seen' is not an op of upstream MLIR" in done.stderr
