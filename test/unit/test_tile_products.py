"""Programs of tiles that are no product: each edit of program 2.1 is refused at its op."""

import pytest

from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError
from xetile_programs import program

SUMS = "vector<256x256xf32>"
STORE = '"xetile.store_tile"(%sum, %c_tile)'
# The text that is replaced, its replacement, and the message.
EDITS = {
    "two loops": (
        STORE,
        "scf.for %q = %c0 to %k step %c32 {\n"
        f'"xetile.prefetch_tile"(%a_pfh) {{locality = 3 : i32}} : (!a_pfh) -> ()\n }}\n {STORE}',
        "the launch has 2 loops: one along k is accepted",
    ),
    "another op": (
        STORE,
        f'gpu.printf "done"\n {STORE}',
        "gpu.printf has no form here: loads and stores of tiles",
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
        "the launch has 2 xetile.store_tile: one, of the sums, is accepted",
    ),
    "other rows of A": ("(%a, %i, %c0)", "(%a, %c0, %c0)", "A must begin at the rows of C and B at its columns"),
    "tiles with gaps": (
        "%i = arith.muli %y, %c256",
        "%i = arith.muli %y, %c32",
        "blocks must compute tiles of C of 256 x 256, side by side",
    ),
    "the same tile twice": ("%gz = %c1)", "%gz = %tiles_m)", "2 blocks along z would compute the same tile of C"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_refused_at_the_op(edit: str) -> None:
    text = program("gemm", 512, 512, 96).partition("func.func @golden")[0]
    old, new, message = EDITS[edit]
    assert text.count(old) == 1
    with mlir_context(), pytest.raises(StepladderError, match=message) as raised:
        run_pipeline(text.replace(old, new), "edited.mlir", Request("xetile_mma_sync"))
    assert str(raised.value.location).startswith("edited.mlir:")
