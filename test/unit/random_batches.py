"""Random batches of matmuls: sizes, types, layouts, what is broadcast, and how the payload is written."""

from __future__ import annotations

import random
from dataclasses import dataclass

WARPS = {"block_m": 64, "block_n": 64, "block_k": 64, "warp_m": 32, "warp_n": 32}
TILES = {"block_m": 64, "block_n": 64, "block_k": 32, "consumer_warpgroups": 1}
SCHEDULES = (
    {"persistent_blocks": 0},
    {"persistent_blocks": 3},
    {"persistent_blocks": 2, "schedule": "pingpong"},
    {"persistent_blocks": 4, "cluster_m": 2},
    {"persistent_blocks": 4, "cluster_n": 2, "epilogue": "registers"},
    {"persistent_blocks": 0, "epilogue": "registers", "split_k": 2, "split_k_workspace": "memory"},
    {"persistent_blocks": 5, "raster_group": 2},
)
# A and B, sums, C
WARP_TYPES = (("f16", "f32", "f32"), ("f16", "f16", "f16"), ("bf16", "f32", "f32"), ("i8", "i32", "i32"))
WARPGROUP_TYPES = (
    ("f16", "f32", "f32"),
    ("f16", "f32", "f16"),
    ("f16", "f16", "f16"),
    ("bf16", "f32", "bf16"),
    ("f32", "f32", "f32"),
    ("f8E4M3FN", "f32", "f32"),
)


@dataclass(frozen=True)
class Batch:
    """A payload, and the pipeline and knobs that compile it."""

    text: str
    pipeline: str
    knobs: dict[str, int | str]


def random_batch(seed: int) -> Batch:
    """Returns the batch of a seed."""
    chosen = random.Random(seed)
    pipeline = chosen.choice(("mma_sync", "wmma", "wgmma", "wgmma"))
    layouts = [chosen.choice(("row", "column")) for _ in "ab"]
    if pipeline == "wgmma":
        m, n = (chosen.choice((16, 48, 64, 80, 128, 144)) for _ in "mn")
        k = chosen.choice((32, 64, 80, 144))
        types = chosen.choice(WARPGROUP_TYPES)
        knobs = {**TILES, **chosen.choice(SCHEDULES)}
        if types[0] not in ("f16", "bf16"):  # contiguous along k
            layouts = ["row", "column"]
        if types[0] == "f32":
            knobs["allow_tf32"] = True
        if "split_k" in knobs:
            k = 144
        if "cluster_m" in knobs:  # as many tiles as a cluster has, or a ragged number
            m = max(m, 80)
        if "cluster_n" in knobs:
            n = max(n, 80)
    else:
        m, n, k = (chosen.choice((64, 128)) for _ in "mnk")
        types = WARP_TYPES[chosen.randrange(2)] if pipeline == "wmma" else chosen.choice(WARP_TYPES)
        knobs = WARPS
    batch = chosen.choice((1, 2, 3, 5))
    broadcast = chosen.choice(("", "", "a", "b"))
    accumulate = types[1] == types[2] and chosen.random() < 0.5
    form = chosen.choice(("normal", "tensors", "buffers") if types[1] == types[2] else ("normal", "tensors"))
    return Batch(_text(form, (batch, m, n, k), types, layouts, broadcast, accumulate), pipeline, knobs)


def _text(
    form: str,
    sizes: tuple[int, int, int, int],
    types: tuple[str, str, str],
    layouts: list[str],
    broadcast: str,
    accumulate: bool,
) -> str:
    batch, m, n, k = sizes
    operands, sums, stored = types
    shapes, maps = [], []
    for role, loops, layout in zip("abc", (("m", "k"), ("k", "n"), ("m", "n")), [*layouts, "row"]):
        own = [*(() if role == broadcast else ("b",)), *(loops if layout == "row" else loops[::-1])]
        extents = {"b": batch, "m": m, "n": n, "k": k}
        shapes.append("x".join(str(extents[loop]) for loop in own))
        maps.append(f"affine_map<(b, m, n, k) -> ({', '.join(own)})>")
    a, b, c = (f"{shape}x{type_}" for shape, type_ in zip(shapes, (operands, operands, stored)))
    kind = "memref" if form == "buffers" else "tensor"
    lines, read = [], {"A": "%A", "B": "%B", "C": "%C"}
    if form == "normal":
        for name, type_ in (("A", a), ("B", b), ("C", c)):
            read[name] = f"%{name.lower()}"
            writable = " writable" if name == "C" else ""
            types_text = f"memref<{type_}> to tensor<{type_}>"
            lines.append(f"{read[name]} = bufferization.to_tensor %{name} restrict{writable} : {types_text}")
    start, acc = read["C"], f"{shapes[2]}x{sums}"
    if sums != stored:
        lines.append(f"%empty = tensor.empty() : tensor<{acc}>")
        start = "%empty"
    if not accumulate:
        lines.append(f"%zero = arith.constant {'0' if sums[0] == 'i' else '0.0'} : {sums}")
        result = "" if kind == "memref" else "%start = "
        after = "" if kind == "memref" else f" -> tensor<{acc}>"
        lines.append(f"{result}linalg.fill ins(%zero : {sums}) outs({start} : {kind}<{acc}>){after}")
        start = start if kind == "memref" else "%start"
    is_named = not broadcast or layouts["ab".index(broadcast)] == "row"
    lines.append(
        ("" if kind == "memref" else "%product = ")
        + f"linalg.{'batch_matmul' if is_named else 'contract'} indexing_maps = [{', '.join(maps)}] "
        + f"ins({read['A']}, {read['B']} : {kind}<{a}>, {kind}<{b}>) outs({start} : {kind}<{acc}>)"
        + ("" if kind == "memref" else f" -> tensor<{acc}>")
    )
    value = "%product"
    if sums != stored:
        identity = "affine_map<(b, i, j) -> (b, i, j)>"
        lines.append(
            f"%rounded = linalg.generic {{indexing_maps = [{identity}, {identity}], "
            'iterator_types = ["parallel", "parallel", "parallel"]} '
            f"ins(%product : tensor<{acc}>) outs({read['C']} : tensor<{c}>) {{\n"
            f"  ^bb0(%x: {sums}, %y: {stored}):\n    %r = arith.truncf %x : {sums} to {stored}\n"
            f"    linalg.yield %r : {stored}\n  }} -> tensor<{c}>"
        )
        value = "%rounded"
    result, end = "", "return"
    if form == "normal":
        lines.append(
            f"bufferization.materialize_in_destination {value} in restrict writable %C "
            f": (tensor<{c}>, memref<{c}>) -> ()"
        )
    elif form == "tensors":
        result, end = f" -> tensor<{c}>", f"return {value} : tensor<{c}>"
    outer = "tensor" if form == "tensors" else "memref"
    signature = ", ".join(f"%{name}: {outer}<{type_}>" for name, type_ in (("A", a), ("B", b), ("C", c)))
    body = "".join(f"  {line}\n" for line in [*lines, end])
    return f"func.func @batch({signature}){result} {{\n{body}}}\n"
