"""`tc.lower_warpgroup_mma`: lowers warpgroup MMA ops to `wgmma` instructions, and accumulators to registers."""

from collections.abc import Callable

from stepladder.extension.lib.arithmetic import index, integer
from stepladder.extension.lib.control_flow import body_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.memory import strided_metadata
from stepladder.extension.lib.vector_elements import Elements
from stepladder.extension.lib.vectors import extract
from stepladder.extension.lib.warpgroup_ops import (
    INIT_ACCUMULATORS,
    MMA_ROWS,
    MMAS,
    WarpgroupMma3xtf32,
    WarpgroupMma3xtf32Registers,
    WarpgroupMmaRegisters,
    in_flight,
    swizzle_of,
)
from stepladder.extension.lib.warpgroup_registers import A_REGISTERS, STEP_BYTES, RegisterProduct, registers_type
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, llvm, memref, nvvm, vector
from stepladder.mlir.traverse import defining_op, producer, walk


class LowerWarpgroupMma(Tc.Operation, name="lower_warpgroup_mma"):
    """Replaces `nvgpu.warpgroup.*` ops by `wgmma` instructions on matrix descriptors in 64-bit registers.

    Upstream's lowering reads A along k and B along n, from tiles of 64 x 64 elements. This lowering reads both operands
    in either order, from tiles of any number of boxes, with every swizzle.

    An MMA becomes a fence, one `wgmma.mma_async` for each 64 rows and each step of 32 bytes along k, a commit, and a
    wait for all but the `waitGroup` latest MMAs. An accumulator becomes a struct of registers for each 64 rows.

    The first instruction of an MMA that starts from zero writes its registers without reading them.

    An MMA of split operands has three times as many instructions, on registers of their own that start from zero, a
    wait for all of them, and `arith.addf` for each register. Additions of accumulators are lowered alike.

    Instructions with A in registers are inline PTX, after a fence that follows the ops which make A.

    Operands: a handle to the module of an outlined kernel.
    """

    target: Handle


_CAST, _FROM_ELEMENTS = "builtin.unrealized_conversion_cast", "vector.from_elements"
_ADDRESS_MASK = 0x3FFFF  # of a shared address in a matrix descriptor
_UNIT = 16  # bytes: descriptors count addresses and offsets in them
_SWIZZLE_MODES = {128: 1, 64: 2, 32: 3}
_SWIZZLE_BIT = 62
_TYPES = {"f16": "f16", "bf16": "bf16", "tf32": "tf32", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "i8": "s8", "i32": "s32"}


class _Operand:
    """A tile of A or B as instructions address it: boxes x rows x columns, contiguous along k, or along m or n.

    Args:
        descriptor: the matrix descriptor.
        is_transposed: whether the tile is not contiguous along k.
    """

    def __init__(self, descriptor: ir.Value, is_transposed: bool) -> None:
        generate = defining_op(descriptor)
        tile = generate.operands[0]
        type_ = ir.MemRefType(tile.type)
        strides, _ = type_.get_strides_and_offset()
        self.element_bytes = types.byte_width(type_.element_type)
        self.swizzle = swizzle_of(generate)
        self.box_bytes = strides[0] * self.element_bytes
        self.along_k = not is_transposed
        with ir.InsertionPoint(generate), generate.location:
            self.value = self._describe(tile)

    def _describe(self, tile: ir.Value) -> ir.Value:
        """Returns the matrix descriptor of the tile's first instruction, an i64.

        Source: PTX ISA, "Matrix Descriptor Format" of wgmma.
        """
        i64 = ir.IntegerType.get_signless(64)
        base, offset = strided_metadata(tile)
        start = memref.extract_aligned_pointer_as_index(base)
        address = arith.addi(start, arith.muli(offset, index(self.element_bytes)))
        address_bits = arith.andi(arith.index_cast(i64, address), integer(_ADDRESS_MASK, 64))
        # Stride between groups of eight rows, and between boxes, for tiles that are contiguous along m or n.
        constant_fields = (8 * self.swizzle // _UNIT) << 32 | (self.box_bytes // _UNIT) << 16
        constant_fields |= _SWIZZLE_MODES[self.swizzle] << _SWIZZLE_BIT
        constant_fields -= (constant_fields >> 63) << 64
        return arith.ori(arith.shrui(address_bits, integer(4, 64)), integer(constant_fields, 64))

    def offset(self, block: int, step: int) -> int:
        """Returns the offset in bytes of the operand of an instruction in the tile.

        Args:
            block: of 64 rows of the accumulator.
            step: of k.
        """
        if self.along_k:
            box, within = divmod(step * STEP_BYTES, self.swizzle)
            return block * MMA_ROWS * self.swizzle + box * self.box_bytes + within
        rows = step * STEP_BYTES // self.element_bytes
        boxes = block * MMA_ROWS * self.element_bytes // self.swizzle
        return boxes * self.box_bytes + rows * self.swizzle

    def at(self, block: int, step: int) -> ir.Value:
        """Returns the matrix descriptor of the operand of an instruction; see `offset`."""
        offset = self.offset(block, step) // _UNIT
        return arith.addi(self.value, integer(offset, 64)) if offset else self.value


def _attribute(text: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#nvvm.{text}")


class _Product:
    """The product of two tiles, as instructions.

    Args:
        mma: the op.
        a, b: indices of its operands with the matrix descriptors.
    """

    def __init__(self, mma: ir.Operation, a: int = 0, b: int = 1) -> None:
        self.a = _Operand(mma.operands[a], "transposeA" in mma.attributes)
        self.b = _Operand(mma.operands[b], "transposeB" in mma.attributes)
        _, self.registers = registers_type(mma.results[0].type)
        a_tile, b_tile = (types.matrix_descriptor_tile(mma.operands[number].type) for number in (a, b))
        self.rows, k = a_tile.shape
        columns = b_tile.shape[1]
        acc_type = types.name_of(types.accumulator_vector(mma.results[0].type).element_type)
        step_k = STEP_BYTES // self.a.element_bytes
        self.steps = k // step_k
        self.shape = _attribute(f"shape<m = {MMA_ROWS}, n = {columns}, k = {step_k}>")
        names = [_TYPES[types.name_of(tile.element_type)] for tile in (a_tile, b_tile)]
        self.types = [_attribute(f"wgmma_type<{name}>") for name in (*names, _TYPES.get(acc_type, acc_type))]

    def add_to(self, sums: ir.Value, block: int, *, keeps: bool = True) -> ir.Value:
        """Returns the registers of 64 rows after all steps of k, at the current insertion point.

        Args:
            sums: the registers before.
            block: of 64 rows of the accumulator.
            keeps: whether the first step adds to the registers; else it replaces what they hold.
        """
        for step in range(self.steps):
            sums = nvvm.wgmma_mma_async(
                self.registers,
                sums,
                self.a.at(block, step),
                self.b.at(0, step),
                self.shape,
                *self.types,
                _attribute(f"wgmma_scale_out<{'one' if keeps or step else 'zero'}>"),
                _attribute("wgmma_scale_in<one>"),
                _attribute("wgmma_scale_in<one>"),
                _attribute(f"mma_layout<{'row' if self.a.along_k else 'col'}>"),
                _attribute(f"mma_layout<{'col' if self.b.along_k else 'row'}>"),
            )
        return sums


def _lower_mma(mma: ir.Operation) -> None:
    product = _Product(mma)
    struct, _ = registers_type(mma.results[0].type)
    accumulator = mma.operands[2]
    start = producer(accumulator)
    keeps = start is None or start.name != "llvm.mlir.zero"
    with ir.InsertionPoint(mma), mma.location:
        nvvm.wgmma_fence_aligned()
        result = llvm.mlir_undef(struct)
        for block in range(product.rows // MMA_ROWS):
            registers = product.registers
            before = llvm.extractvalue(registers, accumulator, [block]) if keeps else llvm.mlir_undef(registers)
            result = llvm.insertvalue(result, product.add_to(before, block, keeps=keeps), [block])
        nvvm.wgmma_commit_group_sync_aligned()
        nvvm.wgmma_wait_group_sync_aligned(in_flight(mma))
    mma.results[0].replace_all_uses_with(result)


def _lower_split_mma(mma: ir.Operation) -> None:
    """Lowers an MMA of split operands: the small products first, from zero, and an addition to the accumulator."""
    products = [_Product(mma, a, b) for a, b in ((3, 1), (0, 4), (0, 1))]
    struct, registers = registers_type(mma.results[0].type)
    f32 = ir.F32Type.get()
    rows, columns = types.accumulator_vector(mma.results[0].type).shape
    blocks, count = range(rows // MMA_ROWS), range(columns // 2)
    with ir.InsertionPoint(mma), mma.location:
        nvvm.wgmma_fence_aligned()
        sums = []
        for block in blocks:
            member = llvm.mlir_undef(registers)
            for number, product in enumerate(products):
                member = product.add_to(member, block, keeps=number > 0)
            sums.append(member)
        nvvm.wgmma_commit_group_sync_aligned()
        nvvm.wgmma_wait_group_sync_aligned(0)
        result = llvm.mlir_undef(struct)
        for block in blocks:
            for number in count:
                before = llvm.extractvalue(f32, mma.operands[2], [block, number])
                total = arith.addf(before, llvm.extractvalue(f32, sums[block], [number]))
                result = llvm.insertvalue(result, total, [block, number])
    mma.results[0].replace_all_uses_with(result)


def _lower_register_mma(mma: ir.Operation) -> None:
    """Lowers an MMA with A in registers, which are fenced: other instructions have written them."""
    b = _Operand(mma.operands[1], "transposeB" in mma.attributes)
    step = ir.IntegerAttr(mma.attributes["step"]).value
    struct, _ = registers_type(mma.results[0].type)
    fragment = ir.VectorType(mma.operands[0].type)
    element = (
        _TYPES[types.name_of(fragment.element_type)] if not isinstance(fragment.element_type, ir.BF16Type) else "bf16"
    )
    product = RegisterProduct(mma, element)
    pair, i32 = ir.VectorType.get([2], fragment.element_type), ir.IntegerType.get_signless(32)
    with ir.InsertionPoint(mma), mma.location:
        nvvm.wgmma_fence_aligned()
        result = llvm.mlir_undef(struct)
        for block in range(fragment.shape[0]):
            sums = product.members(mma.operands[2], [block])
            a = [llvm.bitcast(i32, extract(mma.operands[0], [block, number], pair)) for number in range(A_REGISTERS)]
            member = product.add_to(sums, a, b.at(0, step), not b.along_k)
            result = llvm.insertvalue(result, member, [block])
        nvvm.wgmma_commit_group_sync_aligned()
    mma.results[0].replace_all_uses_with(result)


def _lower_split_register_mma(mma: ir.Operation) -> None:
    """Lowers an MMA of split operands, A in registers, in the order of `_lower_split_mma`."""
    large_b, small_b = (_Operand(mma.operands[number], is_transposed=False) for number in (1, 4))
    struct, _ = registers_type(mma.results[0].type)
    blocks, steps, _ = ir.VectorType(mma.operands[0].type).shape
    product = RegisterProduct(mma, "tf32")
    f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)

    def held(part: ir.Value, block: int, step: int) -> list[ir.Value]:
        return [llvm.bitcast(i32, extract(part, [block, step, number], f32)) for number in range(A_REGISTERS)]

    with ir.InsertionPoint(mma), mma.location:
        # The registers are written before the fence.
        large, small = (
            [[held(mma.operands[number], block, step) for step in range(steps)] for block in range(blocks)]
            for number in (0, 3)
        )
        nvvm.wgmma_fence_aligned()
        totals = []
        for block in range(blocks):
            member = None
            for a, b in ((small, large_b), (large, small_b), (large, large_b)):
                for step in range(steps):
                    sums = None if member is None else product.members(member, [])
                    member = product.add_to(sums, a[block][step], b.at(0, step))
            assert member is not None, "a tile has a step of k at least"
            totals.append(member)
        nvvm.wgmma_commit_group_sync_aligned()
        nvvm.wgmma_wait_group_sync_aligned(0)
        result = llvm.mlir_undef(struct)
        for block, member in enumerate(totals):
            pairs = zip(product.members(mma.operands[2], [block]), product.members(member, []))
            for number, (before, sums) in enumerate(pairs):
                result = llvm.insertvalue(result, arith.addf(before, sums), [block, number])
    mma.results[0].replace_all_uses_with(result)


def _lower_extracts(cast: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces the extracts from an accumulator fragment, a cast of the accumulator to a vector, by register reads.

    The pair (block, matrix, half) is two registers of f32, or one register of two f16. A fourth index is that of an
    element of the pair.
    """
    registers = cast.operands[0]
    element = ir.VectorType(cast.results[0].type).element_type
    pair_type = ir.VectorType.get([2], element)
    for use in list(cast.results[0].uses):
        user = use.owner.operation
        block, matrix, half, *side = ir.DenseI64ArrayAttr(user.attributes["static_position"])
        with ir.InsertionPoint(user), user.location:
            if types.bit_width(element) == 32:
                first = 4 * matrix + 2 * half
                elements = [llvm.extractvalue(element, registers, [block, first + number]) for number in (0, 1)]
                pair = vector.from_elements(pair_type, elements)
            else:
                word = llvm.extractvalue(ir.IntegerType.get_signless(32), registers, [block, 2 * matrix + half])
                pair = llvm.bitcast(pair_type, word)
            if side:
                pair = extract(pair, side, element)
        rewriter.replace_op(user, [pair])
    rewriter.erase_op(cast)


def _divide_vector(cast: ir.Operation, rewriter: Rewriter) -> None:
    """Divides the ops on vectors that make an accumulator into ops on the elements of a thread."""
    vector_op = defining_op(cast.operands[0])
    if vector_op.name == _FROM_ELEMENTS:
        return
    elements = Elements(rewriter)
    with ir.InsertionPoint(cast), cast.location:
        parts, type_ = elements.all_of(vector_op.results[0]), vector_op.results[0].type
        cast.operands[0] = ir.Operation.create(_FROM_ELEMENTS, results=[type_], operands=parts).results[0]
    elements.erase()


def _lower_elements(cast: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces an accumulator that is made of elements of f32 by a struct of registers, in the same order."""
    source = defining_op(cast.operands[0])
    struct, _ = registers_type(cast.results[0].type)
    blocks = types.accumulator_vector(cast.results[0].type).shape[0] // MMA_ROWS
    count = len(source.operands) // blocks
    with ir.InsertionPoint(cast), cast.location:
        registers = llvm.mlir_undef(struct)
        for place, element in enumerate(source.operands):
            registers = llvm.insertvalue(registers, element, list(divmod(place, count)))
    rewriter.replace_op(cast, [registers])
    rewriter.erase_op(source)


# The lowering of an op, and the indices of its operands that are matrix descriptors.
_LOWERINGS: dict[str, tuple[Callable[[ir.Operation], None], tuple[int, ...]]] = {
    WarpgroupMma3xtf32.OPERATION_NAME: (_lower_split_mma, (0, 1, 3, 4)),
    WarpgroupMma3xtf32Registers.OPERATION_NAME: (_lower_split_register_mma, (1, 4)),
    WarpgroupMmaRegisters.OPERATION_NAME: (_lower_register_mma, (1,)),
}


@transform_op(LowerWarpgroupMma)
def lower_warpgroup_mma(payload: ir.Operation, op: LowerWarpgroupMma, rewriter: Rewriter) -> None:
    """Lowers all warpgroup MMA ops below `payload`; see the op."""
    for zero in walk(payload, *INIT_ACCUMULATORS):
        struct, _ = registers_type(zero.results[0].type)
        with ir.InsertionPoint(zero), zero.location:
            registers = llvm.mlir_zero(struct)
        rewriter.replace_op(zero, [registers])
    for cast in walk(payload, _CAST):
        if types.is_accumulator(cast.results[0].type):
            _divide_vector(cast, rewriter)
    for cast in walk(payload, _CAST):
        if types.is_accumulator(cast.operands[0].type):
            _lower_extracts(cast, rewriter)
        elif types.is_accumulator(cast.results[0].type):
            _lower_elements(cast, rewriter)
    for loop in walk(payload, "scf.for"):
        for value in [*loop.results, *body_of(loop).arguments]:
            if types.is_accumulator(value.type):
                value.set_type(registers_type(value.type)[0])
    for mma in walk(payload, *MMAS):
        lower, descriptors = _LOWERINGS.get(mma.name, (_lower_mma, (0, 1)))
        generators = dict.fromkeys(defining_op(mma.operands[number]) for number in descriptors)
        lower(mma)
        rewriter.erase_op(mma)
        for generate in generators:
            if not list(generate.results[0].uses):
                rewriter.erase_op(generate)
