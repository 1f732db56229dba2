"""`tc.load_bf16_as_f16`: reads the operands of contractions of bf16 as f16, and marks the contractions."""

from stepladder.extension.lib.arithmetic import constant
from stepladder.extension.lib.control_flow import behind
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import builtin, ir
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.mlir.types import OF_BF16


class LoadBf16AsF16(Tc.Operation, name="load_bf16_as_f16"):
    """Reads the operands of each `vector.contract` of bf16 from their buffers cast to f16, and marks it `of_bf16`.

    `!gpu.mma_matrix` has no elements of bf16. The bits of the elements stay; a mark has their type.

    Operands: a handle to any op; contractions of other types stay as they are.
    Refuses: an operand that is not a `vector.transfer_read` of a buffer, in bounds and without a mask.
    """

    target: Handle


_READ = "vector.transfer_read"


def _cast(buffer: ir.Value) -> ir.Value:
    """Returns a buffer of bf16 as one of f16."""
    type_ = ir.MemRefType(buffer.type)
    halves = ir.MemRefType.get(type_.shape, ir.F16Type.get(), type_.layout, type_.memory_space)
    return builtin.unrealized_conversion_cast([halves], [buffer])


def _read(read: ir.Operation, halves: ir.Value) -> ir.Value:
    """Returns what a read of bf16 reads, as f16."""
    f16 = ir.F16Type.get()
    type_ = ir.VectorType.get(ir.VectorType(read.results[0].type).shape, f16)
    operands = [halves, *list(read.operands)[1:-1], constant(f16, 0)]
    return ir.Operation.create(_READ, results=[type_], operands=operands, attributes=attributes_of(read)).results[0]


def _is_plain(read: ir.Operation | None) -> bool:
    """Returns whether an operand is a read whose padding represents no element, and which has no mask."""
    if read is None or read.name != _READ or not isinstance(read.operands[0].type, ir.MemRefType):
        return False
    is_masked = isinstance(read.operands[len(read.operands) - 1].type, ir.VectorType)
    return not is_masked and all(ir.BoolAttr(inside).value for inside in ir.ArrayAttr(read.attributes["in_bounds"]))


@transform_op(LoadBf16AsF16)
def load_bf16_as_f16(payload: ir.Operation, op: LoadBf16AsF16, rewriter: Rewriter) -> None:
    """Rewrites the contractions below `payload`; see the op."""
    casts: dict[ir.Value, ir.Value] = {}
    reads: dict[ir.Operation, ir.Value] = {}
    for contraction in walk(payload, "vector.contract"):
        if ir.VectorType(contraction.operands[0].type).element_type != ir.BF16Type.get():
            continue
        for number in range(2):
            read = producer(contraction.operands[number])
            if read is None or not _is_plain(read):
                raise Refusal(contraction, "expected operands of bf16 that are read from buffers, in bounds")
            buffer = read.operands[0]
            if buffer not in casts:
                with behind(buffer), read.location:
                    casts[buffer] = _cast(buffer)
            if read not in reads:
                with ir.InsertionPoint(read), read.location:
                    reads[read] = _read(read, casts[buffer])
            contraction.operands[number] = reads[read]
        contraction.attributes[OF_BF16] = ir.UnitAttr.get()
    for read in reads:
        if not list(read.results[0].uses):
            rewriter.erase_op(read)
