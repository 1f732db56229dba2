"""How many bytes the sanitizer looks at as one: no more than the smallest access has."""

from collections.abc import Iterator

import pytest

from stepladder.emulator.core.granularity import Granularity, granularity_of
from stepladder.emulator.core.module_kernel import ModuleKernel
from stepladder.pipeline.context import mlir_context, parse_payload

KERNEL = """
module {{
  llvm.mlir.global internal @tile() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<64 x i64>
  llvm.func @kernel(%x: !llvm.ptr<1>, %p: vector<2xf32>, %n: f32, %h: f16, %i: i32) attributes {{nvvm.kernel}} {{
    %s = llvm.mlir.addressof @tile : !llvm.ptr<3>
    {body}
    llvm.return
  }}
}}
"""
STORE = "llvm.store %{}, %s {{alignment = {} : i64}} : {}, !llvm.ptr<3>"
PAIR = STORE.format("p", 8, "vector<2xf32>")


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with mlir_context():
        yield


@pytest.mark.parametrize(
    "body, expected",
    [
        ("", Granularity(4, 16)),
        (PAIR, Granularity(4, 8)),
        (f"{PAIR}\n    {STORE.format('n', 4, 'f32')}", Granularity(4, 4)),
        (f"{PAIR}\n    {STORE.format('p', 2, 'vector<2xf32>')}", Granularity(2, 2)),
        (f"{PAIR}\n    {STORE.format('h', 2, 'f16')}", Granularity(2, 2)),
        ("nvvm.mbarrier.init %s, %i : !llvm.ptr<3>, i32", Granularity(4, 8)),
        # What is accessed is not known of these.
        (f"{PAIR}\n    %a = llvm.atomicrmw add %s, %i acq_rel : !llvm.ptr<3>, i32", Granularity(4, 4)),
        ('llvm.inline_asm "st.shared.b32 [$0], $1;", "r,r" %s, %i : (!llvm.ptr<3>, i32) -> ()', Granularity(4, 4)),
    ],
)
def test_the_smallest_access(body: str, expected: Granularity) -> None:
    kernel = ModuleKernel(parse_payload(KERNEL.format(body=body), "k.mlir"), None, "k.mlir")
    assert granularity_of(kernel.program) == expected
