"""`tc.convert_to_warpgroup_mma`: a product of tiles that TMA loaded becomes products of warpgroups."""

from stepladder.extension.lib import building, tma, warpgroup_ops
from stepladder.extension.lib.dialect import Refusal, Tc, producer, transform_op
from stepladder.extension.lib.warpgroup_ops import ROWS
from stepladder.mlir.bindings import ext, ir, nvgpu, transform
from stepladder.mlir.traverse import walk


class ConvertToWarpgroupMma(Tc.Operation, name="convert_to_warpgroup_mma"):
    """Replaces the `linalg.matmul` on tiles that `tc.load_by_tma` loads by one `nvgpu.warpgroup.mma` a warpgroup.

    Each warpgroup of the block multiplies its share of the tile's rows, and keeps its sums in registers: the loop over
    k carries them. They start from zero. Behind the loop they are stored to the tile of sums, from which what follows
    reads them: for C = AB + C, which started from a copy of C, what follows then adds the tile to C.

    Operands: a handle to any op with one `gpu.launch` below.
    Refuses: element types that `wgmma` does not multiply; a tile whose rows are no multiple of 64 a warpgroup, or whose
        columns are no multiple of 8 up to 256; 8-bit and tf32 operands that do not run along k.
    """

    target: ext.Operand[transform.AnyOpType]


COLUMNS_LIMIT = 256
_SUMS = {"f16": ("f32", "f16"), "bf16": ("f32",), "f32": ("f32",), "f8E4M3FN": ("f32",), "f8E5M2": ("f32",)}
# Operands of other types are only read along k.
_TRANSPOSABLE = ("f16", "bf16")


def _slot_of(value):
    """Returns the ring's slot that an operand of the matmul is a cast of, or None."""
    cast = producer(value)
    return cast.operands[0] if cast is not None and cast.name == "builtin.unrealized_conversion_cast" else None


def _descriptor_of(launch, ring):
    """Returns the TMA descriptor that a ring is loaded by."""
    for load in walk(launch, tma.LOAD):
        view = producer(load.operands[0])
        if view is not None and view.operands[0] == ring:
            return load.operands[2]
    return None


def _check_types(product, a, b, sums) -> None:
    a_type, b_type, sum_type = (str(ir.MemRefType(value.type).element_type) for value in (a, b, sums))
    if a_type not in _SUMS or (a_type != b_type and not (a_type.startswith("f8") and b_type.startswith("f8"))):
        raise Refusal(
            product,
            f"wgmma does not multiply {a_type} by {b_type}: it takes two operands of one type, of "
            f"{', '.join(_SUMS)}, and fp8 of either kind by the other",
        )
    if sum_type not in _SUMS[a_type]:
        raise Refusal(product, f"wgmma sums products of {a_type} in {' or '.join(_SUMS[a_type])}, not in {sum_type}")


def _is_transposed(product, number: int) -> bool:
    """Tells whether A (0) or B (1) is stored transposed: A as k x m, B as n x k."""
    if "indexing_maps" not in product.attributes:
        return False
    first = ir.AffineMapAttr(product.attributes["indexing_maps"][number]).value.results[0]
    return first != ir.AffineExpr.get_dim(0 if number == 0 else 2)


def _operand_type(type_):
    """Returns the type that wgmma reads elements as: f32 is multiplied as tf32."""
    return ir.Type.parse("tf32") if str(type_) == "f32" else type_


def _descriptor(slot, map_, rows: int, columns: int):
    type_ = ir.MemRefType(slot.type)
    element_type = _operand_type(type_.element_type)
    result = ir.Type.parse(
        f"!nvgpu.warpgroup.descriptor<tensor = memref<{rows}x{columns}x{element_type}, {tma.WORKGROUP}>>"
    )
    return warpgroup_ops.generate_descriptor(result, slot, map_)


def _own(share: int, warpgroups: int):
    """Returns the first of a warpgroup's rows, or other units of which it has `share`."""
    return building.times(building.warpgroup_number(), share) if warpgroups > 1 else 0


def _rows_of_warpgroup(slot, warpgroups: int, share: int, transposed: bool):
    """Returns the part of A's tile that a warpgroup multiplies: rows of every box, or whole boxes where A is k x m."""
    boxes, rows, columns = ir.MemRefType(slot.type).shape
    if transposed:
        return building.view(slot, [_own(share // columns, warpgroups), 0, 0], [share // columns, rows, columns])
    return building.view(slot, [0, _own(share, warpgroups), 0], [boxes, share, columns])


def _loop_over_k(product):
    """Returns the loop that a product sums in, or None where k has one step: then C is written beside it."""
    loops = building.loops_around(product)
    others = [user for user, _ in building.linalg_uses(product.operands[2]) if user != product]
    return loops[-1] if loops and all(other.block != product.block for other in others) else None


def _start_from_zero(sums, rewriter) -> bool:
    """Removes what initialises the tile of sums; returns whether it was a copy of C."""
    was_copied = False
    for user, number in building.linalg_uses(sums):
        is_copy_of_c = user.name == "linalg.copy" and number == 1
        if user.name == "linalg.fill" or is_copy_of_c:
            was_copied |= is_copy_of_c
            rewriter.erase_op(user)
    return was_copied


def _add_to_destination(sums, rewriter) -> None:
    """Replaces the copy of the tile of sums to C by an addition to C."""
    for user, number in building.linalg_uses(sums):
        if user.name == "linalg.copy" and number == 0:
            with ir.InsertionPoint(user), user.location:
                building.add_buffers(user.operands[0], user.operands[1], user.operands[1])
            rewriter.erase_op(user)


@transform_op(ConvertToWarpgroupMma)
def convert_to_warpgroup_mma(payload, op, rewriter) -> None:
    """Rewrites the product in the one launch below `payload`; see the op."""
    launch = building.find_launch(payload)
    products = walk(launch, "linalg.matmul")
    if len(products) != 1:
        raise Refusal(launch, f"expected one linalg.matmul in the launch, found {len(products)}")
    product = products[0]
    casts = list(product.operands)[:2]
    a, b = (_slot_of(value) for value in casts)
    sums = product.operands[2]
    if a is None or b is None:
        raise Refusal(product, "its operands are not loaded by TMA")
    _check_types(product, a, b, sums)
    m, n = ir.MemRefType(sums.type).shape
    transposed = [_is_transposed(product, number) for number in (0, 1)]
    k = ir.MemRefType(casts[0].type).shape[0 if transposed[0] else 1]
    warpgroups = building.launch_sizes(launch, building.BLOCK)[0] // building.WARPGROUP
    share = m // warpgroups
    if m % (ROWS * warpgroups):
        raise Refusal(product, f"a tile of {m} rows for {warpgroups} warpgroups: each takes a multiple of {ROWS} rows")
    if n % 8 or n > COLUMNS_LIMIT:
        raise Refusal(product, f"a tile of {n} columns: wgmma takes multiples of 8 up to {COLUMNS_LIMIT}")
    # A is read along k where its rows are rows of A; B where its rows are columns of B.
    strided = [matrix for matrix, along_m_or_n in (("A", transposed[0]), ("B", not transposed[1])) if along_m_or_n]
    element_type = str(ir.MemRefType(a.type).element_type)
    if strided and element_type not in _TRANSPOSABLE:
        raise Refusal(
            product,
            f"wgmma reads {element_type} only along k: A must be row-major and B column-major, and "
            f"{' and '.join(strided)} {'is' if len(strided) == 1 else 'are'} not",
        )

    adds = _start_from_zero(sums, rewriter)
    if adds:
        _add_to_destination(sums, rewriter)
    loop = _loop_over_k(product)
    accumulator = ir.Type.parse(
        f"!nvgpu.warpgroup.accumulator<fragmented = vector<{share}x{n}x{ir.MemRefType(sums.type).element_type}>>"
    )
    with ir.InsertionPoint(loop or product), product.location:
        carried = nvgpu.warpgroup_mma_init_accumulator(accumulator)
    if loop is not None:
        loop, (carried,) = building.with_carried(loop, [carried], rewriter)
    with ir.InsertionPoint(product), product.location:
        part = _rows_of_warpgroup(a, warpgroups, share, transposed[0])
        maps = [_descriptor_of(launch, producer(slot).operands[0]) for slot in (a, b)]
        result = warpgroup_ops.multiply(
            _descriptor(part, maps[0], share, k),
            _descriptor(b, maps[1], k, n),
            carried,
            in_flight=0,
            transpose_a=transposed[0],
            transpose_b=not transposed[1],
        )
    behind = result.owner.operation
    rewriter.erase_op(product)
    for cast in casts:
        rewriter.erase_op(producer(cast))
    if loop is not None:
        building.extend_yield(loop, [result])
        result, behind = list(loop.results)[-1], loop
    with ir.InsertionPoint.after(behind), behind.location:
        own = building.view(sums, [_own(share, warpgroups), 0], [share, n])
        warpgroup_ops.store(result, own, one_warpgroup=warpgroups == 1)
