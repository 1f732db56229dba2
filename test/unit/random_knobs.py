"""Random settings of every knob of every pipeline, and steps left out, for payloads of unlike kinds and small sizes."""

from __future__ import annotations

import dataclasses
import random
import re
from dataclasses import dataclass

import pair_payloads
from producer_payloads import ProducerPayload
from quantized_payloads import QuantizedPayload
from random_programs import Writer
from stepladder.payload.writing import matmul_text
from stepladder.pipeline import library
from stepladder.pipeline.definition import KnobValue, Pipeline

PIPELINES = (
    *("wgmma",) * 6,
    *("mma_sync",) * 3,
    "wmma",
    "wgmma_multistage",
    "wgmma_single_stage",
    "xetile_wgmma",
    "xetile_mma_sync",
)
WARPS = {"block_m": (16, 32, 64), "block_n": (16, 32, 64), "block_k": (16, 32), "warp_m": (16, 32), "warp_n": (16, 32)}
TILES = {"block_m": (64, 128), "block_n": (8, 16, 24, 64, 72), "block_k": (16, 32, 64), "consumer_warpgroups": (1, 2)}
# Operands, sums and C
TYPES = (
    ("f16", "f16", "f32", "f32"),
    ("f16", "f16", "f32", "f16"),
    ("f16", "f16", "f16", "f16"),
    ("bf16", "bf16", "f32", "bf16"),
    ("f32", "f32", "f32", "f32"),
    ("i8", "i8", "i32", "i32"),
    ("f8E4M3FN", "f8E4M3FN", "f32", "f32"),
    ("f8E5M2", "f8E5M2", "f32", "f16"),
    ("f8E4M3FN", "f8E5M2", "f32", "bf16"),
)
KINDS = (*("matmul",) * 3, *("program",) * 2, "view", "pair", "producer", "quantized")
ODD = (1, 2, 3, 5, 7, 11, 13, 17, 31, 37, 61, 67, 97, 101, 127, 131)
EVEN = (8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 104, 120, 128, 136, 144)


@dataclass(frozen=True)
class Case:
    """A payload, and the request that compiles it."""

    kind: str
    text: str
    pipeline: str
    knobs: dict[str, KnobValue]
    without: tuple[str, ...]


def extent(drawn: random.Random, odd: float) -> int:
    """Returns a size; `odd` is the probability of one that no vector divides."""
    return drawn.choice(ODD if drawn.random() < odd else EVEN)


def settings(drawn: random.Random, pipeline: Pipeline) -> dict[str, KnobValue]:
    """Returns values of knobs: tiles are small, and more or less of the others are drawn.

    Args:
        drawn: draws them.
        pipeline: whose knobs are set.
    """
    small = TILES if "wgmma" in pipeline.name else WARPS
    share, wild = drawn.choice((0.1, 0.25, 0.5, 1.0)), drawn.random() < 0.2
    chosen: dict[str, KnobValue] = {}
    for name, knob in pipeline.knobs.items():
        if name == "target":
            chosen[name] = drawn.choice(knob.options)
        elif name == "persistent_blocks":
            chosen[name] = drawn.choice((0, 1, 2, 3, 4, 5, 6, 8, 132))
        elif knob.multiple_of is not None:
            if drawn.random() < share:
                chosen[name] = knob.multiple_of * drawn.choice((0, 1, 2, 3, 7))
        elif name in small and not wild:
            chosen[name] = drawn.choice([value for value in small[name] if value in knob.options])
        elif drawn.random() < share:
            chosen[name] = drawn.choice(knob.options)
    return chosen


def few_rows(drawn: random.Random) -> dict[str, KnobValue]:
    """Returns knobs of `wgmma` as products of few rows have them: splits, early weights, tiles of any rows.

    Args:
        drawn: draws them.
    """
    knobs: dict[str, KnobValue] = {
        "swap_operands": drawn.random() < 0.5,
        "block_m": drawn.choice((64, 64, 128, 8 * drawn.randrange(1, 20))),
        "block_n": drawn.choice((64, 8 * drawn.randrange(1, 10))),
        "block_k": drawn.choice((16, 32, 64, 128)),
        "stages": drawn.randrange(1, 7),
        "consumer_warpgroups": drawn.choice((1, 1, 2)),
        "epilogue_stages": drawn.choice((1, 2, 3, 4)),
    }
    if drawn.random() < 0.5:
        knobs |= {"split_k": drawn.randrange(2, 9), "persistent_blocks": 0, "epilogue": "registers"}
        knobs["split_k_workspace"] = drawn.choice(("cluster", "cluster", "memory"))
    else:
        knobs |= {"persistent_blocks": drawn.choice((0, 1, 2, 3, 5))}
        knobs["epilogue"] = drawn.choice(("tma", "registers", "rows"))
        rare = {"schedule": "pingpong", "cluster_m": 2, "cluster_n": 2, "store_threads": 32, "stagger": 2}
        knobs |= {name: value for name, value in rare.items() if drawn.random() < 0.25}
    if drawn.random() < 0.5:
        knobs["early_weights"] = True
    elif drawn.random() < 0.4:
        knobs["prefetch_steps"] = drawn.choice((1, 2, 4, 32))
    others = {"kept_weights": drawn.randrange(16), "min_blocks_per_sm": 2, "launch_trigger": "exit"}
    others |= {"elect_producer": True, "dependent_launch": False, "producers": "registers"}
    return knobs | {name: value for name, value in others.items() if drawn.random() < 0.3}


def _view(drawn: random.Random, m: int, n: int, k: int) -> str:
    """Returns a matmul of parts of buffers: rows with a pitch, which begin anywhere."""
    inputs, stored = drawn.choice((("f16", "f32"), ("bf16", "f32"), ("f16", "f16"), ("f32", "f32"), ("i8", "i32")))
    sums = stored if stored != "f16" else "f32"
    columns = {role: drawn.random() < 0.4 for role in "ab"}
    shapes = {
        "a": (k, m) if columns["a"] else (m, k),
        "b": (n, k) if columns["b"] else (k, n),
        "c": (m, n),
    }
    types = {}
    for role, (rows, width) in shapes.items():
        element = stored if role == "c" else inputs
        pitch, offset = width + drawn.choice((0, 0, 1, 3, 8, 16)), drawn.choice((0, 0, 1, 5, 8, 64))
        layout = f", strided<[{pitch}, 1], offset: {offset}>" if drawn.random() < 0.7 else ""
        types[role] = f"memref<{rows}x{width}x{element}{layout}>", f"tensor<{rows}x{width}x{element}>"
    (a, ta), (b, tb), (c, tc) = types.values()
    total = f"tensor<{m}x{n}x{sums}>"
    maps = ", ".join(
        f"affine_map<(i, j, l) -> ({results})>"
        for results in ("l, i" if columns["a"] else "i, l", "j, l" if columns["b"] else "l, j", "i, j")
    )
    lines = [
        f"%a = bufferization.to_tensor %A restrict : {a} to {ta}",
        f"%b = bufferization.to_tensor %B restrict : {b} to {tb}",
        f"%zero = arith.constant {'0' if sums == 'i32' else '0.0'} : {sums}",
        f"%e = tensor.empty() : {total}",
        f"%z = linalg.fill ins(%zero : {sums}) outs(%e : {total}) -> {total}",
    ]
    start = "%z"
    if sums == stored and drawn.random() < 0.4:
        lines.append(f"%c = bufferization.to_tensor %C restrict writable : {c} to {tc}")
        start = "%c"
    lines.append(
        f"%p = linalg.matmul indexing_maps = [{maps}] ins(%a, %b : {ta}, {tb}) outs({start} : {total}) -> {total}"
    )
    result = "%p"
    if stored != sums:
        lines.append(f"%h = tensor.empty() : {tc}")
        lines.append(f"%r = linalg.map {{ arith.truncf }} ins(%p : {total}) outs(%h : {tc})")
        result = "%r"
    write = f"bufferization.materialize_in_destination {result} in restrict writable %C : ({tc}, {c}) -> ()"
    body = "\n  ".join([*lines, write, "return"])
    return f"func.func @view(%A: {a}, %B: {b}, %C: {c}) {{\n  {body}\n}}\n"


def _payload(drawn: random.Random, kind: str, m: int, n: int, k: int) -> str:
    if kind == "view":
        return _view(drawn, m, n, k)
    if kind == "pair":
        pair = pair_payloads.drawn(drawn)
        return dataclasses.replace(pair, m=m, n=n, k=k, batch=drawn.choice((None, None, None, 2))).text()
    if kind == "producer":
        return ProducerPayload(drawn.randrange(10**6)).text
    if kind == "quantized":
        return QuantizedPayload(drawn.randrange(10**6)).text
    batch = drawn.choice((None, None, None, None, 1, 2, 3))
    if kind == "program":
        inputs, sums = drawn.choice(
            [("f16", "f32"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("f16", "f16"), ("f32", "f32")]
        )
        writer = Writer(drawn, batch, m, n, k)
        writer.product(inputs, sums, drawn.choice(["", "a", "b", "b", "ab"]))
        for _ in range(drawn.choice((0, 1, 2, 3))):
            writer.step()
        return writer.text()
    a_type, b_type, acc_type, c_type = drawn.choice(TYPES)
    layouts = {f"{role}_layout": drawn.choice(("row", "column")) for role in "ab"}
    if "f8" in a_type and drawn.random() < 0.7:
        layouts = {"a_layout": "row", "b_layout": "column"}
    return matmul_text(
        m,
        n,
        k,
        a_type=a_type,
        b_type=b_type,
        acc_type=acc_type,
        c_type=c_type,
        accumulate=drawn.random() < 0.4,
        batch=batch,
        broadcast="" if batch is None else drawn.choice(("", "", "a", "b")),
        **layouts,
    )


def random_case(seed: int) -> Case:
    """Returns the case of a seed, of which about a third leave out steps."""
    drawn = random.Random(seed)
    name = drawn.choice(PIPELINES)
    pipeline = library.load(name)
    kind = "matmul"
    if not name.startswith("xetile"):
        kind = drawn.choice(KINDS)
    odd = drawn.choice((0.0, 0.3, 1.0))
    m, n, k = (extent(drawn, odd) for _ in "mnk")
    if drawn.random() < 0.3:
        k = drawn.choice((160, 200, 256, 320, 336))
    text = _payload(drawn, kind, m, n, k)
    optional = [step.name for step in pipeline.steps if step.optimization]
    without: tuple[str, ...] = ()
    if optional and drawn.random() < 0.3:
        without = tuple(dict.fromkeys(drawn.choices(optional, k=drawn.choice((1, 1, 2, 3)))))
    has_few_rows = name == "wgmma" and drawn.random() < 0.5
    return Case(kind, text, name, few_rows(drawn) if has_few_rows else settings(drawn, pipeline), without)


def repaired(case: Case, message: str, drawn: random.Random) -> Case | None:
    """Returns the case with another value, or the default, of a knob that a refusal names, or with a step that it names
    not left out; None where it names neither.

    Args:
        case: which is refused.
        message: of the refusal.
        drawn: draws what is changed.
    """
    words = set(re.findall(r"\w+", message))
    steps = [step for step in case.without if step in words]
    if steps and drawn.random() < 0.7:
        gone = drawn.choice(steps)
        return dataclasses.replace(case, without=tuple(step for step in case.without if step != gone))
    pipeline = library.load(case.pipeline)
    named = [name for name in pipeline.knobs if name in words and name != "target"]
    if "target" in words and drawn.random() < 0.5:
        named.append("target")
    if not named:
        return None
    name = drawn.choice(named)
    knobs = dict(case.knobs)
    if name in knobs and drawn.random() < 0.3:
        del knobs[name]
    elif pipeline.knobs[name].options:
        knobs[name] = drawn.choice(pipeline.knobs[name].options)
    else:
        knobs[name] = drawn.choice((0, 1, 2, 3, 5, 8))
    return dataclasses.replace(case, knobs=knobs)
