"""`tc.lower_warpgroup_mma`: products of warpgroups become `wgmma` instructions, accumulators become registers."""

from stepladder.extension.lib import tma
from stepladder.extension.lib.building import index, integer
from stepladder.extension.lib.dialect import Tc, producer, transform_op
from stepladder.extension.lib.warpgroup_ops import PRODUCTS, ROWS, ZERO
from stepladder.mlir.bindings import (
    arith,
    ext,
    ir,
    llvm,
    memref,
    nvvm,
    transform,
    vector,
)
from stepladder.mlir.traverse import walk


class LowerWarpgroupMma(Tc.Operation, name="lower_warpgroup_mma"):
    """Replaces `nvgpu.warpgroup.*` ops by `wgmma` instructions on matrix descriptors in 64-bit registers.

    Upstream's lowering reads A along k and B along n, from tiles of 64 x 64 elements. This one reads both either way,
    from tiles of any number of boxes, with every swizzle.

    A product is a fence, for each 64 rows and each step of 32 bytes along k one `wgmma.mma_async`, a commit, and a wait
    for all but the `waitGroup` latest products. An accumulator is a struct of registers for each 64 rows.

    Operands: a handle to the module of a kernel, outlined.
    """

    target: ext.Operand[transform.AnyOpType]


STEP_BYTES = 32  # of one instruction along k, for every element type
_ADDRESS_MASK = 0x3FFFF  # of a shared address in a matrix descriptor
_UNIT = 16  # bytes: descriptors count addresses and offsets in them
_SWIZZLE_MODES = {128: 1, 64: 2, 32: 3}
_SWIZZLE_BIT = 62
_TYPES = {"f16": "f16", "bf16": "bf16", "tf32": "tf32", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}


def registers_type(accumulator):
    """Returns the struct of registers that holds an accumulator: for each 64 rows one of a thread's registers.

    A register holds one f32 sum, or two neighbours in a row of f16.
    """
    rows, columns, element = str(accumulator).split("vector<")[1].split(">")[0].split("x")
    registers, type_ = (int(columns) // 2, "f32") if element == "f32" else (int(columns) // 4, "i32")
    block = f"!llvm.struct<({', '.join([type_] * registers)})>"
    inner = block.removeprefix("!llvm.")
    return ir.Type.parse(f"!llvm.struct<({', '.join([inner] * (int(rows) // ROWS))})>"), ir.Type.parse(block)


class _Operand:
    """A tile of A or B as the instructions address it: a slot's boxes x rows x columns, along k or along m and n."""

    def __init__(self, descriptor, transposed: bool):
        generate = producer(descriptor)
        self.op = generate
        slot = generate.operands[0]
        type_ = ir.MemRefType(slot.type)
        strides, _ = type_.get_strides_and_offset()
        self.element_bytes = type_.element_type.width // 8
        self.swizzle = tma.swizzle_of(generate.operands[1].type)
        self.box_bytes = strides[0] * self.element_bytes
        self.along_k = not transposed
        self.box_rows = type_.shape[1]
        with ir.InsertionPoint(generate), generate.location:
            self.value = self._describe(slot)

    def _describe(self, slot):
        """Returns the matrix descriptor of the tile's first instruction, an i64.

        Source: PTX ISA, "Matrix Descriptor Format" of wgmma.
        """
        i64 = ir.IntegerType.get_signless(64)
        metadata = ir.Operation.create(
            "memref.extract_strided_metadata",
            results=[
                ir.MemRefType.get(
                    [], ir.MemRefType(slot.type).element_type, memory_space=ir.MemRefType(slot.type).memory_space
                ),
                *[ir.IndexType.get()] * 7,
            ],
            operands=[slot],
        )
        base, offset = metadata.results[0], metadata.results[1]
        start = memref.extract_aligned_pointer_as_index(base)
        address = arith.addi(start, arith.muli(offset, index(self.element_bytes)))
        shared = arith.andi(arith.index_cast(i64, address), integer(_ADDRESS_MASK, 64))
        # Between groups of eight rows, and between boxes, for tiles that run along m or n.
        fixed = (8 * self.swizzle // _UNIT) << 32 | (self.box_bytes // _UNIT) << 16
        fixed |= _SWIZZLE_MODES[self.swizzle] << _SWIZZLE_BIT
        fixed -= (fixed >> 63) << 64
        return arith.ori(arith.shrui(shared, integer(4, 64)), integer(fixed, 64))

    def offset(self, block: int, step: int) -> int:
        """Returns the bytes from the tile to what an instruction reads: of 64 rows number `block`, at k step `step`."""
        if self.along_k:
            box, within = divmod(step * STEP_BYTES, self.swizzle)
            return block * ROWS * self.swizzle + box * self.box_bytes + within
        rows = step * STEP_BYTES // self.element_bytes
        boxes = block * ROWS * self.element_bytes // self.swizzle
        return boxes * self.box_bytes + rows * self.swizzle

    def at(self, block: int, step: int):
        """Returns the matrix descriptor of an instruction."""
        offset = self.offset(block, step) // _UNIT
        return arith.addi(self.value, integer(offset, 64)) if offset else self.value


def _in_flight(product) -> int:
    """Returns how many products may still run behind this one; 1 is the attribute's default."""
    return ir.IntegerAttr(product.attributes["waitGroup"]).value if "waitGroup" in product.attributes else 1


def _attribute(text: str):
    return ir.Attribute.parse(f"#nvvm.{text}")


def _lower_product(product) -> None:
    a = _Operand(product.operands[0], "transposeA" in product.attributes)
    b = _Operand(product.operands[1], "transposeB" in product.attributes)
    struct, registers = registers_type(product.results[0].type)
    rows, k, element = _shape(product.operands[0].type)
    _, columns, b_element = _shape(product.operands[1].type)
    is_f32 = "f32>" in str(product.results[0].type)
    step_k = STEP_BYTES // a.element_bytes
    with ir.InsertionPoint(product), product.location:
        nvvm.wgmma_fence_aligned()
        sums = product.operands[2]
        result = llvm.mlir_undef(struct)
        for block in range(rows // ROWS):
            part = llvm.extractvalue(registers, sums, [block])
            for step in range(k // step_k):
                part = nvvm.wgmma_mma_async(
                    registers,
                    part,
                    a.at(block, step),
                    b.at(0, step),
                    _attribute(f"shape<m = {ROWS}, n = {columns}, k = {step_k}>"),
                    _attribute(f"wgmma_type<{_TYPES[element]}>"),
                    _attribute(f"wgmma_type<{_TYPES[b_element]}>"),
                    _attribute(f"wgmma_type<{'f32' if is_f32 else 'f16'}>"),
                    _attribute("wgmma_scale_out<one>"),
                    _attribute("wgmma_scale_in<one>"),
                    _attribute("wgmma_scale_in<one>"),
                    _attribute(f"mma_layout<{'row' if a.along_k else 'col'}>"),
                    _attribute(f"mma_layout<{'col' if b.along_k else 'row'}>"),
                )
            result = llvm.insertvalue(result, part, [block])
        nvvm.wgmma_commit_group_sync_aligned()
        nvvm.wgmma_wait_group_sync_aligned(_in_flight(product))
    product.results[0].replace_all_uses_with(result)


def _lower_reads(cast, rewriter) -> None:
    """Lets what reads pairs of sums from an accumulator, seen as a vector, read registers.

    The pair (block, column, half) is two f32 registers, or one register of two f16. A fourth number is that of an
    element of the pair.
    """
    registers = cast.operands[0]
    element = ir.VectorType(cast.results[0].type).element_type
    pair_type = ir.VectorType.get([2], element)
    for use in list(cast.results[0].uses):
        read = use.owner.operation
        block, column, half, *side = ir.DenseI64ArrayAttr(read.attributes["static_position"])
        with ir.InsertionPoint(read), read.location:
            if element.width == 32:
                first = 4 * column + 2 * half
                both = [llvm.extractvalue(element, registers, [block, first + number]) for number in (0, 1)]
                pair = vector.from_elements(pair_type, both)
            else:
                packed = llvm.extractvalue(ir.IntegerType.get_signless(32), registers, [block, 2 * column + half])
                pair = llvm.bitcast(pair_type, packed)
            if side:
                pair = ir.Operation.create(
                    "vector.extract",
                    results=[element],
                    operands=[pair],
                    attributes={"static_position": ir.DenseI64ArrayAttr.get(side)},
                ).results[0]
        rewriter.replace_op(read, [pair])
    rewriter.erase_op(cast)


def _shape(descriptor_type) -> tuple[int, int, str]:
    rows, columns, element = str(descriptor_type).split("memref<")[1].split(",")[0].split("x", 2)
    return int(rows), int(columns), element


def _is_accumulator(value) -> bool:
    return str(value.type).startswith("!nvgpu.warpgroup.accumulator")


@transform_op(LowerWarpgroupMma)
def lower_warpgroup_mma(payload, op, rewriter) -> None:
    """Lowers all products below `payload`; see the op."""
    for zero in walk(payload, ZERO):
        struct, _ = registers_type(zero.results[0].type)
        with ir.InsertionPoint(zero), zero.location:
            registers = llvm.mlir_zero(struct)
        rewriter.replace_op(zero, [registers])
    for cast in walk(payload, "builtin.unrealized_conversion_cast"):
        if _is_accumulator(cast.operands[0]):
            _lower_reads(cast, rewriter)
    for loop in walk(payload, "scf.for"):
        for value in [*loop.results, *loop.regions[0].blocks[0].arguments]:
            if _is_accumulator(value):
                value.set_type(registers_type(value.type)[0])
    for product in walk(payload, *PRODUCTS):
        generators = [producer(product.operands[number]) for number in (0, 1)]
        _lower_product(product)
        rewriter.erase_op(product)
        for generate in generators:
            if not list(generate.results[0].uses):
                rewriter.erase_op(generate)
