"""The module of a group of kernels: one function that launches each, and its merge to one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.cloning import clone_ops
from stepladder.mlir.text import text_of
from stepladder.mlir.traverse import walk
from stepladder.pipeline.library import pipeline_file
from stepladder.pipeline.request import Request
from stepladder.pipeline.run import Run, run_pipeline

# The attribute of a buffer that no kernel of the group writes: it may go to several.
_READ_ONLY = {"bufferization.access": "read"}


def argument_types(run: Run) -> list[ir.Type]:
    """Returns the types of the arguments of a lowered module's function.

    Args:
        run: that lowered it.
    """
    return list(ir.FunctionType(ir.TypeAttr(walk(run.module, "func.func")[0].attributes["function_type"]).value).inputs)


def merged(name: str, members: Sequence[Run], written: set[int]) -> Run:
    """Returns the run that makes one launch of the kernels of a group.

    The arguments of its function are those of the members, one after the other.

    Args:
        name: of the group.
        members: runs that lowered a kernel each; one that comes several times has one kernel.
        written: indices of the arguments that kernels write.

    Raises:
        StepladderError: kernels that cannot be merged.
    """
    starts = [sum(len(argument_types(run)) for run in members[:place]) for place in range(len(members))]
    launches = group_module(
        name,
        [(run.module, {n: start + n for n in range(len(argument_types(run)))}) for run, start in zip(members, starts)],
        [type_ for run in members for type_ in argument_types(run)],
        written,
    )
    return run_pipeline(text_of(launches), f"group {name}", Request(pipeline_file("group")))


def group_module(
    name: str,
    members: Sequence[tuple[ir.Module, Mapping[int, int]]],
    types: Sequence[ir.Type],
    written: set[int],
) -> ir.Module:
    """Returns a module with one function, which does what those of several lowered modules do, one after the other.

    Args:
        name: of the function.
        members: lowered modules, each with the indices of the function's arguments by those of its own. A module that
            comes several times has one kernel.
        types: of the function's arguments: buffers.
        written: indices of the arguments that kernels write.
    """
    with ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        function = _function(module, name, types, written)
    body = function.regions[0].blocks[0]
    kernels: dict[ir.Module, str] = {}
    for member, numbers in members:
        block = walk(member, "func.func")[0].regions[0].blocks[0]
        if member not in kernels:
            kernels[member] = f"{name}_{len(kernels)}"
            holder = walk(member, "gpu.module")[0].clone(ir.InsertionPoint.after(function))
            holder.attributes["sym_name"] = ir.StringAttr.get(kernels[member])
        values: dict[ir.Value, ir.Value] = {
            argument: body.arguments[numbers[place]] for place, argument in enumerate(block.arguments)
        }
        *ops, _ = (op.operation for op in block.operations)
        clone_ops(ops, values, ir.InsertionPoint(body))
        launch = walk(function, "gpu.launch_func")[-1]
        kernel = ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1]
        launch.attributes["kernel"] = ir.SymbolRefAttr.get([kernels[member], kernel])
    with ir.InsertionPoint(body), ir.Location.unknown():
        ir.Operation.create("func.return")
    assert module.operation.verify()
    return module


def _function(module: ir.Module, name: str, types: Sequence[ir.Type], written: set[int]) -> ir.Operation:
    """Returns a new function of a module, whose block is empty."""
    read_only = ir.DictAttr.get({key: ir.StringAttr.get(value) for key, value in _READ_ONLY.items()})
    marks = [ir.DictAttr.get({}) if number in written else read_only for number in range(len(types))]
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), [])),
                "arg_attrs": ir.ArrayAttr.get(marks),
            },
            regions=1,
        )
    function.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
    return function
