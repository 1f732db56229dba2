"""Programs of tiles that are no product: each edit of program 2.1 is refused at its op."""

import pytest

from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.problem import Problem
from xetile_programs import product, program

SUMS = "vector<256x256xf32>"
STORE = '"xetile.store_tile"(%sum, %c_tile)'
# The text that is replaced, its replacement, and the message.
EDITS = {
    "two loops": (
        STORE,
        "scf.for %q = %c0 to %k step %c32 {\n"
        f'"xetile.prefetch_tile"(%a_pfh) {{locality = 3 : i32}} : (!a_pfh) -> ()\n }}\n {STORE}',
        "the launch has 2 loops; accepted: one along k",
    ),
    "another op": (
        STORE,
        f'gpu.printf "done"\n {STORE}',
        "gpu.printf is not supported here; accepted: loads and stores of tiles",
    ),
    "no first step": ("%step = %c0", "%step = %c32", "the loop must go from 0 by 32, the k of a tile, to a constant"),
    "sums of one step": ("(%va, %vb, %acc)", "(%va, %vb, %zero)", "the sums must be carried by the loop"),
    "a factor that is computed": (
        '%vc = "xetile.tile_mma"(%va,',
        '%twice = arith.addf %va, %va : vector<256x32xf16>\n %vc = "xetile.tile_mma"(%twice,',
        "operand 0 must be an xetile.load_tile, or the transpose of one",
    ),
    "a tile that stays": (
        '"xetile.load_tile"(%tb)',
        '"xetile.load_tile"(%b_tile)',
        "operand 1 must be an xetile.load_tile of a tile that the loop carries",
    ),
    "an offset": (
        "%i = arith.muli %y, %c256",
        "%i = arith.addi %y, %c256",
        "a tile begins at 0, or at the number of the block times a constant",
    ),
    "two stores": (
        STORE,
        f"{STORE} : ({SUMS}, !c) -> ()\n {STORE}",
        "the launch has 2 xetile.store_tile; accepted: one, of the sums",
    ),
    "other rows of A": ("(%a, %i, %c0)", "(%a, %c0, %c0)", "A must begin at the rows of C and B at its columns"),
    "tiles with gaps": (
        "%i = arith.muli %y, %c256",
        "%i = arith.muli %y, %c32",
        "blocks must compute tiles of C of 256 x 256, side by side",
    ),
    "a broadcast column": (
        STORE,
        "%column = arith.constant dense<1.0> : vector<256x1xf32>\n"
        '%all = "xetile.broadcast"(%column) {dims = [1], wg_map = #mp_c} : (vector<256x1xf32>) -> ' + SUMS + "\n"
        f"%more = arith.addf %sum, %all : {SUMS}\n {STORE.replace('%sum', '%more')}",
        "expected a broadcast of one row, along dimension 0",
    ),
    "another op behind": (
        STORE,
        "%first = arith.cmpi eq, %x, %c0 : index\n"
        f"%some = scf.if %first -> ({SUMS}) {{\nscf.yield %sum : {SUMS}\n}} else {{\nscf.yield %zero : {SUMS}\n}}\n"
        f"{STORE.replace('%sum', '%some')}",
        "arith.cmpi is not supported after a product; accepted: elementwise ops on vectors",
    ),
    "a moved tile of C": (
        STORE,
        '%moved = "xetile.update_tile_offset"(%c_tile, %c0, %c0) : (!c, index, index) -> !c\n'
        f"{STORE.replace('%c_tile', '%moved')}",
        "the tile must be one of an xetile.init_tile of the launch",
    ),
    "a view in the launch": (
        '%c_tile = "xetile.init_tile"(%c,',
        "%turned = memref.transpose %c (i, j) -> (j, i) "
        ": memref<512x512xf32> to memref<512x512xf32, strided<[1, 512]>>\n"
        '%c_tile = "xetile.init_tile"(%turned,',
        "C must be row-major",
    ),
    "a store that may be left out": (
        f"{STORE} : ({SUMS}, !c) -> ()",
        f"%first = arith.cmpi eq, %x, %c0 : index\n scf.if %first {{\n {STORE} : ({SUMS}, !c) -> ()\n }}",
        "the sums must be stored by one xetile.store_tile in the launch",
    ),
    "the same tile twice": ("%gz = %c1)", "%gz = %tiles_m)", "2 blocks along z would compute the same tile of C"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_refused_at_the_op(edit: str) -> None:
    text = program("gemm", 512, 512, 96).partition("func.func @golden")[0]
    old, new, message = EDITS[edit]
    assert text.count(old) == 1
    text = text.replace(old, new)
    if "strided" in new:  # a tile of the view
        text = text.replace(
            "(memref<512x512xf32>, index, index)", "(memref<512x512xf32, strided<[1, 512]>>, index, index)"
        )
        text = text.replace(
            "xf32>, #xetile.tile_attr<{wg = #mp_c}>", "xf32>, #xetile.tile_attr<{wg = #mp_c, order = [0, 1]}>"
        )
    with mlir_context(), pytest.raises(StepladderError, match=message) as raised:
        run_pipeline(text, "edited.mlir", Request("xetile_mma_sync"))
    assert str(raised.value.location).startswith("edited.mlir:")


def test_c_is_another_matrix() -> None:
    text = product(Problem(64, 64, 64, "f32", "f32", "f32", "f32", False), (64, 64, 32))
    with mlir_context(), pytest.raises(StepladderError, match="C must be another matrix than A and B"):
        run_pipeline(
            text.replace('"xetile.init_tile"(%c,', '"xetile.init_tile"(%a,'), "in_place", Request("xetile_mma_sync")
        )


def test_a_matrix_is_no_view_of_the_launch() -> None:
    text = product(Problem(64, 64, 64, "f32", "f32", "f32", "f32", False), (64, 64, 32))
    turned, again = "memref<64x64xf32, strided<[1, 64]>>", "memref<64x64xf32, strided<[64, 1]>>"
    start = text.index('    %ta = "xetile.init_tile"')
    line = text[start : text.index("\n", start)]
    views = (
        f"    %u = memref.transpose %a (i, j) -> (j, i) : memref<64x64xf32> to {turned}\n"
        f"    %v = memref.transpose %u (i, j) -> (j, i) : {turned} to {again}\n"
    )
    edited = views + line.replace("(%a,", "(%v,").replace("(memref<64x64xf32>,", f"({again},")
    with mlir_context(), pytest.raises(StepladderError, match="must be a buffer from before the launch") as raised:
        run_pipeline(text.replace(line, edited), "views", Request("xetile_mma_sync"))
    assert str(raised.value.location).startswith("views:")


def test_steps_of_a_block_divide_the_depth() -> None:
    text = program("gemm", 512, 512, 96).partition("func.func @golden")[0]
    with (
        mlir_context(),
        pytest.raises(StepladderError, match="the depth is 96, which is not a multiple of block_k = 64"),
    ):
        run_pipeline(text, "deep", Request("xetile_mma_sync", {"block_k": 64}))


def test_a_program_has_one_launch() -> None:
    text = program("gemm", 512, 512, 64).partition("func.func @golden")[0]
    launch = text[text.index("  gpu.launch") : text.rindex("  return")]
    with mlir_context(), pytest.raises(StepladderError, match="2 launches have tiles; accepted: one"):
        run_pipeline(text.replace(launch, launch + launch), "two", Request("xetile_mma_sync"))
