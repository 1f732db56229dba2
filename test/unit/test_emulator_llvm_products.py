"""Products of a warp and of a warpgroup in the LLVM dialect, and what pipelines end with, in the emulator."""

import numpy as np
import pytest

from llvm_kernels import kernel, kinds, run, run_clean
from stepladder.emulator.core.emulation import Emulation, Outcome
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context, parse_payload
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.errors import StepladderError

# Matrices of a warp.


def wmma(*, a: str = "row", b: str = "row", says: str | None = None, pad: int = 0) -> str:
    """Returns a kernel of one warp: Y = XX, 16 x 16, the operands read by rows or columns."""
    half, four = ", ".join(["vector<2xf16>"] * 8), ", ".join(["vector<2xf16>"] * 4)
    struct, sums = f"!llvm.struct<({half})>", f"!llvm.struct<({four})>"
    fields = "\n".join(
        [f"%{name}_{i} = llvm.extractvalue %{name}[{i}] : {struct}" for name in "ab" for i in range(8)]
        + [f"%c_{i} = llvm.extractvalue %c[{i}] : {sums}" for i in range(4)]
        + [f"%d_{i} = llvm.extractvalue %d[{i}] : {sums}" for i in range(4)]
    )
    taken = ", ".join(f"%{name}_{i}" for name, count in (("a", 8), ("b", 8), ("c", 4)) for i in range(count))
    shape = "k = 16 : i32, m = 16 : i32, n = 16 : i32"

    def load(name: str, pointer: str, layout_: str, type_: str) -> str:
        return (
            f"%{name} = nvvm.wmma.load {pointer}, %c16 {{eltype = #nvvm.mma_type<f16>, "
            f"frag = #nvvm.mma_frag<{name}>, {shape}, layout = #nvvm.mma_layout<{layout_}>}} : "
            f"(!llvm.ptr) -> {type_}"
        )

    before, after = fields.split("%d_0", 1)
    return f"""
      %c16 = llvm.mlir.constant(16 : i32) : i32
      %p = llvm.getelementptr %X[{pad}] : (!llvm.ptr) -> !llvm.ptr, f16
      {load("a", "%p", a, struct)}
      {load("b", "%X", b, struct)}
      {load("c", "%Y", "row", sums)}
      {before}
      %d = nvvm.wmma.mma {taken} {{eltypeA = #nvvm.mma_type<f16>, eltypeB = #nvvm.mma_type<f16>, {shape},
          layoutA = #nvvm.mma_layout<{says or a}>, layoutB = #nvvm.mma_layout<{b}>}} :
          ({half}, {half}, {four}) -> {sums}
      %d_0{after}
      nvvm.wmma.store %Y, %c16, %d_0, %d_1, %d_2, %d_3 {{eltype = #nvvm.mma_type<f16>, {shape},
          layout = #nvvm.mma_layout<row>}} : !llvm.ptr, {four}
      llvm.return"""


def multiply(**options: str | int) -> tuple[np.ndarray, np.ndarray, Outcome]:
    x = np.random.default_rng(0).integers(-4, 5, 256).astype(np.float16)
    y, outcome = run(kernel(wmma(**options), element="f16", threads=32, size=256), x)
    return x.reshape(16, 16), y.reshape(16, 16) + 1, outcome  # Y began with -1


@pytest.mark.parametrize("a", ["row", "col"])
@pytest.mark.parametrize("b", ["row", "col"])
def test_products_of_a_warp(a: str, b: str) -> None:
    x, y, outcome = multiply(a=a, b=b)
    assert not outcome.findings
    assert outcome.counters.instructions == {"nvvm.wmma.mma": 1}
    np.testing.assert_array_equal(y, (x if a == "row" else x.T) @ (x if b == "row" else x.T))


def test_a_product_must_say_how_its_operands_were_loaded() -> None:
    x, y, _ = multiply(a="col", says="row")
    assert not np.array_equal(y, x.T @ x)


def test_a_matrix_that_is_not_aligned() -> None:
    _, _, outcome = multiply(pad=8)
    assert kinds(outcome) == {"misaligned", "out-of-bounds"}


# PTX in text.


def wgmma(between: str, *, constraints: str = "=f,=f,=f,=f,0,1,2,3,l,l,n,n,n,n,n") -> str:
    """Returns a kernel of one warpgroup that multiplies what shared memory holds; `between` stands behind it."""
    struct = "!llvm.struct<(f32, f32, f32, f32)>"
    return kernel(
        f"""
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<8xf16>
      %ones = llvm.mlir.constant(dense<1.0> : vector<8xf16>) : vector<8xf16>
      llvm.store %ones, %p : vector<8xf16>, !llvm.ptr<3>
      nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
      nvvm.barrier
      %descriptor = llvm.mlir.constant({(128 >> 4) << 16 | (256 >> 4) << 32} : i64) : i64
      %zero = llvm.mlir.zero : {struct}
      %z0 = llvm.extractvalue %zero[0] : {struct}
      %z1 = llvm.extractvalue %zero[1] : {struct}
      %z2 = llvm.extractvalue %zero[2] : {struct}
      %z3 = llvm.extractvalue %zero[3] : {struct}
      nvvm.wgmma.fence.aligned
      %sums = llvm.inline_asm has_side_effects asm_dialect = att "{{\\0A.reg .pred p;\\0Asetp.ne.b32 p, $10, 0;\\0A\
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{$0, $1, $2, $3}}, $8, $9, p, $11,  $12, $13,  $14;\\0A}}\\0A",
          "{constraints}" %z0, %z1, %z2, %z3, %descriptor, %descriptor, %c1, %c1, %c1, %c0, %c0 :
          (f32, f32, f32, f32, i64, i64, i32, i32, i32, i32, i32) -> {struct}
      nvvm.wgmma.commit.group.sync.aligned
      {between}
      %r = llvm.extractvalue %sums[3] : {struct}
      llvm.store %r, %y : f32, !llvm.ptr
      nvvm.wgmma.wait.group.sync.aligned 0
      llvm.return""",
        threads=128,
        size=128,
        globals_="""
    llvm.mlir.global private @s() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<1024 x f16>""",
    )


def test_a_product_in_text() -> None:
    y, outcome = run(wgmma("nvvm.wgmma.wait.group.sync.aligned 0"), np.zeros(128, np.float32))
    assert not outcome.findings, outcome.findings[0].render()
    assert set(y) == {16}


def test_sums_in_text_that_nothing_waited_for() -> None:
    y, outcome = run(wgmma(""), np.zeros(128, np.float32))
    assert kinds(outcome) == {"in-flight"}
    assert outcome.findings[0].other == "llvm.inline_asm wgmma.mma_async"
    assert np.isnan(y).all()


def test_sums_in_other_registers_than_they_came_in() -> None:
    text = wgmma("nvvm.wgmma.wait.group.sync.aligned 0", constraints="=f,=f,=f,=f,1,0,2,3,l,l,n,n,n,n,n")
    y, outcome = run(text, np.zeros(128, np.float32))
    assert not outcome.findings, outcome.findings[0].render()
    assert set(y) == {16}


def test_text_that_is_not_known_is_an_error_that_says_it() -> None:
    run_clean('llvm.inline_asm "nanosleep.u32 $0;", "r" %t : (i32) -> ()\n llvm.return')
    for text, message in {
        "tcgen05.ld.u32 $0;": r"the emulator does not support llvm.inline_asm tcgen05.ld",
        "add.f128 $0, $0, $0;": r"PTX has no add.f128: with .f128: expected one of .u16, ",
        "add.s32 $0 $0, 1;": r"the PTX of llvm.inline_asm: expected ',' or ';', got '\$0', in add.s32 \$0 \$0",
        "bra NOWHERE;": r"there is no label NOWHERE",
        "add.s32 %q, $0, 1;": r"of %q: there is no such register",
    }.items():
        with pytest.raises(StepladderError, match=message):
            run_clean(f'llvm.inline_asm "{text}", "r" %t : (i32) -> ()\n llvm.return')


# What pipelines end with.


@pytest.mark.parametrize(
    "pipeline, knobs",
    [
        ("wmma", {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32}),
        ("mma_sync", {"block_m": 64, "block_n": 64, "block_k": 32, "warp_m": 32, "warp_n": 32}),
        ("wgmma", {"block_m": 64, "block_n": 64, "block_k": 32, "consumer_warpgroups": 1, "persistent_blocks": 2}),
    ],
)
def test_lowered_ir_costs_what_it_did_before(pipeline: str, knobs: dict[str, int]) -> None:
    """The same bytes, sectors and wavefronts, and as many products: the conversions move no data of their own."""
    steps = {}
    with mlir_context():
        run_pipeline(
            matmul_text(64, 64, 96),
            "payload.mlir",
            Request(pipeline, knobs),
            progress=lambda step: steps.setdefault(step.name, step.text),
        )
    names = list(steps)
    counted = []
    for name in names[names.index("lower_to_nvvm") - 1 :]:
        with mlir_context():
            emulation = Emulation(parse_payload(steps[name], name))
            counters = emulation.run(emulation.random_inputs(0)).counters.as_dict()
        counted.append(
            (
                counters["global"],
                counters["shared"],
                counters["multiply_adds"],
                sum(counters["instructions"].values()),
                sum(counters["barriers"].values()),
            )
        )
    assert len(counted) == (5 if pipeline == "wgmma" else 2)
    assert all(numbers == counted[0] for numbers in counted)
