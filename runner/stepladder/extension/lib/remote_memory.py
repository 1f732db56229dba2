"""The shared memory of other blocks of a cluster: addresses, loads, and stores that complete on an mbarrier there."""

from stepladder.extension.lib.arithmetic import integer
from stepladder.extension.lib.memory import vector_alignment
from stepladder.extension.lib.vectors import extract
from stepladder.mlir import types
from stepladder.mlir.bindings import arith, ir, llvm, memref, nvgpu, nvvm, vector

# Pointers into a block's own shared memory, and into that of any block of its cluster.
SHARED, SHARED_OF_CLUSTER = "!llvm.ptr<3>", "!llvm.ptr<7>"
_WORD = 32  # bits
_DYNAMIC = -(2**31)  # an index of llvm.getelementptr that is an operand


def address_in(block: ir.Value, pointer: ir.Value) -> ir.Value:
    """Returns where a block of the cluster has what its own block has at an address.

    Args:
        block: its rank, i32.
        pointer: into the own block's shared memory.
    """
    return nvvm.mapa(ir.Type.parse(SHARED_OF_CLUSTER), pointer, block)


def addresses_in_cluster(buffer: ir.Value, blocks: int) -> list[ir.Value]:
    """Returns where each block of the cluster has what its own block has in a buffer, in the order of ranks.

    Args:
        buffer: in shared memory.
        blocks: of the cluster.
    """
    own = memref.extract_aligned_pointer_as_index(buffer)
    own = llvm.inttoptr(ir.Type.parse(SHARED), arith.index_cast(ir.IntegerType.get_signless(64), own))
    return [address_in(integer(rank, _WORD), own) for rank in range(blocks)]


def load(address: ir.Value, place: ir.Value, type_: ir.VectorType) -> ir.Value:
    """Returns a vector of a buffer in a block of the cluster.

    Args:
        address: of the buffer there.
        place: number of the vector's first element in the buffer, an index.
        type_: of the vector.
    """
    offset = arith.index_cast(ir.IntegerType.get_signless(64), place)
    element = type_.element_type
    at = llvm.getelementptr(ir.Type.parse(SHARED_OF_CLUSTER), address, [offset], [_DYNAMIC], element, None)
    attributes = vector_alignment(type_)
    return ir.Operation.create("llvm.load", results=[type_], operands=[at], attributes=attributes).results[0]


def cluster_barrier() -> None:
    """Waits until all threads of the cluster are here, and have stored what they stored."""
    nvvm.cluster_arrive()
    nvvm.cluster_wait()


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
