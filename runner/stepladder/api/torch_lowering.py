"""Graphs of `torch.export` as linalg on tensors, by torch-mlir, and refusals of unsupported ops.

PyTorch is an optional package; this module imports it.
"""

from __future__ import annotations

import importlib
import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.export.passes import move_to_device_pass  # pyright: ignore[reportMissingImports]

import stepladder
from stepladder.api.decompositions.branches import Selected, has_branches
from stepladder.api.decompositions.complex_tensors import Reals, is_complex
from stepladder.api.decompositions.extrema import keep_nan
from stepladder.api.decompositions.grouped_products import table as grouped_products
from stepladder.api.decompositions.table import TABLE
from stepladder.api.errors import ArgumentError
from stepladder.api.torch_constants import fold_constants
from stepladder.api.torch_empty import fold_empty
from stepladder.api.torch_single_ops import not_lowered
from stepladder.runtime.errors import StepladderError

_PACKAGE = Path(stepladder.__file__).parent
_AHEAD = " with the following diagnostics:"
_NOT_LOWERED = re.compile(
    r"""failed to legalize operation 'torch\.(?:operator'.*?<\{name = "torch\.(?=\w+\.)|(?=aten\.))([\w.]+)"""
)
_LEFT = "failed to legalize operation 'torch."
# torch-mlir's messages for ops that linalg does not have, and why no kernel computes them.
_FOREIGN = {
    "tm_tensor": "an op that is neither elementwise nor a reduction",
    "ml_program": "random numbers, which kernels do not draw; accepted: a module in eval mode, without dropout",
}
# PyTorch's refusals of values that are not known when a module is exported, and the lines of the user's code in them.
_BY_DATA = re.compile(
    r"guard on data-dependent expression .*\bu\d+|data-dependent (?:branching|value)|Pending unbacked symbols"
)
_BY_VALUES = "DataDependentOutputException"
_UNTRACED = "found a fake tensor in the exported program constant's list"
_LITERAL_OF_BYTES = "'torch.vtensor.literal' op inferred type"
_BY_TENSOR = "accepted for an index in a tensor: index_select and index_copy, whose index is a tensor of one element"
# Parts of the names of ops that become ops of tm_tensor.
_ORDERING = ("sort", "scatter", "index_put", "nonzero", "unique", "mode")
# Ops at one position of an axis: an operand after two others, a constant unless it depends on data.
_PLACED = ("aten.select.int", "aten.select_copy.int", "aten.select_scatter.default")
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
# Ops that torch-mlir lowers correctly on elements of uint8; it takes those of other ops as signed integers.
_OF_BYTES = (
    *(
        "_assert_tensor_metadata",
        "_to_copy",
        "_unsafe_view",
        "alias",
        "as_strided",
        "cat",
        "clone",
        "constant_pad_nd",
        "copy",
        "detach",
        "diagonal",
        "embedding",
        "expand",
    ),
    *("flip", "gather", "index", "index_select", "lift_fresh_copy", "narrow", "permute", "reshape", "roll", "select"),
    *("repeat", "select_scatter", "slice_scatter"),
    *("slice", "split", "split_with_sizes", "squeeze", "stack", "t", "transpose", "tril", "triu", "unbind", "unfold"),
    *("unsqueeze", "view", "where", "masked_fill", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor"),
    *("__lshift__", "__rshift__", "eq", "ne", "zeros_like", "ones_like", "full_like", "empty_like"),
)
# Ops that are right where all operands are tensors of uint8.
_BETWEEN_BYTES = ("add", "sub", "mul")
# Comparisons, which are right of tensors of uint8 with each other and with integers of Python.
_COMPARISONS = ("lt", "le", "gt", "ge")
_INSTEAD = (
    "accepted: elementwise ops, reductions, argmax, views, slices, concatenations, gathers (embedding, gather, "
    "index_select), where, cumsum, cummax, sort, topk, median, scatter, scatter_reduce, index_put; the caller computes "
    "the others before or after the compiled module"
)


def traced(module: torch.nn.Module, values: Sequence[torch.Tensor]) -> Any:  # noqa: ANN401
    """Returns the graph of a module, of ops that may write in place.

    Args:
        module: computes tensors.
        values: what it is called with.

    Raises:
        StepladderError: torch-mlir is missing, or PyTorch does not export the module.
    """
    _torch_mlir()
    return _refusing(lambda: torch.export.export(module, tuple(values), strict=False), [])


def functional(program: Any, values: Sequence[torch.Tensor]) -> Any:  # noqa: ANN401
    """Returns a graph of functional ops that torch-mlir lowers.

    Args:
        program: of `traced`.
        values: what it was traced with.

    Raises:
        StepladderError: PyTorch does not export the graph.
    """
    fx = _torch_mlir()

    def decomposed(program: Any) -> Any:  # noqa: ANN401
        _check_derivatives(program)
        # Ops name the GPU that they are traced on, and PyTorch has kernels of its own for it; torch-mlir knows neither.
        program = move_to_device_pass(program, "cpu")
        return program.run_decompositions({**fx.get_decomposition_table(), **TABLE, **grouped_products()})

    if has_branches(program):
        program = traced(Selected(program.module()), values)
    types, shapes = _types_of_results(program), _shapes_of_results(program)
    program = _refusing(lambda: decomposed(program), [])
    if any(is_complex(node.meta.get("val")) for node in program.graph.nodes):
        on_host = [value.cpu() if not value.is_meta else value for value in values]
        real = traced(Reals(program.module()), on_host)
        program = _refusing(lambda: decomposed(real), [])
    for number, (wanted, shape) in enumerate(zip(shapes, _shapes_of_results(program), strict=True)):
        if wanted != shape and all(isinstance(extent, int) for extent in (*wanted, *shape)):
            raise StepladderError(
                f"PyTorch decomposes the module to another one, whose result {number} has the extents {list(shape)} "
                f"instead of {list(wanted)}"
            )
    for number, (wanted, type_) in enumerate(zip(types, _types_of_results(program), strict=True)):
        if wanted != type_:
            raise StepladderError(
                f"PyTorch decomposes the module to another one, whose result {number} has elements of {type_} instead "
                f"of {wanted}"
            )
    fold_empty(program)
    fold_constants(program)
    return program


def _shapes_of_results(program: Any) -> list[Sequence[Any]]:  # noqa: ANN401
    """Returns the extents of what a graph returns, without the inputs that it writes; none of what is no tensor."""
    return [getattr(value, "shape", ()) for value in _results(program)]


def _types_of_results(program: Any) -> list[Any]:  # noqa: ANN401
    """Returns the element types of what a graph returns, as `_shapes_of_results`."""
    return [getattr(value, "dtype", None) for value in _results(program)]


def _results(program: Any) -> list[Any]:  # noqa: ANN401
    count = len(program.graph_signature.user_outputs)
    results = next(node for node in program.graph.nodes if node.op == "output").args[0]
    return [getattr(item, "meta", {}).get("val") for item in results[len(results) - count :]]


def _torch_mlir() -> Any:  # noqa: ANN401
    """Returns torch-mlir, which is optional."""
    try:
        return importlib.import_module("torch_mlir.fx")
    except ImportError as error:
        raise StepladderError(f"a torch.nn.Module is compiled by torch-mlir, which is missing ({error})") from error


def linalg(program: Any) -> str:  # noqa: ANN401
    """Returns a graph as linalg on tensors.

    Args:
        program: of `functional`.

    Raises:
        StepladderError: an op that torch-mlir does not lower, or that no kernel computes.
    """
    _check_ops(program)
    diagnostics: list[str] = []

    def lowered_or_named() -> str:
        try:
            return _lowered(program, diagnostics)
        except Exception as error:  # of torch-mlir
            is_named = any(map(_NOT_LOWERED.search, diagnostics))
            is_left = not is_named and _LEFT in "".join(diagnostics)
            names = not_lowered(program, lambda single: _lowered(single, [])) if is_left else []
            if not names:
                raise
            raise _unlowered(names) from error

    text = _refusing(lowered_or_named, diagnostics)
    for dialect, what in _FOREIGN.items():
        if re.search(rf"\b{dialect}\.\w", text):
            ops = [f"'{name}'" for name in _names(program) if any(part in name for part in _ORDERING)]
            if dialect == "tm_tensor" and ops:
                what = f"{', '.join(ops)}, {what}"
            raise StepladderError(f"the module has {what}", notes=[_INSTEAD] if dialect == "tm_tensor" else [])
    return text


def _lowered(program: Any, diagnostics: list[str]) -> str:  # noqa: ANN401
    """Returns the linalg of a graph, whose extrema keep NaN; `diagnostics` gets those of MLIR."""
    fx = importlib.import_module("torch_mlir.fx")
    context = importlib.import_module("torch_mlir.ir").Context()
    importlib.import_module("torch_mlir.dialects.torch").register_dialect(context)

    def listen(diagnostic: Any) -> bool:  # noqa: ANN401
        diagnostics.append(diagnostic.message)
        return True

    handler = context.attach_diagnostic_handler(listen)
    try:
        importer = importlib.import_module("torch_mlir.extras.fx_importer").FxImporter(context=context)
        # An empty table: what is decomposed is not decomposed again.
        module = fx.export_and_import(
            program, output_type="linalg-on-tensors", decomposition_table={}, fx_importer=importer
        )
        keep_nan(module)
        return str(module)
    finally:
        handler.detach()


def _refusing(work: Callable[[], Any], diagnostics: Sequence[str]) -> Any:  # noqa: ANN401
    """Returns what a function returns; raises what PyTorch and torch-mlir raise as refusals.

    Args:
        work: the function.
        diagnostics: diagnostics of MLIR, which are written meanwhile.
    """
    try:
        return work()
    except StepladderError as error:
        error.args = (error.message,)  # PyTorch's interpreters of graphs append the op that they execute
        raise
    except AssertionError as error:
        guard = first_line(error).removeprefix("Guard failed: ")
        if guard == first_line(error):
            place = traceback.extract_tb(error.__traceback__)[-1]
            if Path(place.filename).is_relative_to(_PACKAGE):
                raise
            raise _not_exported(guard, error) from error
        raise ArgumentError(f"the inputs have shapes that the module was exported without: not {guard}") from error
    except Exception as error:  # of torch.export and torch-mlir, of many kinds
        names = dict.fromkeys(name for text in diagnostics for name in _NOT_LOWERED.findall(text))
        if names:
            raise _unlowered(names) from error
        message = diagnostics[0] if diagnostics else first_line(error)
        is_by_values = type(error).__name__ == _BY_VALUES  # PyTorch's message is the name of the op
        if is_by_values or _BY_DATA.search(message):
            # Frames of this package are those of modes that see the ops of the module.
            places = [place for place in traceback.extract_tb(error.__traceback__) if _is_of_user(place)]
            named_op = f"'{message}', " if is_by_values else ""
            raise StepladderError(
                f"the module has {named_op}a condition or a number that depends on data, such as `if x.sum() > 0`",
                location=f"{places[-1].filename}:{places[-1].lineno}" if places else None,
                notes=["accepted: torch.where(condition, x, y), which selects elements", _BY_TENSOR],
            ) from error
        if _LITERAL_OF_BYTES in message:
            raise StepladderError(
                "the module has a constant tensor of uint8, or one without elements, which torch-mlir does not lower",
                notes=["accepted: constant tensors of int32, whose sums with one of uint8 are cast"],
            ) from error
        if _UNTRACED in message:
            raise StepladderError(
                "the module makes a tensor that torch.export does not trace, as torch.autograd.grad of a layer may"
            ) from error
        raise _not_exported(message, error) from error


def _not_exported(message: str, error: Exception) -> StepladderError:
    """Returns the refusal of a module that fails when PyTorch traces it, with the line that does, or on which PyTorch
    or torch-mlir fail."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return StepladderError(
        f"the module is not lowered by torch.export and torch-mlir: {message}",
        location=f"{place.filename}:{place.lineno}" if _is_of_user(place) else None,
    )


def _is_of_user(place: traceback.FrameSummary) -> bool:
    """Returns whether a frame is neither PyTorch's, nor torch-mlir's, nor this package's."""
    is_own = not {"torch", "torch_mlir"} & {*Path(place.filename).parts} and not place.filename.startswith("<")
    return is_own and not Path(place.filename).is_relative_to(_PACKAGE)


def _unlowered(names: Iterable[str]) -> StepladderError:
    """Returns the refusal of ops that torch-mlir does not lower."""
    ops = ", ".join(f"'{name}'" for name in names)
    return StepladderError(f"the module has {ops}, which torch-mlir does not lower to linalg", notes=[_INSTEAD])


def _check_derivatives(program: Any) -> None:  # noqa: ANN401
    """Refuses derivatives of `torch.func`, of which graphs have ops that no pass takes."""
    if any(getattr(node.target, "__name__", "") == "_unwrap_for_grad" for node in program.graph.nodes):
        raise StepladderError(
            "the module has derivatives by torch.func, whose graphs torch.export does not lower",
            notes=["accepted: functions of tensors; stepladder.pytorch has operators that record gradients"],
        )


def _names(program: Any) -> list[str]:  # noqa: ANN401
    """Returns the names of the ops of a graph, each once."""
    return list(dict.fromkeys(str(node.target) for node in program.graph.nodes if node.op == "call_function"))


def _check_ops(program: Any) -> None:  # noqa: ANN401
    """Refuses ops on which torch-mlir ends the process or does not end, and complex numbers."""
    for node in program.graph.nodes:
        if _is_of_graphs(node.target):
            op_name = node.args[1] if node.target.name() == "with_effects" else node.target.name()
            loops = (
                ["accepted: a loop of Python, whose iterations become ops"] if op_name in ("scan", "while_loop") else []
            )
            raise StepladderError(f"the module has '{op_name}', which torch-mlir does not lower to linalg", notes=loops)
        if str(node.target) in _PLACED and any(isinstance(argument, torch.fx.Node) for argument in node.args[2:]):
            raise StepladderError(
                f"the module has '{node.target}' at an index that depends on data", notes=[_BY_TENSOR]
            )
        if str(node.target) == "aten.view.dtype":
            raise StepladderError(
                f"the module has 'aten.view.dtype', elements of {node.all_input_nodes[0].meta['val'].dtype} as "
                f"{node.meta['val'].dtype}, which torch-mlir does not lower to linalg",
                notes=["accepted: a tensor that the caller views as this type"],
            )
        if _takes_bytes_as_signed(node):
            raise StepladderError(
                f"the module has '{node.target}' of elements of uint8, which torch-mlir takes as signed integers",
                notes=["accepted: x.to(torch.int32) or x.float() before it"],
            )
        type_ = getattr(node.meta.get("val"), "dtype", None)
        if type_ in _UNSIGNED:
            what = f"'{node.target}'" if node.op == "call_function" else "an input"
            raise StepladderError(
                f"the module has elements of {type_} ({what}), which torch-mlir does not lower to linalg",
                notes=["accepted: integers with a sign, and uint8"],
            )
        extents = getattr(node.meta.get("val"), "shape", ())
        if not all(isinstance(extent, int) for extent in extents):
            raise StepladderError(
                f"the module has '{node.target}', whose result has a size that depends on data",
                notes=["accepted: static sizes, such as those of where(mask, x, 0) instead of x[mask]"],
            )
        if is_complex(node.meta.get("val")):
            what = f"'{node.target}'" if node.op == "call_function" else "an input"
            raise StepladderError(f"the module has complex numbers ({what}), which kernels do not support")


def _is_of_graphs(target: Any) -> bool:  # noqa: ANN401
    """Returns whether an op is one of PyTorch on graphs, such as `torch.cond`."""
    return any(kind.__name__ == "HigherOrderOperator" for kind in type(target).__mro__)


def first_line(error: Exception) -> str:
    """Returns the first line of the message of an error of PyTorch.

    Args:
        error: of any kind.
    """
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return first.removesuffix(_AHEAD)


def _takes_bytes_as_signed(node: Any) -> bool:  # noqa: ANN401
    """Returns whether torch-mlir computes an op of uint8 as one of int8, which differs."""
    if node.op != "call_function" or not str(node.target).startswith("aten."):
        return False
    types = [item.meta["val"].dtype for item in node.all_input_nodes if isinstance(item.meta.get("val"), torch.Tensor)]
    if torch.uint8 not in types:
        return False
    name = str(node.target).split(".")[1]
    if name in _COMPARISONS and all(isinstance(item, (torch.fx.Node, int)) for item in node.args):
        return set(types) != {torch.uint8}
    are_bytes = set(types) == {torch.uint8} and all(isinstance(item, torch.fx.Node) for item in node.args)
    return name not in _OF_BYTES and not (name in _BETWEEN_BYTES and are_bytes)
