"""Addresses of tiles in shared memory, as the instructions and TMA expect them."""

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from conftest import examples
from indices import index_of
from stepladder.extension.lib import launches, tma
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk
from stepladder.payload.writing import matmul_text
from stepladder.pipeline.context import mlir_context
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import run_pipeline
from stepladder.runtime.reference import Operation
from tile_blocks import QUICK, mark

SWIZZLE_MODES = {1: 128, 2: 64, 3: 32}


def constant_of(value: ir.Value) -> int | None:
    source = value.owner.operation
    return ir.IntegerAttr(source.attributes["value"]).value if source.name == "arith.constant" else None


def descriptor_of(value: ir.Value) -> tuple[int, int]:
    """Returns the constant bits of a matrix descriptor and the units that are added to its address."""
    source, added = value.owner.operation, 0
    if source.name == "arith.addi":
        added = constant_of(source.operands[1])
        source = source.operands[0].owner.operation
    assert source.name == "arith.ori"
    return constant_of(source.operands[1]) % 2**64, added


def addresses(boxes: int, rows: int, columns: int, bytes_: int) -> np.ndarray:
    """Returns the byte address of every element of a tile of boxes side by side: rows x (boxes * columns)."""
    table = np.arange(boxes * rows * columns).reshape(boxes, rows, columns) * bytes_
    return np.concatenate(list(table), axis=1)


def read_by_hardware(bits: int, added: int, bytes_: int, extent: int, depth: int, along_k: bool) -> int:
    """Returns the addresses, before the swizzle, that an instruction reads: of `extent` rows or columns x `depth` of k.

    Source: PTX ISA, strides of wgmma's matrix descriptors: rows of the swizzle's width, in groups of eight.
    """
    swizzle = SWIZZLE_MODES[bits >> 62]
    leading, stride = (bits >> 16 & 0x3FFF) * 16, (bits >> 32 & 0x3FFF) * 16
    outer, inner = np.meshgrid(np.arange(extent), np.arange(depth), indexing="ij")
    if along_k:
        return 16 * added + outer // 8 * stride + outer % 8 * swizzle + inner * bytes_
    width = swizzle // bytes_
    return 16 * added + outer // width * leading + inner // 8 * stride + inner % 8 * swizzle + outer % width * bytes_


@settings(max_examples=examples(40), **QUICK)
@given(
    st.sampled_from(["f16", "bf16", "f32", "f8E4M3FN"]),
    st.sampled_from([64, 128, 192, 256]),
    st.integers(1, 32).map(lambda eights: 8 * eights),
    st.sampled_from([16, 32, 64, 128]),
    st.integers(1, 3),
    st.data(),
)
def test_descriptors_address_what_the_instruction_multiplies(
    type_: str, block_m: int, block_n: int, block_k: int, warpgroups: int, data: st.DataObject
) -> None:
    bytes_ = {"f16": 2, "bf16": 2, "f32": 4, "f8E4M3FN": 1}[type_]
    a_layout, b_layout = "row", "column"
    if bytes_ == 2:
        a_layout, b_layout = (data.draw(st.sampled_from(["row", "column"]), name) for name in "ab")
    assume(block_m % (64 * warpgroups) == 0 and block_m * block_n // warpgroups < 255 * 128)
    assume(block_k * bytes_ % 32 == 0 and (block_m + block_n + 32) * block_k * bytes_ < 220000)
    knobs = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "consumer_warpgroups": warpgroups}
    knobs |= {"allow_tf32": True} if type_ == "f32" else {}
    with mlir_context():
        text = matmul_text(
            2 * block_m, 2 * block_n, 2 * block_k, a_type=type_, b_type=type_, a_layout=a_layout, b_layout=b_layout
        )
        run = run_pipeline(text, "matmul.mlir", Request("wgmma_single_stage", knobs, through="lower_to_wgmma"))
        products = [
            tuple(descriptor_of(value) for value in list(op.operands)[1:3])
            for op in walk(run.module, "nvvm.wgmma.mma_async")
        ]
    share, depth = block_m // warpgroups, 32 // bytes_
    assert len(products) == share // 64 * (block_k // depth)
    tables = {}
    for name, along_k, extent in (("a", a_layout == "row", block_m), ("b", b_layout == "column", block_n)):
        rows, columns = (extent, block_k) if along_k else (block_k, extent)
        if name == "b" and not along_k:
            columns = tma.whole_boxes(columns * bytes_) // bytes_
        width = next(swizzle for swizzle in (128, 64, 32) if columns * bytes_ % swizzle == 0) // bytes_
        table = addresses(columns // width, rows, width, bytes_)
        tables[name] = along_k, width * bytes_, table if along_k else table.T
    for number, pair in enumerate(products):
        block, step = divmod(number, block_k // depth)
        for (name, (along_k, swizzle, table)), (bits, added), extent in zip(tables.items(), pair, (64, block_n)):
            first = 64 * block if name == "a" else 0
            assert SWIZZLE_MODES[bits >> 62] == swizzle
            wanted = table[first : first + extent, step * depth : (step + 1) * depth]
            read = read_by_hardware(bits, added, bytes_, extent, depth, along_k)
            assert (read == wanted).all(), (name, block, step)


def exchanged(row: int, unit: int, swizzle: int) -> int:
    """Returns where TMA expects 16-byte unit `unit` of a row: exchanged by bits of the address, 128 bytes a line."""
    line = row * swizzle // 128
    return unit ^ line % 8 & swizzle // 16 - 1


@settings(max_examples=examples(12), **QUICK)
@given(
    st.sampled_from([32, 64, 96, 128, 160, 256]), st.sampled_from([64, 128]), st.sampled_from(["f32", "f16", "bf16"])
)
@example(96, 128, "f16")
@example(160, 64, "f16")
def test_sums_lie_in_boxes_as_tma_expects_them(block_n: int, block_m: int, c_type: str) -> None:
    """Every element of a box is written once, by the thread that holds it, to where TMA looks for it."""
    assume(block_m * block_n < 128 * 255)  # accumulators that fit registers
    knobs = {"block_m": block_m, "block_n": block_n, "consumer_warpgroups": 1, "persistent_blocks": 0, "stages": 1}
    with mlir_context():
        run = run_pipeline(
            matmul_text(256, 2 * block_n, 256, c_type=c_type, accumulate=False),
            "matmul.mlir",
            Request("wgmma", knobs, through="tma_store_epilogue"),
        )
        launch = launches.find_launch(run.module)
        boxes = next(op for op in walk(launch, "memref.alloc") if mark(op) == "c")
        rows, width = ir.MemRefType(boxes.results[0].type).shape[2:]
        bytes_ = 4 if c_type == "f32" else 2
        (view,) = {op.operands[0].owner.operation for op in walk(launch, tma.STORE)[:1]}
        written = {}
        for thread in range(128):
            known = {"gpu.thread_id x": thread}
            warp, lane = divmod(thread, 32)
            for op in walk(launch, "vector.store"):
                if op.operands[1].owner.operation == view:
                    block, fragment, half = position(op.operands[0])
                    held = 64 * block + 16 * warp + 8 * half + lane // 4, 8 * fragment + 2 * (lane % 4)
                    row, column = (index_of(operand, known) for operand in list(op.operands)[2:4])
                    for side in (0, 1):
                        written.setdefault((row, column + side), []).append((held[0], held[1] + side))
            for op in walk(launch, "nvvm.stmatrix"):
                offset, place = address_in(op.operands[0], view, known)
                if offset is None:
                    continue
                # Lane l addresses a row of matrix l / 8, of which lanes hold two neighbours each.
                row, column = divmod(place, width)
                matrix = lane // 8
                block, fragment, half = position(register_of(op.operands[1 + matrix]))
                for held in range(8):
                    written.setdefault((row, column + held), []).append(
                        (64 * block + 16 * warp + 8 * half + lane % 8, 8 * fragment + held)
                    )
    per_unit = 16 // bytes_
    # Boxes are used in rotation: what is written to the first of them later lies `width` times a number further right.
    written = {place: [held for held in all_held if held[1] < width] for place, all_held in written.items()}
    wanted = {
        (row, exchanged(row, column // per_unit, width * bytes_) * per_unit + column % per_unit): [(row, column)]
        for row in range(rows)
        for column in range(width)
    }
    assert written == wanted


def position(value: ir.Value) -> list[int]:
    """Returns which pair of the held accumulators a value is, rounded or not."""
    source = value.owner.operation
    while source.name != "vector.extract":
        source = source.operands[0].owner.operation
    return list(ir.DenseI64ArrayAttr(source.attributes["static_position"]))


def register_of(value: ir.Value) -> ir.Value:
    """Returns the pair of accumulators that a register of `stmatrix` is made of."""
    return value.owner.operation.operands[0].owner.operation.operands[0]


def address_in(pointer: ir.Value, view: Operation, known: dict[str, int]) -> tuple[int | None, int | None]:
    """Returns where an address lies in a view, in elements, as (0, place); (None, None) for one in another view."""
    cast = pointer.owner.operation.operands[0].owner.operation
    total = cast.operands[0].owner.operation
    for operand in total.operands:
        source = operand.owner.operation
        if source.name == "affine.apply":
            metadata = next(
                op
                for op in (inner.owner.operation for inner in source.operands)
                if op.name == "memref.extract_strided_metadata"
            )
            if metadata.operands[0] != view.results[0]:
                return None, None
            width = ir.MemRefType(view.results[0].type).element_type.width // 8
            return 0, index_of(operand, {**known, metadata.results[1]: 0}) // width
    raise AssertionError(total)
