"""`stepladder.matmul`: kernels compiled on first use, one for each shape, kept in memory and on disk."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from stepladder.api.building import AUTO, EMULATOR
from stepladder.api.compiling import compile as compile_kernel
from stepladder.api.compiling import knob_items
from stepladder.api.errors import ArgumentError, EpilogueError, shape_text
from stepladder.api.kernel import Device, Kernel
from stepladder.api.recording import Epilogue
from stepladder.api.results import stream_of
from stepladder.api.rows import bucket_of, check_buckets, compile_rows
from stepladder.api.shapes import Shapes, recognize
from stepladder.api.signature import check_alignment
from stepladder.api.spec import MatmulSpec, sums_of
from stepladder.api.traced import trace
from stepladder.api.views import View, is_on_host, row_major, same_strides, type_name, view_of

# Signatures of calls whose kernels are known.
_KEPT = 2048
# Plans of calls of one shape: of other element types, layouts and GPUs.
_FORMS = 8

_Value = TypeVar("_Value")
_NONE: Sequence[object] = ()
# The type of the result, where it is not that of the operands.
_RESULTS = {"i8": "i32", "f8E4M3FN": "f32", "f8E5M2": "f32"}
_TYPES = ("f16", "bf16", "f32", "f64", "i8", "f8E4M3FN", "f8E5M2")


@dataclass(frozen=True, eq=False)
class _Plan:
    """The plan of a call with one signature: the kernel, and the shapes of the matmul."""

    kernel: Kernel
    shapes: Shapes


_plans: OrderedDict[object, _Plan] = OrderedDict()
_lock = threading.Lock()


class _Calls:
    """Plans by the options of a call and the shapes of A and B; their kernels know the tensors of a call, or not."""

    def __init__(self) -> None:
        self._plans: OrderedDict[object, tuple[_Plan, ...]] = OrderedDict()

    def launch(self, options: tuple, arrays: tuple[Any, ...], out: object, stream: object) -> object | None:
        """Launches a kernel on tensors that it was launched on before; returns None, and does nothing, for others.

        Args:
            options, arrays, out, stream: of the call.
        """
        try:
            plans = self._plans.get((arrays[0].shape, arrays[1].shape, options), ())
        except (AttributeError, TypeError):  # no shape, or one that is no tuple
            return None
        for plan in plans:
            result = plan.kernel.launch_tensors(arrays, out, stream)
            if result is not None:
                return result
        return None

    def keep(self, options: tuple, arrays: tuple[Any, ...], plan: _Plan) -> None:
        """Notes the plan of a call.

        Args:
            options, arrays: of the call.
            plan: of it.
        """
        if not any(is_on_host(array) for array in arrays):
            key = arrays[0].shape, arrays[1].shape, options
            plans = self._plans.get(key, ())
            if plan not in plans:
                _keep(key, (plan, *plans[: _FORMS - 1]), self._plans)


_calls = _Calls()


def matmul(
    a: object,
    b: object,
    *,
    c: object = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[object] = _NONE,
    out: object = None,
    dtype: object = None,
    pipeline: str = AUTO,
    target: str = AUTO,
    device: Device = "auto",
    stream: object = None,
    row_buckets: Sequence[int] | None = None,
    constant_weights: bool = False,
    **knobs: str | int,
) -> Any:  # noqa: ANN401
    """Returns AB, AB + C, or f(AB + C), by a kernel that is compiled when a shape is used first.

    Args:
        a: m x k, or a batch of such matrices, or a vector of k elements, as for `np.matmul`. Row- or column-major
            (`x.T`), dense; an array of NumPy, or one on a GPU with DLPack or `__cuda_array_interface__`, of float16,
            bfloat16, float32, float64, int8, float8_e4m3fn or float8_e5m2. float32 is multiplied with the accuracy of
            float32; allow_tf32=True is faster, and keeps 10 of 23 bits of the fraction. Products of fp8 are summed in
            float32; fast_accum=True sums them in the tensor core, in about 14 bits.
        b: k x n, or a batch, or a vector, of the same element type.
        c: added to the product: m x n, or a row (n,) or (1, n), a column (m, 1), one element. If it is `out`, the
            product is added to it in place.
        epilogue: a function of the product, an array of m x n, and of `operands`: elementwise operations, functions of
            `stepladder.functions` or NumPy. Arrays that it captures are read when the kernel runs; they may be of the
            shapes of `c`. It is traced in every call.
        operands: arrays that the epilogue takes after the product.
        out: the result, row-major; a new array of the same library if None.
        dtype: element type of the result; that of `out`, else of `a`, int32 for int8, float32 for float8.
        pipeline, target, device: as for `stepladder.compile`.
        stream: the stream to launch on; the one that the arrays' library uses now if None.
        row_buckets: numbers of rows that kernels are compiled for, for example `(8, 64)`: a matmul of m rows is
            computed by the kernel of the least of them that has room, which neither reads nor writes rows beyond m;
            one of more rows than all of them has a kernel of its own. None for a kernel for each m.
        constant_weights: as for `stepladder.compile`.
        knobs: values of knobs of the pipeline.

    Returns:
        The result, of the shape that `np.matmul` gives it: `out`, or the new array.

    Raises:
        ArgumentError: an array that is not accepted; the message names it.
        EpilogueError: the epilogue cannot be traced, or has side effects; with the file and the line.
        StepladderError: no pipeline compiles this matmul, or none for a range of rows.
    """
    call: tuple = ()
    buckets = None if row_buckets is None else check_buckets(row_buckets)
    if operands is not _NONE:
        _check_operands(operands, epilogue)
    if c is None and epilogue is None:
        call = dtype, pipeline, target, device, buckets, constant_weights, knob_items(knobs) if knobs else ()
        fast_result = _calls.launch(call, (a, b), out, stream)
        if fast_result is not None:
            return fast_result
    handle = None if stream is None else stream_of(stream)
    seen_a, seen_b = view_of("a", a, handle), view_of("b", b, handle)
    seen_out = None if out is None else view_of("out", out, handle)
    options = (pipeline, target, device, buckets, constant_weights, knob_items(knobs))
    result_type = None if dtype is None else type_name(dtype, "dtype")
    if c is None and epilogue is None:
        out_signature = None if seen_out is None else seen_out.signature
        key = (seen_a.signature, seen_b.signature, out_signature, result_type, options)
        plan = _plans.get(key)
        if plan is None:
            plan = _keep(key, _plan(seen_a, seen_b, seen_out, result_type, None, False, options), _plans)
        result = _run(plan, [seen_a, seen_b], seen_out, stream, (a, b))
        _calls.keep(call, (a, b), plan)
        return result
    in_place = c is not None and c is out
    shapes = _shapes(seen_a, seen_b)
    program, further = _trace(seen_a, shapes, None if in_place else c, epilogue, operands)
    key = (seen_a.signature, seen_b.signature, seen_out and seen_out.signature, result_type, options, program, in_place)
    plan = _plans.get(key)
    if plan is None:
        plan = _keep(key, _plan(seen_a, seen_b, seen_out, result_type, program, in_place, options), _plans)
    return _run(plan, [seen_a, seen_b, *further], seen_out, stream)


class Matmul:
    """A matmul with an epilogue whose calls are as cheap as those of a kernel: one kernel for each signature of arrays.

    Args:
        epilogue: a function of the product and of the operands of a call; None for the product alone. It captures no
            arrays, and is traced once for each signature.
        dtype, pipeline, target, device, row_buckets, constant_weights, knobs: as for `matmul`.
    """

    def __init__(
        self,
        epilogue: Callable[..., Any] | None = None,
        *,
        dtype: object = None,
        pipeline: str = AUTO,
        target: str = AUTO,
        device: Device = "auto",
        row_buckets: Sequence[int] | None = None,
        constant_weights: bool = False,
        **knobs: str | int,
    ) -> None:
        buckets = None if row_buckets is None else check_buckets(row_buckets)
        self._epilogue = epilogue
        self._dtype = None if dtype is None else type_name(dtype, "dtype")
        self._options = (pipeline, target, device, buckets, constant_weights, knob_items(knobs))
        self._plans: OrderedDict[object, _Plan] = OrderedDict()
        self._calls = _Calls()

    def __call__(self, a: object, b: object, *operands: object, out: object = None, stream: object = None) -> Any:  # noqa: ANN401
        """Returns f(AB).

        Args:
            a, b, out, stream: as for `matmul`.
            operands: arrays that the epilogue takes after the product.

        Raises:
            ArgumentError: an array that is not accepted.
            EpilogueError: the epilogue cannot be traced, has side effects, or captures an array.
            StepladderError: no pipeline compiles this matmul.
        """
        arrays = (a, b, *operands)
        fast_result = self._calls.launch((), arrays, out, stream)
        if fast_result is not None:
            return fast_result
        handle = None if stream is None else stream_of(stream)
        names = ["a", "b", *(f"operands[{number}]" for number in range(len(operands)))]
        views = [view_of(name, array, handle) for name, array in zip(names, arrays)]
        seen_out = None if out is None else view_of("out", out, handle)
        key = (*(view.signature for view in views), seen_out and seen_out.signature)
        plan = self._plans.get(key)
        if plan is None:
            plan = _keep(key, self._compiled(views, operands, seen_out), self._plans)
        result = _run(plan, views, seen_out, stream, arrays)
        self._calls.keep((), arrays, plan)
        return result

    def _compiled(self, views: list[View], operands: Sequence[object], out: View | None) -> _Plan:
        program, arrays = _trace(views[0], _shapes(views[0], views[1]), None, self._epilogue, operands)
        if len(arrays) != len(operands) or any(view.array is not item for view, item in zip(arrays, operands)):
            code = getattr(self._epilogue, "__code__", None)
            raise EpilogueError(
                f"the epilogue reads {len(arrays)} arrays, and a call passes {len(operands)}",
                location=f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None,
                notes=["accepted: each array once, as an operand of the call; stepladder.matmul takes captured ones"],
            )
        return _plan(views[0], views[1], out, self._dtype, program, False, self._options)


def precompile(
    specs: Iterable[MatmulSpec], *, pipeline: str = AUTO, target: str = AUTO, workers: int = 1, **knobs: str | int
) -> list[Kernel]:
    """Compiles a list of matmuls ahead of time, so that the calls that need them find them in the cache.

    Args:
        specs: what to compile.
        pipeline, target, knobs: as for `compile`; a target that is named needs no GPU.
        workers: threads that compile at one time.

    Returns:
        The kernels, in order.

    Raises:
        ArgumentError: what is no list of matmuls, or no number of threads.
        StepladderError: as for `compile`.
    """
    if isinstance(specs, MatmulSpec) or not isinstance(specs, Iterable):
        raise ArgumentError(f"argument 'specs' is a {type(specs).__name__}; accepted: several of MatmulSpec")
    if not isinstance(workers, int) or workers < 1:
        raise ArgumentError(f"argument 'workers' is {workers!r}; accepted: numbers of at least 1")
    with ThreadPoolExecutor(max_workers=workers) as pool:

        def compile_one(spec: MatmulSpec) -> Kernel:
            kernel = compile_kernel(spec, pipeline=pipeline, target=target, **dict[str, Any](knobs))
            assert isinstance(kernel, Kernel)  # of one matmul
            return kernel

        return list(pool.map(compile_one, specs))


def _keep(key: object, value: _Value, plans: OrderedDict[object, _Value]) -> _Value:
    with _lock:
        plans[key] = value
        while len(plans) > _KEPT:
            plans.popitem(last=False)
    return value


def _check_operands(operands: object, epilogue: object) -> None:
    """Refuses operands that nothing takes."""
    if not isinstance(operands, (list, tuple)):
        raise ArgumentError(
            f"argument 'operands' is a {type(operands).__name__}; accepted: a list or a tuple of arrays"
        )
    if epilogue is None and operands:
        raise ArgumentError("argument 'operands' is given without an epilogue, which would take them")


def _shapes(a: View, b: View) -> Shapes:
    """Returns the sizes and layouts of a product; checks the element types."""
    if a.type not in _TYPES:
        raise ArgumentError(f"argument 'a' has elements of {a.type}; accepted: {', '.join(_TYPES)}")
    if b.type != a.type:
        raise ArgumentError(f"argument 'b' has elements of {b.type}; accepted: {a.type}, as argument 'a' has")
    return recognize(a, b)


def _trace(
    a: View, shapes: Shapes, c: object, epilogue: Callable[..., Any] | None, operands: Sequence[object]
) -> tuple[Epilogue | None, tuple[View, ...]]:
    """Returns the elementwise ops after the product: the sum with `c`, then the epilogue."""
    if c is None and epilogue is None:
        return None, ()
    if shapes.batch is not None:
        raise ArgumentError(
            f"argument '{'c' if c is not None else 'epilogue'}' is given for a batch of {shapes.batch} matrices b, and "
            "elementwise ops are fused into single matmuls",
            notes=["accepted: a batch of matrices a with one matrix b, whose rows are those of one matmul"],
        )
    arrays = [*([] if c is None else [("c", c)]), *((f"operands[{i}]", item) for i, item in enumerate(operands))]
    if c is None:
        assert epilogue is not None
        return trace(epilogue, sums_of(a.type), shapes.m, shapes.n, a.device, arrays)
    function = epilogue

    def with_c(product: Any, addend: Any, *others: Any) -> Any:  # noqa: ANN401
        total = product + addend
        return total if function is None else function(total, *others)

    return trace(with_c, sums_of(a.type), shapes.m, shapes.n, a.device, arrays, names_of=function)


def _plan(
    a: View, b: View, out: View | None, dtype: str | None, epilogue: Epilogue | None, in_place: bool, options: tuple
) -> _Plan:
    """Compiles the kernel of a call."""
    shapes = _shapes(a, b)
    c_type = _RESULTS.get(a.type, a.type)
    if epilogue is not None and a.type == "i8" and not epilogue.type.startswith("i"):
        c_type = "f32"
    c_type = dtype or (out.type if out is not None else c_type)
    if out is not None:
        if out.type != c_type:
            raise ArgumentError(f"argument 'out' has elements of {out.type}; accepted: {c_type}")
        if out.shape != shapes.result:
            raise ArgumentError(
                f"argument 'out' is {shape_text(out.shape)}; accepted: {shape_text(shapes.result)}, the shape of the "
                "product"
            )
        if not same_strides(out.shape, out.strides, row_major(out.shape)):
            raise ArgumentError(
                f"argument 'out' has strides {out.strides} in elements; accepted: contiguous, row-major",
                notes=["an array made by empty() is; out=None makes one"],
            )
    pipeline, target, device, buckets, constant_weights, knobs = options
    spec = MatmulSpec(
        shapes.m,
        shapes.n,
        shapes.k,
        a.type,
        c_type,
        sums_of(a.type),
        shapes.a_layout,
        shapes.b_layout,
        shapes.batch,
        shapes.broadcast,
        in_place,
        epilogue,
    )
    if a.device is not None and device == EMULATOR:
        raise ArgumentError("argument 'a' is on a GPU, and device = 'emulator' takes arrays in host memory")
    ordinal = device if a.device is None else a.device
    bucket = bucket_of(shapes.m, buckets or ())
    if bucket is not None:
        common = {"pipeline": pipeline, "target": target, "device": ordinal, "constant_weights": constant_weights}
        return _Plan(compile_rows(replace(spec, m=bucket), shapes.m, knobs=dict(knobs), **common), shapes)
    kernel = compile_kernel(
        spec, pipeline=pipeline, target=target, device=ordinal, constant_weights=constant_weights, **dict(knobs)
    )
    assert isinstance(kernel, Kernel)  # of one matmul
    return _Plan(kernel, shapes)


def _run(plan: _Plan, views: list[View], out: View | None, stream: object, arrays: Sequence[object] = ()) -> Any:  # noqa: ANN401
    """Runs a kernel on arrays in the shapes that the caller has."""
    for view in (*views, *(() if out is None else (out,))):
        check_alignment(view)
    return plan.kernel.run(views, out, stream, plan.shapes.result, arrays)
