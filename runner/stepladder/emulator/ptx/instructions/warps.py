"""The threads of a warp among each other.

Source: PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "activemask", "elect.sync".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepladder.emulator.core import values
from stepladder.emulator.dialects import nvvm_threads, nvvm_votes
from stepladder.emulator.dialects.gpu_reduce import over_groups
from stepladder.emulator.dialects.llvm import Struct
from stepladder.emulator.hardware.reductions import combined
from stepladder.emulator.memory.memory import RANK_SHIFT
from stepladder.emulator.memory.sanitizer import WARP
from stepladder.emulator.ptx import syntax, types
from stepladder.emulator.ptx.instructions import addresses
from stepladder.emulator.ptx.registry import instruction
from stepladder.emulator.ptx.types import PtxType

if TYPE_CHECKING:
    from stepladder.emulator.core.fibers import Fiber
    from stepladder.emulator.core.program import Instruction
    from stepladder.emulator.core.values import Value
    from stepladder.emulator.ptx.site import Site

_B32 = PtxType("b32", "b", 32)
_PRED = PtxType("pred", "pred", 1)


def _results(site: Site, width: int) -> tuple[list[int], bool]:
    """Returns the slots of the first operand, `d` or `d|p`, and whether it has a predicate."""
    target = site.operands[0]
    if isinstance(target, syntax.Pair):
        return [site.write(target.first, width), site.write(target.second, 1)], True
    return [site.write(target, width)], False


@instruction("shfl.sync")
def shfl(site: Site) -> None:
    """The value of another thread of the warp; and whether there is one."""
    mode = site.choice(("up", "down", "bfly", "idx"))
    site.type("b", (32,))
    site.count(5)
    results, has_predicate = _results(site, 32)

    def execute(fiber: Fiber, op: Instruction, value: Value, other: Value, limits: Value, members: Value) -> Value:
        result = nvvm_threads.shfl_sync(fiber, op, members, value, other, limits)
        return result.fields if has_predicate else result

    attributes: dict = {"kind": mode}
    if has_predicate:
        attributes["return_value_and_is_valid"] = True
    site.emit(execute, [site.read(number, _B32) for number in range(1, 5)], results, attributes)


@instruction("vote.sync")
def vote(site: Site) -> None:
    """Whether a predicate holds for all threads, for any, or is the same; or the bits of those for which it holds."""
    kind = site.choice(("all", "any", "uni", "ballot"))
    type_ = site.types(1)[0]
    site.count(3)
    site.emit(
        lambda fiber, op, predicate, members: nvvm_votes.vote(fiber, op, members, predicate),
        [site.read(1, _PRED), site.read(2, _B32)],
        [site.write(0, type_.width)],
        {"kind": kind},
    )


@instruction("match")
def match(site: Site) -> None:
    """The bits of the threads with the same value; of all, and whether it is the same for all."""
    kind = site.choice(("any", "all"))
    site.choice(("sync",))
    type_ = site.type("b", (32, 64))
    site.count(3)
    results, has_predicate = _results(site, 32)
    if has_predicate and kind == "any":
        raise site.error("with a predicate as second result: only .all has one")

    def execute(fiber: Fiber, op: Instruction, value: Value, members: Value) -> Value:
        result = nvvm_votes.match(fiber, op, members, value)
        if not isinstance(result, Struct):
            return result
        return result.fields if has_predicate else result.fields[0]

    site.emit(execute, [site.read(1, type_), site.read(2, _B32)], results, {"kind": kind})


_REDUCTIONS = {
    "add": "add",
    "and": "and",
    "or": "or",
    "xor": "xor",
    ("min", "s"): "minsi",
    ("max", "s"): "maxsi",
    ("min", "u"): "minui",
    ("max", "u"): "maxui",
    ("min", "f"): "minnumf",
    ("max", "f"): "maxnumf",
}


@instruction("redux.sync")
def redux(site: Site) -> None:
    """A reduction over the threads of a warp."""
    kind = site.choice(("add", "min", "max", "and", "or", "xor"))
    type_ = site.type("busf", (32,))
    site.count(3)
    name = _REDUCTIONS.get(kind) or _REDUCTIONS[kind, type_.kind]

    def execute(fiber: Fiber, op: Instruction, value: Value, members: Value) -> Value:
        members_met = nvvm_votes.meet(fiber, op, members)
        own = types.floats(value, type_) if type_.kind == "f" else value
        own = values.lanes(np.asarray(own, type_.scalar.dtype), fiber.count)
        op.result_types = (type_.scalar,)
        result = over_groups(
            fiber,
            op,
            own,
            nvvm_votes.meetings_of(fiber, members_met),
            lambda left, right: combined(name, type_.scalar, np.asarray(left), np.asarray(right)),
        )
        return types.from_floats(result, type_) if type_.kind == "f" else types.stored(result, 32)

    site.emit(execute, [site.read(1, _B32), site.read(2, _B32)], [site.write(0, 32)])


@instruction("activemask")
def activemask(site: Site) -> None:
    """The bits of the active threads of the warp."""
    site.type("b", (32,))
    site.count(1)
    site.emit(nvvm_votes.activemask, (), [site.write(0, 32)])


@instruction("elect.sync")
def elect(site: Site) -> None:
    """One thread of the warp: its index in the warp, and whether it is this one."""
    site.count(2)
    results, has_predicate = _results(site, 32)

    def execute(fiber: Fiber, op: Instruction, members: Value) -> Value:
        leader = nvvm_threads.leaders(fiber, op, members).astype(np.int32)
        is_elected = leader == fiber.group.thread_of_lane % WARP
        return (leader, is_elected) if has_predicate else leader

    site.emit(execute, [site.read(1, _B32)], results)


# Clusters.


@instruction("mapa", is_pure=True)
def mapa(site: Site) -> None:
    """The same address in the shared memory of another block."""
    site.flag("shared::cluster")
    type_ = site.type("us", (32, 64))
    site.count(3)

    def execute(fiber: Fiber, op: Instruction, address: Value, rank: Value) -> Value:
        return types.stored(address % (1 << RANK_SHIFT) + ((rank + 1) << RANK_SHIFT), type_.width)

    site.emit(execute, [site.read(1, type_), site.read(2, _B32)], [site.write(0, type_.width)])


@instruction("getctarank", is_pure=True)
def getctarank(site: Site) -> None:
    """The rank of the block whose shared memory an address is of."""
    site.flag("shared::cluster")
    type_ = site.type("us", (32, 64))
    site.count(2)
    site.emit(
        lambda fiber, op, address: types.stored(addresses.block_of(fiber, address), 32),
        [site.read(1, type_)],
        [site.write(0, 32)],
    )
