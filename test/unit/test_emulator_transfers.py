"""What loads, stores and transfers of vectors read and write in the emulator."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emulator_ops import FEW, function, run, same

# Transfers.


@st.composite
def transfers(draw: st.DrawFn) -> tuple:
    """Draws the shape of a memory, a vector on it, which of its dimensions that shows, starts, bounds, and a mask."""
    shape = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))]
    axes = [*axes, None] if draw(st.booleans()) else list(axes)
    axes = draw(st.permutations(axes))
    sizes = [draw(st.integers(1, 4)) for _ in axes]
    starts = [[draw(st.integers(0, size - 1)) for size in shape] for _ in range(2)]
    masked = draw(st.booleans())
    return shape, axes, sizes, starts, masked


def transfer_text(op: str, shape: Sequence[int], axes: Sequence[int | None], sizes: Sequence[int], masked: bool) -> str:
    dims = ", ".join(f"d{axis}" for axis in range(len(shape)))
    results = ", ".join("0" if axis is None else f"d{axis}" for axis in axes)
    vector = f"vector<{'x'.join(map(str, sizes))}xi32>"
    buffer = f"memref<{'x'.join('?' * len(shape))}xi32>"
    taken = sorted(axis for axis in axes if axis is not None)
    mask = f"vector<{''.join(f'{sizes[axes.index(axis)]}x' for axis in taken)}i1>"
    starts = ", ".join(f"%i{axis}" for axis in range(len(shape)))
    bounds = ", ".join("true" if axis is None else "false" for axis in axes)
    attributes = f"{{permutation_map = affine_map<({dims}) -> ({results})>, in_bounds = [{bounds}]}}"
    arguments = {"m": buffer, **{f"i{axis}": "index" for axis in range(len(shape))}}
    with_mask = ", %k" if masked else ""
    arguments |= {"k": mask} if masked else {}
    if op == "read":
        return function(
            arguments,
            f"%p = arith.constant -7 : i32\n%r = vector.transfer_read %m[{starts}], %p{with_mask} "
            f"{attributes} : {buffer}, {vector}",
            vector,
        )
    inside = ", ".join(f"%{name}: {type_}" for name, type_ in {**arguments, "v": vector}.items())
    return (
        f"func.func @f({inside}) {{\nvector.transfer_write %v, %m[{starts}]{with_mask} {attributes} : {vector}, "
        f"{buffer}\nreturn }}"
    )


def elements_of(
    shape: Sequence[int],
    axes: Sequence[int | None],
    sizes: Sequence[int],
    start: Sequence[int],
    mask: np.ndarray | None,
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Yields the place in the vector and in the memory of all elements, the latter None where nothing is touched."""
    taken = sorted(axis for axis in axes if axis is not None)
    for place in np.ndindex(*sizes):
        at = list(start)
        for number, axis in zip(place, axes):
            if axis is not None:
                at[axis] += number
        inside = all(number < size for number, size in zip(at, shape))
        if mask is not None:
            inside &= bool(mask[tuple(place[axes.index(axis)] for axis in taken)])
        yield place, tuple(at) if inside else None


@FEW
@given(transfers())
def test_transfers_read_what_is_inside(drawn: tuple[object, ...]) -> None:
    shape, axes, sizes, starts, masked = drawn
    content = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    taken = sorted(axis for axis in axes if axis is not None)
    mask = np.random.default_rng(0).random([sizes[axes.index(axis)] for axis in taken]) < 0.5 if masked else None
    code = transfer_text("read", shape, axes, sizes, masked)
    wanted = np.full((2, *sizes), -7, np.int32)
    for lane, start in enumerate(starts):
        for place, at in elements_of(shape, axes, sizes, start, mask):
            if at is not None:
                wanted[(lane, *place)] = content[at]
    masks = [mask] * masked
    assert same(run(code, content, *np.array(starts).T, *masks, lanes=2)[0], wanted)
    assert same(run(code, content, *starts[0], *masks)[0], wanted[0])


@FEW
@given(transfers())
def test_transfers_write_what_is_inside(drawn: tuple[object, ...]) -> None:
    shape, axes, sizes, starts, masked = drawn
    if None in axes:
        return
    taken = sorted(axes)
    mask = np.random.default_rng(0).random([sizes[axes.index(axis)] for axis in taken]) < 0.5 if masked else None
    code = transfer_text("write", shape, axes, sizes, masked)
    vector = np.arange(1, 1 + math.prod(sizes), dtype=np.int32).reshape(sizes)
    wanted = np.zeros(shape, np.int32)
    for place, at in elements_of(shape, axes, sizes, starts[0], mask):
        if at is not None:
            wanted[at] = vector[place]
    arguments = [np.zeros(shape, np.int32), *starts[0], *[mask] * masked]
    assert same(run(code, *arguments, vector)[0], wanted)
    same_lanes = np.stack([vector, vector])
    assert same(run(code, *arguments, same_lanes, lanes=2)[0], wanted)


def test_transfers_on_tensors() -> None:
    tensor = np.arange(12, dtype=np.float32).reshape(3, 4)
    code = function(
        {"t": "tensor<3x4xf32>", "i": "index"},
        "%p = arith.constant -1.0 : f32\n%v = vector.transfer_read %t[%i, %i], %p : tensor<3x4xf32>, "
        "vector<2x2xf32>\n%z = arith.constant 0 : index\n"
        "%r = vector.transfer_write %v, %t[%z, %z] : vector<2x2xf32>, tensor<3x4xf32>",
        "tensor<3x4xf32>",
    )
    wanted = tensor.copy()
    wanted[:2, :2] = [[10, 11], [-1, -1]]
    assert same(run(code, tensor, 2)[0], wanted)
    assert tensor[0, 0] == 0


def test_loads_and_stores() -> None:
    code = (
        "func.func @f(%m: memref<4x4xf32>, %i: index, %k: vector<2xi1>) {\n"
        "%z = arith.constant 0 : index\n%v = vector.load %m[%i, %z] : memref<4x4xf32>, vector<2xf32>\n"
        "%w = vector.maskedload %m[%i, %z], %k, %v : memref<4x4xf32>, vector<2xi1>, vector<2xf32> into vector<2xf32>\n"
        "%s = arith.addf %v, %w : vector<2xf32>\n%two = arith.constant 2 : index\n"
        "vector.maskedstore %m[%i, %two], %k, %s : memref<4x4xf32>, vector<2xi1>, vector<2xf32>\n"
        "vector.store %v, %m[%i, %z] : memref<4x4xf32>, vector<2xf32>\nreturn }"
    )
    content = np.arange(16, dtype=np.float32).reshape(4, 4)
    wanted = content.copy()
    wanted[1:3, 3] = 2 * content[1:3, 1]
    assert same(run(code, content, np.array([1, 2]), np.array([False, True]), lanes=2)[0], wanted)
    code = function(
        {"m": "memref<8xi32>", "x": "vector<3xindex>", "k": "vector<3xi1>", "v": "vector<3xi32>"},
        "%z = arith.constant 1 : index\n%r = vector.gather %m[%z][%x], %k, %v : memref<8xi32>, "
        "vector<3xindex>, vector<3xi1>, vector<3xi32> into vector<3xi32>",
        "vector<3xi32>",
    )
    result = run(
        code,
        np.arange(8, dtype=np.int32),
        np.array([6, 99, 0]),
        np.array([True, False, True]),
        np.full(3, -1, np.int32),
    )[0]
    assert result.tolist() == [7, -1, 1]
