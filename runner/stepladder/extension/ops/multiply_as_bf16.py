"""`tc.multiply_as_bf16`: replaces WMMA products of bf16, which are marked products of f16, by LLVM's intrinsics."""

from stepladder.extension.lib.arithmetic import apply, integer
from stepladder.extension.lib.control_flow import BOUNDS, body_of, terminator_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, builtin, ir, llvm, memref
from stepladder.mlir.traverse import defining_op, producer, walk
from stepladder.mlir.types import OF_BF16, is_workgroup_memory, mma_matrix


class MultiplyAsBf16(Tc.Operation, name="multiply_as_bf16"):
    """Replaces each `gpu.subgroup_mma_compute` marked `of_bf16`, and the loads of its A and B, by intrinsics of bf16.

    A fragment of A or B becomes four registers (`!llvm.struct<(i32, i32, i32, i32)>`), also where a loop carries it.
    Fragments of C stay `!gpu.mma_matrix` and are cast at each product.

    Operands: a handle to any op; products that are not marked, and their operands, stay as they are.
    Refuses: fragments of another shape than 16 x 16, or that are not loaded from buffers of bf16 with static strides
        that are cast to f16.
    """

    target: Handle


_COMPUTE, _LOAD, _LOOP = "gpu.subgroup_mma_compute", "gpu.subgroup_mma_load_matrix", "scf.for"
_CAST = "builtin.unrealized_conversion_cast"
_SHAPE = (16, 16)
_OPERANDS = {"AOp": "a", "BOp": "b"}
_REGISTERS, _SUMS = 4, 8  # of a thread, for a fragment of A or B and for one of C
_DYNAMIC = -(2**31)  # an index of llvm.getelementptr that is an operand


def _struct(element: ir.Type, count: int) -> ir.Type:
    return ir.Type.parse(f"!llvm.struct<({', '.join([str(element)] * count)})>")


def _layout(op: ir.Operation, mark: str) -> str:
    return "col" if mark in op.attributes else "row"


def _call(name: str, result: ir.Type, operands: list[ir.Value]) -> ir.Value:
    """Returns the result of an intrinsic of WMMA."""
    intrinsic = ir.StringAttr.get(f"llvm.nvvm.wmma.m16n16k16.{name}")
    return llvm.call_intrinsic(result, intrinsic, operands, [], ir.DenseI32ArrayAttr.get([]))


class _Fragments:
    """The fragments of A and B of products: the loads, and the values of loops that carry them."""

    def __init__(self) -> None:
        self.loads: list[ir.Operation] = []
        self.carried_values: list[ir.Value] = []

    def follow(self, value: ir.Value) -> None:
        """Finds where a fragment is from, through iter_args of loops."""
        if value in self.carried_values:
            return
        op = producer(value)
        if op is not None and op.name == _LOAD:
            if op not in self.loads:
                self.loads.append(op)
            return
        if op is None:
            argument = ir.BlockArgument(value)
            loop, number = argument.owner.owner.operation, argument.arg_number - 1
        else:
            loop, number = op, ir.OpResult(value).result_number
        if loop.name != _LOOP or number < 0:
            raise Refusal(loop, "expected fragments of bf16 that are loaded, or that an scf.for carries")
        self.carried_values.append(value)
        for other in (loop.operands[BOUNDS + number], terminator_of(body_of(loop)).operands[number]):
            self.follow(other)
        for other in (loop.results[number], body_of(loop).arguments[1 + number]):
            if other not in self.carried_values:
                self.carried_values.append(other)


def _address(load: ir.Operation, buffer: ir.Value) -> ir.Value:
    """Returns the pointer to the first element of a fragment in a buffer."""
    type_ = ir.MemRefType(buffer.type)
    strides, offset = type_.get_strides_and_offset()
    if ir.ShapedType.get_dynamic_stride_or_offset() in (*strides, offset):
        raise Refusal(load, f"expected a buffer of static strides, but found {type_}")
    pointer = ir.Type.parse("!llvm.ptr<3>" if is_workgroup_memory(type_) else "!llvm.ptr")
    i64 = ir.IntegerType.get_signless(64)
    base = llvm.inttoptr(pointer, arith.index_cast(i64, memref.extract_aligned_pointer_as_index(buffer)))

    def place(*indices: ir.AffineExpr) -> ir.AffineExpr:
        total = ir.AffineExpr.get_constant(offset)
        for number, stride in zip(indices, strides):
            total = total + number * stride
        return total

    element = arith.index_cast(i64, apply(place, *list(load.operands)[1:]))
    return llvm.getelementptr(pointer, base, [element], [_DYNAMIC], type_.element_type, None)


def _load(load: ir.Operation) -> ir.Value:
    """Returns the registers of a fragment of bf16 that replaces one of f16."""
    cast = producer(load.operands[0])
    rows, columns, _, operand = mma_matrix(load.results[0].type)
    if cast is None or cast.name != _CAST or (rows, columns) != _SHAPE:
        raise Refusal(load, "expected a fragment of 16 x 16 elements in a buffer of bf16 that is cast to f16")
    i32 = ir.IntegerType.get_signless(32)
    pointer = _address(load, cast.operands[0])
    space = "p3" if is_workgroup_memory(cast.operands[0].type) else "p0"
    name = f"load.{_OPERANDS[operand]}.{_layout(load, 'transpose')}.stride.bf16.{space}"
    stride = integer(ir.IntegerAttr(load.attributes["leadDimension"]).value, 32)
    return _call(name, _struct(i32, _REGISTERS), [pointer, stride])


def _sums(fragment: ir.Value) -> ir.Value:
    """Returns the registers of a fragment of C, which another product may have cast."""
    cast = producer(fragment)
    if cast is not None and cast.name == _CAST:
        return cast.operands[0]
    return builtin.unrealized_conversion_cast([_struct(ir.F32Type.get(), _SUMS)], [fragment])


def _multiply(product: ir.Operation) -> ir.Value:
    """Returns the fragment of C that replaces a product's."""
    i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
    a, b, c = product.operands
    registers = [llvm.extractvalue(i32, fragment, [number]) for fragment in (a, b) for number in range(_REGISTERS)]
    sums = _sums(c)
    registers += [llvm.extractvalue(f32, sums, [number]) for number in range(_SUMS)]
    name = f"mma.{_layout(product, 'a_transpose')}.{_layout(product, 'b_transpose')}.bf16"
    return builtin.unrealized_conversion_cast([c.type], [_call(name, _struct(f32, _SUMS), registers)])


@transform_op(MultiplyAsBf16)
def multiply_as_bf16(payload: ir.Operation, op: MultiplyAsBf16, rewriter: Rewriter) -> None:
    """Rewrites the products below `payload`; see the op."""
    products = [product for product in walk(payload, _COMPUTE) if OF_BF16 in product.attributes]
    fragments = _Fragments()
    for product in products:
        for operand in list(product.operands)[:2]:
            fragments.follow(operand)
    for value in fragments.carried_values:
        value.set_type(_struct(ir.IntegerType.get_signless(32), _REGISTERS))
    rewritten: list[ir.Value] = []
    for rewrite, ops in ((_load, fragments.loads), (_multiply, products)):
        for item in ops:
            with ir.InsertionPoint(item), item.location:
                value = rewrite(item)
            rewriter.replace_op(item, [value])
            rewritten.append(value)
    # Casts of sums that only other products took, which take the registers.
    for value in rewritten:
        cast = defining_op(value)
        if cast.name == _CAST and not list(value.uses):
            rewriter.erase_op(cast)
