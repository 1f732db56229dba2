"""`tc.merge_launches`: makes one launch of the launches of a function, each a range of its blocks."""

import math
from collections.abc import Sequence

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.lowered_kernels import Code, Launch, launches_of
from stepladder.extension.lib.multi_kernel.merged_kernel import Member, write_kernel
from stepladder.mlir.bindings import arith, ir
from stepladder.mlir.traverse import origin

_ACCESS = "bufferization.access"
_VIEWS = ("memref.cast", "memref.reinterpret_cast", "nvgpu.tma.create.descriptor", "builtin.unrealized_conversion_cast")


class MergeLaunches(Tc.Operation, name="merge_launches"):
    """Replaces the launches of a function by one, of a kernel in which each is a range of the blocks.

    The kernel finds the range of its block, and runs the body of that launch's kernel on the parameters of the launch,
    with the block's position in the range as its id. Launches of one kernel share a body, unless it keeps counts or
    partial results in global memory of its own. A block has the shared memory of one body, the largest.

    Operands: a handle to any op with one function with launches below. Refuses launches that may depend on each other:
    only arguments that have `bufferization.access = "read"` may go to several. Refuses kernels with other blocks,
    clusters or targets than the first, and what reads the size of the grid otherwise than by its registers.
    """

    target: Handle


@transform_op(MergeLaunches)
def merge_launches(payload: ir.Operation, op: MergeLaunches, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    launches = launches_of(payload)
    if not launches:
        raise Refusal(payload, "expected launches of kernels, found none")
    if len(launches) == 1:
        return
    _check_alike(launches)
    _check_independent(launches)
    function = launches[0].op.parent
    assert function is not None  # of every launch
    name = f"{ir.StringAttr(function.attributes['sym_name']).value}_kernel"
    members = [Member(code, group) for code, group in _by_code(launches)]
    old = list(dict.fromkeys(launch.code.holder for launch in launches))
    write_kernel(old[-1], name, members)
    _launch(name, launches, [launch for member in members for launch in member.launches], rewriter)
    for holder in old:
        rewriter.erase_op(holder)


def _by_code(launches: Sequence[Launch]) -> list[tuple[Code, list[Launch]]]:
    """Returns the kernels in order, each with its launches; one that keeps data in global memory once for each."""
    groups: list[tuple[Code, list[Launch]]] = []
    for launch in launches:
        own_group = next((group for code, group in groups if code.kernel == launch.code.kernel), None)
        if own_group is None or launch.code.has_memory:
            groups.append((launch.code, [launch]))
        else:
            own_group.append(launch)
    return groups


def _check_alike(launches: Sequence[Launch]) -> None:
    """Refuses launches whose blocks, clusters or targets differ, and clusters that are not along x."""
    first = launches[0]
    for launch in launches:
        for property_name, expected, actual in (
            ("threads", first.block, launch.block),
            ("clusters", first.cluster, launch.cluster),
            ("targets", first.code.targets, launch.code.targets),
            ("attributes", first.code.attributes, launch.code.attributes),
        ):
            if expected != actual:
                raise Refusal(
                    launch.op,
                    f"a kernel with the {property_name} {actual}, and the first has {expected}; accepted: equal ones",
                )
        if launch.cluster[1:] != (1, 1) or launch.grid[0] % launch.cluster[0]:
            raise Refusal(launch.op, f"clusters of {launch.cluster}; accepted: along x, which divide the blocks")


def _check_independent(launches: Sequence[Launch]) -> None:
    """Refuses launches that share a buffer which one of them may write."""
    users: dict[ir.Value, Launch] = {}
    for launch in launches:
        for buffer in dict.fromkeys(origin(argument, _VIEWS) for argument in launch.arguments):
            if buffer in users and not _is_read_only(buffer):
                raise Refusal(
                    launch.op,
                    "a launch shares a buffer with an earlier one; accepted: arguments with "
                    'bufferization.access = "read"',
                )
            users[buffer] = launch


def _is_read_only(buffer: ir.Value) -> bool:
    """Returns whether a buffer is an argument that its function only reads; scalars are."""
    if not isinstance(buffer.type, ir.MemRefType):
        return True
    if not isinstance(buffer.owner, ir.Block):
        return False
    function = buffer.owner.owner
    if "arg_attrs" not in function.attributes:
        return False
    attributes = ir.ArrayAttr(function.attributes["arg_attrs"])[ir.BlockArgument(buffer).arg_number]
    marks = ir.DictAttr(attributes)
    return _ACCESS in marks and ir.StringAttr(marks[_ACCESS]).value == "read"


def _launch(name: str, launches: Sequence[Launch], ordered_launches: Sequence[Launch], rewriter: Rewriter) -> None:
    """Replaces launches by one of the merged kernel, whose parameters are theirs, in the order of the kernel."""
    last = launches[-1].op
    blocks = sum(math.prod(launch.grid) for launch in launches)
    shared_memory = max(launch.shared_memory for launch in launches)
    index = ir.IndexType.get()
    cluster = launches[0].cluster
    with ir.InsertionPoint(last), last.location:
        extents = [(blocks, 1, 1), launches[0].block, *([cluster] if math.prod(cluster) > 1 else [])]
        sizes = [arith.constant(index, size) for extent in extents for size in extent]
        dynamic = [arith.constant(ir.IntegerType.get_signless(32), shared_memory)] if shared_memory else []
        operands = [value for launch in ordered_launches for value in launch.arguments]
        clusters = int(len(extents) == 3)
        segments = [0, *[1] * 6, *[clusters] * 3, len(dynamic), len(operands), 0]
        ir.Operation.create(
            "gpu.launch_func",
            operands=[*sizes[:6], *sizes[6:], *dynamic, *operands],
            attributes={
                "kernel": ir.SymbolRefAttr.get([name, name]),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
            },
        )
    for launch in launches:
        rewriter.erase_op(launch.op)
