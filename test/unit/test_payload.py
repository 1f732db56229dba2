"""Payloads: every form parses, and its problem is found as it was written."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stepladder
from conftest import examples
from stepladder.cli import main as cli
from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.traverse import walk
from stepladder.payload.facts import FACTS, type_facts
from stepladder.payload.matmul import find_matmul
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.runtime.errors import BAD_INPUT, OK, StepladderError
from stepladder.runtime.resources import payloads_dir

INPUTS = Path(__file__).resolve().parents[1] / "inputs" / "payloads"
sizes = st.integers(1, 20000)
layouts = st.sampled_from(["row", "column"])


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(40))
@given(
    sizes,
    sizes,
    sizes,
    st.booleans(),
    st.sampled_from(
        [
            ("f16", "f16"),
            ("f16", "f32"),
            ("bf16", "f32"),
            ("f32", "f32"),
            ("f64", "f64"),
            ("i8", "i32"),
            ("f8E4M3FN", "f32"),
            ("f8E5M2", "f16"),
        ]
    ),
    layouts,
    layouts,
)
def test_problem_is_what_was_written(
    m: int, n: int, k: int, accumulate: bool, types: tuple[str, str], a_layout: str, b_layout: str
) -> None:
    inputs, c = types
    with mlir_context():
        module = parse_payload(
            matmul_text(
                m,
                n,
                k,
                a_type=inputs,
                b_type=inputs,
                acc_type=c,
                c_type=c,
                accumulate=accumulate,
                a_layout=a_layout,
                b_layout=b_layout,
            ),
            "matmul.mlir",
        )
        module.operation.verify()
        matmul = find_matmul(module)
    problem = matmul.problem
    assert (problem.m, problem.n, problem.k) == (m, n, k)
    assert (problem.a_type, problem.b_type, problem.c_type) == (inputs, inputs, c)
    assert (problem.a_layout, problem.b_layout) == (a_layout, b_layout)
    assert problem.accumulate is accumulate
    assert matmul.roles == {0: "a", 1: "b", 2: "c"}


@pytest.mark.parametrize(
    "a_layout, b_layout, a, b",
    [
        ("row", "row", "2x5", "5x3"),
        ("column", "row", "5x2", "5x3"),
        ("row", "column", "2x5", "3x5"),
        ("column", "column", "5x2", "3x5"),
    ],
)
def test_operands_are_stored_in_their_layouts(a_layout: str, b_layout: str, a: str, b: str) -> None:
    text = matmul_text(2, 3, 5, a_layout=a_layout, b_layout=b_layout)
    assert f"(%A: memref<{a}xf16>, %B: memref<{b}xf16>, %C: memref<2x3xf32>)" in text
    assert ("indexing_maps" in text) == ("column" in (a_layout, b_layout))
    assert max(map(len, text.splitlines())) <= 160


@pytest.mark.skipif(not shutil.which("mlir-opt-22"), reason="mlir-opt-22 is not installed")
@pytest.mark.parametrize("a_layout", ["row", "column"])
@pytest.mark.parametrize("b_layout", ["row", "column"])
@pytest.mark.parametrize(
    "inputs, c", [("bf16", "f32"), ("f32", "f32"), ("i8", "i32"), ("f8E4M3FN", "f32"), ("f8E5M2", "f32")]
)
def test_the_llvm_projects_own_tool_takes_it(a_layout: str, b_layout: str, inputs: str, c: str) -> None:
    text = matmul_text(
        16,
        32,
        48,
        a_type=inputs,
        b_type=inputs,
        acc_type=c,
        c_type=c,
        accumulate=False,
        a_layout=a_layout,
        b_layout=b_layout,
    )
    done = subprocess.run(["mlir-opt-22", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", ["memref", "tensor"])
def test_layouts_of_every_form(form: str) -> None:
    """Sizes come from the maps, where the matmul is on memrefs or on tensors and whatever dimensions are called."""
    a, b, c = (f"{form}<{shape}>" for shape in ("5x2xi8", "3x5xi8", "2x3xi32"))
    result = f" -> {c}" if form == "tensor" else ""
    matmul = (
        "linalg.matmul indexing_maps = [affine_map<(i, j, l) -> (l, i)>, affine_map<(i, j, l) -> (j, l)>, "
        f"affine_map<(i, j, l) -> (i, j)>] ins(%A, %B : {a}, {b}) outs(%C : {c}){result}"
    )
    body = f"%p = {matmul}\n  return %p : {c}" if form == "tensor" else f"{matmul}\n  return"
    with mlir_context():
        problem = find_matmul(
            parse_payload(f"func.func @f(%A: {a}, %B: {b}, %C: {c}){result} {{\n  {body}\n}}\n", "matmul.mlir")
        ).problem
    assert (problem.m, problem.n, problem.k) == (2, 3, 5)
    assert (problem.a_layout, problem.b_layout) == ("column", "column")


@pytest.mark.parametrize(
    "maps, attributes, message",
    [
        (["(k)", "(k, n)", "(m, n)"], "", "indexes A with the map .*must be .*row-major. or .*column-major"),
        (["(m, k)", "(k)", "(m, n)"], "", "indexes B with the map .*must be .*row-major. or .*column-major"),
        (["(k, m)", "(k, n)", "(m, n)"], "{cast = #linalg.type_fn<cast_unsigned>}", "reads A and B as unsigned"),
    ],
)
def test_matmuls_that_are_refused(maps: list[str], attributes: str, message: str) -> None:
    shapes = {"(k)": "8"}
    a, b = (f"memref<{shapes.get(map_, '8x8')}xi8>" for map_ in maps[:2])
    written = ", ".join(f"affine_map<(m, n, k) -> {map_}>" for map_ in maps)
    text = (
        f"func.func @f(%A: {a}, %B: {b}, %C: memref<8x8xi32>) {{\n"
        f"  linalg.matmul indexing_maps = [{written}] {attributes}\n"
        f"    ins(%A, %B : {a}, {b}) outs(%C : memref<8x8xi32>)\n  return\n}}\n"
    )
    with mlir_context(), pytest.raises(StepladderError, match=message) as caught:
        find_matmul(parse_payload(text, "matmul.mlir"))
    assert caught.value.location.startswith("matmul.mlir:2")


@pytest.mark.parametrize(
    "inputs, sums, stored, message",
    [
        ("i8", "f32", "f32", "integer and floating-point types cannot be mixed"),
        ("f16", "i32", "i32", "integer and floating-point types cannot be mixed"),
        ("i8", "i32", "i8", "accumulators of i32 are not rounded to C of i8"),
        ("f16", "f16", "f32", "accumulators of f16 are not rounded to C of f32"),
        ("f8E4M3FN", "i32", "i32", "integer and floating-point types cannot be mixed"),
        ("bf16", "bf16", "f16", "accumulators of bf16 are not rounded to C of f16"),
    ],
)
def test_types_that_do_not_go_together(inputs: str, sums: str, stored: str, message: str) -> None:
    with pytest.raises(StepladderError, match=message):
        matmul_text(8, 8, 8, a_type=inputs, b_type=inputs, acc_type=sums, c_type=stored, accumulate=False)


@pytest.mark.parametrize("sizes, named", [((0, 8, 8), "m = 0"), ((8, 0, 8), "n = 0"), ((0, 8, -1), "m = 0, k = -1")])
def test_sizes_without_anything_to_compute(sizes: tuple[int, int, int], named: str) -> None:
    with pytest.raises(StepladderError, match=f"{named}, and sizes must be at least 1"):
        matmul_text(*sizes)


def test_a_removed_op_is_named_with_its_form() -> None:
    text = matmul_text(8, 8, 8).replace("= linalg.matmul", "= linalg.matmul_transpose_b")
    with mlir_context(), pytest.raises(StepladderError, match="matmul_transpose_b' is unknown") as raised:
        parse_payload(text, "old.mlir")
    assert "write linalg.matmul with indexing_maps" in raised.value.notes[-1]


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = "payload matmul --m 2 --n 3 --k 5 --a-type i8 --b-type i8 --acc-type i32 --c-type i32 --a-layout column"
    assert cli.main(options.split()) == OK
    text = capsys.readouterr().out
    assert text.startswith("// C = AB + C, 2 x 3 x 5, i8 x i8 -> i32, accumulated in i32, A column-major.\n")
    assert "affine_map<(m, n, k) -> (k, m)>" in text
    assert cli.main([*options.split(), "--b-type", "f16"]) == BAD_INPUT
    assert "--b-type f16: this command writes matmuls with A and B of one type" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, types",
    [
        ("--a-type i8", "i8 x i8 -> i32, accumulated in i32"),
        ("--a-type f8E5M2", "f8E5M2 x f8E5M2 -> f32, accumulated in f32"),
        ("--acc-type f16", "f16 x f16 -> f16, accumulated in f16"),
        ("--a-type f64 --b-type f64", "f64 x f64 -> f64, accumulated in f64"),
        ("--c-type bf16 --no-accumulate", "f16 x f16 -> bf16, accumulated in f32"),
    ],
)
def test_default_types_follow_the_others(options: str, types: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["payload", "matmul", "--m", "2", "--n", "3", "--k", "5", *options.split()]) == OK
    assert f"2 x 3 x 5, {types}." in capsys.readouterr().out


@pytest.mark.parametrize(
    "inputs, c, products", [("f16", "f32", "f16"), ("bf16", "f32", "bf16"), ("f32", "f32", "f32"), ("i8", "i32", "i8")]
)
def test_manifest_of_a_payload(inputs: str, c: str, products: str) -> None:
    from stepladder.pipeline.kernel_arguments import argument

    with mlir_context():
        text = matmul_text(2, 3, 5, a_type=inputs, b_type=inputs, acc_type=c, c_type=c, b_layout="column")
        problem = find_matmul(parse_payload(text, "matmul.mlir")).problem
    assert (problem.m, problem.n, problem.k, problem.accumulate) == (2, 3, 5, True)
    assert (problem.a_layout, problem.b_layout) == ("row", "column")
    assert (problem.a_type, problem.compute_type, problem.acc_type, problem.c_type) == (inputs, products, c, c)
    arguments = [argument(role, problem, None) for role in "abc"]
    assert [item.shape for item in arguments] == [(2, 5), (3, 5), (2, 3)]
    assert [item.element_type for item in arguments] == [inputs, inputs, c]


@pytest.mark.parametrize(
    "name, bits",
    [
        ("f8E4M3FN", 8),
        ("f8E5M2", 8),
        ("f16", 16),
        ("bf16", 16),
        ("f32", 32),
        ("tf32", 32),
        ("f64", 64),
        ("i8", 8),
        ("i32", 32),
        ("index", 0),
    ],
)
def test_widths(name: str, bits: int) -> None:
    """Of a type by name, and of the same type as MLIR has it."""
    assert bits_of_name(name) == bits
    with mlir_context():
        type_ = ir.Type.parse(name)
        assert bits_of_name(str(type_)) == bits
        # tf32 is 32 bits wide in memory, of which MLIR counts the 19 that matter.
        assert getattr(type_, "width", 0) == (19 if name == "tf32" else bits)


def test_facts_of_fp8() -> None:
    with mlir_context():
        text = matmul_text(16, 32, 48, a_type="f8E4M3FN", b_type="f8E4M3FN")
        module = parse_payload(text, "matmul.mlir")
        facts = find_matmul(module).facts()
        assert facts | type_facts(module) == facts
    assert (facts["a_type"], facts["a_bits"], facts["b_bits"], facts["c_bits"]) == ("f8E4M3FN", 8, 8, 32)


def test_facts() -> None:
    with mlir_context():
        text = matmul_text(16, 32, 48, b_layout="column")
        facts = find_matmul(parse_payload(text, "matmul.mlir")).facts()
    assert set(facts) == set(FACTS)
    assert (facts["m"], facts["n"], facts["k"], facts["c_bits"]) == (16, 32, 48, 32)
    assert (facts["a_type"], facts["a_bits"], facts["c_type"]) == ("f16", 16, "f32")
    assert (facts["a_layout"], facts["b_layout"]) == ("row", "column")


@pytest.mark.parametrize("inputs", ["f16", "bf16", "f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("c_type", ["f16", "bf16"])
def test_accumulation_in_another_type_than_c(capsys: pytest.CaptureFixture[str], inputs: str, c_type: str) -> None:
    assert (
        cli.main(
            f"payload matmul --m 64 --n 64 --k 64 --a-type {inputs} --b-type {inputs} --acc-type f32 "
            f"--c-type {c_type} --no-accumulate".split()
        )
        == OK
    )
    text = capsys.readouterr().out
    with mlir_context():
        module = parse_payload(text, "matmul.mlir")
        module.operation.verify()
        assert len(walk(module, "arith.truncf")) == 1
        assert find_matmul(module).roles == {0: "a", 1: "b", 2: "c"}
    assert f"%C: memref<64x64x{c_type}>" in text and "tensor<64x64xf32>" in text


def test_c_is_added_before_the_sums_are_rounded() -> None:
    text = matmul_text(64, 64, 64, acc_type="f32", c_type="f16")
    with mlir_context():
        problem = find_matmul(parse_payload(text, "matmul.mlir")).problem
    assert problem.describe() == "C = AB + C, 64 x 64 x 64, f16 x f16 -> f16 (f32 accumulation)"
    assert text.index("arith.extf") < text.index("arith.addf") < text.index("arith.truncf")


def test_another_argument_than_c_is_not_added_to_the_output() -> None:
    """The op reads its output, which is no tensor that holds numbers."""
    text = matmul_text(64, 64, 64, c_type="f16").replace(
        "bufferization.to_tensor %C restrict writable : memref<64x64xf16> to tensor<64x64xf16>",
        "tensor.empty() : tensor<64x64xf16>",
    )
    with mlir_context(), pytest.raises(StepladderError, match=r"adds tensor\.empty to the accumulators"):
        find_matmul(parse_payload(text, "matmul.mlir"))


@pytest.mark.parametrize(
    "name, roles, accumulate",
    [
        ("accumulate", {0: "a", 1: "b", 2: "c"}, True),
        ("product", {0: "a", 1: "b", 2: "c"}, False),
        ("on_memrefs", {0: "a", 1: "b", 2: "c"}, True),
        ("on_memrefs_from_zero", {0: "a", 1: "b", 2: "c"}, False),
        ("on_tensors", {0: "a", 1: "b", 2: "c"}, True),
        ("on_tensors_from_zero", {0: "a", 1: "b", 2: "c"}, False),
        ("c_first", {0: "c", 1: "b", 2: "a"}, True),
    ],
)
def test_roles_of_arguments(name: str, roles: dict[int, str], accumulate: bool) -> None:
    with mlir_context():
        matmul = find_matmul(parse_payload((INPUTS / f"{name}.mlir").read_text(), name))
    problem = matmul.problem
    assert matmul.roles == roles
    assert problem.accumulate is accumulate
    assert (problem.m, problem.n, problem.k) == (256, 256, 128)


@pytest.mark.parametrize("path", sorted(payloads_dir().rglob("*.mlir")), ids=lambda path: path.stem)
def test_ready_made_payloads(path: Path) -> None:
    """They hold what their heads say."""
    with mlir_context():
        problem = find_matmul(parse_payload(path.read_text(), str(path))).problem
    assert f"{problem.m} x {problem.n} x {problem.k}" in path.read_text().splitlines()[0]


IN_PLACE = """#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
func.func @f(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {{
  %zero = arith.constant 0.0 : f32
  %a = bufferization.to_tensor %A restrict : memref<64x64xf16> to tensor<64x64xf16>
  %b = bufferization.to_tensor %B restrict : memref<64x64xf16> to tensor<64x64xf16>
  %c = bufferization.to_tensor %C restrict writable : memref<64x64xf32> to tensor<64x64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x64xf16>) outs(%z : tensor<64x64xf32>)
      -> tensor<64x64xf32>
  %n = linalg.generic {{indexing_maps = [{first}, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%c : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {{
  ^bb0(%x: f32, %y: f32):
    %v = arith.negf %x : f32
    linalg.yield %v : f32
  }} -> tensor<64x64xf32>
  %r = linalg.generic {{indexing_maps = [#id, {second}, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%p, %n : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %v = arith.addf %x, %y : f32
    linalg.yield %v : f32
  }} -> tensor<64x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %C : (tensor<64x64xf32>, memref<64x64xf32>) -> ()
  return
}}
"""


@pytest.mark.parametrize("first, second, at", [("#turned", "#id", 12), ("#id", "#turned", 18)])
@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_c_is_not_read_in_another_order_than_it_is_written(first: str, second: str, at: int, target: str) -> None:
    """Other blocks have written it by then: no kernel does it in place."""
    text = IN_PLACE.format(first=first, second=second)
    with mlir_context(), pytest.raises(StepladderError, match="reads argument 2, which the result is written to") as no:
        find_matmul(parse_payload(text, "payload.mlir"))
    assert str(no.value.location).startswith(f"payload.mlir:{at}:")
    generator = np.random.default_rng(0)
    a, b, c = (generator.integers(-2, 3, (64, 64)) for _ in "abc")
    got = stepladder.compile(text, target=target, device="emulator")(
        a.astype(np.float16), b.astype(np.float16), c.astype(np.float32)
    )
    assert np.array_equal(got, a @ b - c.T)


def test_c_may_be_read_where_it_is_written() -> None:
    with mlir_context():
        assert find_matmul(parse_payload(IN_PLACE.format(first="#id", second="#id"), "payload.mlir")).roles == {
            0: "a",
            1: "b",
            2: "c",
        }
