"""Addresses, globals and values of the LLVM dialect in the emulator."""

from collections.abc import Callable

import numpy as np
import pytest

from llvm_kernels import THREADS, kernel, kinds, run, run_clean
from stepladder.mlir.llvm_layouts import layout

# Addresses.


def test_layouts() -> None:
    assert layout("!llvm.struct<(i8, i64, array<3 x i16>)>").offsets == (0, 8, 16)
    assert layout("!llvm.struct<(i8, i64, array<3 x i16>)>").bytes == 24
    assert layout("!llvm.struct<packed (i8, i64)>").bytes == 9
    assert layout("vector<3xf32>").alignment == 16
    assert layout("!llvm.array<2 x struct<(ptr<3>, f16)>>").bytes == 32
    assert layout("i1").bytes == 1 and layout("i33").bytes == 8


def test_addresses_of_parts() -> None:
    y = run_clean("""
      %p = llvm.getelementptr %Y[%l, 1, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i8, array<3 x i32>)>
      %q = llvm.getelementptr inbounds %p[-3] : (!llvm.ptr) -> !llvm.ptr, i32
      %four = llvm.mlir.constant(4 : i32) : i32
      %little = llvm.icmp "slt" %t, %four : i32
      llvm.cond_br %little, ^write, ^end
    ^write:
      llvm.store %t, %q : i32, !llvm.ptr
      llvm.br ^end
    ^end:
      llvm.return""")
    assert list(np.flatnonzero(y >= 0)) == [0, 4, 8, 12] and list(y[:13:4]) == [0, 1, 2, 3]


def test_threads_whose_pointers_are_of_different_memory() -> None:
    y = run_clean("""
      %bit = llvm.and %t, %c1 : i32
      %odd = llvm.icmp "eq" %bit, %c1 : i32
      %c5 = llvm.mlir.constant(5 : i32) : i32
      llvm.store %c5, %y : i32, !llvm.ptr
      %p = llvm.select %odd, %x, %y : i1, !llvm.ptr
      %v = llvm.load %p : !llvm.ptr -> i32
      %number = llvm.ptrtoint %p : !llvm.ptr to i64
      %again = llvm.inttoptr %number : i64 to !llvm.ptr
      %w = llvm.load %again : !llvm.ptr -> i32
      %sum = llvm.add %v, %w : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""")
    assert list(y) == [2 * t if t % 2 else 10 for t in range(THREADS)]


@pytest.mark.parametrize(
    "shift, who",
    [
        (1, "thread 63 of block (0, 0, 0) touches element [64] of 64xi32"),
        (-1, "thread 0 of block (0, 0, 0) touches element [-1] of 64xi32"),
        (99999, "thread 0 of block (0, 0, 0) touches element [99999] of 64xi32"),
    ],
)
def test_what_is_outside_of_a_buffer_is_found_and_left_out(shift: int, who: str) -> None:
    _, outcome = run(
        kernel(
            f"""
      %p = llvm.getelementptr %y[{shift}] : (!llvm.ptr) -> !llvm.ptr, i32
      llvm.store %t, %p : i32, !llvm.ptr
      llvm.return""",
            element="i32",
        ),
        np.zeros(THREADS, np.int32),
    )
    (finding,) = outcome.findings
    assert finding.kind == "out-of-bounds" and who in finding.message and finding.op == "llvm.store"


def test_what_is_outside_of_shared_memory_is_found() -> None:
    _, outcome = run(
        kernel(
            """
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
      %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %g = llvm.addrspacecast %p : !llvm.ptr<3> to !llvm.ptr
      llvm.store %t, %g : i32, !llvm.ptr
      llvm.return""",
            element="i32",
            globals_="""
    llvm.mlir.global private @s() {addr_space = 3 : i32} : !llvm.array<32 x i32>""",
        ),
        np.zeros(THREADS, np.int32),
    )
    assert kinds(outcome) == {"out-of-bounds"}


@pytest.mark.parametrize(
    "attribute, found", [("", True), ("{alignment = 8 : i64}", True), ("{alignment = 4 : i64}", False)]
)
def test_alignment(attribute: str, found: bool) -> None:
    """A vector's own alignment counts where nothing else is said."""
    _, outcome = run(
        kernel(f"""
      %p = llvm.getelementptr %X[1] : (!llvm.ptr) -> !llvm.ptr, f32
      %v = llvm.load %p {attribute} : !llvm.ptr -> vector<2xf32>
      llvm.return"""),
        np.zeros(THREADS, np.float32),
    )
    assert kinds(outcome) == ({"misaligned"} if found else set())


def test_globals() -> None:
    y = run_clean(
        """
      %g = llvm.mlir.addressof @table : !llvm.ptr
      %i = llvm.and %t, %c1 : i32
      %p = llvm.getelementptr %g[0, %i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<2 x i32>
      %v = llvm.load %p : !llvm.ptr -> i32
      llvm.store %v, %y : i32, !llvm.ptr
      llvm.return""",
        globals_="llvm.mlir.global private constant @table(dense<[7, 9]> : tensor<2xi32>) : !llvm.array<2 x i32>",
    )
    assert list(y[:4]) == [7, 9, 7, 9]


# Values.


def test_vectors_structs_and_arrays() -> None:
    y = run_clean("""
      %v = llvm.mlir.poison : vector<2xi32>
      %v1 = llvm.insertelement %t, %v[%c0 : i32] : vector<2xi32>
      %v2 = llvm.insertelement %c2, %v1[%c1 : i32] : vector<2xi32>
      %zero = llvm.mlir.constant(dense<0> : vector<2x2xi32>) : !llvm.array<2 x vector<2xi32>>
      %a = llvm.insertvalue %v2, %zero[1] : !llvm.array<2 x vector<2xi32>>
      %small = llvm.icmp "slt" %t, %c2 : i32
      llvm.cond_br %small, ^end(%zero : !llvm.array<2 x vector<2xi32>>), ^end(%a : !llvm.array<2 x vector<2xi32>>)
    ^end(%either: !llvm.array<2 x vector<2xi32>>):
      %w = llvm.extractvalue %either[1] : !llvm.array<2 x vector<2xi32>>
      %s = llvm.mlir.undef : !llvm.struct<(i32, struct<(vector<2xi32>, f32)>)>
      %s1 = llvm.insertvalue %w, %s[1, 0] : !llvm.struct<(i32, struct<(vector<2xi32>, f32)>)>
      %u = llvm.extractvalue %s1[1, 0] : !llvm.struct<(i32, struct<(vector<2xi32>, f32)>)>
      %r = llvm.shufflevector %u, %w [1, 2] : vector<2xi32>
      %e0 = llvm.extractelement %r[%c0 : i32] : vector<2xi32>
      %bit = llvm.and %t, %c1 : i32
      %e1 = llvm.extractelement %r[%bit : i32] : vector<2xi32>
      %sum = llvm.add %e0, %e1 : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""")
    assert list(y) == [0 if t < 2 else 2 + (t if t % 2 else 2) for t in range(THREADS)]


def test_elements_that_a_vector_does_not_have() -> None:
    _, outcome = run(
        kernel("""
      %v = llvm.mlir.zero : vector<2xf32>
      %e = llvm.extractelement %v[%c2 : i32] : vector<2xf32>
      llvm.return"""),
        np.zeros(THREADS, np.float32),
    )
    (finding,) = outcome.findings
    assert finding.kind == "out-of-bounds" and "element 2 of a vector of 2" in finding.message


@pytest.mark.parametrize("range_, found", [("range <i32, 0, 64>", False), ("range <i32, 0, 63>", True)])
def test_a_range_that_llvm_is_told(range_: str, found: bool) -> None:
    _, outcome = run(
        kernel(f"%u = nvvm.read.ptx.sreg.tid.x {range_} : i32\n llvm.return"), np.zeros(THREADS, np.float32)
    )
    assert kinds(outcome) == ({"out-of-bounds"} if found else set())


def test_a_shuffle_among_others() -> None:
    _, outcome = run(
        kernel("""
      %members = llvm.mlir.constant(-2 : i32) : i32
      %limits = llvm.mlir.constant(31 : i32) : i32
      %v = nvvm.shfl.sync idx %members, %t, %c1, %limits : i32 -> i32
      llvm.return"""),
        np.zeros(THREADS, np.float32),
    )
    (finding,) = outcome.findings
    assert finding.kind == "divergent-barrier" and "thread 0 " in finding.message


def test_integers_without_a_sign_as_addresses_and_widths() -> None:
    y = run_clean("""
      %m = llvm.mlir.constant(-1 : i32) : i32
      %wide = llvm.zext %m : i32 to i64
      %c16 = llvm.mlir.constant(16 : i64) : i64
      %high = llvm.lshr %wide, %c16 : i64
      %low = llvm.trunc %high : i64 to i32
      %least = llvm.intr.umin(%m, %low) : (i32, i32) -> i32
      %below = llvm.intr.smin(%m, %low) : (i32, i32) -> i32
      %sum = llvm.add %least, %below : i32
      llvm.store %sum, %y : i32, !llvm.ptr
      llvm.return""")
    assert set(y) == {0xFFFF - 1}


# Vectors under a mask.

_ROWS = """
      %four = llvm.mlir.constant(4 : i32) : i32
      %first = llvm.mul %t, %four : i32
      %from = llvm.getelementptr %X[%first] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %to = llvm.getelementptr %Y[%first] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %odd = llvm.mlir.constant(dense<[false, true, false, true]> : vector<4xi1>) : vector<4xi1>
      %high = llvm.mlir.constant(dense<[false, false, true, true]> : vector<4xi1>) : vector<4xi1>
      %all = llvm.mlir.constant(dense<true> : vector<4xi1>) : vector<4xi1>
      %back = llvm.mlir.constant(dense<[3, 2, 1, 0]> : vector<4xi32>) : vector<4xi32>
      %z = llvm.mlir.constant(dense<7> : vector<4xi32>) : vector<4xi32>
      %parts = llvm.getelementptr %from[%back] : (!llvm.ptr, vector<4xi32>) -> vector<4x!llvm.ptr>, i32
      %places = llvm.getelementptr %to[%back] : (!llvm.ptr, vector<4xi32>) -> vector<4x!llvm.ptr>, i32
      BODY
      llvm.return"""
_OF_ROWS = "(!llvm.ptr, vector<4xi1>, vector<4xi32>) -> vector<4xi32>"
_INTO = "vector<4xi32>, vector<4xi1> into"


@pytest.mark.parametrize(
    "load, store, model",
    [
        (
            f"%v = llvm.intr.masked.load %from, %odd, %z {{alignment = 4 : i32}} : {_OF_ROWS}",
            f"llvm.intr.masked.store %v, %to, %high {{alignment = 4 : i32}} : {_INTO} !llvm.ptr",
            lambda x: np.stack([-1, -1, 7, x[3]]),
        ),
        (
            f"%v = llvm.intr.masked.gather %parts, %odd, %z {{alignment = 4 : i32}} : "
            f"{_OF_ROWS.replace('!llvm.ptr', 'vector<4x!llvm.ptr>')}",
            f"llvm.intr.masked.scatter %v, %places, %high {{alignment = 4 : i32}} : {_INTO} vector<4x!llvm.ptr>",
            lambda x: np.stack([x[0], 7, -1, -1]),
        ),
        (
            f'%v = "llvm.intr.masked.expandload"(%from, %odd, %z) : {_OF_ROWS}',
            '"llvm.intr.masked.compressstore"(%v, %to, %high) : (vector<4xi32>, !llvm.ptr, vector<4xi1>) -> ()',
            lambda x: np.stack([7, x[1], -1, -1]),
        ),
    ],
)
def test_vectors_under_a_mask(load: str, store: str, model: Callable) -> None:
    x = np.arange(100, 100 + 4 * THREADS, dtype=np.int32)
    y, outcome = run(kernel(_ROWS.replace("BODY", f"{load}\n{store}"), element="i32", size=4 * THREADS), x)
    assert not outcome.findings
    np.testing.assert_array_equal(y.reshape(-1, 4), [model(row) for row in x.reshape(-1, 4)])


def test_a_vector_beyond_its_memory_is_found_where_its_mask_is_set() -> None:
    for mask, found in (("%odd", {"out-of-bounds"}), ("%none", set())):
        body = f"""
      %none = llvm.mlir.constant(dense<false> : vector<4xi1>) : vector<4xi1>
      %v = llvm.intr.masked.load %from, {mask}, %z {{alignment = 4 : i32}} : {_OF_ROWS}"""
        assert (
            kinds(run(kernel(_ROWS.replace("BODY", body), element="i32"), np.arange(THREADS, dtype=np.int32))[1])
            == found
        )


def test_stacks_constants_and_vectors_in_turn() -> None:
    y = run_clean("""
      %stack = llvm.intr.stacksave : !llvm.ptr
      %known = "llvm.intr.is.constant"(%t) : (i32) -> i1
      %number = llvm.ptrtoaddr %x : !llvm.ptr to i64
      %base = llvm.ptrtoint %X : !llvm.ptr to i64
      %bytes = llvm.sub %number, %base : i64
      %place = llvm.trunc %bytes : i64 to i32
      llvm.intr.stackrestore %stack : !llvm.ptr
      %a = llvm.mlir.constant(dense<[1, 2]> : vector<2xi32>) : vector<2xi32>
      %b = llvm.mlir.constant(dense<[30, 40]> : vector<2xi32>) : vector<2xi32>
      %turns = "llvm.intr.vector.interleave2"(%a, %b) : (vector<2xi32>, vector<2xi32>) -> vector<4xi32>
      %second = llvm.extractelement %turns[%c1 : i32] : vector<4xi32>
      %sum = llvm.add %place, %second : i32
      %r = llvm.select %known, %c0, %sum : i1, i32
      llvm.store %r, %y : i32, !llvm.ptr
      llvm.return""")
    np.testing.assert_array_equal(y, 4 * np.arange(THREADS) + 30)
