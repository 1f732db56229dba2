"""Functions in PTX that take the place of their calls, and elementary functions of f64 that need them."""

from __future__ import annotations

import numpy as np
import pytest

import stepladder
from ptx_kernels import HEAD, kernel, run
from stepladder.runtime.errors import StepladderError

# |x| where x is negative, else 3 x, and 7 behind it; it returns from two places.
_FUNCTION = """
.global .align 8 .b8 seven[8] = {7, 0, 0, 0, 0, 0, 0, 0};
.func (.param .align 16 .b8 back[16]) both(.param .b64 number)
{
  .reg .b64 %v, %w;
  .reg .pred %p;
  mov.b64 %w, seven;
  ld.global.b64 %w, [%w];
  st.param.b64 [back+8], %w;
  ld.param.b64 %v, [number];
  setp.ge.s64 %p, %v, 0;
  @%p bra $positive;
  neg.s64 %v, %v;
  st.param.b64 [back], %v;
  ret;
$positive:
  mul.lo.s64 %v, %v, 3;
  st.param.b64 [back], %v;
  ret;
}
// The same of x + 1, in the place of a call in the place of a call.
.func (.param .b64 back) next(.param .b64 number)
{
  .reg .b64 %v;
  ld.param.b64 %v, [number];
  add.s64 %v, %v, 1;
  {
  .param .b64 p0;
  .param .align 16 .b8 r0[16];
  st.param.b64 [p0], %v;
  call.uni (r0), both, (p0);
  ld.param.b64 %v, [r0];
  }
  st.param.b64 [back], %v;
  ret;
}
"""
_BODY = """
  ld.global.b64 %d1, [%x];
  {
  .param .b64 p0;
  .param .b64 r0;
  st.param.b64 [p0], %d1;
  call.uni (r0), next, (p0);
  ld.param.b64 %d2, [r0];
  ld.param.b64 %d1, [p0];
  }
  setp.gt.s64 %p1, %d1, 5;
  {
  .param .b64 p0;
  .param .align 16 .b8 r0[16];
  st.param.b64 [p0], %d1;
  @%p1 call.uni (r0), both, (p0);
  @%p1 ld.param.v2.b64 {%d3, %d4}, [r0];
  @%p1 add.s64 %d2, %d3, %d4;
  }
  st.global.b64 [%y], %d2;
"""


def test_functions_take_the_place_of_calls() -> None:
    x = np.arange(-20, 44)
    y, outcome = run(kernel(_BODY, head=HEAD + _FUNCTION), x)
    assert not outcome.findings, outcome.findings[0].render()
    following = x + 1
    wanted = np.where(following < 0, -following, 3 * following)
    assert np.array_equal(y, np.where(x > 5, 3 * x + 7, wanted))


_DOUBLES = """
.func (.param .b64 back) twice(.param .b64 number)
{
  .reg .b64 %v;
  ld.param.b64 %v, [number];
  shl.b64 %v, %v, 1;
  st.param.b64 [back], %v;
  ret;
}
.func nothing() { ret; }
.global .align 8 .u64 table[3] = {next, twice, nothing};
"""
_BY_ADDRESS = """
  ld.global.b64 %d1, [%x];
  and.b32 %r1, %t, 1;
  ADD
  mul.wide.u32 %d3, %r1, 8;
  mov.u64 %d4, table;
  add.s64 %d4, %d4, %d3;
  ld.global.u64 %d5, [%d4];
  mov.u64 %d6, twice;
  setp.gt.u32 %p2, %t, 60;
  selp.b64 %d5, %d6, %d5, %p2;
  setp.lt.u32 %p1, %t, 62;
  {
  .param .b64 p0;
  .param .b64 r0;
  st.param.b64 [p0], %d1;
  form : .callprototype (.param .b64 _) _ (.param .b64 _);
  @%p1 call (r0), %d5, (p0), form;
  @%p1 ld.param.b64 %d1, [r0];
  }
  bar.sync 0;
  st.global.b64 [%y], %d1;
"""


def test_calls_by_address() -> None:
    x = np.arange(64)
    y, outcome = run(kernel(_BY_ADDRESS.replace("ADD", ""), head=HEAD + _FUNCTION + _DOUBLES), x)
    assert not outcome.findings, outcome.findings[0].render()
    wanted = np.where((x % 2 == 1) | (x > 60), 2 * x, 3 * (x + 1))
    assert np.array_equal(y, np.where(x < 62, wanted, x))
    _, outcome = run(kernel(_BY_ADDRESS.replace("ADD", "add.u32 %r1, %r1, 1;"), head=HEAD + _FUNCTION + _DOUBLES), x)
    assert {finding.kind for finding in outcome.findings} == {"assumption"}  # `nothing` takes no number


def test_a_function_whose_address_is_not_used_is_not_called_by_address() -> None:
    again = """.func (.param .b64 back) again(.param .b64 number) {
  .reg .b64 %n; .param .b64 p0; .param .b64 r0;
  ld.param.b64 %n, [number];
  st.param.b64 [p0], %n;
  call.uni (r0), again, (p0);
  ret;
}
"""
    text = kernel(_BY_ADDRESS.replace("ADD", ""), head=HEAD + _FUNCTION + _DOUBLES + again)
    assert not run(text, np.arange(64))[1].findings


def test_threads_meet_after_a_trap_that_none_comes_to() -> None:
    y, outcome = run(
        kernel("""
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra TOGETHER;
  setp.ne.u32 %p2, %t, 0;
  @!%p2 bra FINE;
  trap;
FINE:
  st.global.b64 [%Y+8], 5;
TOGETHER:
  bar.sync 0;
  st.global.b64 [%y], 1;""")
    )
    assert not outcome.findings and (y == 1).all()


@pytest.mark.parametrize(
    "call, message",
    [
        ("call.uni (r0), both, (p0, p0);", "both takes 1 variables, and the call names 2"),
        ("call.uni both, (p0);", "both returns 1 variables, and the call names 0"),
        ("call.uni (r0), both, (%d1);", "number of both is not a variable of the call, %d1"),
        ("call.uni (r0), again, (p0);", "again calls itself: recursion is not supported"),
        ("call.uni (r0), other, (p0);", "of other: of functions without a body it knows __assertfail and vprintf"),
    ],
)
def test_calls_that_are_not_known(call: str, message: str) -> None:
    again = ".func (.param .b64 back) again(.param .b64 p0) { .param .b64 r0; call.uni (r0), again, (p0); }"
    text = kernel(f"{{ .param .b64 p0; .param .b64 r0; {call} }}", head=HEAD + _FUNCTION + again)
    with pytest.raises(StepladderError) as refused:
        run(text)
    assert message in refused.value.render()


_PRINTS = """
  .local .align 8 .b8 depot[24];
  .reg .pred %few;
  mov.b64 %d1, depot;
  setp.gt.u32 %few, %t, 1;
  @%few bra DONE;
  neg.s32 %r1, %t;
  st.local.u32 [depot], %r1;
  st.local.f64 [depot+8], 0d3FF8000000000000;
  cvta.global.u64 %d2, name;
  st.local.u64 [depot+16], %d2;
  cvta.local.u64 %d1, %d1;
  cvta.global.u64 %d3, form;
  {
  .param .b64 p0; .param .b64 p1; .param .b32 r0;
  st.param.b64 [p0], %d3;
  st.param.b64 [p1], %d1;
  call.uni (r0), vprintf, (p0, p1);
  }
DONE:
  bar.sync 0;
  st.global.b64 [%y], 1;
"""


def test_a_call_of_printf() -> None:
    """Arguments are in memory as C promotes them: four bytes of an integer, and eight from a multiple of eight."""
    texts = {"form": b"%d %.2f %s 100%%\n\0", "name": b"ab\0"}
    declared = "".join(
        f".global .align 1 .b8 {name}[{len(text)}] = {{{', '.join(map(str, text))}}};\n" for name, text in texts.items()
    )
    y, outcome = run(kernel(_PRINTS, head=HEAD + declared))
    assert not outcome.findings and set(y.tolist()) == {1}
    assert outcome.output == "0 1.50 ab 100%\n-1 1.50 ab 100%\n"


_FAILS = """
  .reg .pred %few;
  setp.{few}.u32 %few, %t, 40;
  @%few bra GOOD;
  {{
  .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
  cvta.global.u64 %d1, text;
  st.param.b64 [p0], %d1;
  st.param.b64 [p1], %d1;
  st.param.b32 [p2], 3;
  st.param.b64 [p3], %d1;
  st.param.b64 [p4], 1;
  call.uni __assertfail, (p0, p1, p2, p3, p4);
  }}
GOOD:
  st.global.b64 [%y], 1;
"""


@pytest.mark.parametrize("few, lasting", [("lt", 40), ("ne", 63), ("gt", 23), ("gt.and", 0)])
def test_threads_that_end_at_an_assertion(few: str, lasting: int) -> None:
    """The others of a warp, which wait behind it, go on."""
    text = _FAILS.format(few=few.split(".")[0]).replace("%t, 40", "%t, 400" if "and" in few else "%t, 40")
    y, outcome = run(kernel(text, head=HEAD + ".global .align 1 .b8 text[2] = {120, 0};"))
    assert {finding.kind for finding in outcome.findings} == {"assertion"}
    assert (y == 1).sum() == lasting


_FAILS_IN_A_LOOP = """
  .reg .pred %good, %more, %end;
  mov.u32 %r1, %t;
AGAIN:
  setp.lt.u32 %good, %r1, 400;
  @%good bra GOOD;
  {
  .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
  cvta.global.u64 %d1, text;
  st.param.b64 [p0], %d1;
  st.param.b64 [p1], %d1;
  st.param.b32 [p2], 3;
  st.param.b64 [p3], %d1;
  st.param.b64 [p4], 1;
  call.uni __assertfail, (p0, p1, p2, p3, p4);
  }
  exit;
GOOD:
  add.u32 %r1, %r1, 32;
  setp.lt.u32 %more, %r1, 70;
  @%more bra AGAIN;
  shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
  cvt.u64.u32 %d1, %r2;
  st.global.b64 [%y], %d1;
"""


def test_threads_meet_after_a_loop_with_an_assertion() -> None:
    """Those that leave the loop early wait for the others, although some may end in it."""
    y, outcome = run(kernel(_FAILS_IN_A_LOOP, head=HEAD + ".global .align 1 .b8 text[2] = {120, 0};"))
    left = [next(number for number in range(thread + 32, 200, 32) if number >= 70) for thread in range(64)]
    assert not outcome.findings and y.tolist() == [left[thread ^ 1] for thread in range(64)]


_TYPE = "tensor<4x8xf64>"
_MAP = "affine_map<(i, j) -> (i, j)>"


@pytest.mark.usefixtures("needs_ptxas")
def test_elementary_functions_of_f64() -> None:
    """Large arguments of a cosine, and powers, are computed by functions that LLVM does not inline."""
    text = f"""func.func @f(%x: {_TYPE}, %y: {_TYPE}) -> {_TYPE} {{
  %e = tensor.empty() : {_TYPE}
  %r = linalg.generic {{indexing_maps = [{_MAP}, {_MAP}, {_MAP}], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %y : {_TYPE}, {_TYPE}) outs(%e : {_TYPE}) {{
  ^bb0(%a: f64, %b: f64, %out: f64):
    %c = math.cos %a : f64
    %p = math.powf %b, %c : f64
    %s = math.round %p : f64
    %d = arith.addf %p, %s : f64
    linalg.yield %d : f64
  }} -> {_TYPE}
  return %r : {_TYPE}
}}
"""
    x, y = np.geomspace(1e-3, 1e300, 32).reshape(4, 8), np.linspace(0.1, 9.0, 32).reshape(4, 8)
    got = stepladder.compile(text, target="sm_80", device="emulator")(x, y)
    power = y ** np.cos(x)
    np.testing.assert_allclose(got, power + np.floor(power + 0.5), rtol=1e-14)
