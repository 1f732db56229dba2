"""XeTile programs, written op by op."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

Shape = tuple[int, int]
Map = tuple[Shape, Shape]  # sg_layout and sg_data


@dataclass(frozen=True)
class Value:
    """A value of the program: its name and its type; of a tile or a vector also what that is made of."""

    name: str
    type: str
    shape: Shape = (0, 0)
    element: str = ""


def vector(shape: Sequence[int], element: str) -> str:
    """Returns the type of a vector."""
    return f"vector<{'x'.join(map(str, shape))}x{element}>"


def written_map(wg: Map) -> str:
    """Returns a `wg_map` as text."""
    return f"#xetile.wg_map<{{sg_layout = {list(wg[0])}, sg_data = {list(wg[1])}}}>"


@dataclass
class Loop:
    """A loop that is being written: what it carries, inside of it and behind it."""

    step: Value
    carried: list[Value]
    results: list[Value]
    next: list[Value] = field(default_factory=list)


class Writer:
    """Writes a program of one launch, `@gemm`.

    Args:
        arguments: types of the memrefs, by name.
        grid: work-groups along x, y and z.
        subgroups: of a work-group, of 16 threads.
    """

    def __init__(self, arguments: dict[str, str], grid: tuple[int, int, int] = (1, 1, 1), subgroups: int = 1) -> None:
        self.arguments = {name: Value(f"%{name}", type_) for name, type_ in arguments.items()}
        self.grid, self.subgroups = grid, subgroups
        self.lines: list[str] = []
        self.outside: list[str] = []
        self.memory: list[str] = []
        self.constants: set[int] = {1, subgroups * 16, *grid}
        self.count = 0

    def number(self, number: int) -> Value:
        """Returns a constant index."""
        self.constants.add(number)
        return Value(f"%n{number}", "index")

    def name(self) -> str:
        """Returns a new name."""
        self.count += 1
        return f"%v{self.count}"

    def op(self, name: str, operands: Sequence[Value], result: Value | None = None, **attributes: str) -> Value:
        """Writes an op in the generic form; returns its result, or an operand of an op without one."""
        made = ", ".join(f"{key} = {value}" for key, value in attributes.items())
        types = ", ".join(operand.type for operand in operands)
        left = f"{result.name} = " if result else ""
        self.lines.append(
            f'{left}"{name}"({", ".join(operand.name for operand in operands)}) '
            f"{'{' + made + '} ' if made else ''}: ({types}) -> {result.type if result else '()'}"
        )
        return result or operands[0]

    def view(self, base: str, type_: str) -> Value:
        """Returns the transpose of an argument, outside of the launch."""
        source, made = self.arguments[base], Value(self.name(), type_)
        self.outside.append(f"{made.name} = memref.transpose {source.name} (i, j) -> (j, i) : {source.type} to {type_}")
        return made

    def times(self, value: Value | str, factor: int) -> Value:
        """Returns an index times a constant."""
        given = Value(value, "index") if isinstance(value, str) else value
        return self.op("arith.muli", [given, self.number(factor)], Value(self.name(), "index"))

    def tile(
        self,
        base: Value | str,
        offsets: Sequence[Value | int],
        shape: Shape,
        element: str,
        *,
        wg: Map | None = None,
        column: bool = False,
        shared: bool = False,
        given: Sequence[int] = (),
    ) -> Value:
        """Writes an `init_tile`; `given` are shape and strides of a base that does not have them."""
        fields = []
        if wg:
            fields.append(f"wg = {written_map(wg)}")
        if column:
            fields.append("order = [0, 1]")
        if shared:
            fields.append("memory_space = 3")
        attribute = f"#xetile.tile_attr<{{{', '.join(fields)}}}>" if fields else "unit"
        made = Value(self.name(), f"!xetile.tile<{vector(shape, element)}, {attribute}>", shape, element)
        places = [self.number(place) if isinstance(place, int) else place for place in offsets]
        half = len(given) // 2
        source = self.arguments[base] if isinstance(base, str) else base
        operands = [source, *places, *map(self.number, given)]
        return self.op(
            "xetile.init_tile",
            operands,
            made,
            operandSegmentSizes=f"array<i32: 1, {len(places)}, {half}, {half}>",
        )

    def load(self, tile: Value, padding: str | None = None) -> Value:
        """Writes a `load_tile`."""
        made = Value(self.name(), vector(tile.shape, tile.element), tile.shape, tile.element)
        return self.op("xetile.load_tile", [tile], made, **({"padding": padding} if padding else {}))

    def store(self, value: Value, tile: Value) -> None:
        """Writes a `store_tile`."""
        self.op("xetile.store_tile", [value, tile])

    def prefetch(self, tile: Value, locality: int = 3) -> None:
        """Writes a `prefetch_tile`."""
        self.op("xetile.prefetch_tile", [tile], locality=f"{locality} : i32")

    def move(self, tile: Value, rows: Value | int, columns: Value | int) -> Value:
        """Writes an `update_tile_offset`."""
        deltas = [self.number(delta) if isinstance(delta, int) else delta for delta in (rows, columns)]
        made = Value(self.name(), tile.type, tile.shape, tile.element)
        return self.op("xetile.update_tile_offset", [tile, *deltas], made)

    def _mapped(self, wg: Map | None) -> dict[str, str]:
        return {"wg_map": written_map(wg)} if wg else {}

    def vector_of(self, name: str, operands: Sequence[Value], shape: Shape, element: str, **attributes: str) -> Value:
        """Writes an op whose result is a vector."""
        return self.op(name, operands, Value(self.name(), vector(shape, element), shape, element), **attributes)

    def mma(self, a: Value, b: Value, c: Value | None = None, wg: Map | None = None, element: str = "f32") -> Value:
        """Writes a `tile_mma`."""
        operands = [a, b, *([c] if c else [])]
        return self.vector_of("xetile.tile_mma", operands, (a.shape[0], b.shape[1]), element, **self._mapped(wg))

    def gemm(
        self,
        a: Value | str,
        b: Value | str,
        row: Value,
        column: Value,
        depth: int,
        tile: tuple[int, int, int],
        wgs: tuple[Map | None, Map | None, Map | None] = (None, None, None),
        *,
        element: str = "f16",
        sums: str = "f32",
        columns: tuple[bool, bool] = (False, False),
        start: Value | None = None,
        prefetch: int | None = None,
    ) -> Value:
        """Writes a loop along k that multiplies tiles of A and B; returns the sums.

        Args:
            a, b: the bases.
            row, column: of the tile of C.
            depth: along k.
            tile: m, n and k of the `tile_mma`.
            wgs: maps of A, B and C.
            element, sums: types of elements, and of those of C.
            columns: which of A and B are column-major.
            start: sums to begin with; zero unless given.
            prefetch: locality of a prefetch of A; none unless given.
        """
        (m, n, k), zero = tile, self.number(0)
        tile_a = self.tile(a, [row, zero], (m, k), element, wg=wgs[0], column=columns[0])
        tile_b = self.tile(b, [zero, column], (k, n), element, wg=wgs[1], column=columns[1])
        begin = start or self.full("0" if sums.startswith("i") else "0.0", (m, n), sums)
        with self.loop(0, depth, k, [begin, tile_a, tile_b]) as loop:
            total, at_a, at_b = loop.carried
            left, right = self.load(at_a), self.load(at_b)
            if prefetch is not None:
                self.prefetch(at_a, prefetch)
            loop.next = [self.mma(left, right, total, wgs[2], sums), self.move(at_a, 0, k), self.move(at_b, k, 0)]
        return loop.results[0]

    def reduce(self, value: Value, kind: str, axis: int, size: int | None = None, wg: Map | None = None) -> Value:
        """Writes a `reduction`."""
        shape = list(value.shape)
        shape[axis] = shape[axis] // size if size else 1
        more = {"reduction_size": f"[{size}]"} if size else {}
        attributes = {"kind": f"#vector.kind<{kind}>", "dims": f"[{axis}]", **more, **self._mapped(wg)}
        return self.vector_of("xetile.reduction", [value], (shape[0], shape[1]), value.element, **attributes)

    def broadcast(self, value: Value, axis: int, count: int, *, sized: bool = False, wg: Map | None = None) -> Value:
        """Writes a `broadcast` that repeats each element along an axis."""
        shape = list(value.shape)
        shape[axis] *= count
        more = {"broadcast_size": f"[{count}]"} if sized else {}
        attributes = {"dims": f"[{axis}]", **more, **self._mapped(wg)}
        return self.vector_of("xetile.broadcast", [value], (shape[0], shape[1]), value.element, **attributes)

    def transpose(self, value: Value, wg: Map | None = None) -> Value:
        """Writes a `transpose`."""
        attributes = {"permutation": "[1, 0]", **self._mapped(wg)}
        return self.vector_of("xetile.transpose", [value], value.shape[::-1], value.element, **attributes)

    def convert(self, value: Value, wg: Map) -> Value:
        """Writes a `convert_layout`."""
        return self.vector_of("xetile.convert_layout", [value], value.shape, value.element, **self._mapped(wg))

    def each(self, name: str, *values: Value, element: str | None = None, wg: Map | None = None) -> Value:
        """Writes an elementwise op."""
        first = values[0]
        return self.vector_of(name, values, first.shape, element or first.element, **self._mapped(wg))

    def full(self, number: str, shape: Shape, element: str) -> Value:
        """Writes a constant of one number."""
        type_ = vector(shape, element)
        return self.vector_of("arith.constant", [], shape, element, value=f"dense<{number}> : {type_}")

    def atomic(self, kind: str, value: Value, tile: Value) -> Value:
        """Writes an `atomic_rmw`."""
        return self.vector_of("xetile.atomic_rmw", [value, tile], value.shape, value.element, kind=f'"{kind}"')

    def scatter(self, base: str, offsets: Value, shape: Shape, element: str) -> Value:
        """Writes an `init_tile` of a scatter tile."""
        made = Value(self.name(), f"!xetile.tile<{vector(shape, element)}, #xetile.scatter>", shape, element)
        sizes = "array<i32: 1, 1, 0, 0>"
        return self.op("xetile.init_tile", [self.arguments[base], offsets], made, operandSegmentSizes=sizes)

    def gather(self, tile: Value, mask: Value, padding: str | None = None) -> Value:
        """Writes a `load_gather`."""
        more = {"padding": padding} if padding else {}
        return self.vector_of("xetile.load_gather", [tile, mask], tile.shape, tile.element, **more)

    def scattered(self, value: Value, mask: Value, tile: Value) -> None:
        """Writes a `store_scatter`."""
        self.op("xetile.store_scatter", [value, mask, tile])

    def barrier(self) -> None:
        """Writes a barrier of the work-group."""
        self.lines.append("gpu.barrier")

    def shared(self, shape: Shape, element: str) -> Value:
        """Allocates shared local memory."""
        made = Value(self.name(), f"memref<{'x'.join(map(str, shape))}x{element}, 3>")
        self.memory.append(f"{made.name} : {made.type}")
        return made

    @contextmanager
    def loop(self, begin: int, end: int, by: int, carried: Sequence[Value]) -> Iterator[Loop]:
        """Writes a loop; its `next` are the values of the next iteration."""
        bounds = [self.number(number).name for number in (begin, end, by)]
        step = Value(self.name(), "index")
        inside = [Value(self.name(), value.type, value.shape, value.element) for value in carried]
        result = self.name()
        given = ", ".join(f"{new.name} = {old.name}" for new, old in zip(inside, carried))
        types = ", ".join(value.type for value in carried)
        self.lines.append(
            f"{result}:{len(carried)} = scf.for {step.name} = {bounds[0]} to {bounds[1]} step {bounds[2]} "
            f"iter_args({given}) -> ({types}) {{"
        )
        results = [
            Value(f"{result}#{number}", value.type, value.shape, value.element) for number, value in enumerate(carried)
        ]
        loop = Loop(step, inside, results)
        yield loop
        self.lines += [f"scf.yield {', '.join(value.name for value in loop.next)} : {types}", "}"]

    def text(self) -> str:
        """Returns the program."""
        arguments = ", ".join(f"{value.name}: {value.type}" for value in self.arguments.values())
        x, y, z = (f"%n{size}" for size in self.grid)
        memory = f" workgroup({', '.join(self.memory)})" if self.memory else ""
        return "\n".join(
            [
                f"func.func @gemm({arguments}) {{",
                *(f"  %n{number} = arith.constant {number} : index" for number in sorted(self.constants)),
                *(f"  {line}" for line in self.outside),
                f"  gpu.launch blocks(%wx, %wy, %wz) in (%gx = {x}, %gy = {y}, %gz = {z})",
                f"      threads(%tx, %ty, %tz) in (%bx = %n{self.subgroups * 16}, %by = %n1, %bz = %n1){memory} {{",
                *(f"    {line}" for line in self.lines),
                "    gpu.terminator",
                "  } {intel_reqd_sub_group_size = 16 : i32}",
                "  return",
                "}",
                "",
            ]
        )


# A program, and what it computes: the last arguments after it, of all arguments before it.
Written = tuple[Writer, Callable[..., list[np.ndarray]]]
PROGRAMS: dict[str, Callable[[], Written]] = {}


def program(write: Callable[[], Written]) -> Callable[[], Written]:
    """Adds a program to PROGRAMS, by the name of the function that writes it."""
    PROGRAMS[write.__name__] = write
    return write


def wide(array: np.ndarray) -> np.ndarray:
    """Returns an array with its numbers in f32."""
    return array.astype(np.float32)
