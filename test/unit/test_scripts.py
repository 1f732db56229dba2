"""Script files: declarations that a script leaves out are supplied where the script is parsed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.pipeline import library, pipeline_cache, scripts
from stepladder.pipeline.bind import bind
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.expressions import Scope
from stepladder.pipeline.sequences import knob_ops, sequences_by_name, sequences_of, texts_of_steps
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.resources import transforms_dir

STEP = """\
module attributes {{transform.with_named_sequence}} {{{declarations}
  transform.named_sequence @{name}(%module: !transform.any_op {{transform.readonly}},
      %size: !transform.param<i64> {{transform.readonly}}) -> !transform.any_op {{
    {body}
    transform.yield %module : !transform.any_op
  }}
}}
"""
PIPELINE = """\
// transform.include @in_a_comment
module attributes {{transform.with_named_sequence}} {{{declarations}
  transform.named_sequence @mine(%module: !transform.any_op {{transform.consumed}})
      attributes {{derived = {{text = "'transform.include @in_a_text // no comment' == size"}}}} {{
    %size = transform.tune.knob<"size"> = 32 from options = [32, 24] -> !transform.param<i64>
    %out = transform.include @first failures(propagate) (%module, %size)
      : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    {body}
    transform.yield
  }}
}}
"""
FIRST = (
    "transform.named_sequence private @first(!transform.any_op {transform.readonly}, "
    "!transform.param<i64> {transform.readonly}) -> !transform.any_op"
)
CLEAN = "transform.include @canonicalize failures(propagate) (%module) : (!transform.any_op) -> ()"
CALL = (
    "%again = transform.include @{name} failures(propagate) (%module, %size) "
    ": (!transform.any_op, !transform.param<i64>) -> !transform.any_op"
)


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Returns a function that writes a pipeline `mine.mlir` and its steps, and returns the pipeline's path."""

    def written(declarations: str = "", body: str = "", **steps: str) -> Path:
        for name, step in steps.items():
            path = tmp_path / "steps" / f"{name}.mlir"
            path.parent.mkdir(exist_ok=True)
            path.write_text(STEP.format(name=name, declarations="", body=step))
        path = tmp_path / "mine.mlir"
        path.write_text(PIPELINE.format(declarations=declarations and f"\n  {declarations}", body=body))
        return path

    return written


@pytest.mark.parametrize("declarations", ["", FIRST])
def test_a_pipeline_with_or_without_declarations(write: Write, declarations: str) -> None:
    path = write(declarations, first="")
    with mlir_context():
        assert [step.name for step in library.load(str(path)).steps] == ["first"]


def test_declarations_stand_on_the_line_that_opens_the_module(write: Write) -> None:
    path = write(first="")
    with mlir_context():
        text = scripts.declared(path)
        given, supplied = path.read_text().splitlines(), text.splitlines()
        assert len(given) == len(supplied)
        assert [line for line, own in zip(supplied, given, strict=True) if line != own] == [supplied[1]]
        assert supplied[1].startswith("module attributes {transform.with_named_sequence} { transform.named_sequence")
        sequence = library.load(str(path)).sequence
        assert str(sequence.location) == f'loc("{path}":3:3)'


def test_a_supplied_declaration_is_the_one_that_a_user_would_write(write: Write) -> None:
    path = write(first="")
    with mlir_context():
        supplied = sequences_by_name(scripts.parse(path))["first"]
        write(FIRST, first="")
        written = sequences_by_name(scripts.parse(path))["first"]
        assert str(supplied) == str(written)


def test_only_what_is_missing_is_declared(write: Write) -> None:
    path = write(FIRST, CALL.format(name="second"), first="", second="")
    with mlir_context():
        text = scripts.declared(path)
        assert text.count("private @first(") == 1 and text.count("private @second(") == 1
        assert "private @in_a" not in text
        assert [step.name for step in library.load(str(path)).steps] == ["first", "second"]


def test_a_script_that_declares_all_stays_as_it_is(write: Write) -> None:
    path = write(FIRST, first="")
    with mlir_context():
        assert scripts.declared(path) == path.read_text()


def test_a_script_in_the_generic_form(write: Write) -> None:
    path = write(FIRST, first="")
    with mlir_context():
        path.write_text(ir.Module.parseFile(str(path)).operation.get_asm(print_generic_op_form=True))
        assert [step.name for step in library.load(str(path)).steps] == ["first"]


def test_a_step_includes_sequences_of_other_files(write: Write) -> None:
    path = write(first=CALL.format(name="second"), second=CLEAN)
    with mlir_context():
        (step,) = (pipeline := library.load(str(path))).steps
        names = [sequence.attributes["sym_name"].value for sequence in sequences_of(pipeline, [step])]
        assert names == ["first", "second", "canonicalize"]
        assert "apply_cse" in texts_of_steps(pipeline)["first"]
        assert step.path == path.parent / "steps" / "first.mlir"


def test_a_step_that_another_has_merged_keeps_its_file(write: Write) -> None:
    path = write(body=CLEAN, first=CLEAN)
    with mlir_context():
        assert [step.path.name for step in library.load(str(path)).steps] == ["first.mlir", "canonicalize.mlir"]


def test_knobs_are_followed_in_included_sequences(write: Write) -> None:
    constant = '%five = transform.param.constant 5 : i64 {knobs = {value = "size"}} -> !transform.param<i64>'
    path = write(first=CALL.format(name="second"), second=constant)
    with mlir_context():
        pipeline = library.load(str(path))
        bind(pipeline, pipeline.steps, {"size": 24}, Scope({"size": 24}, {}), ir.Module.create())
        assert "constant 24 : i64" in texts_of_steps(pipeline)["first"]


def test_dialects_of_included_sequences_are_those_of_the_step(write: Write) -> None:
    barrier = '"tc.insert_barrier"(%module) : (!transform.any_op) -> ()'
    path = write(first=CALL.format(name="second"), second=barrier)
    with mlir_context():
        assert library.load(str(path)).steps[0].dialects == ("tc",)


@pytest.mark.parametrize(
    "steps, message",
    [
        ({}, r"includes step 'first', and no file first\.mlir defines it"),
        ({"first": CALL.format(name="second")}, r"includes step 'second', and no file second\.mlir defines it"),
        (
            {"first": CALL.format(name="second"), "second": CALL.format(name="first")},
            "step 'first' includes itself",
        ),
    ],
)
def test_declarations_that_cannot_be_supplied(write: Write, steps: dict[str, str], message: str) -> None:
    path = write(**steps)
    with mlir_context(), pytest.raises(StepladderError, match=message):
        library.load(str(path))


def test_a_step_file_without_the_sequence(write: Write) -> None:
    path = write(first="")
    step = path.parent / "steps" / "first.mlir"
    step.write_text(step.read_text().replace("@first", "@other"))
    with mlir_context(), pytest.raises(StepladderError, match=r"first\.mlir' defines no named sequence @first"):
        library.load(str(path))


def test_a_pipeline_that_is_loaded_again_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locations too, which messages show; and values that one copy is bound to are not in the next one."""
    names = library.pipeline_names()
    monkeypatch.setattr(pipeline_cache, "_LOADED", {})
    with mlir_context():
        first = [library.load(name) for name in names]
        texts = [pipeline.module.operation.get_asm(enable_debug_info=True) for pipeline in first]
        for pipeline in first:
            knob_ops(pipeline)[0].attributes["selected"] = ir.StringAttr.get("changed")
            pipeline.knobs.clear()
    monkeypatch.setattr(library, "_parse", lambda path, _: pytest.fail(f"{path} is parsed again"))
    with mlir_context():
        for name, old, text in zip(names, first, texts, strict=True):
            again = library.load(name)
            assert again.module.operation.get_asm(enable_debug_info=True) == text
            assert (again.steps, again.derived, again.whole_function) == (old.steps, old.derived, old.whole_function)
            assert set(again.knobs) == {op.attributes["name"].value for op in knob_ops(again)}


def test_the_module_of_a_pipeline_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the context that the pipeline was loaded in; a context without the extension has the error of loading."""
    read = []
    module = SimpleNamespace(parse=lambda *arguments: read.append(1) or ir.Module.parse(*arguments))
    with mlir_context() as context:
        library.load("wgmma")
        monkeypatch.setattr(pipeline_cache, "ir", SimpleNamespace(Module=module, Context=ir.Context))
        pipeline = library.load("wgmma")
        assert pipeline.knobs and pipeline.steps and not read
        with mlir_context():
            assert pipeline.module.context == context
        assert pipeline.sequence.parent == pipeline.module.operation and len(read) == 1
    with ir.Context(), ir.Location.unknown(), pytest.raises(StepladderError, match="unregistered dialect"):
        library.load("wgmma")


def test_a_script_that_changes_is_loaded_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that a step includes."""
    folder = tmp_path / "transforms"
    shutil.copytree(transforms_dir(), folder)
    for module in (library, pipeline_cache, scripts):
        monkeypatch.setattr(module, "transforms_dir", lambda: folder)
    with mlir_context():
        before = library.load("wmma_upstream")
        step = folder / "steps" / "canonicalize.mlir"
        step.write_text(step.read_text().replace("{apply_cse}", ""))
        after = library.load("wmma_upstream")
    assert str(before.module).count("apply_cse") == str(after.module).count("apply_cse") + 1


def test_a_pipeline_of_a_user_is_parsed_once(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read anew when a script is another, even of the same size and time, or another script takes its place."""
    parsed, parse = [], library._parse
    monkeypatch.setattr(library, "_parse", lambda *arguments: parsed.append(1) or parse(*arguments))
    path = write(first='transform.annotate %module "a" : !transform.any_op')

    def marks() -> tuple[str, int]:
        with mlir_context():
            module = library.load(str(path)).module
        names = [op.attributes["name"].value for op in walk(module, "transform.annotate")]
        return "".join(names), len(parsed)

    assert [marks(), marks()] == [("a", 1)] * 2
    step = path.parent / "steps" / "first.mlir"
    times = step.stat()
    step.write_text(step.read_text().replace('"a"', '"b"'))
    os.utime(step, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [marks(), marks()] == [("b", 2)] * 2
    (path.parent / "steps" / "tc").symlink_to(path.parent / "steps")
    text = step.read_text()  # the link is a loop
    step.rename(path.parent / "first.mlir")  # searched after steps/
    assert marks() == ("b", 3)
    step.write_text(text.replace('"b"', '"c"'))
    assert [marks(), marks()] == [("c", 4)] * 2
    step.unlink()
    assert marks() == ("b", 5)
