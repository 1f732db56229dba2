"""The cases of `producers.py`: products whose weights, or whose A, elementwise ops make; and their kernels."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runner"))

if TYPE_CHECKING:
    import torch  # pyright: ignore[reportMissingImports]

PIPELINE, TARGET = "wgmma", "sm_90a"
GROUP = 128
ROWS = (1, 16, 128, 512, 2048, 8192)
LAYERS = ((4096, 4096), (14336, 4096))  # n and k
# The place of a kernel: what `compile` takes; kernels in front; then settings with registers.
DEFAULT, FRONT, REGISTERS = 0, 1, 2

_MAPS = "affine_map<(n, g, k) -> (n, g, k)>", "affine_map<(n, g, k) -> (n, g)>"
_ELEMENTWISE = 'iterator_types = ["parallel", "parallel", "parallel"]'


@dataclass(frozen=True)
class Kind:
    """What makes an operand.

    Attributes:
        type: of what is multiplied.
        stored: type of the weights; none where ops make A.
        by_group: whether a scale is for GROUP of k, or for a column of B.
        fact: further lines of the body, from `%x` of the stored type to `%f` of `type`.
    """

    type: str
    stored: str = ""
    by_group: bool = False
    body: str = ""


_INTEGERS = "%f = arith.sitofp %x : {stored} to {type}"
KINDS = {
    "i8 by column": Kind("f16", "i8", body=_INTEGERS),
    "i4 by group": Kind("f16", "i4", True, _INTEGERS),
    "fp8 by column": Kind("f16", "f8E4M3FN", body="%f = arith.extf %x : {stored} to {type}"),
    "i8 by column, bf16": Kind("bf16", "i8", body=_INTEGERS),
    "i4 by group, bf16": Kind("bf16", "i4", True, _INTEGERS),
    "silu of A": Kind("f16"),
}
_SILU = """%w = arith.extf %x : {type} to f32
    %n = arith.negf %w : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %s = arith.divf %w, %d : f32
    %y = arith.truncf %s : f32 to {type}"""


@dataclass(frozen=True)
class Case:
    """A product: what makes an operand, and its sizes."""

    kind: str
    m: int
    n: int
    k: int

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.kind.replace(' ', '_').replace(',', '')}_{self.m}x{self.n}x{self.k}"

    @property
    def makes_weights(self) -> bool:
        """Whether ops make B, of weights."""
        return bool(KINDS[self.kind].stored)


def cases(kinds: tuple[str, ...], rows: tuple[int, ...]) -> Iterator[Case]:
    """Yields the products of all layers.

    Args:
        kinds: of KINDS.
        rows: of A.
    """
    for kind in kinds:
        for n, k in LAYERS:
            yield from (Case(kind, m, n, k) for m in rows)


def payload(case: Case) -> str:
    """Returns the payload of a case: C = AB, rounded to the type of A; weights are n x k.

    Args:
        case: what is computed.
    """
    kind, m, n, k = KINDS[case.kind], case.m, case.n, case.k
    groups, size = (k // GROUP, GROUP) if kind.by_group else (1, k)
    a, b, c = f"tensor<{m}x{k}x{kind.type}>", f"tensor<{n}x{k}x{kind.type}>", f"tensor<{m}x{n}x{kind.type}>"
    sums = f"tensor<{m}x{n}xf32>"
    if case.makes_weights:
        q, s, w = (
            f"tensor<{n}x{groups}x{size}x{kind.stored}>",
            f"tensor<{n}x{groups}x{kind.type}>",
            f"tensor<{n}x{groups}x{size}x{kind.type}>",
        )
        arguments = f"%A: {a}, %q: {q}, %scales: {s}"
        lines = f"""%e = tensor.empty() : {w}
  %w = linalg.generic {{indexing_maps = [{_MAPS[0]}, {_MAPS[1]}, {_MAPS[0]}], {_ELEMENTWISE}}}
      ins(%q, %scales : {q}, {s}) outs(%e : {w}) {{
  ^bb0(%x: {kind.stored}, %scale: {kind.type}, %out: {kind.type}):
    {kind.body.format(stored=kind.stored, type=kind.type)}
    %y = arith.mulf %f, %scale : {kind.type}
    linalg.yield %y : {kind.type}
  }} -> {w}
  %B = tensor.collapse_shape %w [[0], [1, 2]] : {w} into {b}"""
        left = "%A"
    else:
        arguments = f"%X: {a}, %B: {b}"
        lines = f"""%empty = tensor.empty() : {a}
  %one = arith.constant 1.0 : f32
  %A = linalg.map ins(%X : {a}) outs(%empty : {a}) (%x: {kind.type}, %out: {kind.type}) {{
    {_SILU.format(type=kind.type)}
    linalg.yield %y : {kind.type}
  }}"""
        left = "%A"
    maps = ", ".join(f"affine_map<(m, n, k) -> ({axes})>" for axes in ("m, k", "n, k", "m, n"))
    return f"""func.func @matmul({arguments}) -> {c} {{
  {lines}
  %zero = arith.constant 0.0 : f32
  %o = tensor.empty() : {sums}
  %z = linalg.fill ins(%zero : f32) outs(%o : {sums}) -> {sums}
  %p = linalg.matmul indexing_maps = [{maps}] ins({left}, %B : {a}, {b}) outs(%z : {sums}) -> {sums}
  %h = tensor.empty() : {c}
  %r = linalg.map ins(%p : {sums}) outs(%h : {c}) (%v: f32, %out: {kind.type}) {{
    %t = arith.truncf %v : f32 to {kind.type}
    linalg.yield %t : {kind.type}
  }}
  return %r : {c}
}}
"""


@dataclass(frozen=True)
class Job:
    """A kernel to build: its place, the knobs that are given, and the predicted time, 0 where `compile` chooses."""

    case: Case
    place: int
    knobs: Mapping[str, int | str] = field(default_factory=dict, hash=False)
    predicted: float = 0.0

    @property
    def name(self) -> str:
        """Name of the bundle's folder."""
        return f"{self.case.name}_{self.place}"


def plan(case: Case, settings: int) -> list[Job]:
    """Returns the kernels of a case.

    Args:
        case: what is computed.
        settings: how many with registers: the model's first.
    """
    from stepladder.pipeline import knob_choice, library
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.knob_query import read_query
    from stepladder.pipeline.request import Request

    jobs = [Job(case, DEFAULT), Job(case, FRONT, {"producers": "kernels"})]
    given = {"producers": "registers", "swap_operands": case.makes_weights}
    with mlir_context():
        request = Request(PIPELINE, {"target": TARGET, **given}, tuned=True)
        ranked = knob_choice.rank(read_query(library.load(PIPELINE), request, payload(case), case.name))
    candidates = ranked.first(settings) if ranked is not None else []
    return jobs + [
        Job(case, place, {**item.knobs, **given}, item.microseconds) for place, item in enumerate(candidates, REGISTERS)
    ]


def build(job: Job, folder: Path) -> str:
    """Builds a kernel; returns why it is refused, or an empty text.

    Args:
        job: the kernel.
        folder: where its bundle is written.
    """
    from stepladder.pipeline import build as builds
    from stepladder.pipeline.context import mlir_context
    from stepladder.pipeline.request import Request
    from stepladder.runtime import bundle
    from stepladder.runtime.errors import StepladderError

    is_chosen = job.place < REGISTERS
    try:
        with mlir_context():
            request = Request(PIPELINE, {**job.knobs, "target": TARGET}, tuned=is_chosen)
            built = builds.build(payload(job.case), job.name, request, use_cache=False)
            bundle.write_bundle(
                folder / job.name, built.manifest, built.code.cubin, built.code.ptx, {}, data=built.data()
            )
    except StepladderError as error:
        return error.message
    return ""


def made(torch_: Any, case: Case, source: torch.Tensor, scales: torch.Tensor | None) -> torch.Tensor:  # noqa: ANN401
    """Returns the operand that a case's ops make: A, or B as n x k.

    Args:
        torch_: the module.
        case: what is computed.
        source: the bytes that it is made from.
        scales: of weights.
    """
    kind = KINDS[case.kind]
    type_ = torch_.float16 if kind.type == "f16" else torch_.bfloat16
    if scales is None:
        return torch_.nn.functional.silu(source.view(type_).view(case.m, case.k).float()).to(type_)
    if kind.stored == "i4":
        signed = source.view(torch_.int8)
        numbers = torch_.stack([(signed << 4) >> 4, signed >> 4], dim=-1)
    else:
        numbers = source.view(torch_.int8 if kind.stored == "i8" else torch_.float8_e4m3fn)
    groups = case.k // GROUP if kind.by_group else 1
    return (numbers.to(type_).view(case.n, groups, -1) * scales.view(case.n, groups, 1)).view(case.n, case.k)
