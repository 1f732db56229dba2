"""`tc.convert_to_warpgroup_mma`: converts a matmul of tiles that TMA loads to warpgroup MMA ops."""

from stepladder.extension.lib import launches, memory, threads, tma, warpgroup_ops
from stepladder.extension.lib.arithmetic import times
from stepladder.extension.lib.control_flow import add_iter_args, enclosing_loops, extend_yield
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.warpgroup_ops import MMA_ROWS
from stepladder.mlir import types
from stepladder.mlir.bindings import ir
from stepladder.mlir.linalg_ops import indexing_maps
from stepladder.mlir.traverse import defining_op, producer, walk


class ConvertToWarpgroupMma(Tc.Operation, name="convert_to_warpgroup_mma"):
    """Replaces the `linalg.matmul` of tiles that `tc.load_by_tma` loads by one `nvgpu.warpgroup.mma` per warpgroup.

    Each warpgroup of the block computes its slice of the tile's rows. Its accumulator is carried through the loop over
    k in registers, starts from zero, and is stored to the accumulator tile after the loop. For C = AB + C, the
    initialization of the accumulator tile from C is removed, and the copy of the tile to C becomes an addition to C.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: element types that `wgmma` does not multiply; a tile whose rows are not a multiple of 64 per warpgroup, or
        whose columns are not a multiple of 8 up to 256; 8-bit and tf32 operands that are not contiguous along k.
    """

    target: Handle


COLUMNS_LIMIT = 256
_ACC_TYPES = {
    "f16": ("f32", "f16"),
    "bf16": ("f32",),
    "f32": ("f32",),
    "f8E4M3FN": ("f32",),
    "f8E5M2": ("f32",),
    "i8": ("i32",),
}
# wgmma reads operands of other types along k only.
_TRANSPOSABLE = ("f16", "bf16")


def _stage_of(value: ir.Value) -> ir.Value | None:
    """Returns the stage of the pipeline that an operand of the matmul is a cast of, or None."""
    cast = producer(value)
    return cast.operands[0] if cast is not None and cast.name == "builtin.unrealized_conversion_cast" else None


def _descriptor_of(launch: ir.Operation, buffer: ir.Value) -> ir.Value:
    """Returns the TMA descriptor that the stages in `buffer` are loaded by."""
    for load in walk(launch, tma.LOAD):
        if defining_op(load.operands[0]).operands[0] == buffer:
            return load.operands[2]
    raise Refusal(launch, "a tile of the pipeline is not loaded by TMA")


def _check_types(matmul: ir.Operation, a: ir.Value, b: ir.Value, accumulator: ir.Value) -> None:
    a_type, b_type, acc_type = (types.name_of(ir.MemRefType(value.type).element_type) for value in (a, b, accumulator))
    if a_type not in _ACC_TYPES or (a_type != b_type and not (a_type.startswith("f8") and b_type.startswith("f8"))):
        raise Refusal(
            matmul,
            f"wgmma does not multiply {a_type} by {b_type}: expected two operands of one type, of "
            f"{', '.join(_ACC_TYPES)}, and either fp8 type by the other",
        )
    if acc_type not in _ACC_TYPES[a_type]:
        accepted_types = " or ".join(_ACC_TYPES[a_type])
        raise Refusal(matmul, f"wgmma accumulates products of {a_type} in {accepted_types}, not in {acc_type}")


def _is_transposed(matmul: ir.Operation, number: int) -> bool:
    """Returns whether A (0) or B (1) is stored transposed: A as k x m, B as n x k."""
    return indexing_maps(matmul)[number].results[0] != ir.AffineExpr.get_dim(0 if number == 0 else 2)


def _operand_type(type_: ir.Type) -> ir.Type:
    """Returns the type that wgmma reads elements as: f32 operands are read as tf32."""
    return ir.Type.parse("tf32") if types.name_of(type_) == "f32" else type_


def _descriptor(tile: ir.Value, tensor_map: ir.Value, rows: int, columns: int) -> ir.Value:
    element_type = _operand_type(ir.MemRefType(tile.type).element_type)
    type_ = types.matrix_descriptor(rows, columns, element_type)
    return warpgroup_ops.generate_descriptor(type_, tile, tensor_map)


def _first_of_warpgroup(slice_: int, warpgroups: int) -> int | ir.Value:
    """Returns the first row, or box, of a warpgroup's slice of `slice_` rows or boxes."""
    return times(threads.warpgroup_id(), slice_) if warpgroups > 1 else 0


def _slice_of_a(stage: ir.Value, warpgroups: int, slice_: int, is_transposed: bool) -> ir.Value:
    """Returns the slice of A's tile that a warpgroup reads: rows of every box, or whole boxes where A is k x m."""
    boxes, rows, columns = ir.MemRefType(stage.type).shape
    if is_transposed:
        count = slice_ // columns
        return memory.subview(stage, [_first_of_warpgroup(count, warpgroups), 0, 0], [count, rows, columns])
    return memory.subview(stage, [0, _first_of_warpgroup(slice_, warpgroups), 0], [boxes, slice_, columns])


def _loop_over_k(matmul: ir.Operation) -> ir.Operation | None:
    """Returns the loop over k around a matmul, or None where k has one step: then C is written next to it."""
    loops = enclosing_loops(matmul)
    others = [user for user, _ in memory.linalg_uses(matmul.operands[2]) if user != matmul]
    return loops[-1] if loops and all(other.block != matmul.block for other in others) else None


def _erase_initialization(tile: ir.Value, rewriter: Rewriter) -> bool:
    """Erases the ops that initialize the accumulator tile; returns whether one of them copies C."""
    copies_c = False
    for user, number in memory.linalg_uses(tile):
        is_copy_of_c = user.name == "linalg.copy" and number == 1
        if user.name == "linalg.fill" or is_copy_of_c:
            copies_c |= is_copy_of_c
            rewriter.erase_op(user)
    return copies_c


def _add_to_c(tile: ir.Value, rewriter: Rewriter) -> None:
    """Replaces the copy of the accumulator tile to C by an addition to C."""
    for user, number in memory.linalg_uses(tile):
        if user.name == "linalg.copy" and number == 0:
            with ir.InsertionPoint(user), user.location:
                memory.add_buffers(user.operands[0], user.operands[1], user.operands[1])
            rewriter.erase_op(user)


def _check_tile(matmul: ir.Operation, m: int, n: int, warpgroups: int) -> None:
    """Refuses tiles that warpgroups cannot divide into instructions."""
    if m % (MMA_ROWS * warpgroups):
        raise Refusal(
            matmul, f"a tile of {m} rows for {warpgroups} warpgroups: each takes a multiple of {MMA_ROWS} rows"
        )
    if n % 8 or n > COLUMNS_LIMIT:
        raise Refusal(matmul, f"a tile of {n} columns: wgmma takes multiples of 8 up to {COLUMNS_LIMIT}")


def _check_layouts(matmul: ir.Operation, element_type: str, are_transposed: list[bool]) -> None:
    """Refuses operands of other than 16 bits that are not contiguous along k, as row-major A and column-major B are."""
    strided_operands = [
        matrix for matrix, along_m_or_n in (("A", are_transposed[0]), ("B", not are_transposed[1])) if along_m_or_n
    ]
    if strided_operands and element_type not in _TRANSPOSABLE:
        raise Refusal(
            matmul,
            f"wgmma reads {element_type} only along k: A must be row-major and B column-major, and "
            f"{' and '.join(strided_operands)} {'is' if len(strided_operands) == 1 else 'are'} not; "
            "pipeline wgmma transposes them",
        )


@transform_op(ConvertToWarpgroupMma)
def convert_to_warpgroup_mma(payload: ir.Operation, op: ConvertToWarpgroupMma, rewriter: Rewriter) -> None:
    """Rewrites the matmul in the one launch below `payload`; see the op."""
    launch = launches.find_launch(payload)
    matmuls = walk(launch, "linalg.matmul")
    if len(matmuls) != 1:
        raise Refusal(launch, f"expected one linalg.matmul in the launch, found {len(matmuls)}")
    matmul = matmuls[0]
    casts = list(matmul.operands)[:2]
    a, b = (_stage_of(value) for value in casts)
    tile = matmul.operands[2]
    if a is None or b is None:
        raise Refusal(matmul, "its operands are not loaded by TMA")
    _check_types(matmul, a, b, tile)
    m, n = ir.MemRefType(tile.type).shape
    are_transposed = [_is_transposed(matmul, number) for number in (0, 1)]
    k = ir.MemRefType(casts[0].type).shape[0 if are_transposed[0] else 1]
    warpgroups = launches.launch_sizes(launch, launches.BLOCK)[0] // threads.WARPGROUP
    _check_tile(matmul, m, n, warpgroups)
    _check_layouts(matmul, types.name_of(ir.MemRefType(a.type).element_type), are_transposed)
    slice_ = m // warpgroups
    if _erase_initialization(tile, rewriter):
        _add_to_c(tile, rewriter)
    loop = _loop_over_k(matmul)
    with ir.InsertionPoint(loop or matmul), matmul.location:
        acc_type = ir.MemRefType(tile.type).element_type
        accumulator = warpgroup_ops.init_accumulator(types.accumulator(slice_, n, acc_type))
    if loop is not None:
        loop, (accumulator,) = add_iter_args(loop, [accumulator], rewriter)
    with ir.InsertionPoint(matmul), matmul.location:
        a_slice = _slice_of_a(a, warpgroups, slice_, are_transposed[0])
        a_map, b_map = (_descriptor_of(launch, defining_op(stage).operands[0]) for stage in (a, b))
        result = warpgroup_ops.multiply_accumulate(
            _descriptor(a_slice, a_map, slice_, k),
            _descriptor(b, b_map, k, n),
            accumulator,
            in_flight=0,
            transpose_a=are_transposed[0],
            transpose_b=not are_transposed[1],
        )
    last = defining_op(result)
    rewriter.erase_op(matmul)
    for cast in casts:
        rewriter.erase_op(defining_op(cast))
    if loop is not None:
        extend_yield(loop, [result])
        result, last = list(loop.results)[-1], loop
    with ir.InsertionPoint.after(last), last.location:
        own = memory.subview(tile, [_first_of_warpgroup(slice_, warpgroups), 0], [slice_, n])
        warpgroup_ops.store_accumulator(result, own, one_warpgroup=warpgroups == 1)
