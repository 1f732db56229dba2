"""XeTile programs on NVIDIA's tensor cores: what a program is read as, its knobs, and the kernels of `xetile_wgmma`."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

import written_chains
from combinations import combinations, sample
from stepladder.emulator import matmul
from stepladder.pipeline import build, library, tile_programs
from stepladder.pipeline.codegen import machine_code
from stepladder.pipeline.codegen.kernel import find_kernel
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.definition import KnobValue
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem
from xetile_programs import product, program

PRODUCTS = ["gemm", "appendix_1_row_major", "appendix_1_column_major", "appendix_1_transpose", "two_cache_levels"]
# Rows are multiples of 16 bytes, as TMA needs them; tiles divide the first shape only.
SHAPES = [(256, 256, 64), (136, 264, 72), (40, 24, 104), (72, 520, 32)]


def failing(text: str, pipeline: str = "xetile_wgmma", settings: Mapping[str, KnobValue] | None = None) -> list[str]:
    """Returns what is wrong with a program's numbers, on the emulator: its own, and those of the IR after the first and
    the last steps."""
    reports: list[matmul.StepReport] = []
    request = Request(pipeline, settings or {})
    matmul.check_steps(
        text, "program.mlir", request, reports.append, is_chosen_step=lambda number: number < 2 or number > 17
    )
    assert [report.step for report in reports[:2]] == ["input", "stage_tiles_in_shared_memory"] and len(reports) > 2
    return [f"{report.step}: {report.notes()}" for report in reports if not report.passed]


@pytest.mark.parametrize(("name", "shape"), sample(combinations(PRODUCTS, SHAPES), 2))
def test_a_program_gives_its_numbers_after_the_steps(name: str, shape: tuple[int, int, int]) -> None:
    """The program is executed too, and compared with the matmul that it is read as."""
    with mlir_context():
        assert not failing(program(name, *shape))


# Sizes, the tile, types, layouts, and whether C is added.
DRAWN = [
    ((136, 264, 72), (64, 128, 32), ("f16", "f32"), ("row", "column"), True),
    ((200, 72, 80), (192, 64, 16), ("f16", "f16"), ("column", "row"), False),
    ((128, 130, 128), (128, 128, 64), ("bf16", "f32"), ("row", "column"), True),
    ((72, 48, 64), (32, 32, 32), ("i8", "i32"), ("row", "column"), False),
    ((64, 272, 96), (64, 256, 32), ("f8E4M3FN", "f32"), ("row", "column"), True),
    ((136, 72, 24), (128, 64, 16), ("f32", "f32"), ("row", "column"), False),
]


@pytest.mark.parametrize(("sizes", "tile", "types", "layouts", "accumulate"), sample(DRAWN, 2))
def test_tiles_of_any_type_and_layout(
    sizes: tuple[int, int, int],
    tile: tuple[int, int, int],
    types: tuple[str, str],
    layouts: tuple[str, str],
    accumulate: bool,
) -> None:
    (given, sums), (a_layout, b_layout) = types, layouts
    problem = Problem(*sizes, given, given, sums, sums, accumulate, a_layout=a_layout, b_layout=b_layout)
    with mlir_context():
        assert not failing(product(problem, tile))


def followed(sizes: tuple[int, int, int], tile: tuple[int, int, int]) -> str:
    """Returns a program that adds a row and a matrix to the sums, makes negative numbers zero, and rounds to f16."""
    (m, n, k), (height, width, _) = sizes, tile
    text = product(Problem(m, n, k, "f16", "f16", "f32", "f32", False), tile)
    begin, end = text.index('    "xetile.store_tile"'), text.index("    gpu.terminator")
    init = "{operandSegmentSizes = array<i32: 1, 2, 0, 0>}"
    half, whole, row = f"vector<{height}x{width}xf16>", f"vector<{height}x{width}xf32>", f"vector<1x{width}xf32>"
    parameters = f"%d: memref<{m}x{n}xf32>, %r: memref<1x{n}xf32>, %h: memref<{m}x{n}xf16>"
    behind = f"""
    %td = "xetile.init_tile"(%d, %i, %j) {init} : (memref<{m}x{n}xf32>, index, index) -> !xetile.tile<{whole}, unit>
    %tr = "xetile.init_tile"(%r, %n0, %j) {init} : (memref<1x{n}xf32>, index, index) -> !xetile.tile<{row}, unit>
    %th = "xetile.init_tile"(%h, %i, %j) {init} : (memref<{m}x{n}xf16>, index, index) -> !xetile.tile<{half}, unit>
    %vd = "xetile.load_tile"(%td) : (!xetile.tile<{whole}, unit>) -> {whole}
    %vr = "xetile.load_tile"(%tr) : (!xetile.tile<{row}, unit>) -> {row}
    %negative = arith.negf %vr : {row}
    %rows = "xetile.broadcast"(%negative) {{dims = [0]}} : ({row}) -> {whole}
    %first = arith.addf %sum#0, %rows : {whole}
    %second = arith.subf %first, %vd : {whole}
    %nothing = arith.constant dense<0.0> : {whole}
    %third = arith.maximumf %second, %nothing : {whole}
    %rounded = arith.truncf %third : {whole} to {half}
    "xetile.store_tile"(%rounded, %th) : ({half}, !xetile.tile<{half}, unit>) -> ()
"""
    text = text[:begin] + behind + text[end:]
    text = re.sub(r"    %tc = .*\n", "", text)
    return re.sub(r"%c: memref<[^>]*>", parameters, text)


@pytest.mark.parametrize(("pipeline", "sizes"), [("xetile_wgmma", (72, 136, 40)), ("xetile_mma_sync", (64, 128, 64))])
def test_elementwise_ops_behind_a_product_are_its_epilogue(pipeline: str, sizes: tuple[int, int, int]) -> None:
    with mlir_context():
        assert not failing(followed(sizes, (64, 128, 32)), pipeline)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(%d, %i, %j)", "(%d, %n0, %j)", "expected a row-major matrix of 136 x 264 at the offsets of C's tile"),
        ("(%r, %n0, %j)", "(%r, %n0, %n0)", "expected a row-major matrix of 1 x 264 at the offsets of C's tile"),
        (
            "arith.subf %first, %vd",
            "vector.fma %first, %vd, %vd",
            "vector.fma is not supported here; .* elementwise ops",
        ),
        ("(%rounded, %th)", "(%none, %th)", "a constant must be a splat"),
        ("(%rounded, %th)", "(%held, %th)", "what is stored must be computed from the sums by elementwise ops"),
    ],
)
def test_other_ops_behind_a_product_are_refused(old: str, new: str, message: str) -> None:
    numbers = ", ".join(["[" + ", ".join(["1.0"] * 127 + ["2.0"]) + "]"] * 64)
    text = followed((136, 264, 72), (64, 128, 32)).replace(
        "    %rounded",
        f"""
    %none = arith.constant dense<[{numbers}]> : vector<64x128xf16>
    %held = "xetile.load_tile"(%th) : (!xetile.tile<vector<64x128xf16>, unit>) -> vector<64x128xf16>
    %rounded""",
    )
    assert old in text
    with mlir_context(), pytest.raises(StepladderError, match=message) as raised:
        run_pipeline(text.replace(old, new), "edited.mlir", Request("xetile_wgmma"))
    assert str(raised.value.location).startswith("edited.mlir:")


@pytest.mark.parametrize(
    ("tile", "expected"),
    [
        ((256, 256, 32), (128, 256, 64, 2, 4)),
        ((512, 128, 64), (256, 128, 64, 2, 3)),
        ((192, 128, 64), (192, 128, 64, 3, 4)),
        ((192, 256, 128), (64, 256, 64, 1, 4)),
        ((64, 384, 16), (64, 192, 64, 1, 4)),
        ((32, 24, 32), (64, 24, 64, 1, 4)),
    ],
)
def test_the_tile_of_a_program_is_that_of_a_block(tile: tuple[int, int, int], expected: tuple[int, ...]) -> None:
    problem = Problem(tile[0], tile[1], 256, "f16", "f16", "f32", "f32", False)
    with mlir_context():
        pipeline, text = library.load("xetile_wgmma"), product(problem, tile)
        request = Request("xetile_wgmma", {"raster_group": 4})
        found = tile_programs.read(pipeline, parse_payload(text, "tiles"), request)
        assert found is not None
        settings = tile_programs.requested(pipeline, request, found).settings
        fixed = tile_programs.requested(pipeline, Request("xetile_wgmma", {"block_n": 64}), found).settings
    names = ("block_m", "block_n", "block_k", "consumer_warpgroups", "stages")
    assert settings == {**dict(zip(names, expected)), "epilogue": "tma", "raster_group": 4}
    assert fixed["block_n"] == 64


@pytest.mark.usefixtures("needs_ptxas")
def test_a_program_has_the_kernel_of_wgmma() -> None:
    """Program 2.1, by the steps of `wgmma` and the same knobs: the same PTX but for the kernel's name."""
    text = program("gemm", 256, 256, 128)
    with mlir_context():
        made = build.build(text, "gemm.mlir", Request("xetile_wgmma", function="gemm"))
        names = ("block_m", "block_n", "block_k", "stages", "consumer_warpgroups")
        settings = {name: made.run.knobs[name] for name in names}
        payload = matmul.payload_of(Problem(256, 256, 128, "f16", "f16", "f32", "f32", False))
        run = run_pipeline(payload, "payload", Request("wgmma", settings))
        wanted = machine_code.generate(find_kernel(run.module)).ptx
    assert made.code.ptx.replace("gemm_kernel", "matmul_kernel") == wanted
    assert made.manifest.spills == {"stores": 0, "loads": 0}
    assert (made.manifest.function, made.manifest.other_functions) == ("gemm", ("golden",))
    assert made.manifest.problem == Problem(256, 256, 128, "f16", "f16", "f32", "f32", False)
    counts = [
        len(re.findall(pattern, wanted)) for pattern in (r"\bwgmma\.mma_async", r"cp\.async\.bulk\.tensor\.2d\.shared")
    ]
    # A step of k = 64 takes four wgmma of depth 16. A is one box of TMA; B, row-major, has one for each 64 columns.
    assert counts == [4, 5]


def test_an_edited_program_is_no_product_or_another_one() -> None:
    """What the program says is what is compared: other offsets are refused, or give the numbers of another product."""
    text = program("gemm", 512, 512, 64).partition("func.func @golden")[0]
    with mlir_context():
        for old, new, message in (
            ("%i = arith.muli %y, %c256", "%i = arith.muli %x, %c256", "different numbers of a block"),
            ("(%ta, %c0, %c32)", "(%ta, %c0, %c0)", r"must move by \[0, 32\]"),
            ("dense<0.0>", "dense<1.0>", "must start at zero or at C"),
            ('"xetile.load_tile"(%ta)', '"xetile.load_tile"(%ta) {padding = 1.0 : f16}', None),
        ):
            edited = text.replace(old, new)
            assert edited != text
            if message is None:
                assert not failing(edited)
                continue
            with pytest.raises(StepladderError, match=message) as raised:
                run_pipeline(edited, "edited.mlir", Request("xetile_wgmma"))
            assert str(raised.value.location).startswith("edited.mlir:")


def test_a_padding_that_is_multiplied_is_refused() -> None:
    text = program("gemm", 256, 256, 72).replace("(%ta) : (!a)", "(%ta) {padding = 1.0 : f16} : (!a)")
    with mlir_context(), pytest.raises(StepladderError, match=r"the tiles reach beyond the matrices; accepted: 0"):
        run_pipeline(text, "edited.mlir", Request("xetile_wgmma"))


def test_two_programs_need_a_name() -> None:
    text = program("gemm", 256, 256, 64).partition("func.func @golden")[0]
    both = text + text[text.index("func.func") :].replace("@gemm", "@other")
    with mlir_context():
        with pytest.raises(StepladderError, match="2 XeTile programs in the payload: @gemm, @other"):
            run_pipeline(both, "both.mlir", Request("xetile_mma_sync"))
        run = run_pipeline(both, "both.mlir", Request("xetile_mma_sync", function="other", through="rasterize_blocks"))
    assert run.selection is not None and run.selection.function == "other"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("LAUNCH", "the program has 2 launches; accepted: one"),
        ("  memref.store %zero, %c[%n0, %n0] : memref<64x64xf32>\n", "memref.store is outside of the launch"),
    ],
)
def test_a_program_around_its_launch(more: str, message: str) -> None:
    """What a program is read as is one launch, and what makes sizes and views."""
    text = product(Problem(64, 64, 64, "f16", "f16", "f32", "f32", False), (64, 64, 32))
    launch = text[text.index("  gpu.launch") : text.rindex("  return")]
    text = text.replace(launch, "  %zero = arith.constant 0.0 : f32\n" + more.replace("LAUNCH", launch) + launch)
    with mlir_context():
        request = Request("xetile_mma_sync")
        found = tile_programs.read(library.load("xetile_mma_sync"), parse_payload(text, "around"), request)
        assert found is not None
        with pytest.raises(StepladderError, match=message):
            found.understood()


def test_cooperative_loads_become_those_of_the_pipeline() -> None:
    """What the program stores in shared local memory, and loads behind a barrier, is the tile of global memory."""
    text = written_chains.cooperative_loads()[0].text()
    with mlir_context():
        for pipeline in ("xetile_mma_sync", "xetile_wgmma"):
            assert not failing(text, pipeline)
        for edited in (
            text.replace("gpu.barrier", "", 1),
            text.replace("(%v3, %n0, %n0)", "(%v3, %n0, %n32)", 1),
        ):
            assert edited != text
            with pytest.raises(StepladderError, match="stored once, and loaded as it is after a barrier"):
                run_pipeline(edited, "edited.mlir", Request("xetile_wgmma"))
