"""Types that the bindings have no accessors for: each is read back from the text that MLIR prints."""

from collections.abc import Callable, Iterator

import pytest

from stepladder.mlir import types
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.Context(), ir.Location.unknown():
        yield


@pytest.mark.parametrize(
    "name, bits", [("f16", 16), ("bf16", 16), ("f32", 32), ("tf32", 19), ("f8E4M3FN", 8), ("f8E5M2", 8), ("i1", 1)]
)
def test_widths_and_names(name: str, bits: int) -> None:
    type_ = ir.Type.parse(name)
    assert types.bit_width(type_) == bits
    assert types.byte_width(type_) == bits // 8
    assert types.name_of(type_) == name


def test_an_index_has_no_width() -> None:
    with pytest.raises(ValueError, match="index has no width"):
        types.bit_width(ir.IndexType.get())


def test_row_major_strides() -> None:
    assert types.row_major_strides([2, 3, 4]) == [12, 4, 1]
    assert types.row_major_strides([]) == []


@pytest.mark.parametrize(
    "text, name",
    [
        ("memref<4xf32, #gpu.address_space<workgroup>>", "workgroup"),
        ("memref<4xf32, #gpu.address_space<global>>", "global"),
        ("memref<4xf32, 3>", None),
        ('memref<4xf32, "workgroup">', None),
        ("memref<4xf32>", None),
    ],
)
def test_address_spaces(text: str, name: str | None) -> None:
    type_ = ir.MemRefType(ir.Type.parse(text))
    assert types.address_space_name(type_.memory_space) == name
    assert types.is_workgroup_memory(type_) == (name == "workgroup")
    if name is not None:
        assert types.address_space(name) == type_.memory_space


def test_dimensions() -> None:
    module = ir.Module.parse("func.func @f() {\n %0 = gpu.block_id z\n %1 = gpu.thread_id x\n return\n}")
    assert [types.dimension_of(op) for op in walk(module, "gpu.block_id", "gpu.thread_id")] == ["z", "x"]


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_tensor_maps(swizzle: int) -> None:
    type_ = types.tensor_map(64, 16, ir.Type.parse("bf16"), swizzle)
    assert types.is_tensor_map(type_)
    assert types.tensor_map_swizzle(type_) == swizzle
    # The width of the box is no swizzle.
    assert str(type_).startswith("!nvgpu.tensormap.descriptor<tensor = memref<64x16xbf16, 3>")


def test_a_tensor_map_without_swizzle() -> None:
    text = str(types.tensor_map(64, 64, ir.Type.parse("f16"), 128)).replace("swizzle_128b", "none")
    type_ = ir.Type.parse(text)
    assert types.is_tensor_map(type_)
    assert types.tensor_map_swizzle(type_) == 0


@pytest.mark.parametrize("name", ["f32", "f16"])
def test_accumulators(name: str) -> None:
    type_ = types.accumulator(128, 96, ir.Type.parse(name))
    assert types.is_accumulator(type_)
    assert not types.is_tensor_map(type_)
    vector = types.accumulator_vector(type_)
    assert vector.shape == [128, 96]
    assert types.name_of(vector.element_type) == name


@pytest.mark.parametrize("name", ["f16", "tf32", "f8E4M3FN"])
def test_matrix_descriptors(name: str) -> None:
    tile = types.matrix_descriptor_tile(types.matrix_descriptor(64, 256, ir.Type.parse(name)))
    assert tile.shape == [64, 256]
    assert types.name_of(tile.element_type) == name
    assert types.is_workgroup_memory(tile)


def test_groups_of_mbarriers() -> None:
    assert str(types.mbarrier_group(4)) == (
        "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>"
    )


@pytest.mark.parametrize("read", [types.tensor_map_swizzle, types.accumulator_vector, types.matrix_descriptor_tile])
def test_other_types_are_refused(read: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="'f32' is not of the form"):
        read(ir.Type.parse("f32"))


@pytest.mark.parametrize(
    "name, expected",
    [("i8", True), ("si8", False), ("index", True), ("bf16", True), ("f8E4M3FN", True), ("complex<f32>", False)],
)
def test_numbers(name: str, expected: bool) -> None:
    assert types.is_number(ir.Type.parse(name)) == expected


def test_what_operands_of_matrix_units_hold() -> None:
    matrix = ir.Type.parse('!gpu.mma_matrix<16x8xf16, "AOp">')
    assert types.mma_matrix(matrix) == types.mma_matrix(str(matrix)) == (16, 8, "f16", "AOp")
    with pytest.raises(ValueError, match="is not of the form"):
        types.mma_matrix(ir.IndexType.get())
    assert types.warpgroup_tile(types.accumulator(64, 128, ir.Type.parse("f32"))) == (64, 128, "f32")
    assert types.warpgroup_tile(types.matrix_descriptor(128, 64, ir.Type.parse("bf16"))) == (128, 64, "bf16")


def test_mbarriers() -> None:
    assert types.mbarrier_count(types.mbarrier_group(4)) == 4
