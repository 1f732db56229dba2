"""`tc.hoist_operand_loads`: loads the operands of an epilogue while the last MMAs run."""

from stepladder.extension.lib import memory, tma_pipeline
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Rewriter, Tc, transform_op
from stepladder.extension.lib.launches import find_launch
from stepladder.extension.lib.memory import VIEWS
from stepladder.extension.lib.schedule import move_with_operands
from stepladder.mlir import types
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import producer, users_of


class HoistOperandLoads(Tc.Operation, name="hoist_operand_loads"):
    """Moves the loads of an epilogue's operands before the wait for the last MMA, as far as there are registers.

    Moved are loads of arguments that the launch only loads from, in the block of the main loop, in their order, until
    no register is left. Loads of one address are merged. A load that is predicated at the edges of C stays, as does one
    whose address depends on other ops than arithmetic and views. Without a wait after the main loop, nothing moves.

    Operands: a handle to any op with one `gpu.launch` below.
    Attributes: registers, 32-bit registers of a thread for what is loaded; 0 or less leaves all loads where they are.
    Refuses: a launch without a warpgroup MMA, or with several.
    """

    target: Handle
    registers: ir.IntegerAttr


_LOADS = ("vector.load", "memref.load")
_WAIT = "nvvm.wgmma.wait.group.sync.aligned"
_REGISTER = 4  # bytes
_PURE = ("arith.", "affine.", *VIEWS)


def _is_only_loaded(view: ir.Value) -> bool:
    """Returns whether a value views an argument that is used by loads only."""
    buffer = memory.viewed(view)
    if producer(buffer) is not None:
        return False
    views = [buffer]
    for view in views:  # grows in the loop
        users = users_of(view)
        if not all(user.name in (*VIEWS, *_LOADS) for user in users):
            return False
        views += [user.results[0] for user in users if user.name in VIEWS]
    return True


def _can_move(op: ir.Operation, anchor: ir.Operation) -> bool:
    """Returns whether an op's operands come before `anchor`, or are made by ops without effects."""
    sources = [source for source in map(producer, op.operands) if source is not None and source.block == anchor.block]
    later = [source for source in sources if anchor.is_before_in_block(source)]
    return all(source.name.startswith(_PURE) and _can_move(source, anchor) for source in later)


def _registers(type_: ir.Type) -> int:
    """Returns how many registers a loaded value takes."""
    if not isinstance(type_, ir.VectorType):
        return 1
    vector = ir.VectorType(type_)
    return -(-vector.shape[0] * types.byte_width(vector.element_type) // _REGISTER)


@transform_op(HoistOperandLoads)
def hoist_operand_loads(payload: ir.Operation, op: HoistOperandLoads, rewriter: Rewriter) -> None:
    """Rewrites the one launch below `payload`; see the op."""
    loop = tma_pipeline.main_loop(find_launch(payload))
    after = [] if loop is None else tma_pipeline.ops_after(loop)
    anchor = next((later for later in after if later.name == _WAIT), None)
    if anchor is None:
        return
    registers_left = op.registers.value
    loads: dict[tuple[ir.Value | ir.Type, ...], ir.Operation] = {}
    for load in operations_of(anchor.block):
        if load.name not in _LOADS or not anchor.is_before_in_block(load):
            continue
        if not _is_only_loaded(load.operands[0]) or not _can_move(load, anchor):
            continue
        place = (*load.operands, load.results[0].type)
        if place in loads:
            rewriter.replace_op(load, [loads[place].results[0]])
            continue
        registers_left -= _registers(load.results[0].type)
        if registers_left < 0:
            return
        move_with_operands(load, anchor)
        loads[place] = load
