"""One kernel of several that are lowered to the LLVM and NVVM dialects: each is a range of its blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.multi_kernel.lowered_kernels import Code, Extents, Launch, is_shared
from stepladder.mlir.bindings import ir, llvm, nvvm
from stepladder.mlir.traverse import attributes_of, symbol_of

_REGISTER = "nvvm.read.ptx.sreg."
# Registers of the grid, which have other values in the merged one. Those within a cluster stay.
_GRID = ("ctaid.", "nctaid.", "clusterid.", "nclusterid.", "gridid")
_AXES = "xyz"


@dataclass(frozen=True)
class Member:
    """A kernel and its launches, of one or several sets of parameters."""

    code: Code
    launches: Sequence[Launch]

    @property
    def blocks(self) -> int:
        """Blocks of all launches."""
        return sum(math.prod(launch.grid) for launch in self.launches)


def write_kernel(after: ir.Operation, name: str, members: Sequence[Member]) -> None:
    """Creates a `gpu.module` with the merged kernel, of copies of the members' code.

    Args:
        after: the op after which the module is inserted.
        name: of the module and of the kernel.
        members: with the same blocks and clusters; the parameters of the kernel are those of their launches, in order.

    Raises:
        Refusal: a body that reads the grid in a way that is not known, and functions in a module that have a body.
    """
    first = members[0].code
    parameters = [(launch, place) for member in members for launch in member.launches for place in _places(launch)]
    with ir.InsertionPoint.after(after), after.location:
        holder = ir.Operation.create(
            "gpu.module",
            attributes={**attributes_of(first.holder), "sym_name": ir.StringAttr.get(name)},
            regions=1,
        )
        block = holder.regions[0].blocks.append()
    types = [_entry(launch.code).arguments[place].type for launch, place in parameters]
    with ir.InsertionPoint(block), first.kernel.location:
        kernel = ir.Operation.create("llvm.func", attributes=_attributes(name, members, parameters, types), regions=1)
    entry = kernel.regions[0].blocks.append(*types, arg_locs=[first.kernel.location] * len(types))
    globals_ = _Globals(kernel)
    arguments = list(entry.arguments)
    with ir.InsertionPoint(entry), first.kernel.location:
        own = nvvm.read_ptx_sreg_ctaid_x()
    begin = 0
    for number, member in enumerate(members):
        counts = [len(launch.arguments) for launch in member.launches]
        sets = [arguments[sum(counts[:place]) : sum(counts[: place + 1])] for place in range(len(counts))]
        del arguments[: sum(counts)]
        end = begin + member.blocks
        entry = _append(kernel, entry, member, sets, own, (begin, end), globals_, is_last=number == len(members) - 1)
        begin = end


def _places(launch: Launch) -> range:
    return range(len(launch.arguments))


def _entry(code: Code) -> ir.Block:
    return code.kernel.regions[0].blocks[0]


def _attributes(
    name: str, members: Sequence[Member], parameters: Sequence[tuple[Launch, int]], types: Sequence[ir.Type]
) -> dict[str, ir.Attribute]:
    """Returns the attributes of the merged kernel, of the grid of all members and of their parameters."""
    attributes = attributes_of(members[0].code.kernel)
    none = ir.DictAttr.get({})

    def of(launch: Launch, place: int) -> ir.Attribute:
        argument_attributes = attributes_of(launch.code.kernel).get("arg_attrs")
        return none if argument_attributes is None else ir.ArrayAttr(argument_attributes)[place]

    type_list = ", ".join(map(str, types))
    return {
        **attributes,
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<void ({type_list})>")),
        "arg_attrs": ir.ArrayAttr.get([of(*parameter) for parameter in parameters]),
        "gpu.known_grid_size": ir.DenseI32ArrayAttr.get([sum(member.blocks for member in members), 1, 1]),
    }


class _Globals:
    """The globals and declarations of the merged kernel's module.

    A block runs one body, so that bodies share variables in shared memory, by their types.

    Args:
        kernel: the merged one, before which they are inserted.
    """

    def __init__(self, kernel: ir.Operation) -> None:
        self._kernel = kernel
        self._names = {symbol_of(kernel)}
        self._shared_names: dict[str, list[str]] = {}
        self._declared_names: set[str] = set()

    def add(self, code: Code) -> dict[str, str]:
        """Adds those of a kernel; returns their names in the merged module by their own.

        Args:
            code: the kernel.

        Raises:
            Refusal: an op that is neither a global nor a declaration.
        """
        names: dict[str, str] = {}
        counts: dict[str, int] = {}
        for op in code.others:
            name = symbol_of(op) if "sym_name" in op.attributes else ""
            if op.name == "llvm.func" and not len(op.regions[0].blocks):
                if name not in self._declared_names:
                    self._copy(op, name)
                    self._declared_names.add(name)
                names[name] = name
            elif op.name == "llvm.mlir.global" and is_shared(op):
                kind = str({key: str(item) for key, item in attributes_of(op).items() if key != "sym_name"})
                shared_names = self._shared_names.setdefault(kind, [])
                place = counts.setdefault(kind, 0)
                counts[kind] += 1
                if place == len(shared_names):
                    shared_names.append(self._copy(op, name))
                names[name] = shared_names[place]
            elif op.name == "llvm.mlir.global":
                names[name] = self._copy(op, name)
            else:
                raise Refusal(op, f"'{op.name}' beside a kernel; accepted: globals and declarations")
        return names

    def _copy(self, op: ir.Operation, name: str) -> str:
        """Copies an op to the module, under a name that is free; returns the name."""
        candidates = (f"{name}_{number}" if number else name for number in range(len(self._names) + 1))
        free = next(item for item in candidates if item not in self._names)
        self._names.add(free)
        clone = op.clone(ir.InsertionPoint(self._kernel))
        clone.attributes["sym_name"] = ir.StringAttr.get(free)
        return free


def _append(
    kernel: ir.Operation,
    entry: ir.Block,
    member: Member,
    sets: Sequence[Sequence[ir.Value]],
    own: ir.Value,
    blocks: tuple[int, int],
    globals_: _Globals,
    *,
    is_last: bool,
) -> ir.Block:
    """Appends the body of a member, which the blocks of its range branch to from `entry`.

    Args:
        kernel: the merged one.
        entry: its block without a terminator so far.
        member: whose code is copied.
        sets: parameters of its launches.
        own: the block's id in the merged grid.
        blocks: the first of the range, and the first after it.
        globals_: of the module.
        is_last: whether no other range follows.

    Returns:
        The block for the ranges that follow; it has no terminator yet. The last member's is `entry`.
    """
    global_names = globals_.add(member.code)
    location = member.code.kernel.location
    copy = member.code.kernel.clone(ir.InsertionPoint(kernel)).operation
    body = list(copy.regions[0].blocks)
    region = kernel.regions[0]
    with location:
        target = region.blocks.append()
        for block in body:
            block.append_to(region)
        following = entry if is_last else region.blocks.append()
    with ir.InsertionPoint(entry), location:
        if is_last:
            llvm.br([], target)
        else:
            below = llvm.icmp(llvm.ICmpPredicate.ult, own, _constant(blocks[1]))
            llvm.cond_br(below, [], [], target, following)
    grid = member.launches[0].grid
    with ir.InsertionPoint(target), location:
        place = llvm.sub(own, _constant(blocks[0]), overflow_flags=_no_flags()) if blocks[0] else own
        parameters = list(sets[0])
        if len(sets) > 1:
            size = _constant(math.prod(grid))
            number = llvm.udiv(place, size)
            place = llvm.urem(place, size)
            for other, values in list(enumerate(sets))[1:]:
                is_it = llvm.icmp(llvm.ICmpPredicate.eq, number, _constant(other))
                parameters = [llvm.select(is_it, new, old) for new, old in zip(values, parameters)]
        registers = _registers(place, grid, member.launches[0].cluster, _read(body))
        llvm.br([], body[0])
    for argument, value in zip(list(body[0].arguments), parameters):
        argument.replace_all_uses_with(value)
    for _ in parameters:
        body[0].erase_argument(0)
    _adapt(body, global_names, registers)
    _keep_apart(body, blocks[0])
    copy.erase()
    return following


def _keep_apart(body: Sequence[ir.Block], first: int) -> None:
    """Ends the code of a member with a comment of its own in PTX.

    LLVM would make one block of the last stores of all members, which take what their products have in one set of
    registers then: ptxas serializes the `wgmma` instructions of such a kernel (C7511).

    Args:
        body: of the member.
        first: block of its range.
    """
    for op in [op for block in body for op in operations_of(block) if op.name == "llvm.return"]:
        with ir.InsertionPoint(op), op.location:
            ir.Operation.create(
                "llvm.inline_asm",
                attributes={
                    "asm_string": ir.StringAttr.get(f"// end of the blocks from {first}"),
                    "constraints": ir.StringAttr.get(""),
                    "has_side_effects": ir.UnitAttr.get(),
                },
            )


def _no_flags() -> ir.Attribute:
    return ir.Attribute.parse("#llvm.overflow<none>")


def _constant(value: int) -> ir.Value:
    type_ = ir.IntegerType.get_signless(32)
    return llvm.mlir_constant(ir.IntegerAttr.get(type_, value))


def _read(body: Sequence[ir.Block]) -> set[str]:
    """Returns the names of the registers of the grid that blocks read."""
    names = {op.name.removeprefix(_REGISTER) for block in body for op in operations_of(block)}
    return {name for name in names if name.startswith(_GRID)}


def _registers(place: ir.Value, grid: Extents, cluster: Extents, register_names: set[str]) -> dict[str, ir.Value]:
    """Returns the values of the grid registers that a body reads, by name, as in a separate launch of its kernel.

    Args:
        place: of the block in its range.
        grid, cluster: of the launch.
        register_names: names of the registers.
    """
    registers: dict[str, ir.Value] = {}
    for number, (axis, extent, width) in enumerate(zip(_AXES, grid, cluster)):
        if f"nctaid.{axis}" in register_names:
            registers[f"nctaid.{axis}"] = _constant(extent)
        if f"nclusterid.{axis}" in register_names:
            registers[f"nclusterid.{axis}"] = _constant(extent // width)
        if not {f"ctaid.{axis}", f"clusterid.{axis}"} & register_names:
            continue
        id_ = _divided(place, math.prod(grid[:number]))
        if math.prod(grid[number + 1 :]) > 1:
            id_ = llvm.urem(id_, _constant(extent))
        registers[f"ctaid.{axis}"] = id_
        if f"clusterid.{axis}" in register_names:
            registers[f"clusterid.{axis}"] = _divided(id_, width)
    return registers


def _divided(value: ir.Value, by: int) -> ir.Value:
    return value if by == 1 else llvm.udiv(value, _constant(by))


def _adapt(body: Sequence[ir.Block], global_names: dict[str, str], registers: dict[str, ir.Value]) -> None:
    """Has the blocks of a body use the names and the ids of the merged kernel."""
    for op in [op for block in body for op in operations_of(block)]:
        if op.name == "llvm.mlir.addressof":
            name = ir.FlatSymbolRefAttr(op.attributes["global_name"]).value
            op.attributes["global_name"] = ir.FlatSymbolRefAttr.get(global_names[name])
        elif op.name == "llvm.inline_asm" and any(f"%{item}" in str(op.attributes["asm_string"]) for item in _GRID):
            raise Refusal(op, "inline PTX reads the position of the block in the grid; accepted: nvvm.read.ptx.sreg")
        elif op.name.startswith(tuple(_REGISTER + item for item in _GRID)):
            name = op.name.removeprefix(_REGISTER)
            if name not in registers:
                raise Refusal(op, f"'{op.name}' in a kernel that is merged; accepted: ids and sizes along x, y and z")
            op.results[0].replace_all_uses_with(registers[name])
            op.erase()
