"""The scripts as literature: what every step and pipeline file has to have."""

import re
from pathlib import Path

import pytest

from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library
from stepladder.pipeline.ablation import ABLATIONS
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.knobs import choose_knobs
from stepladder.pipeline.pass_pipeline import run_pass_pipeline
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import StepResult, run_pipeline
from stepladder.pipeline.sequences import sequences_of
from stepladder.runtime.resources import transforms_dir

STEPS = sorted(transforms_dir().glob("steps/**/*.mlir"))
STEPS_OF_FUNCTIONS = sorted(transforms_dir().glob("functions/steps/*.mlir"))
PIPELINES = sorted(transforms_dir().glob("*.mlir"))
PIPELINES_OF_FUNCTIONS = sorted(transforms_dir().glob("functions/*.mlir"))
SEQUENCE = re.compile(r"^  transform\.named_sequence (private )?@(\w+)\(", re.MULTILINE)


def head(path: Path) -> list[str]:
    """Returns the comment that a script begins with."""
    lines = path.read_text().splitlines()
    return list(lines[: next(i for i, line in enumerate(lines) if not line.startswith("//"))])


@pytest.mark.parametrize("path", STEPS + STEPS_OF_FUNCTIONS, ids=lambda path: path.stem)
def test_step(path: Path) -> None:
    assert [name for private, name in SEQUENCE.findall(path.read_text()) if not private] == [path.stem]
    comment = "\n".join(head(path))
    before, after = comment.find("// Before"), comment.find("// After")
    assert 0 < before < after, "the head shows the IR before and after"
    assert head(path)[0].endswith(".") or head(path)[1].strip("/ "), "the head begins with a sentence"
    is_optional = re.search(r"attributes \{.*\boptimization\b", path.read_text()) is not None
    assert is_optional == ("// Left out: " in comment), "the head of an optimization says what is there without it"


@pytest.mark.parametrize("path", STEPS + STEPS_OF_FUNCTIONS, ids=lambda path: path.stem)
def test_step_is_tested(path: Path) -> None:
    tests = transforms_dir().parent / "test" / "steps"
    if tests.is_dir():
        assert (tests / f"{path.stem}.mlir").is_file()


def test_every_step_is_used() -> None:
    used = set()
    with mlir_context():
        for name in (*(path.stem for path in PIPELINES), *map(str, PIPELINES_OF_FUNCTIONS)):
            pipeline = library.load(name)
            sequences = sequences_of(pipeline, pipeline.steps)
            used |= {sequence.attributes["sym_name"].value for sequence in sequences}
    assert used == {path.stem for path in STEPS + STEPS_OF_FUNCTIONS}


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_derived_names_are_used(path: Path) -> None:
    """By other expressions of the pipeline, by its steps, or by the choice of knobs."""
    with mlir_context():
        pipeline = library.load(path.stem)
        steps = [sequence.attributes["sym_name"].value for sequence in sequences_of(pipeline, pipeline.steps)]
    code = Path(library.__file__).parent
    texts = [step.read_text() for step in STEPS if step.stem in steps]
    texts += [module.read_text() for module in code.rglob("*.py")]
    own = re.sub(r"^ *//.*|\b\w+(?= =\s)", "", path.read_text(), flags=re.MULTILINE)  # without comments and names
    used = re.findall(r"\w+", " ".join([own, *texts]))
    assert set(pipeline.derived) - set(used) == set()


@pytest.mark.parametrize("path", sorted(transforms_dir().rglob("*.mlir")), ids=lambda path: path.stem)
def test_lines(path: Path) -> None:
    text = path.read_text()
    assert max(map(len, text.splitlines())) <= 120
    assert text.endswith("}\n") and "\t" not in text and " \n" not in text


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_pipelines_for_a_stock_mlir_opt_declare_what_they_include(path: Path) -> None:
    text = path.read_text()
    declared = [name for private, name in SEQUENCE.findall(text) if private]
    included = re.findall(r"transform\.include @(\w+)", text)
    assert declared == (included if path.stem.endswith("_upstream") else []), "in the order in which they run"


@pytest.mark.parametrize("path", STEPS, ids=lambda path: path.stem)
def test_steps_declare_what_they_include(path: Path) -> None:
    text = path.read_text()
    declared = [name for private, name in SEQUENCE.findall(text) if private]
    assert declared == list(dict.fromkeys(re.findall(r"transform\.include @(\w+)", text)))


@pytest.mark.parametrize("name", ABLATIONS)
def test_ablations_leave_knobs_of_absent_steps_to_them(name: str) -> None:
    ablation = ABLATIONS[name]
    with mlir_context():
        pipeline = library.load(ablation.pipeline)
        defaults = {knob.name: knob.default for knob in pipeline.knobs.values()}
        for without in ablation.variants.values():
            settings = ablation.settings_of(without, defaults)
            choose_knobs(pipeline, Request(ablation.pipeline, settings, without=without))


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_upstream_pipelines_use_no_tc_op(path: Path) -> None:
    with mlir_context():
        extended = [step.name for step in library.load(path.stem).steps if step.dialects]
    assert not (path.stem.endswith("_upstream") and extended)
    for step in STEPS:
        assert ('"tc.' in step.read_text()) == (step.parent.name == "tc")


@pytest.mark.parametrize(
    "pipeline, payload, settings",
    [
        ("wmma", matmul_text(128, 128, 64, a_type="bf16", b_type="bf16"), {}),
        ("wmma", matmul_text(136, 120, 72), {}),
        ("mma_sync", matmul_text(128, 128, 64), {}),
        ("wgmma_multistage", matmul_text(128, 256, 128), {}),
        ("wgmma", matmul_text(136, 250, 128, accumulate=False, c_type="f16"), {"epilogue": "rows"}),
    ],
)
def test_steps_leave_no_common_subexpressions(pipeline: str, payload: str, settings: dict[str, str]) -> None:
    """CSE removes nothing from the IR after any step: no dead op, no constant or index that is there twice."""
    left = []

    def check(step: StepResult) -> None:
        if len(run_pass_pipeline(step.text, step.name, "builtin.module(cse)").splitlines()) != len(
            step.text.splitlines()
        ):
            left.append(step.name)

    with mlir_context():
        run_pipeline(payload, "payload.mlir", Request(pipeline, settings), progress=check)
    assert not left
