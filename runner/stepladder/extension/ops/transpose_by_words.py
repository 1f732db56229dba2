"""`tc.transpose_by_words`: loads blocks of 16-bit elements, which are transposed, as words of 32 bits."""

from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir, memref, vector
from stepladder.mlir.traverse import attributes_of, producer, walk
from stepladder.mlir.types import bit_width, strides_of


class TransposeByWords(Tc.Operation, name="transpose_by_words"):
    """Replaces transposing 2D block loads of lanes, of 16-bit elements, by loads of words with two elements each.

    A lane has a row of the block, in which two adjacent elements are a word: the words of a row are its elements.

    Operands: a handle to any op; the kernels below are rewritten.
    Refuses: elements of other widths below 32 bits; a descriptor that is not created in the kernel of constant sizes.
    """

    target: Handle


_WORD, _HALF = 32, 16  # bits
_EACH = _WORD // _HALF


@transform_op(TransposeByWords)
def transpose_by_words(payload: ir.Operation, op: TransposeByWords, rewriter: Rewriter) -> None:
    """Rewrites the kernels below `payload`; see the op."""
    word_descriptors: dict[ir.Value, ir.Value] = {}
    for load in walk(payload, "xegpu.load_nd"):
        element = ir.VectorType(load.results[0].type).element_type
        if "transpose" not in load.attributes or bit_width(element) >= _WORD:
            continue
        if bit_width(element) != _HALF:
            raise Refusal(load, f"the load transposes elements of {element}: those of 16 and of 32 bits are transposed")
        descriptor = load.operands[0]
        if descriptor not in word_descriptors:
            word_descriptors[descriptor] = _of_words(descriptor, load)
        _load(load, word_descriptors[descriptor], rewriter)


def _of_words(descriptor: ir.Value, load: ir.Operation) -> ir.Value:
    """Returns a descriptor of the same block as words."""
    creation = producer(descriptor)
    sizes = _sizes(creation) if creation is not None and creation.name == "xegpu.create_nd_tdesc" else None
    if creation is None or sizes is None:
        raise Refusal(load, "the block is transposed by words of a descriptor with constant sizes, made in the kernel")
    (rows, columns), pitch = sizes
    height, width = _block(descriptor.type)
    type_ = ir.Type.parse(f"!xegpu.tensor_desc<{height}x{width // _EACH}xi{_WORD}>")
    with ir.InsertionPoint(creation), creation.location:
        address = creation.operands[0]
        if isinstance(address.type, ir.MemRefType):
            start = memref.extract_aligned_pointer_as_index(address)
            address = arith.index_cast(ir.IntegerType.get_signless(64), start)
        attributes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0]),
            "const_shape": ir.DenseI64ArrayAttr.get([rows, columns // _EACH]),
            "const_strides": ir.DenseI64ArrayAttr.get([pitch // _EACH, 1]),
        }
        return ir.Operation.create(
            "xegpu.create_nd_tdesc", results=[type_], operands=[address], attributes=attributes
        ).results[0]


def _block(type_: ir.Type) -> tuple[int, int]:
    rows, columns = str(type_).partition("<")[2].split("x")[:2]
    return int(rows), int(columns)


def _sizes(creation: ir.Operation) -> tuple[list[int], int] | None:
    """Returns rows and columns of a matrix, and the elements between rows; None if they are no constants."""
    base = creation.operands[0].type
    if not isinstance(base, ir.MemRefType):
        parts = [list(ir.DenseI64ArrayAttr(creation.attributes[name])) for name in ("const_shape", "const_strides")]
        return (parts[0], parts[1][0]) if len(creation.operands) == 1 else None
    strides = strides_of(base)
    _, offset = base.get_strides_and_offset()
    if not base.has_static_shape or strides is None or strides[0] is None or offset != 0:
        return None
    return list(base.shape), strides[0]


def _load(load: ir.Operation, descriptor: ir.Value, rewriter: Rewriter) -> None:
    """Replaces a load by one of words."""
    type_ = ir.VectorType(load.results[0].type)
    word_vector = ir.VectorType.get([type_.shape[0] // _EACH], ir.IntegerType.get_signless(_WORD))
    row, column = list(load.operands)[1:]
    with ir.InsertionPoint(load), load.location:
        place = arith.shrui(column, index(_EACH.bit_length() - 1))
        new_load = ir.Operation.create(
            "xegpu.load_nd", results=[word_vector], operands=[descriptor, row, place], attributes=attributes_of(load)
        )
        load.results[0].replace_all_uses_with(vector.bitcast(type_, new_load.results[0]))
    rewriter.erase_op(load)
