"""`tc.assemble_parts`: makes a stage of the insertions that make a tensor of results of matmuls."""

import itertools
import math
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.argument_parts import offset_within
from stepladder.extension.lib.multi_kernel.donation import mark_donated
from stepladder.extension.lib.multi_kernel.inserted_slices import INSERTION, extracted
from stepladder.extension.lib.multi_kernel.products import is_product
from stepladder.extension.lib.multi_kernel.stages import ASSEMBLED, EXTENTS, is_elementwise, one_function, outline
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.slices import numbers_of
from stepladder.mlir.traverse import defining_op, origin, producer, users_of
from stepladder.mlir.types import row_major_strides
from stepladder.payload.arguments import donated
from stepladder.runtime.bundle.function import VECTOR
from stepladder.runtime.element_types import BUFFER_TYPES, element_type


class AssembleParts(Tc.Operation, name="assemble_parts"):
    """Moves insertions of slices that together make a whole tensor of results of matmuls, such as a stack of heads, to
    a private function, as one elementwise op.

    Each slice begins at a multiple of 16 bytes, and no other one is of the same tensor. Its elements follow each other
    in the tensor; where `columns` is 1, they may be columns of it too, such as heads side by side, if rows begin and
    end at multiples of 16 bytes, and nothing else reads what the matmuls compute. The function has the attribute
    `assembles`, with the bytes that the slices begin at, in the order of its arguments, and for columns `extents`, with
    those of the slices along the axes of the tensor. Slices of an argument that gives its memory to the result need not
    be all of it, where nothing else reads the argument: the function has it too, with the same mark. Where the kernels
    of the matmuls can write the slices in their positions, `plan_workspace` removes the call, and else a kernel copies
    them.

    Operands: a handle to a module with one public function.
    Attributes: columns, whether the kernels of matmuls may write columns of a tensor.
    """

    target: Handle
    columns: ir.IntegerAttr


@dataclass(frozen=True)
class _Part:
    """A slice: its position along the axes of the tensor, the byte that it begins at, and whether it is columns."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    begin: int
    has_gaps: bool

    def overlaps(self, other: "_Part") -> bool:
        """Returns whether it has an element in common with another one."""
        axes = zip(self.offsets, self.sizes, other.offsets, other.sizes)
        return all(
            begin < other_begin + length and other_begin < begin + size for begin, size, other_begin, length in axes
        )


@transform_op(AssembleParts)
def assemble_parts(payload: ir.Operation, op: AssembleParts, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for item in operations_of(one_function(payload).regions[0].blocks[0]):
        if item.name != INSERTION or any(_is_target(user, item) for user in users_of(item.results[0])):
            continue
        chain = _chain(item)
        base = _replaced_argument(chain)
        parts = _parts(chain, is_whole=base is None)
        has_gaps = any(part.has_gaps for part in parts)
        if not parts or (has_gaps and not op.columns.value):
            continue
        if not all(_is_of_matmul(insertion.operands[0], alone=has_gaps) for insertion in chain):
            continue
        with ir.InsertionPoint(item), item.location:
            op_of_parts = _assembled(chain, base)
        rewriter.replace_op(item, op_of_parts.results)
        stage = outline([op_of_parts], list(op_of_parts.results), "elementwise", rewriter)
        if base is not None:
            call = defining_op(operations_of(_body(base))[-1].operands[_result_of(base)])
            mark_donated(stage, list(call.operands).index(base), 0)
        stage.attributes[ASSEMBLED] = ir.DenseI64ArrayAttr.get([part.begin for part in parts])
        if has_gaps:
            stage.attributes[EXTENTS] = ir.ArrayAttr.get([ir.DenseI64ArrayAttr.get(part.sizes) for part in parts])
        for insertion in reversed(chain[:-1]):
            rewriter.erase_op(insertion)


def _body(argument: ir.Value) -> ir.Block:
    return ir.BlockArgument(argument).owner


def _result_of(argument: ir.Value) -> int:
    """Returns the index of the result that takes the memory of an argument."""
    function = _body(argument).owner
    return donated(function.operation)[ir.BlockArgument(argument).arg_number]


def _replaced_argument(chain: list[ir.Operation]) -> ir.Value | None:
    """Returns the argument that slices are inserted into, if a result that takes its memory is what the insertions make
    of it, and nothing else reads it; None for another tensor."""
    base, made = chain[0].operands[1], chain[-1].results[0]
    if producer(base) is not None or len(list(base.uses)) != 1 or len(list(made.uses)) != 1:
        return None
    function = _body(base).owner.operation
    end = operations_of(_body(base))[-1]
    number = donated(function).get(ir.BlockArgument(base).arg_number)
    if number is None or number not in range(len(end.operands)) or end.operands[number] != made:
        return None
    return base if list(donated(function).values()).count(number) == 1 else None


def _is_target(user: ir.Operation, insertion: ir.Operation) -> bool:
    """Returns whether an op inserts another slice into what an insertion makes."""
    return user.name == INSERTION and user.operands[1] == insertion.results[0]


def _chain(last: ir.Operation) -> list[ir.Operation]:
    """Returns insertions into one tensor, one after the other, of which no other op reads what they make."""
    chain = [last]
    while (before := producer(chain[0].operands[1])) is not None and before.name == INSERTION:
        if len(list(before.results[0].uses)) > 1:
            break
        chain.insert(0, before)
    return chain


def _parts(chain: list[ir.Operation], *, is_whole: bool) -> list[_Part]:
    """Returns the slices that a tensor consists of, or, unless it `is_whole`, some of it; none where they overlap, or
    are less than a tensor that is whole."""
    tensor_type = ir.RankedTensorType(chain[0].results[0].type)
    sources = {origin(insertion.operands[0], TENSOR_VIEWS) for insertion in chain}
    if len(chain) < 1 + is_whole or len(sources) < len(chain) or not tensor_type.has_static_shape:
        return []
    if str(tensor_type.element_type) not in BUFFER_TYPES:
        return []
    parts = [part for insertion in chain if (part := _part(insertion, tensor_type)) is not None]
    is_all = sum(math.prod(part.sizes) for part in parts) == math.prod(tensor_type.shape)
    is_apart = not any(first.overlaps(other) for first, other in itertools.combinations(parts, 2))
    return parts if (is_all or not is_whole) and is_apart and len(parts) == len(chain) else []


def _part(insertion: ir.Operation, tensor_type: ir.RankedTensorType) -> _Part | None:
    """Returns the slice that is inserted into a tensor; None where no kernel of a matmul writes it there."""
    offsets, sizes, steps = numbers_of(insertion)
    if ir.ShapedType.get_dynamic_size() in (*offsets, *sizes) or set(steps) != {1}:
        return None
    size = element_type(str(tensor_type.element_type)).bytes
    strides = row_major_strides(tensor_type.shape)
    begin = size * sum(offset * stride for offset, stride in zip(offsets, strides))
    byte_counts = [begin]
    has_gaps = offset_within(insertion, tensor_type) is None
    if has_gaps:
        inner = max(axis for axis, extent in enumerate(tensor_type.shape) if sizes[axis] != extent)
        byte_counts += [count * strides[inner] * size for count in (sizes[inner], tensor_type.shape[inner])]
    if any(item % VECTOR for item in byte_counts):
        return None
    return _Part(tuple(offsets), tuple(sizes), begin, has_gaps)


def _is_of_matmul(value: ir.Value, *, alone: bool) -> bool:
    """Returns whether a matmul makes a tensor, or elementwise ops after one, or a stage that assembles such parts; with
    `alone`, whether nothing else reads the product and what the ops make of it."""
    source = producer(origin(value, TENSOR_VIEWS))
    if source is None or (alone and len(users_of(source.results[0])) > 1):
        return False
    if is_product(source) or source.name == "func.call":
        return not alone or source.name != "func.call"
    count = math.prod(ir.RankedTensorType(value.type).shape)
    inputs = list(source.operands)[:-1] if is_elementwise(source) else []
    inputs = [item for item in inputs if isinstance(item.type, ir.RankedTensorType)]
    return any(
        math.prod(ir.RankedTensorType(item.type).shape) == count and _is_of_matmul(item, alone=alone) for item in inputs
    )


def _assembled(chain: list[ir.Operation], base: ir.Value | None) -> ir.Operation:
    """Creates the op that computes a tensor of slices, and of others of an argument, at the insertion point."""
    type_ = ir.RankedTensorType(chain[0].results[0].type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    inputs = [] if base is None else [base]
    generic, body = create_generic(inputs, [empty], [ir.AffineMap.get_identity(type_.rank)] * (len(inputs) + 1))
    with ir.InsertionPoint(body):
        value = constant(type_.element_type, 0) if base is None else body.arguments[0]
        for insertion in chain:
            inside, element = extracted(insertion)
            value = arith.select(inside, element, value)
        ir.Operation.create("linalg.yield", operands=[value])
    return generic
