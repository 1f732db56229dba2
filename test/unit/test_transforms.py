"""The scripts as literature: what every step and pipeline file has to have."""

import re

import pytest

from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.runtime.resources import transforms_dir

STEPS = sorted(transforms_dir().glob("steps/**/*.mlir"))
PIPELINES = sorted(transforms_dir().glob("*.mlir"))
SEQUENCE = re.compile(r"^  transform\.named_sequence (private )?@(\w+)\(", re.MULTILINE)


def head(path):
    """Returns the comment that a script begins with."""
    lines = path.read_text().splitlines()
    return [line for line in lines[: next(i for i, line in enumerate(lines) if not line.startswith("//"))]]


@pytest.mark.parametrize("path", STEPS, ids=lambda path: path.stem)
def test_step(path):
    assert [name for private, name in SEQUENCE.findall(path.read_text()) if not private] == [path.stem]
    comment = "\n".join(head(path))
    before, after = comment.find("// Before"), comment.find("// After")
    assert 0 < before < after, "the head shows the IR before and after"
    assert head(path)[0].endswith(".") or head(path)[1].strip("/ "), "the head begins with a sentence"


@pytest.mark.parametrize("path", STEPS, ids=lambda path: path.stem)
def test_step_is_tested(path):
    tests = transforms_dir().parent / "test" / "steps"
    if tests.is_dir():
        assert (tests / f"{path.stem}.mlir").is_file()


@pytest.mark.parametrize("path", STEPS, ids=lambda path: path.stem)
def test_step_is_used(path):
    with mlir_context():
        used = {step.name for pipeline in PIPELINES for step in library.load(pipeline.stem).steps}
    assert path.stem in used


@pytest.mark.parametrize("path", STEPS + PIPELINES, ids=lambda path: path.stem)
def test_lines(path):
    text = path.read_text()
    assert max(map(len, text.splitlines())) <= 120
    assert text.endswith("}\n") and "\t" not in text and " \n" not in text


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_pipeline_includes_what_it_declares(path):
    text = path.read_text()
    declared = [name for private, name in SEQUENCE.findall(text) if private]
    included = re.findall(r"transform\.include @(\w+)", text)
    assert sorted(declared) == sorted(set(included))
    assert declared == included, "declared in the order in which they run"


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_upstream_pipelines_use_no_tc_op(path):
    with mlir_context():
        extended = [step.name for step in library.load(path.stem).steps if step.dialects]
    assert not (path.stem.endswith("_upstream") and extended)
    for step in STEPS:
        assert ('"tc.' in step.read_text()) == (step.parent.name == "tc")
