"""What ops on tensors compute in the emulator, beside NumPy."""

from collections.abc import Callable

import numpy as np
import pytest

from emulator_ops import function, run, same
from stepladder.runtime.errors import StepladderError

# Tensors.


@pytest.mark.parametrize(
    ("body", "result", "model"),
    [
        (
            "%r = tensor.extract_slice %t[%i, 0] [1, 3] [1, 2] : tensor<4x6xf32> to tensor<3xf32>",
            "tensor<3xf32>",
            lambda t: t[2, 0:6:2],
        ),
        (
            "%r = tensor.extract_slice %t[1, %i] [%i, 1] [1, 1] : tensor<4x6xf32> to tensor<?x1xf32>",
            "tensor<?x1xf32>",
            lambda t: t[1:3, 2:3],
        ),
        (
            (
                "%s = tensor.extract_slice %t[0, 0] [2, 1] [1, 1] : tensor<4x6xf32> to tensor<2xf32>\n"
                "%r = tensor.insert_slice %s into %t[2, 5] [2, 1] [1, 1] : tensor<2xf32> into tensor<4x6xf32>"
            ),
            "tensor<4x6xf32>",
            lambda t: np.c_[t[:, :5], np.r_[t[:2, 5], t[:2, 0]]],
        ),
        (
            (
                "%z = arith.constant 9.0 : f32\n%r = tensor.pad %t low[1, 0] high[0, %i] {\n"
                "^bb0(%x: index, %y: index):\ntensor.yield %z : f32 } : tensor<4x6xf32> to tensor<5x?xf32>"
            ),
            "tensor<5x?xf32>",
            lambda t: np.pad(t, ((1, 0), (0, 2)), constant_values=9),
        ),
        (
            (
                "%n = tensor.from_elements %i, %o, %i : tensor<3x1xindex>\n"
                "%r = tensor.gather %t[%n] gather_dims([0]) : (tensor<4x6xf32>, tensor<3x1xindex>) -> tensor<3x6xf32>"
            ),
            "tensor<3x6xf32>",
            lambda t: t[[2, 0, 2]],
        ),
        (
            (
                "%n = tensor.from_elements %i, %o : tensor<2x1xindex>\n"
                "%s = tensor.gather %t[%n] gather_dims([1]) : (tensor<4x6xf32>, tensor<2x1xindex>) -> "
                "tensor<2x4x1xf32>\n"
                "%m = tensor.from_elements %o, %i : tensor<2x1xindex>\n"
                "%r = tensor.scatter %s into %t[%m] scatter_dims([1]) unique : "
                "(tensor<2x4x1xf32>, tensor<4x6xf32>, tensor<2x1xindex>) -> tensor<4x6xf32>"
            ),
            "tensor<4x6xf32>",
            lambda t: t[:, [2, 1, 0, 3, 4, 5]],
        ),
        ("%r = tensor.collapse_shape %t [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>", "tensor<24xf32>", np.ravel),
        (
            (
                "%d = tensor.cast %t : tensor<4x6xf32> to tensor<?x6xf32>\n%r = tensor.expand_shape %d [[0, 1], [2]] "
                "output_shape [%i, 2, 6] : tensor<?x6xf32> into tensor<?x2x6xf32>"
            ),
            "tensor<?x2x6xf32>",
            lambda t: t.reshape(2, 2, 6),
        ),
        (
            "%r = tensor.concat dim(1) %t, %t : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>",
            "tensor<4x12xf32>",
            lambda t: np.c_[t, t],
        ),
        (
            (
                "%r = tensor.generate %i {\n^bb0(%x: index, %y: index):\n"
                "%e = tensor.extract %t[%x, %y] : tensor<4x6xf32>\n"
                "tensor.yield %e : f32 } : tensor<?x3xf32>"
            ),
            "tensor<?x3xf32>",
            lambda t: t[:2, :3],
        ),
        (
            "%e = tensor.extract %t[%i, %i] : tensor<4x6xf32>\n%r = tensor.insert %e into %t[%o, %o] : tensor<4x6xf32>",
            "tensor<4x6xf32>",
            lambda t: np.r_[[np.r_[t[2, 2], t[0, 1:]]], t[1:]],
        ),
        (
            "%e = tensor.extract %t[%i, %i] : tensor<4x6xf32>\n%r = tensor.from_elements %e, %e : tensor<2xf32>",
            "tensor<2xf32>",
            lambda t: np.array([t[2, 2]] * 2),
        ),
        (
            (
                "%e = tensor.empty() : tensor<2x3x2x2xf32>\n%r = linalg.pack %t outer_dims_perm = [0, 1] "
                "inner_dims_pos = [1, 0] "
                "inner_tiles = [2, 2] into %e : tensor<4x6xf32> -> tensor<2x3x2x2xf32>"
            ),
            "tensor<2x3x2x2xf32>",
            lambda t: t.reshape(2, 2, 3, 2).transpose(0, 2, 3, 1),
        ),
        (
            (
                "%e = tensor.empty() : tensor<2x3x2x2xf32>\n%p = linalg.pack %t inner_dims_pos = [0, 1] "
                "inner_tiles = [2, 2] into "
                "%e : tensor<4x6xf32> -> tensor<2x3x2x2xf32>\n%r = linalg.unpack %p inner_dims_pos = [0, 1] "
                "inner_tiles = [2, 2] "
                "into %t : tensor<2x3x2x2xf32> -> tensor<4x6xf32>"
            ),
            "tensor<4x6xf32>",
            lambda t: t,
        ),
    ],
)
def test_tensors_beside_numpy(body: str, result: str, model: Callable[..., object]) -> None:
    code = function({"t": "tensor<4x6xf32>", "i": "index", "o": "index"}, body, result)
    tensor = np.arange(24, dtype=np.float32).reshape(4, 6)
    before = tensor.copy()
    assert same(run(code, tensor, 2, 0)[0], np.ascontiguousarray(model(before)))
    assert same(tensor, before)


def test_empty_tensors_are_poison_and_slices_stay_inside() -> None:
    (result,) = run(function({}, "%r = tensor.empty() : tensor<2xbf16>", "tensor<2xbf16>"))
    assert np.isnan(result).all()
    assert np.isnan(run(function({}, "%r = ub.poison : f32", "f32"))[0])
    code = function(
        {"t": "tensor<4xf32>", "i": "index"},
        "%r = tensor.extract_slice %t[%i] [3] [1] : tensor<4xf32> to tensor<3xf32>",
        "tensor<3xf32>",
    )
    with pytest.raises(StepladderError, match=r"tensor.extract_slice goes beyond the 4 elements of dimension 0"):
        run(code, np.zeros(4, np.float32), 2)


def test_between_tensors_and_memory() -> None:
    code = """
    func.func @f(%m: memref<2x3xf32>, %n: memref<2x3xf32>) {
      %t = bufferization.to_tensor %m restrict : memref<2x3xf32> to tensor<2x3xf32>
      %b = bufferization.to_buffer %t read_only : tensor<2x3xf32> to memref<2x3xf32, strided<[?, ?], offset: ?>>
      %u = bufferization.to_tensor %b restrict : memref<2x3xf32, strided<[?, ?], offset: ?>> to tensor<2x3xf32>
      %s = linalg.add ins(%t, %u : tensor<2x3xf32>, tensor<2x3xf32>) outs(%t : tensor<2x3xf32>) -> tensor<2x3xf32>
      bufferization.materialize_in_destination %s in restrict writable %n : (tensor<2x3xf32>, memref<2x3xf32>) -> ()
      return
    }"""
    m = np.arange(6, dtype=np.float32).reshape(2, 3)
    before, after = run(code, m, np.zeros_like(m))
    assert same(before, m) and same(after, 2 * m)


def test_ops_that_are_not_known_are_located() -> None:
    code = function(
        {"c": "tensor<4xf32>"},
        "%r = sparse_tensor.convert %c : tensor<4xf32> to tensor<4xf32>",
        "tensor<4xf32>",
    )
    with pytest.raises(StepladderError, match=r"does not support sparse_tensor.convert") as caught:
        run(code, np.zeros(4, np.float32))
    assert caught.value.location
