"""Attributes of pipelines and steps: what is refused when a pipeline is loaded, and where."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.definition import Requirement, Step
from stepladder.pipeline.expressions import Scope, evaluate
from stepladder.pipeline.knobs import changes_facts, evaluation_scope
from stepladder.runtime.errors import StepladderError

TEXT = """\
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @step(%module: !transform.any_op {{transform.readonly}}) {step} {{
    {op}
    transform.yield
  }}
  transform.named_sequence @mine(%module: !transform.any_op {{transform.consumed}}) {pipeline} {{
    %size = transform.tune.knob<"size"> = 32 from options = [32, 24] -> !transform.param<i64>
    transform.include @step failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }}
}}
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., list[Step]]:
    def written(step: str = "", pipeline: str = "", op: str = "", text: str = TEXT) -> list[Step]:
        path = tmp_path / "mine.mlir"
        path.write_text(
            text.format(
                step=step and f"attributes {{{step}}}", op=op, pipeline=pipeline and f"attributes {{{pipeline}}}"
            )
        )
        with mlir_context():
            return library.load(str(path)).steps

    return written


def test_known_attributes(load: Callable[..., list[Step]]) -> None:
    (step,) = load(
        step='optimization, needs = ["step"], requires = [{condition = "size > 1", message = "size"}], '
        "left_out = {size = 24 : i64}, "
        'mine.note = "of a dialect"',
        pipeline='derived = {half = "size // 2"}',
    )
    assert step.optimization and step.needs == ("step",) and step.requires == (Requirement("size > 1", "size"),)
    assert step.left_out == {"size": 24}


@pytest.mark.parametrize(
    "attributes, message",
    [
        ("optimisation", r"step 'step' has an unknown attribute 'optimisation' \(did you mean 'optimization'\?\)"),
        ('require = ["size > 1"]', r"step 'step' has an unknown attribute 'require' \(did you mean 'requires'\?\)"),
        ('derived = {half = "size // 2"}', "step 'step' has an attribute 'derived', which belongs on a pipeline"),
        ("optimization = false", "attribute 'optimization' must hold no value, .* got false"),
        ('needs = "step"', r"attribute 'needs' must hold a list of step names, for example needs = .* got \"step\""),
        ("requires = [1]", "attribute 'requires' must hold a list of conditions, each with a message"),
        ('left_out = ["size"]', "attribute 'left_out' must hold numbers, booleans or texts by knob"),
        ("left_out = {size = true}", "knob 'size' is true when it is left out, and its options are: 32, 24"),
        ("left_out = {size}", "attribute 'left_out' must hold numbers, booleans or texts by knob"),
        ("when = [1]", "attribute 'when' must hold an expression over knobs, for example when = "),
        ('when = "size >"', "step 'step': when: 'size >' is not an expression"),
        (
            'requires = [{condition = "size >", message = "size"}]',
            "step 'step': requires: 'size >' is not an expression",
        ),
        ('needs = ["stepp"]', r"step 'step' needs 'stepp', and there is no such step \(did you mean 'step'\?\)"),
        ("left_out = {sise = 24 : i64}", r"pipeline 'mine' has no such knob \(did you mean 'size'\?\)"),
        ('left_out = {size = "small"}', "knob 'size' is small when it is left out, and its options are: 32, 24"),
    ],
)
def test_attributes_of_steps_that_are_refused(load: Callable[..., list[Step]], attributes: str, message: str) -> None:
    with pytest.raises(StepladderError, match=message) as error:
        load(step=attributes)
    assert error.value.location.endswith("mine.mlir:2:3")


@pytest.mark.parametrize(
    "attributes, message",
    [
        ('drived = {half = "size"}', r"pipeline 'mine' has an unknown attribute 'drived' \(did you mean 'derived'\?\)"),
        ("optimization", "pipeline 'mine' has an attribute 'optimization', which belongs on a step"),
        ("derived = {half = 16 : i64}", "attribute 'derived' must hold expressions over knobs by name"),
        ('derived = {half = "size //"}', "pipeline 'mine': derived: 'size //' is not an expression"),
    ],
)
def test_attributes_of_pipelines_that_are_refused(
    load: Callable[..., list[Step]], attributes: str, message: str
) -> None:
    with pytest.raises(StepladderError, match=message) as error:
        load(pipeline=attributes)
    assert error.value.location.endswith("mine.mlir:6:3")


def test_the_known_ones_are_named(load: Callable[..., list[Step]]) -> None:
    with pytest.raises(StepladderError) as error:
        load(step="optimisation")
    assert error.value.notes == ("known are: optimization, needs, requires, when, left_out, facts",)


def test_requirements_apply_in_the_case_that_when_names(load: Callable[..., list[Step]]) -> None:
    (step,) = load(
        step='when = "size > 24", requires = [{condition = "mode == 1", message = "mode"}, '
        '{condition = "size % 32 == 0 or mode == 2", message = "size"}]'
    )
    holds = [
        [
            bool(evaluate(requirement.condition, Scope({"size": size, "mode": mode}, {})))
            for requirement in step.requires
        ]
        for size, mode in ((24, 0), (32, 1), (32, 0), (48, 0))
    ]
    assert holds == [[True, True], [True, True], [False, True], [False, False]]


def test_a_text_that_is_no_option_is_refused_where_a_step_is_left_out(load: Callable[..., list[Step]]) -> None:
    knob = '%mode = transform.tune.knob<"mode"> = "slow" from options = ["slow", "fast"] -> !transform.any_param'
    text = TEXT.replace("    %size =", f"    {knob}\n    %size =")
    (step,) = load(step='left_out = {mode = "fast"}', text=text)
    assert step.left_out == {"mode": "fast"}
    with pytest.raises(StepladderError, match="knob 'mode' is quick when it is left out, and its options are: slow, f"):
        load(step='left_out = {mode = "quick"}', text=text)


def test_attributes_of_a_sequence_that_a_step_includes_are_refused(load: Callable[..., list[Step]]) -> None:
    part = """\
  transform.named_sequence @part(%module: !transform.any_op {{transform.readonly}}) attributes {{optimization}} {{
    transform.yield
  }}
"""
    text = TEXT.replace("  transform.named_sequence @step", f"{part}  transform.named_sequence @step")
    with pytest.raises(StepladderError, match="attribute 'optimization' is on sequence 'part', which step 'step' "):
        load(op="transform.include @part failures(propagate) (%module) : (!transform.any_op) -> ()", text=text)


@pytest.mark.parametrize(
    "knob, message",
    [
        ("32 from options = {least = 8}", r"knob 'size': options are a list, or \{multiple_of = N\}"),
        ("32 from options = [32, 2.5]", "an option of knob 'size' is 2.5.* : f64; accepted: an integer, true, false"),
        ("[32] from options = [[32]]", r"an option of knob 'size' is \[32\]; accepted: an integer, true, false"),
        ("2.5 from options = {multiple_of = 8}", "the default of knob 'size' is 2.5.* : f64; accepted: an integer"),
    ],
)
def test_knobs_that_are_refused(load: Callable[..., list[Step]], knob: str, message: str) -> None:
    text = TEXT.replace("32 from options = [32, 24]", knob.replace("{", "{{").replace("}", "}}"))
    with pytest.raises(StepladderError, match=message) as error:
        load(text=text)
    assert error.value.location.endswith("mine.mlir:7:13")


@pytest.mark.parametrize("knobs", ['["size"]', "{value = 8 : i64}"])
def test_knobs_of_an_op_that_are_refused(load: Callable[..., list[Step]], knobs: str) -> None:
    with pytest.raises(
        StepladderError, match=r"transform.param.constant: attribute 'knobs' must hold expressions"
    ) as error:
        load(op=f"%c = transform.param.constant 8 : i64 {{knobs = {knobs}}} -> !transform.param<i64>")
    assert error.value.location.endswith("mine.mlir:3:10")


def test_a_matched_op_that_does_not_exist_is_refused(load: Callable[..., list[Step]]) -> None:
    match = '%m = transform.structured.match ops{{["linalg.matmul", "{}"]}} in %module : (!transform.any_op) -> {}'
    handle = "!transform.any_op"
    load(op=match.format("tc.pack_shared_memory", handle))
    with pytest.raises(StepladderError, match=r"looks for 'linalg\.matmull', which is not an op of upstream") as error:
        load(op=match.format("linalg.matmull", handle))
    assert error.value.location.endswith("mine.mlir:3:10")


def test_attributes_on_a_declaration_are_refused(load: Callable[..., list[Step]]) -> None:
    declared = """\
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence private @bufferize(!transform.any_op {{transform.readonly}}) attributes {{optimization}}
  transform.named_sequence @mine(%module: !transform.any_op {{transform.consumed}}) {{
    transform.include @bufferize failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }}
}}
"""
    with pytest.raises(StepladderError, match="'optimization' is on the declaration of step 'bufferize'") as error:
        load(text=declared)
    assert error.value.location.endswith("mine.mlir:2:3")


def test_facts_change_where_the_step_runs_and_the_payload_is_known() -> None:
    with mlir_context():
        pipeline = library.load("wgmma")
        defaults = {knob.name: knob.default for knob in pipeline.knobs.values()}
    facts = {"m": 8, "n": 4096, "batch": 1, "a_matrices": 1, "b_matrices": 1}
    facts |= {"a_layout": "row", "b_layout": "row", "c_layout": "row"}
    facts |= {"a_type": "f16", "b_type": "bf16", "a_bits": 16, "b_bits": 16, "a_source_bits": 0, "b_source_bits": 0}
    facts |= {"a_transposed": 0, "b_transposed": 0}
    swapped = {**defaults, "swap_operands": True}
    names = ("m", "n", "a_layout", "b_layout", "c_layout", "a_type")
    plain, changed = (evaluation_scope(pipeline, knobs, facts, ()) for knobs in (defaults, swapped))
    assert [plain[name] for name in names] == [8, 4096, "row", "row", "row", "f16"]
    assert [changed[name] for name in names] == [4096, 8, "column", "column", "column", "bf16"]
    assert changed["tiles"] == 32 and plain["tiles"] == 16
    # Operands of 8 bits are transposed, by a step that always runs.
    bytes_ = {**facts, "a_layout": "column", "a_bits": 8, "b_bits": 8}
    narrow = evaluation_scope(pipeline, defaults, bytes_, ())
    assert (narrow["a_layout"], narrow["b_layout"]) == ("row", "column")
    assert (narrow["a_transposed"], narrow["b_transposed"]) == (1, 1)
    assert [changes_facts(pipeline, defaults, each, ()) for each in (facts, bytes_)] == [False, True]
    # A dump has the exchanged matmul already.
    dump = evaluation_scope(
        pipeline, swapped, {"a_layout": "column", "b_layout": "row", "a_bits": 16, "b_bits": 16}, ()
    )
    assert dump["a_layout"] == "column" and "m" not in dump
