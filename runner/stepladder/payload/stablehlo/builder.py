"""Creates ops of StableHLO: tensors with operators, at the insertion point of the caller."""

from __future__ import annotations

from collections.abc import Sequence

from stepladder.mlir.bindings import ir

Number = float | int | bool
# Indices of StableHLO's dimensions.
_I64 = 64
# Neutral elements of folds, for those that all types share.
_NEUTRAL = {"stablehlo.add": 0, "stablehlo.multiply": 1}


def integers(numbers: Sequence[int]) -> ir.Attribute:
    """Returns an attribute of dimensions or sizes.

    Args:
        numbers: the integers, in order.
    """
    return ir.DenseI64ArrayAttr.get(list(numbers))


def number(count: int) -> ir.Attribute:
    """Returns an attribute of one dimension.

    Args:
        count: its number.
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(_I64), count)


def created(name: str, type_: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    """Creates an op and returns its one result.

    Args:
        name: of the op.
        type_: of the result.
        operands: values.
        attributes: by name.
    """
    return ir.Operation.create(name, results=[type_], operands=list(operands), attributes=attributes).results[0]


class Tensor:
    """A value of StableHLO of a static shape, with the operators of an array; other operands are constants or tensors
    of the same shape and element type.

    Args:
        value: a tensor.
    """

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    @property
    def type(self) -> ir.RankedTensorType:
        """Its type."""
        return ir.RankedTensorType(self.value.type)

    @property
    def shape(self) -> list[int]:
        """Its extents."""
        return list(self.type.shape)

    @property
    def element(self) -> ir.Type:
        """Its element type."""
        return self.type.element_type

    def like(self, other: Tensor | Number) -> Tensor:
        """Returns an operand: a constant of the shape and element type, or a tensor as it is.

        Args:
            other: a scalar or a tensor.
        """
        return other if isinstance(other, Tensor) else constant(other, self.shape, self.element)

    def combined(self, name: str, other: Tensor | Number, *, is_reversed: bool = False) -> Tensor:
        """Returns an op of both operands.

        Args:
            name: of StableHLO's op, without the dialect.
            other: as of operators.
            is_reversed: whether the other one is the left operand.
        """
        pair = [self, self.like(other)]
        first, second = reversed(pair) if is_reversed else pair
        return Tensor(created(f"stablehlo.{name}", self.value.type, first.value, second.value))

    def __add__(self, other: Tensor | Number) -> Tensor:
        return self.combined("add", other)

    __radd__ = __add__

    def __sub__(self, other: Tensor | Number) -> Tensor:
        return self.combined("subtract", other)

    def __rsub__(self, other: Number) -> Tensor:
        return self.combined("subtract", other, is_reversed=True)

    def __mul__(self, other: Tensor | Number) -> Tensor:
        return self.combined("multiply", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Tensor | Number) -> Tensor:
        return self.combined("divide", other)

    def __rtruediv__(self, other: Number) -> Tensor:
        return self.combined("divide", other, is_reversed=True)

    def __neg__(self) -> Tensor:
        return unary("negate", self)

    def __and__(self, other: Tensor) -> Tensor:
        return self.combined("and", other)

    def __or__(self, other: Tensor) -> Tensor:
        return self.combined("or", other)

    def __xor__(self, other: Tensor) -> Tensor:
        return self.combined("xor", other)

    def __invert__(self) -> Tensor:
        return unary("not", self)

    def compared(self, direction: str, other: Tensor | Number) -> Tensor:
        """Returns a comparison of elements.

        Args:
            direction: of StableHLO, such as "GE".
            other: as of operators.
        """
        truth = ir.RankedTensorType.get(self.shape, ir.IntegerType.get_signless(1))
        attribute = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
        result = created("stablehlo.compare", truth, self.value, self.like(other).value, comparison_direction=attribute)
        return Tensor(result)

    def __lt__(self, other: Tensor | Number) -> Tensor:
        return self.compared("LT", other)

    def __le__(self, other: Tensor | Number) -> Tensor:
        return self.compared("LE", other)

    def __gt__(self, other: Tensor | Number) -> Tensor:
        return self.compared("GT", other)

    def __ge__(self, other: Tensor | Number) -> Tensor:
        return self.compared("GE", other)

    def equals(self, other: Tensor | Number) -> Tensor:
        """Returns where elements are equal.

        Args:
            other: as of operators.
        """
        return self.compared("EQ", other)

    def is_nan(self) -> Tensor:
        """Returns where elements are not equal to themselves."""
        return self.compared("NE", self)

    def expand(self, shape: Sequence[int], axes: Sequence[int]) -> Tensor:
        """Returns the tensor repeated to a shape.

        Args:
            shape: of the result.
            axes: those of the result that the tensor's own are.
        """
        type_ = ir.RankedTensorType.get(list(shape), self.element)
        return Tensor(created("stablehlo.broadcast_in_dim", type_, self.value, broadcast_dimensions=integers(axes)))

    def reshape(self, shape: Sequence[int]) -> Tensor:
        """Returns the elements in another shape.

        Args:
            shape: of as many elements.
        """
        if list(shape) == self.shape:
            return self
        return Tensor(created("stablehlo.reshape", ir.RankedTensorType.get(list(shape), self.element), self.value))

    def transpose(self, order: Sequence[int]) -> Tensor:
        """Returns the tensor with its axes in another order.

        Args:
            order: the axis that each one of the result is.
        """
        if list(order) == list(range(len(order))):
            return self
        type_ = ir.RankedTensorType.get([self.shape[axis] for axis in order], self.element)
        return Tensor(created("stablehlo.transpose", type_, self.value, permutation=integers(order)))

    def narrow(self, axis: int, first: int, count: int) -> Tensor:
        """Returns a part of the tensor along an axis.

        Args:
            axis: its index.
            first: the first index; `count`: how many.
        """
        return self.slice(
            [first if item == axis else 0 for item in range(len(self.shape))],
            [count if item == axis else extent for item, extent in enumerate(self.shape)],
        )

    def slice(self, starts: Sequence[int], sizes: Sequence[int]) -> Tensor:
        """Returns a part of the tensor.

        Args:
            starts: of each axis; `sizes`: the extents of the part.
        """
        if list(sizes) == self.shape:
            return self
        type_ = ir.RankedTensorType.get(list(sizes), self.element)
        ends = [start + size for start, size in zip(starts, sizes)]
        part = created(
            "stablehlo.slice",
            type_,
            self.value,
            start_indices=integers(starts),
            limit_indices=integers(ends),
            strides=integers([1] * len(ends)),
        )
        return Tensor(part)

    def convert(self, element: ir.Type) -> Tensor:
        """Returns the elements in another element type.

        Args:
            element: the type.
        """
        if element == self.element:
            return self
        return Tensor(created("stablehlo.convert", ir.RankedTensorType.get(self.shape, element), self.value))

    def reduce(self, fold: str, start: Tensor, axes: Sequence[int]) -> Tensor:
        """Returns a reduction.

        Args:
            fold: the op that folds two values, such as "stablehlo.add".
            start: a tensor of rank 0.
            axes: those that are reduced.
        """
        shape = [extent for axis, extent in enumerate(self.shape) if axis not in axes]
        op = ir.Operation.create(
            "stablehlo.reduce",
            results=[ir.RankedTensorType.get(shape, self.element)],
            operands=[self.value, start.value],
            attributes={"dimensions": integers(axes)},
            regions=1,
        )
        scalar_type = ir.RankedTensorType.get([], self.element)
        body = op.regions[0].blocks.append(scalar_type, scalar_type)
        with ir.InsertionPoint(body):
            ir.Operation.create("stablehlo.return", operands=[created(fold, scalar_type, *body.arguments)])
        return Tensor(op.results[0])

    def sum(self, axes: Sequence[int]) -> Tensor:
        """Returns sums along some axes.

        Args:
            axes: their indices.
        """
        return self.reduce("stablehlo.add", constant(0, [], self.element), axes)


def constant(value: Number, shape: Sequence[int], element: ir.Type) -> Tensor:
    """Returns a splat tensor.

    Args:
        value: the value of its elements.
        shape: the extents.
        element: the type of the elements, of integers or floating point.
    """
    type_ = ir.RankedTensorType.get(list(shape), element)
    is_float = isinstance(element, ir.FloatType)
    element_attribute = ir.FloatAttr.get(element, float(value)) if is_float else ir.IntegerAttr.get(element, int(value))
    return Tensor(created("stablehlo.constant", type_, value=ir.DenseElementsAttr.get_splat(type_, element_attribute)))


def neutral(fold: str, element: ir.Type) -> Tensor:
    """Returns the neutral element of a fold, a tensor of rank 0.

    Args:
        fold: "stablehlo.add", `multiply`, `maximum` or `minimum`.
        element: the type of the elements.
    """
    if fold in _NEUTRAL:
        return constant(_NEUTRAL[fold], [], element)
    is_largest = fold == "stablehlo.maximum"
    if isinstance(element, ir.FloatType):
        return constant(float("-inf" if is_largest else "inf"), [], element)
    bits = ir.IntegerType(element).width
    return constant(-(1 << (bits - 1)) if is_largest else (1 << (bits - 1)) - 1, [], element)


def iota(shape: Sequence[int], axis: int, bits: int = 32) -> Tensor:
    """Returns the indices along an axis, integers with signs.

    Args:
        shape: the extents.
        axis: its index.
        bits: of the integers.
    """
    type_ = ir.RankedTensorType.get(list(shape), ir.IntegerType.get_signless(bits))
    return Tensor(created("stablehlo.iota", type_, iota_dimension=number(axis)))


def unary(name: str, x: Tensor) -> Tensor:
    """Returns a function of each element.

    Args:
        name: of StableHLO's op, without the dialect.
        x: the elements.
    """
    return Tensor(created(f"stablehlo.{name}", x.value.type, x.value))


def where(condition: Tensor, x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """Returns elements of one of two tensors.

    Args:
        condition: booleans.
        x: taken where they are true; `y`: elsewhere; not both are scalars.
    """
    tensor = x if isinstance(x, Tensor) else y
    assert isinstance(tensor, Tensor)
    x, y = tensor.like(x), tensor.like(y)
    return Tensor(created("stablehlo.select", tensor.value.type, condition.value, x.value, y.value))


def concatenate(parts: Sequence[Tensor], axis: int) -> Tensor:
    """Returns tensors one after the other.

    Args:
        parts: at least one.
        axis: along which they follow each other.
    """
    if len(parts) == 1:
        return parts[0]
    shape = parts[0].shape
    shape[axis] = sum(part.shape[axis] for part in parts)
    type_ = ir.RankedTensorType.get(shape, parts[0].element)
    return Tensor(created("stablehlo.concatenate", type_, *(part.value for part in parts), dimension=number(axis)))


def gather(
    x: Tensor, indices: Tensor, axes: Sequence[int], sizes: Sequence[int], is_collapsed: Sequence[bool]
) -> Tensor:
    """Returns slices of a tensor at computed offsets, which are moved into the tensor where they are beyond it.

    Args:
        x: the tensor.
        indices: (..., n), the indices along n axes.
        axes: these axes of the tensor.
        sizes: the extents of a slice.
        is_collapsed: whether an axis of a slice, of one element, is left out.

    Returns:
        (..., axes of a slice).
    """
    batch = indices.shape[:-1]
    kept_sizes = [size for size, left_out in zip(sizes, is_collapsed) if not left_out]
    offsets = range(len(batch), len(batch) + len(kept_sizes))
    collapsed_axes = [axis for axis, left_out in enumerate(is_collapsed) if left_out]
    numbers = ir.Attribute.parse(
        f"#stablehlo.gather<offset_dims = {list(offsets)}, collapsed_slice_dims = {collapsed_axes}, "
        f"start_index_map = {list(axes)}, index_vector_dim = {len(batch)}>"
    )
    type_ = ir.RankedTensorType.get([*batch, *kept_sizes], x.element)
    value = created(
        "stablehlo.gather", type_, x.value, indices.value, dimension_numbers=numbers, slice_sizes=integers(sizes)
    )
    return Tensor(value)
