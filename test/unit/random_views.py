"""Conversions, reshapes, transposes, slices, paddings and insertions of random functions (`random_functions`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from exact_values import EXACT, LETTERS, ExactWriter, Value


class ViewWriter(ExactWriter):
    """Writes conversions and views of values that are drawn, and of parts of them."""

    def value(self, wanted: Callable[[Value], bool] = lambda _: True) -> Value | None:
        """Returns a value that has been computed, more likely a late one, or None if there is none."""
        values = [value for value in self.values if wanted(value)]
        if not values:
            return None
        return values[-1] if self.drawn.random() < 0.5 else self.drawn.choice(values)

    def cast(self, value: Value, element: str) -> Value:
        """Writes a conversion, after one to a few numbers where they are too large."""
        if value.element == element:
            return value
        limit = min(EXACT[element], 4 if element.startswith("f8") else EXACT[element])
        if value.most > limit:
            value = self.clamped(value, min(limit, 3))
        to_float = "f" in element
        if value.element == "i1":
            op = "uitofp" if to_float else "extui"
        elif value.is_float != to_float:
            op = "fptosi" if value.is_float else "sitofp"
        else:
            wide = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "i8": 8, "i32": 32}
            before, after = wide[value.element], wide[element]
            if before == after:
                return self.cast(self.cast(value, "f32"), element)
            op = ("ext" if after > before else "trunc") + ("f" if to_float else ("si" if after > before else "i"))
        held = value.held.astype(np.float64 if to_float else np.int64)
        if self.drawn.random() < 0.5:
            return self.op(f"arith.{op} {value.name} : {value.type} to {{type}}", element, held, "cast")
        letters = LETTERS[: held.ndim]
        body = [f"%r = arith.{op} %x0 : {value.element} to {element}"]
        return self.generic([(value, ", ".join(letters))], letters, (letters, element), body, held, "cast")

    def clamped(self, value: Value, most: int) -> Value:
        """Writes a clamp to few numbers."""
        letters = LETTERS[: value.held.ndim]
        kind = value.element
        if value.is_float:
            ops = ("arith.minimumf", "arith.maximumf")
        else:
            ops = ("arith.minsi", "arith.maxsi")
        number = float if value.is_float else int
        body = [
            f"%hi = arith.constant {number(most)} : {kind}",
            f"%lo = arith.constant {number(-most)} : {kind}",
            f"%c = {ops[0]} %x0, %hi : {kind}",
            f"%r = {ops[1]} %c, %lo : {kind}",
        ]
        held = np.clip(value.held, -most, most)
        return self.generic([(value, ", ".join(letters))], letters, (letters, kind), body, held, "clamp")

    def view(self) -> None:
        """Writes a reshape, a transpose, a slice, a padding, a concatenation or an insertion."""
        x = self.value(lambda v: 1 <= v.held.ndim <= 4)
        if x is not None:
            kinds = (self._reshape, self._transpose, self._slice, self._slice, self._pad, self._concat, self._insert)
            self.drawn.choice(kinds)(x)

    def _reshape(self, x: Value) -> None:
        shape = list(x.held.shape)
        axis = self.drawn.randrange(len(shape))
        if len(shape) > 1 and self.drawn.random() < 0.5:
            axis = min(axis, len(shape) - 2)
            groups = [[i] for i in range(axis)] + [[axis, axis + 1]] + [[i] for i in range(axis + 2, len(shape))]
            made = [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]]
            self.op(
                f"tensor.collapse_shape {x.name} {groups} : {x.type} into {{type}}",
                x.element,
                x.held.reshape(made),
                "collapse",
            )
            return
        divisors = [d for d in range(1, shape[axis] + 1) if shape[axis] % d == 0]
        outer = self.drawn.choice(divisors)
        made = [*shape[:axis], outer, shape[axis] // outer, *shape[axis + 1 :]]
        groups = [[i] for i in range(axis)] + [[axis, axis + 1]] + [[i + 1] for i in range(axis + 1, len(shape))]
        self.op(
            f"tensor.expand_shape {x.name} {groups} output_shape {made} : {x.type} into {{type}}",
            x.element,
            x.held.reshape(made),
            "expand",
        )

    def _transpose(self, x: Value, order: Sequence[int] = ()) -> None:
        order = list(order or self.drawn.sample(range(x.held.ndim), x.held.ndim))
        held = x.held.transpose(order)
        outs = self.empty(held.shape, x.element)
        self.op(
            f"linalg.transpose ins({x.name} : {x.type}) outs({outs} : {{type}}) permutation = {order}",
            x.element,
            held,
            "transpose",
        )

    def _parts(self, shape: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        offsets, sizes, strides = [], [], []
        for extent in shape:
            size = self.drawn.randint(1, extent)
            size = extent if self.drawn.random() < 0.5 else size
            stride = self.drawn.choice((1, 1, 1, 2)) if (size - 1) * 2 < extent else 1
            offsets.append(self.drawn.randint(0, extent - (size - 1) * stride - 1))
            sizes.append(size)
            strides.append(stride)
        return offsets, sizes, strides

    def _slice(self, x: Value) -> None:
        offsets, sizes, strides = self._parts(x.held.shape)
        index = tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, sizes, strides))
        held = x.held[index]
        text = f"tensor.extract_slice {x.name}{offsets} {sizes} {strides} : {x.type} to {{type}}"
        self.op(text, x.element, held, "slice")

    def _insert(self, x: Value) -> None:
        """Writes a part into a value or an argument."""
        offsets, sizes, strides = self._parts(x.held.shape)
        part = self.argument(sizes, x.element)
        index = tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, sizes, strides))
        held = x.held.copy()
        held[index] = part.held
        text = f"tensor.insert_slice {part.name} into {x.name}{offsets} {sizes} {strides} : {part.type} into {{type}}"
        self.op(text, x.element, held, "insert")

    def _pad(self, x: Value) -> None:
        if x.element == "i1":
            return
        low, high = ([self.drawn.randrange(3) for _ in x.held.shape] for _ in "lh")
        number = self.drawn.choice((0, 0, 1))
        scalar = self.constant(number, x.element)
        held = np.pad(x.held, list(zip(low, high)), constant_values=number)
        indices = ", ".join(f"%i{axis}: index" for axis in range(held.ndim))
        self.op(
            f"tensor.pad {x.name} low{low} high{high} {{\n  ^bb0({indices}):\n"
            f"    tensor.yield {scalar} : {x.element}\n  }} : {x.type} to {{type}}",
            x.element,
            held,
            "pad",
        )

    def _concat(self, x: Value) -> None:
        axis = self.drawn.randrange(x.held.ndim)
        fitting = [v for v in self.values if v.element == x.element and v.held.shape == x.held.shape]
        y = self.drawn.choice(fitting)
        held = np.concatenate([x.held, y.held], axis=axis)
        if held.size < 2**14:
            text = f"tensor.concat dim({axis}) {x.name}, {y.name} : ({x.type}, {y.type}) -> {{type}}"
            self.op(text, x.element, held, "concat")
