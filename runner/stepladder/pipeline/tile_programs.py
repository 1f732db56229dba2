"""XeTile programs as payloads: the step that they enter a pipeline at, the matmul that they compute, and its knobs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from stepladder.extension.lib.arithmetic import constant
from stepladder.extension.lib.dialect import Refusal
from stepladder.extension.lib.normal_form import to_tensor
from stepladder.extension.lib.xetile.tile_products import TileProduct
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import bufferization, ir, passmanager
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.reshapes import reshaped
from stepladder.mlir.traverse import walk
from stepladder.payload.matmul import PayloadMatmul, find_matmul
from stepladder.payload.refusal import refuse
from stepladder.payload.selection import Selection, select
from stepladder.pipeline import library
from stepladder.pipeline.context import parse_payload
from stepladder.pipeline.definition import Pipeline
from stepladder.pipeline.knob_choice import PROGRAM, Source
from stepladder.pipeline.knobs import choose_knobs, evaluation_scope
from stepladder.pipeline.request import Request
from stepladder.runtime.errors import StepladderError

FROM_TILES = Source(PROGRAM, "the tiles of the program")
# Ops that may be outside of the launch: those that make sizes, and views of the buffers.
_AROUND = ("gpu.launch", "func.return", "memref.dim", "memref.transpose", "memref.extract_aligned_pointer_as_index")


@dataclass(frozen=True)
class TileProgram:
    """A XeTile program, and what it computes.

    Attributes:
        selection: its function.
        payload: the same function with a `linalg.matmul`; None for a program that is none.
        matmul: of that payload.
        tile: m, n and k of the program's `tile_mma`.
        refusal: why there is no such payload.
    """

    selection: Selection
    payload: ir.Module | None = None
    matmul: PayloadMatmul | None = None
    tile: tuple[int, int, int] = (0, 0, 0)
    refusal: StepladderError | None = None

    def understood(self) -> tuple[ir.Module, PayloadMatmul]:
        """Returns payload and matmul.

        Raises:
            StepladderError: the program is no matmul of whole matrices.
        """
        if self.refusal is not None:
            raise self.refusal
        assert self.payload is not None and self.matmul is not None  # of every program that is not refused
        return self.payload, self.matmul


def is_tile_program(module: ir.Module | ir.Operation) -> bool:
    """Returns whether a payload is a XeTile program, which enters a pipeline at a later step.

    Args:
        module: the payload, or a function of it.
    """
    return any(op.name.startswith("xetile.") for op in walk(module))


def read_text(text: str, name: str, request: Request) -> TileProgram | None:
    """Returns the XeTile program that a payload is, as `read`.

    Args:
        text: the payload; `name`: its file, for messages.
        request: names the pipeline, and may name the function.

    Raises:
        StepladderError: text that does not parse, or as `read`.
    """
    pipeline = library.load(request.pipeline)
    return None if pipeline.program_step is None else read(pipeline, parse_payload(text, name), request)


def read(pipeline: Pipeline, module: ir.Module, request: Request) -> TileProgram | None:
    """Returns the XeTile program that a payload is; None for one that enters the pipeline at its beginning, or a dump.

    Args:
        pipeline: that the payload is for.
        module: the payload, which may have other functions; it stays as it is.
        request: may name the function, and the step of the pipeline to begin at.

    Raises:
        StepladderError: several functions with tiles, and no name.
    """
    if pipeline.program_step is None or request.start not in (None, pipeline.program_step):
        return None
    names = [
        (function, ir.StringAttr(function.attributes["sym_name"]).value)
        for function in walk(module, "func.func")
        if is_tile_program(function)
    ]
    if request.function is not None:
        names = [(function, name) for function, name in names if name == request.function]
    if not names:
        return None
    if len(names) > 1:
        program_names = ", ".join(f"@{name}" for _, name in names)
        raise refuse(
            names[1][0], f"{len(names)} XeTile programs in the payload: {program_names}", "--function NAME chooses one"
        )
    selection = select(module, names[0][1])
    payload = ir.Module.parse(selection.module.operation.get_asm(enable_debug_info=True, use_name_loc_as_prefix=True))
    try:
        tile = _write_matmul(payload)
        return TileProgram(selection, payload, find_matmul(payload), tile)
    except Refusal as refusal:
        location = diagnostics.location_text(refusal.payload.location)
        return TileProgram(selection, refusal=StepladderError(str(refusal), location=location))
    except StepladderError as refusal:
        return TileProgram(selection, refusal=refusal)


def _write_matmul(module: ir.Module) -> tuple[int, int, int]:
    """Replaces the launch of a program by the matmul that it computes; returns the tile of the program.

    Raises:
        Refusal: it does not compute a matmul.
    """
    passmanager.PassManager.parse("builtin.module(canonicalize,cse,canonicalize)").run(module.operation)
    function = walk(module, "func.func")[0]
    ops = [op.operation for op in function.regions[0].blocks[0].operations]
    launches = [op for op in ops if op.name == "gpu.launch"]
    if len(launches) != 1:
        raise Refusal(function, f"the program has {len(launches)} launches; accepted: one")
    for op in ops:
        if op.name not in _AROUND and not op.name.startswith(("arith.", "affine.")):
            raise Refusal(
                op,
                f"{op.name} is outside of the launch; accepted there: arithmetic on indices, transposes of arguments",
            )
    product = TileProduct(launches[0])
    product.extents()
    operands = (product.a, product.b, *product.epilogue.operands, product.c)
    if not all(isinstance(operand.matrix.buffer.owner, ir.Block) for operand in operands):
        raise Refusal(product.launch, "the matrices must be arguments of the function")
    with ir.InsertionPoint(product.launch), product.mma.location:
        _write_on_tensors(product)
    for op in reversed(ops[:-1]):
        op.erase()
    return product.tile


def _write_on_tensors(product: TileProduct) -> None:
    """Creates the matmul and the elementwise ops after it, at the insertion point."""
    buffers = {operand.matrix.buffer for operand in (product.a, product.b, *product.epilogue.operands)}
    tensors = {buffer: to_tensor(buffer, writable=False) for buffer in buffers}
    target = product.c.matrix.buffer
    c = to_tensor(target, writable=True)
    sums, has_epilogue = c, bool(product.epilogue.ops)
    if has_epilogue:
        type_ = ir.RankedTensorType.get(product.c.matrix.shape, product.sums_type)
        sums = ir.Operation.create("tensor.empty", results=[type_]).results[0]
    if product.from_zero or has_epilogue:
        sums = create_named_op("linalg.fill", [constant(product.sums_type, 0)], sums).results[0]
    inputs = [tensors[operand.matrix.buffer] for operand in (product.a, product.b)]
    result = create_named_op("linalg.matmul", inputs, sums, product.maps()).results[0]
    if has_epilogue:
        operands = [
            _row_of(tensors[operand.matrix.buffer])
            if product.epilogue.is_row(operand)
            else tensors[operand.matrix.buffer]
            for operand in product.epilogue.operands
        ]
        result = product.epilogue.write(result, operands, c, adds_c=not product.from_zero).results[0]
    bufferization.materialize_in_destination(None, result, target, restrict=True, writable=True)


def _row_of(tensor: ir.Value) -> ir.Value:
    """Returns a matrix with one row as a vector."""
    return reshaped(tensor, ir.RankedTensorType(tensor.type).shape[1:], [[0, 1]])


def requested(pipeline: Pipeline, request: Request, program: TileProgram) -> Request:
    """Returns the request for a program: from the step that it enters at, with the knobs that its tiles give.

    Args:
        pipeline: whose `program_knobs` those knobs are.
        request: the knobs that it sets stay as they are.
        program: the payload.
    """
    request = dataclasses.replace(request, start=pipeline.program_step, tuned=False)
    if program.matmul is None:
        return request
    open_ = [name for name in pipeline.program_knobs if name not in request.settings]
    knobs = {name: value for name, value in choose_knobs(pipeline, request).items() if name not in open_}
    facts = {**program.matmul.facts(), **dict(zip(("tile_m", "tile_n", "tile_k"), program.tile))}
    scope = evaluation_scope(pipeline, knobs, facts, request.without, pipeline.program_knobs)
    values = {name: value for name in open_ if isinstance(value := scope[name], (int, str))}
    accepted = {name: value for name, value in values.items() if pipeline.knobs[name].accepts(value)}
    return dataclasses.replace(request, settings={**accepted, **request.settings})
