"""`tc.assemble_parts`: makes a stage of the insertions that make a tensor of results of matmuls."""

from stepladder.extension.lib.argument_parts import offset_within
from stepladder.extension.lib.arithmetic import constant
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.inserted_slices import INSERTION, extracted
from stepladder.extension.lib.products import is_product
from stepladder.extension.lib.stages import ASSEMBLED, is_elementwise, one_function, outline
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.linalg_ops import create_generic
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import origin, producer, users_of
from stepladder.runtime.bundle.function import part_alignment
from stepladder.runtime.element_types import BUFFER_TYPES, element_type


class AssembleParts(Tc.Operation, name="assemble_parts"):
    """Moves insertions of slices that together make a whole tensor of results of matmuls, such as a stack of heads, to
    a private function, as one elementwise op.

    Each slice is elements that follow each other in the tensor, from a multiple of 16 bytes on, and no other one is of
    the same tensor. The function has the attribute `assembles`, with the bytes that the slices begin at, in the order
    of its arguments: where the kernels of the matmuls can write the slices in their places, `plan_workspace` removes
    the call, and else a kernel copies them.

    Operands: a handle to a module with one public function.
    """

    target: Handle


@transform_op(AssembleParts)
def assemble_parts(payload: ir.Operation, op: AssembleParts, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    for item in operations_of(one_function(payload).regions[0].blocks[0]):
        if item.name != INSERTION or any(_is_target(user, item) for user in users_of(item.results[0])):
            continue
        chain = _chain(item)
        begins = _begins(chain)
        if begins is None or not all(_is_of_matmul(insertion.operands[0]) for insertion in chain):
            continue
        with ir.InsertionPoint(item), item.location:
            made = _assembled(chain)
        rewriter.replace_op(item, made.results)
        stage = outline([made], list(made.results), "elementwise", rewriter)
        stage.attributes[ASSEMBLED] = ir.DenseI64ArrayAttr.get(begins)
        for insertion in reversed(chain[:-1]):
            rewriter.erase_op(insertion)


def _is_target(user: ir.Operation, insertion: ir.Operation) -> bool:
    """Tells whether an op inserts another slice into what an insertion makes."""
    return user.name == INSERTION and user.operands[1] == insertion.results[0]


def _chain(last: ir.Operation) -> list[ir.Operation]:
    """Returns insertions into one tensor, one after the other, of which no other op reads what they make."""
    chain = [last]
    while (before := producer(chain[0].operands[1])) is not None and before.name == INSERTION:
        if len(list(before.results[0].uses)) > 1:
            break
        chain.insert(0, before)
    return chain


def _begins(chain: list[ir.Operation]) -> list[int] | None:
    """Returns the bytes that slices begin at which together are a tensor; None for others."""
    whole = ir.RankedTensorType(chain[0].results[0].type)
    sources = [origin(insertion.operands[0], TENSOR_VIEWS) for insertion in chain]
    types = [ir.RankedTensorType(insertion.operands[0].type) for insertion in chain]
    name = str(whole.element_type)
    is_static = whole.has_static_shape and all(type_.has_static_shape for type_ in types)
    if len(chain) < 2 or len(set(sources)) < len(chain) or not is_static or name not in BUFFER_TYPES:
        return None
    begins = [offset_within(insertion, whole) for insertion in chain]
    size = element_type(name).bytes
    place = 0
    for begin, count in sorted((begin or 0, _count(type_)) for begin, type_ in zip(begins, types)):
        if begin != place or begin * size % part_alignment(count * size, is_multiplied=True):
            return None
        place += count
    known = [begin * size for begin in begins if begin is not None]
    return known if place == _count(whole) and len(known) == len(chain) else None


def _count(type_: ir.RankedTensorType) -> int:
    count = 1
    for extent in type_.shape:
        count *= extent
    return count


def _is_of_matmul(value: ir.Value) -> bool:
    """Tells whether a matmul makes a tensor, or elementwise ops after one, or a stage that assembles such parts."""
    source = producer(origin(value, TENSOR_VIEWS))
    if source is None or is_product(source) or source.name == "func.call":
        return source is not None
    count = _count(ir.RankedTensorType(value.type))
    inputs = list(source.operands)[:-1] if is_elementwise(source) else []
    inputs = [item for item in inputs if isinstance(item.type, ir.RankedTensorType)]
    return any(_count(ir.RankedTensorType(item.type)) == count and _is_of_matmul(item) for item in inputs)


def _assembled(chain: list[ir.Operation]) -> ir.Operation:
    """Creates the op that computes a tensor of slices, at the insertion point."""
    type_ = ir.RankedTensorType(chain[0].results[0].type)
    empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    generic, body = create_generic([], [empty], [ir.AffineMap.get_identity(type_.rank)])
    with ir.InsertionPoint(body):
        value = constant(type_.element_type, 0)
        for insertion in chain:
            inside, element = extracted(insertion)
            value = arith.select(inside, element, value)
        ir.Operation.create("linalg.yield", operands=[value])
    return generic
