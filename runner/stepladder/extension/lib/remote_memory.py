"""The shared memory of other blocks of a cluster: addresses, and stores that complete on an mbarrier there."""

from stepladder.extension.lib.vectors import extract
from stepladder.mlir import types
from stepladder.mlir.bindings import ir, llvm, nvgpu, nvvm, vector

# Pointers into a block's own shared memory, and into that of any block of its cluster.
SHARED, SHARED_OF_CLUSTER = "!llvm.ptr<3>", "!llvm.ptr<7>"
_WORD = 32  # bits


def address_in(block: ir.Value, pointer: ir.Value) -> ir.Value:
    """Returns where a block of the cluster has what its own block has at an address.

    Args:
        block: its rank, i32.
        pointer: into the own block's shared memory.
    """
    return nvvm.mapa(ir.Type.parse(SHARED_OF_CLUSTER), pointer, block)


def mbarrier_pointer(barriers: ir.Value, number: ir.Value) -> ir.Value:
    """Returns the address of an mbarrier in the block's own shared memory.

    Args:
        barriers: the group of mbarriers.
        number: of the mbarrier, an index.
    """
    address = nvgpu.mbarrier_get(ir.IntegerType.get_signless(64), barriers, number)
    return llvm.inttoptr(ir.Type.parse(SHARED), address)


def store_async(value: ir.Value, address: ir.Value, mbarrier: ir.Value) -> None:
    """Stores a vector to another block, whose mbarrier counts the bytes when they arrive.

    Args:
        value: of 4, 8 or 16 bytes.
        address: in the memory of that block.
        mbarrier: address of the mbarrier, in the same block.
    """
    i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (_WORD, 64))
    type_ = ir.VectorType(value.type)
    count = type_.shape[0] * types.byte_width(type_.element_type) * 8 // _WORD
    words = vector.bitcast(ir.VectorType.get([count], i32), value)
    operands = [llvm.ptrtoint(i64, address), llvm.ptrtoint(i64, mbarrier)]
    operands += [extract(words, [number], i32) for number in range(count)]
    of_words = ", ".join(f"{{$r{2 + number}}}" for number in range(count))
    registers, suffix = (f"{{{of_words}}}", f".v{count}") if count > 1 else (of_words, "")
    nvvm.inline_ptx(
        [],
        operands,
        [],
        f"st.async.shared::cluster.mbarrier::complete_tx::bytes{suffix}.b32 [{{$r0}}], {registers}, [{{$r1}}];",
        memory_clobber=True,
    )
