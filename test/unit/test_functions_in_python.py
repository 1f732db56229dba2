"""Functions with several matmuls, called on arrays by the Python interface."""

import operator
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import stepladder
from stepladder.api import building, store
from stepladder.pipeline.codegen import cache
from stepladder.runtime.errors import StepladderError

INPUTS = Path(__file__).parents[1] / "inputs" / "functions"

pytestmark = pytest.mark.usefixtures("needs_ptxas")


def text_of(name: str) -> str:
    return (INPUTS / f"{name}.mlir").read_text()


def test_a_result_of_one_number() -> None:
    text = "func.func @f(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {\n"
    text += "  %c = arith.addf %a, %b : tensor<f32>\n  return %c : tensor<f32>\n}\n"
    function = stepladder.compile(text, device="emulator", target="sm_90a")
    assert isinstance(function, stepladder.Function)
    assert function(np.array(1.5, np.float32), np.array(2, np.float32)) == 3.5


def test_an_index_out_of_range_is_found() -> None:
    """Masks, and indices of 64 bits, are arguments; the assertions of a front end stay in the kernel."""
    function = stepladder.compile(text_of("masked_embedding"), device="emulator", target="sm_90a")
    rng = np.random.default_rng(0)
    ids, keep = rng.integers(0, 10, (2, 8)), rng.random((2, 8)) < 0.5
    table, weight = (rng.standard_normal(shape).astype(np.float16) for shape in ((10, 16), (16, 24)))
    got, some, total = function(ids, keep, table, weight)
    wanted = np.tanh(np.where(keep[..., None], table[ids], 0).astype(np.float64) @ weight.astype(np.float64))
    assert np.abs(got - wanted).max() < 2e-3
    assert np.array_equal(some, keep.any(-1)) and np.array_equal(total, ids.sum(-1)) and total.dtype == np.int64
    ids[1, 3] = 10
    with pytest.raises(StepladderError, match="the emulator found 1 faults") as caught:
        function(ids, keep, table, weight)
    assert "index must be smaller than dim size" in caught.value.notes[0]
    with pytest.raises(stepladder.ArgumentError, match="'argument 0' has elements of i32; accepted: i64"):
        function(ids.astype(np.int32), keep, table, weight)


def test_called_from_python(tmp_path: Path) -> None:
    text = text_of("odd_sizes")
    function = stepladder.compile(text, device="emulator", target="sm_90a")
    assert isinstance(function, stepladder.Function)
    generator = np.random.default_rng(0)
    arrays = [(generator.standard_normal(item.shape) / 4).astype(np.float16) for item in function.inputs]
    x, w, bias, v, other = (array.astype(np.float64) for array in arrays)
    wanted = np.maximum(x @ w.T + bias, 0) @ v.T + other
    got = function(*arrays)
    assert np.abs(got - wanted).max() < 2e-2
    out = np.empty_like(got)
    assert function(*arrays, out=out) is out and (out == got).all()
    function.save(tmp_path / "odd.bundle")
    assert (stepladder.load(tmp_path / "odd.bundle", device="emulator")(*arrays) == got).all()
    assert "call @odd_sizes_matmul_0" in function.ir("outline_elementwise")
    assert stepladder.compile(text, device="emulator", target="sm_90a").manifest is function.manifest
    with pytest.raises(stepladder.ArgumentError, match="4 arrays were passed, and the function takes 5"):
        function(*arrays[1:])
    with pytest.raises(stepladder.ArgumentError, match="argument 'argument 1' is 33 x 29; accepted: 29 x 33"):
        function(arrays[0], arrays[1].T, *arrays[2:])
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' overlaps argument"):
        flat = np.zeros(7 * 33, np.float16)
        function(flat.reshape(7, 33), *arrays[1:], out=flat[: 7 * 11].reshape(7, 11))
    with pytest.raises(
        stepladder.ArgumentError, match=r"no step 'outline_matmul' ran \(did you mean 'outline_matmuls'\?\)"
    ):
        function.ir("outline_matmul")


def test_a_function_is_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLADDER_CACHE_DIR", str(tmp_path / "cache"))
    compiled, keys = [], []
    build_function, save_function = building._build_function, store.save_function
    monkeypatch.setattr(building, "_build_function", lambda *job: compiled.append(job) or build_function(*job))
    monkeypatch.setattr(store, "save_function", lambda key, made: keys.append(key) or save_function(key, made))

    def compiled_anew() -> stepladder.Function:
        monkeypatch.setattr(building, "_functions", type(building._functions)())
        made = stepladder.compile(text_of("norm_linear"), device="emulator", target="sm_90a")
        assert isinstance(made, stepladder.Function)
        return made

    function = compiled_anew()
    generator = np.random.default_rng(0)
    arrays = [(generator.standard_normal(item.shape) / 4).astype(np.float16) for item in function.inputs]
    stored = compiled_anew()
    assert len(compiled) == 1 and stored.manifest == function.manifest
    assert (stored(*arrays) == function(*arrays)).all()
    # The cache has no IR: the function is divided again for those who look at it.
    assert stored.ir("outline_elementwise") == function.ir("outline_elementwise") and len(compiled) == 2
    stored.save(tmp_path / "stored.bundle")
    saved = stepladder.load(tmp_path / "stored.bundle", device="emulator")
    assert (saved(*arrays) == function(*arrays)).all() and len(compiled) == 2
    with pytest.raises(StepladderError, match=r"the function was loaded from '.*stored.bundle'; copy this folder"):
        saved.save(tmp_path / "again.bundle")
    # A damaged entry, and a cache that was deleted, cost a compilation.
    value = cache.lookup(f"function {keys[0]}", store._FUNCTION_KINDS)
    cache.store(f"function {keys[0]}", {**value, "kernels": "{}"})
    compiled_anew()
    assert len(compiled) == 3
    shutil.rmtree(tmp_path / "cache")
    assert compiled_anew().manifest == function.manifest and len(compiled) == 4


def test_a_padding_of_less_than_nothing_by_numbers_of_places_is_refused() -> None:
    text = """func.func @f(%x: tensor<8x8xf32>) -> tensor<7x8xf32> {
  %0 = tensor.pad %x low[-1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    %row = arith.index_cast %i : index to i32
    %number = arith.sitofp %row : i32 to f32
    tensor.yield %number : f32
  } : tensor<8x8xf32> to tensor<7x8xf32>
  return %0 : tensor<7x8xf32>
}
"""
    with pytest.raises(StepladderError) as caught:
        stepladder.compile(text, device="emulator", target="sm_80")
    assert "tensor.pad by -1 elements" in caught.value.render()


# A batch of products of one row, which kernels without matrix units compute.
ROWS = """func.func @f(%a: memref<4x1x32xf32>, %b: memref<4x32x16xf32>, %c: memref<4x1x16xf32>) {
  linalg.batch_matmul ins(%a, %b : memref<4x1x32xf32>, memref<4x32x16xf32>) outs(%c : memref<4x1x16xf32>)
  return
}
"""
FROM_ZERO = ROWS.replace(
    ") {\n",
    """) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<4x1x16xf32>)
""",
    1,
)


def rows() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 4, shape).astype(np.float32) for shape in ((4, 1, 32), (4, 32, 16), (4, 1, 16))]


def test_a_buffer_that_is_read_and_written_is_changed(tmp_path: Path) -> None:
    """In its place, or in `out`, also of a bundle that is loaded."""
    function = stepladder.compile(ROWS, device="emulator", target="sm_80")
    assert isinstance(function, stepladder.Function) and function.updated == {0: 2}
    path = tmp_path / "rows.bundle"
    function.save(path)
    a, b, c = rows()
    for made in (function, stepladder.load(path, device="emulator")):
        for place in (False, True):
            held = c.copy()
            got = made(a, b, held) if place else made(a, b, out=held)
            assert got is held
            np.testing.assert_array_equal(held, a @ b + c)
    apart = np.empty_like(c)
    assert function(a, b, c, out=apart) is apart
    np.testing.assert_array_equal(apart, a @ b + c)
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' is missing: the function reads it"):
        function(a, b)


# A buffer that an elementwise op changes in its place.
DOUBLED = """func.func @f(%a: memref<8x16xf16>, %b: memref<16x8xf16>, %c: memref<8x8xf16>, %d: memref<8x8xf16>) {
  linalg.matmul ins(%a, %b : memref<8x16xf16>, memref<16x8xf16>) outs(%d : memref<8x8xf16>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%c : memref<8x8xf16>) {
  ^bb0(%x: f16):
    %sum = arith.addf %x, %x : f16
    linalg.yield %sum : f16
  }
  return
}
"""


def test_a_buffer_that_is_changed_in_its_place_or_as_a_copy() -> None:
    function = stepladder.compile(DOUBLED, device="emulator", target="sm_80")
    assert isinstance(function, stepladder.Function)
    assert (function.in_place, function.updated) == ({0: 2}, {0: 2, 1: 3})
    rng = np.random.default_rng(0)
    a, b, c, d = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((8, 16), (16, 8), (8, 8), (8, 8)))
    wanted = 2 * c, a.astype(np.float64) @ b + d
    held, apart = (c.copy(), d.copy()), (np.empty_like(c), np.empty_like(d))
    function(a, b, *held, out=apart)
    np.testing.assert_array_equal(held, (c, d))
    np.testing.assert_array_equal(apart, wanted)
    assert all(map(operator.is_, function(a, b, *held), held))
    np.testing.assert_array_equal(held, wanted)
    overlapping = np.empty((9, 8), np.float16)
    overlapping[:8] = c
    with pytest.raises(stepladder.ArgumentError, match="overlaps"):
        function(a, b, overlapping[:8], d, out=(overlapping[1:], d))
    with pytest.raises(stepladder.ArgumentError, match="argument 'out' must be a sequence of 2 arrays"):
        function(a, b, c, d, out=c)


def test_a_buffer_that_is_written_follows_the_others() -> None:
    function = stepladder.compile(FROM_ZERO, device="emulator", target="sm_80")
    assert isinstance(function, stepladder.Function) and not function.updated
    a, b, c = rows()
    for got in (function(a, b), function(a, b, out=c), function(a, b, c)):
        np.testing.assert_array_equal(got, a @ b)
    np.testing.assert_array_equal(c, a @ b)
    with pytest.raises(stepladder.ArgumentError, match="4 arrays were passed, and the function takes 2"):
        function(a, b, c, c)


# Two buffers that are changed beside one that is written.
THREE = """func.func @f(%a: memref<8x16xf16>, %b: memref<16x8xf16>, %c: memref<8x8xf32>, %d: memref<8x8xf32>,
    %e: memref<8x8xf32>) {
  linalg.matmul ins(%a, %b : memref<8x16xf16>, memref<16x8xf16>) outs(%c : memref<8x8xf32>)
  linalg.matmul ins(%a, %b : memref<8x16xf16>, memref<16x8xf16>) outs(%d : memref<8x8xf32>)
  memref.copy %c, %e : memref<8x8xf32> to memref<8x8xf32>
  return
}
"""


def test_several_buffers() -> None:
    function = stepladder.compile(THREE, device="emulator", target="sm_80")
    assert isinstance(function, stepladder.Function) and function.updated == {0: 2, 1: 3}
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((8, 16), (16, 8)))
    product = a.astype(np.float32) @ b.astype(np.float32)
    for names in ("cd", "cde", ""):
        held = dict(zip("cde", (np.full((8, 8), number, np.float32) for number in (1, 2, 9))))
        placed = [held[name] for name in names]
        outs = function(a, b, *placed, out=None if placed else list(held.values()))
        assert outs[0] is held["c"] and outs[1] is held["d"] and (outs[2] is held["e"]) == (names != "cd")
        for got, start in zip(outs, (1, 2, 1)):
            np.testing.assert_array_equal(got, product + start)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_matmul_in_bf16_that_accumulates_rounds_once(batch: tuple[int, ...]) -> None:
    """In each kernel of a function, as in one by itself: sums in f32, to which C is added before they are rounded."""
    name = "linalg.batch_matmul" if batch else "linalg.matmul"
    extents = {"a": (16, 64), "b": (64, 32), "c": (16, 32), "w": (32, 24), "d": (16, 24)}
    of = {key: f"tensor<{'x'.join(map(str, (*batch, *value)))}xbf16>" for key, value in extents.items()}
    text = f"""func.func @f({", ".join(f"%{key}: {type_}" for key, type_ in of.items())}) -> {of["d"]} {{
  %p = {name} ins(%a, %b : {of["a"]}, {of["b"]}) outs(%c : {of["c"]}) -> {of["c"]}
  %q = {name} ins(%p, %w : {of["c"]}, {of["w"]}) outs(%d : {of["d"]}) -> {of["d"]}
  return %q : {of["d"]}
}}"""
    rng = np.random.default_rng(0)
    a, b, c, w, d = (rng.standard_normal((*batch, *extent)).astype(ml_dtypes.bfloat16) for extent in extents.values())
    got = stepladder.compile(text, device="emulator", target="sm_80")(a, b, c, w, d)

    def exactly(left: np.ndarray, right: np.ndarray, start: np.ndarray) -> np.ndarray:
        left, right, start = (array.astype(np.float64) for array in (left, right, start))
        return (left @ right + start).astype(ml_dtypes.bfloat16)

    np.testing.assert_array_equal(got, exactly(exactly(a, b, c), w, d))
