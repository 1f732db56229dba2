"""`tc.lower_lane_matrices`: lets lanes access shared local memory by element, in place of matrix descriptors."""

from stepladder.extension.lib.arithmetic import index
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import arith, ir, memref, vector
from stepladder.mlir.traverse import producer, walk


class LowerLaneMatrices(Tc.Operation, name="lower_lane_matrices"):
    """Writes loads and stores of `xegpu.mem_desc` by lanes as those of a memref, and its memory as globals.

    A lane accesses adjacent rows of one column. MLIR's conversion to XeVM takes them for adjacent elements of memory,
    which they are in a column-major matrix only. The other use of shared local memory is scalar accesses, which stay.

    Operands: a handle to any op; the kernels below are rewritten.
    Refuses: accesses of several columns, or of blocks; memory of other memory spaces or without static sizes.
    """

    target: Handle


_MATRIX = ("xegpu.load_matrix", "xegpu.store_matrix")
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_SHARED = 3


@transform_op(LowerLaneMatrices)
def lower_lane_matrices(payload: ir.Operation, op: LowerLaneMatrices, rewriter: Rewriter) -> None:
    """Rewrites the kernels below `payload`; see the op."""
    for kernel in walk(payload, "gpu.func"):
        for access in walk(kernel, *_MATRIX):
            _lower(access, rewriter)
        for descriptor in walk(kernel, "xegpu.create_mem_desc"):
            rewriter.erase_op(descriptor)
        for number, alloc in enumerate(walk(kernel, "memref.alloc")):
            _allocate(kernel, alloc, number, rewriter)


def _lower(access: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces an access of lanes."""
    is_load = access.name == "xegpu.load_matrix"
    operands = list(access.operands)
    stored_value = None if is_load else operands.pop(0)
    type_ = ir.VectorType(access.results[0].type if stored_value is None else stored_value.type)
    descriptor, offsets = operands[0], operands[1:]
    if type_.rank != 2 or type_.shape[1] != 1 or "subgroup_block_io" in access.attributes:
        raise Refusal(access, f"{access.name} of {type_}: a lane accesses rows of one column, as vector<8x1xf16>")
    definition = producer(descriptor)
    if definition is None or definition.name != "xegpu.create_mem_desc":
        raise Refusal(access, f"the descriptor of {access.name} must be an xegpu.create_mem_desc")
    base = definition.operands[0]
    is_column_major = "stride = [1," in str(descriptor.type)
    rows, flat = type_.shape[0], ir.VectorType.get([type_.shape[0]], type_.element_type)
    with ir.InsertionPoint(access), access.location:
        starts = [
            offsets.pop(0) if number == _DYNAMIC else index(number)
            for number in ir.DenseI64ArrayAttr(access.attributes["const_offsets"])
        ]
        flat_value = None if stored_value is None else vector.shape_cast(flat, stored_value)
        elements = []
        for row in range(rows):
            places = [arith.addi(starts[0], index(row)) if row else starts[0], starts[1]]
            if is_column_major:
                places.reverse()
            if flat_value is None:
                elements.append(memref.load(base, places))
            else:
                memref.store(vector.extract(flat_value, [], [row]), base, places)
        if flat_value is None:
            result = vector.shape_cast(type_, vector.from_elements(flat, elements))
            access.results[0].replace_all_uses_with(result)
    rewriter.erase_op(access)


def _allocate(kernel: ir.Operation, alloc: ir.Operation, number: int, rewriter: Rewriter) -> None:
    """Makes memory of a work-group a global of the kernel's module."""
    type_ = ir.MemRefType(alloc.results[0].type)
    space = type_.memory_space
    if not isinstance(space, ir.IntegerAttr) or space.value != _SHARED or not type_.has_static_shape:
        raise Refusal(alloc, f"memref.alloc of {type_}: static memory of memory space {_SHARED} is a work-group's")
    kernel_name = ir.StringAttr(kernel.attributes["sym_name"]).value
    name = f"{kernel_name}_shared_{number}"
    with ir.InsertionPoint(kernel), alloc.location:
        memref.global_(name, type_, sym_visibility="private", initial_value=ir.UnitAttr.get())
    with ir.InsertionPoint(alloc), alloc.location:
        alloc.results[0].replace_all_uses_with(memref.get_global(type_, name))
    rewriter.erase_op(alloc)
