"""`stepladder report`: the page, and what becomes of inputs that it cannot show. Fakes stand in for the GPU."""

from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conftest import make_manifest, make_problem
from stepladder.cli import report_checks
from stepladder.cli.main import main
from stepladder.cli.report_checks import measure
from stepladder.cli.report_inputs import Reported, read_bundle_folder
from stepladder.cli.report_page import Section, Step, Table, elided, page
from stepladder.measure import bench
from stepladder.payload.writing import matmul_text
from stepladder.runtime.bundle import Bundle, FunctionBundle, FunctionManifest, write_bundle
from stepladder.runtime.errors import BAD_INPUT, FAILED, NOT_EXECUTED, OK, StepladderError
from stepladder.runtime.reference import matmul_program
from stepladder.verify.report import CheckReport

VOID = ("meta",)
CARD = {"name": "NVIDIA <H200>", "driver_version": "580.1"}


class Balance(HTMLParser):
    """Fails on an element that is closed in another order than it is opened, and on what would load another file."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str | None] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        fields = dict(attrs)
        assert "src" not in fields
        self.ids |= {fields["id"]} if "id" in fields else set()
        if "href" in fields:
            assert (fields["href"] or "").startswith("#")
            self.links.add((fields["href"] or "")[1:])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(text: str) -> None:
    parser = Balance()
    parser.feed(text)
    assert not parser.open
    assert parser.links <= parser.ids


def make_bundle(path: Path, ir: Mapping[str, str]) -> str:
    problem = make_problem(16, 16, 16)
    write_bundle(path, make_manifest(problem, grid=(1, 1, 1)), b"cubin", "ptx", ir)
    return str(path)


def test_everything_is_escaped() -> None:
    bad = "<script>alert(1)</script> & \"x\" 'y'"
    step = Step(bad, bad, f"{bad}\nmemref<4x?xf16>\n", lines=[bad, f"{bad}\n{bad}"], tables=[Table(bad, [{bad: bad}])])
    other = Step("02-other", bad, f"{bad}\nmemref<8xf16>\n")
    section = Section(bad, "FAIL", {bad: bad}, [bad], [Table(bad, [{bad: bad}])], [step, other])
    text = page([section, section], bad)
    check_page(text)
    assert "memref&lt;4x?xf16&gt;" in text and "&lt;script&gt;" in text
    assert '<span class="plus">+memref&lt;8xf16&gt;</span>' in text


def test_a_step_that_changes_nothing_refers_to_the_ir_before() -> None:
    steps = [Step(name, "", text) for name, text in (("00-input", "a\n"), ("01-b", "a\n"), ("02-c", "a\n"))]
    text = page([Section("x", steps=[*steps, Step("03-d", "", "a\nb\n")])])
    check_page(text)
    assert text.count('leaves the <a href="#s1-0">IR</a> as it is') == 2
    assert text.count("difference to the step before") == 1 and "+1 -0" in text


def test_long_constants_are_left_out() -> None:
    long, short = f'dense<"0x{"0A" * 500}">', "dense<[1, 2]>"
    assert elided(f"{long} : tensor<500xi8>, {short}") == f"dense_resource<__elided__> : tensor<500xi8>, {short}"
    assert elided(f"dense<[{', '.join(['1.0'] * 200)}]>") == "dense_resource<__elided__>"
    assert elided(f'blob: "0x{"0" * 500}"') == 'blob: "0x..."'


def test_a_bundle_without_ir(tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    assert main(["report", make_bundle(tmp_path / "a.bundle", {}), "--no-gpu", "-o", str(output)]) == OK
    text = output.read_text()
    check_page(text)
    assert "There is no IR of its steps." in text and "16 x 16 x 16" in text


def test_wrong_numbers_of_a_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = matmul_text(16, 16, 16)
    wrong = good.replace("ins(%a, %b", "ins(%b, %a")
    assert wrong != good
    bundle = make_bundle(tmp_path / "a.bundle", {"00-input.mlir": good, "01-swap.mlir": wrong, "02-none.mlir": "x"})
    assert main(["report", bundle, "--no-gpu", "-o", "-"]) == FAILED
    captured = capsys.readouterr()
    check_page(captured.out)
    assert "of 256 elements wrong" in captured.out and "Not executed:" in captured.out
    assert f"wrong: {bundle}" in captured.err


CONSTANT = """
func.func @add(%a: tensor<16xf32>) -> tensor<16xf32> {
  %c = arith.constant dense<[NUMBERS]> : tensor<16xf32>
  %e = tensor.empty() : tensor<16xf32>
  %sum = linalg.add ins(%a, %c : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %sum : tensor<16xf32>
}
""".replace("NUMBERS", ", ".join(f"{number}.0" for number in range(16)))


def test_constants_of_the_input_are_arguments_as_in_the_steps() -> None:
    manifest = FunctionManifest("add", "sm_80", (), (), 0)
    function = FunctionBundle(Path("x"), manifest, {}, matmul_program(make_problem()))
    emulated = report_checks.emulate_steps(Reported("x", function, {"00-input.mlir": CONSTANT}), "small")
    assert emulated.passed and not emulated.note


def test_steps_end_where_they_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_checks, "LONGEST", -1.0)
    text = matmul_text(16, 16, 16)
    (found,) = read_bundle_folder(make_bundle(tmp_path / "a.bundle", {"00-input.mlir": text}))
    emulated = report_checks.emulate_steps(found, "small")
    assert emulated.passed is None and "The steps from input on were not run" in emulated.note
    assert report_checks.emulate_steps(found, "always").passed


@pytest.mark.parametrize("mode", ["never", "small"])
def test_what_is_not_emulated(mode: str) -> None:
    large = Reported("x", made_of(4096), {"00-input.mlir": "not parsed"})
    emulated = report_checks.emulate_steps(large, mode)
    assert not emulated.reports and emulated.passed is None and "--emulate" in emulated.note


def made_of(size: int = 16) -> Bundle:
    return Bundle(Path("x.bundle"), make_manifest(make_problem(size, size, size)), b"", "")


@pytest.mark.parametrize("fault", ["bundle", "payload", "text", "missing", "folder"])
def test_what_is_refused_leaves_the_page_as_it_was(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = make_bundle(tmp_path / "good.bundle", {})
    bad = tmp_path / fault
    if fault == "bundle":
        make_bundle(bad, {})
        (bad / "manifest.json").write_text('{"schema_version": 1,')
    elif fault == "payload":
        bad.write_text("func.func @f(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }")
    elif fault == "text":
        bad.write_bytes(b"\xff\xfe")
    elif fault == "folder":
        bad.mkdir()
    output = tmp_path / "page.html"
    output.write_text("old")
    before = sorted(tmp_path.iterdir())
    assert main(["report", good, str(bad), "--no-gpu", "-o", str(output)]) == BAD_INPUT
    captured = capsys.readouterr()
    assert captured.err.count("error:") == 1 and str(bad) in captured.err
    assert ("compiling" in captured.err) == (fault == "payload"), "files are read before any of them is compiled"
    assert not captured.out and output.read_text() == "old" and sorted(tmp_path.iterdir()) == before


def test_a_page_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "none" / "page.html"
    assert main(["report", make_bundle(tmp_path / "a.bundle", {}), "-o", str(output)]) == BAD_INPUT
    assert str(output) in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--target", "sm_80"], ["--set", "stages=2"], ["--pipeline", "wmma"]])
def test_options_of_payloads_for_bundles(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "page.html"
    assert main(["report", make_bundle(tmp_path / "a.bundle", {}), *options, "-o", str(output)]) == BAD_INPUT
    assert f"{options[0]} applies to payloads" in capsys.readouterr().err
    assert not output.exists()


def test_numbers_and_speed_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    baselines = []

    def bench_bundles(bundles: list, *, baseline: str = "cublas", check: bool) -> dict:
        baselines.append(baseline)
        if baseline == "cublas":
            raise StepladderError("no cuBLAS here")
        problem = {"m": 16, "n": 16, "k": 16, "a_type": "f16", "b_type": "f16", "acc_type": "f32", "c_type": "f32"}
        kernels = {"x": {"tflops_spread": {"median": 7.5, "minimum": 7.0, "maximum": 8.0}}}
        modes = {"burst": {"kernels": kernels, "ratios": {"x": {}}}}
        return {"problem": {**problem, "accumulate": True}, "card": CARD, "rounds": 7, "modes": modes}

    monkeypatch.setattr(bench, "bench_bundles", bench_bundles)
    passed = [CheckReport("exact", True, 256)]
    monkeypatch.setattr(report_checks, "check_kernel", lambda *_: (passed, {"card": CARD}))
    measured = measure(Reported("x", made_of(), {}), launches=True)
    assert measured.passed and baselines == ["cublas", "none"]
    assert measured.lines[0] == "Numbers on NVIDIA <H200>, driver 580.1:"
    assert measured.lines[-1] == "There is no baseline: no cuBLAS here."
    assert measured.table is not None and measured.table.rows[0]["TFLOP/s"] == "7.5"


def test_right_numbers_remain_where_speed_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def bench_bundles(*_: object, **__: object) -> None:
        raise StepladderError("it does not", status=FAILED)

    monkeypatch.setattr(bench, "bench_bundles", bench_bundles)
    monkeypatch.setattr(report_checks, "check_kernel", lambda *_: ([CheckReport("exact", True, 256)], {"card": CARD}))
    measured = measure(Reported("x", made_of(), {}), launches=True)
    assert measured.passed and measured.table is None
    assert measured.lines[-1] == "Speed was not measured: it does not."


@pytest.mark.parametrize(("status", "passed"), [(NOT_EXECUTED, None), (FAILED, False)])
def test_a_gpu_that_does_not_run_the_kernel(status: int, passed: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*_: object) -> None:
        raise StepladderError("it does not", status=status)

    monkeypatch.setattr(report_checks, "check_kernel", check)
    measured = measure(Reported("x", made_of(), {}), launches=True)
    assert measured.passed is passed and "it does not" in measured.lines[0] and measured.table is None


def test_wrong_numbers_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [CheckReport("exact", False, 256, mismatches=1)]
    monkeypatch.setattr(report_checks, "check_kernel", lambda *_: (wrong, {"card": CARD}))
    measured = measure(Reported("x", made_of(), {}), launches=True)
    assert measured.passed is False and measured.table is None
