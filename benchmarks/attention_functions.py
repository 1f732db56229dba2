"""Attention blocks of public models as linalg on tensors of bf16: norm, projections, rotary embedding, attention,
output projection and residual. A decoding step also writes its keys and values to caches, and returns those."""

from __future__ import annotations

from model_functions import Model, Text, type_of

_LOW = "0xFF800000"  # minus infinity, f32
# Loops of scores, and those of queries, of keys and values, and of scores.
_MAPS = "(g, h, t, s, d)", "(t, g, h, d)", "(s, g, d)", "(g, h, t, s)"


class Attention(Text):
    """The function of an attention block.

    Args:
        model: its widths.
        m: tokens: of one sequence, or the last ones of as many.
    """

    def __init__(self, model: Model, m: int) -> None:
        super().__init__()
        self.model, self.m = model, m
        self.half = model.head // 2

    def reshaped(self, value: str, before: tuple[int, ...], after: tuple[int, ...]) -> str:
        """Adds a reshape that splits or joins neighbouring dimensions, and returns its name.

        Args:
            value: the name of the tensor.
            before, after: its shapes.
        """
        fewer_axes, more_axes = (before, after) if len(before) < len(after) else (after, before)
        groups, place = [], 0
        for size in fewer_axes:
            group, product = [place], more_axes[place]
            place += 1
            while product < size:
                product *= more_axes[place]
                group.append(place)
                place += 1
            groups.append(str(group))
        is_split = len(before) < len(after)
        name = "expand_shape" if is_split else "collapse_shape"
        shape = f" output_shape [{', '.join(map(str, after))}]" if is_split else ""
        types = f"{type_of(before, 'bf16')} into {type_of(after, 'bf16')}"
        return self.new(f"tensor.{name} {value} [{', '.join(groups)}]{shape} : {types}")

    def rotated(self, heads: str, count: int, cos: str, sin: str) -> str:
        """Adds the rotary embedding of heads, m x count x head, and returns its name.

        Args:
            heads: the name of the tensor.
            count: of heads.
            cos, sin: names of factors, m x head / 2, f32.
        """
        whole, half = (self.m, count, 2, self.half), (self.m, count, 1, self.half)
        split = self.reshaped(heads, (self.m, count, self.model.head), whole)
        parts = [
            self.new(
                f"tensor.extract_slice {split}[0, 0, {place}, 0] [{', '.join(map(str, half))}] [1, 1, 1, 1] : "
                f"{type_of(whole)} to {type_of(half)}"
            )
            for place in (0, 1)
        ]
        angles = "(b, h, p, d) -> (b, d)"
        results = []
        for left, right, op in ((parts[0], parts[1], "subf"), (parts[1], parts[0], "addf")):
            body = [
                "%f = arith.extf %x0 : bf16 to f32",
                "%g = arith.extf %x1 : bf16 to f32",
                "%p = arith.mulf %f, %x2 : f32",
                "%q = arith.mulf %g, %x3 : f32",
                f"%r = arith.{op} %p, %q : f32",
                "%y = arith.truncf %r : f32 to bf16",
            ]
            operands = [
                (left, half, "bf16", None),
                (right, half, "bf16", None),
                (cos, (self.m, self.half), "f32", angles),
                (sin, (self.m, self.half), "f32", angles),
            ]
            results.append(self.generic("(b, h, p, d)", half, "bf16", operands, body))
        joined = self.new(
            f"tensor.concat dim(2) {', '.join(results)} : ({type_of(half)}, {type_of(half)}) -> {type_of(whole)}"
        )
        return self.reshaped(joined, whole, (self.m, count, self.model.head))

    def generic(
        self,
        loops: str,
        shape: tuple[int, ...],
        element: str,
        operands: list[tuple[str, tuple[int, ...], str, str | None]],
        body: list[str],
    ) -> str:
        """Adds an elementwise op and returns its name.

        Args:
            loops: names of the loops, in parentheses; those of the result.
            shape, element: of the result.
            operands: name, shape, element type and indexing map of each; None for the identity.
            body: ops on %x0, %x1 and so on that make %y.
        """
        empty = self.new(f"tensor.empty() : {type_of(shape, element)}")
        identity = f"{loops} -> {loops}"
        maps = ", ".join(f"affine_map<{item[3] or identity}>" for item in (*operands, ("", shape, element, None)))
        kinds = ", ".join(['"parallel"'] * len(shape))
        operand_names = ", ".join(item[0] for item in operands)
        types = ", ".join(type_of(item[1], item[2]) for item in operands)
        names = ", ".join(f"%x{number}: {item[2]}" for number, item in enumerate(operands))
        return self.new(
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({operand_names} : {types}) "
            f"outs({empty} : {type_of(shape, element)}) {{\n  ^bb0({names}, %out: {element}):"
            + "".join(f"\n    {line}" for line in body)
            + f"\n    linalg.yield %y : {element}\n  }} -> {type_of(shape, element)}"
        )

    def contracted(self, maps: tuple[str, str, str], a: tuple, b: tuple, shape: tuple[int, ...]) -> str:
        """Adds a contraction with f32 sums and returns its name.

        Args:
            maps: indexing maps of both operands and the result.
            a, b: name and shape of each operand.
            shape: of the result.
        """
        out = type_of(shape, "f32")
        empty = self.new(f"tensor.empty() : {out}")
        zeros = self.new(f"linalg.fill ins(%zero : f32) outs({empty} : {out}) -> {out}")
        map_texts = ", ".join(f"affine_map<{item}>" for item in maps)
        return self.new(
            f"linalg.contract indexing_maps = [{map_texts}] ins({a[0]}, {b[0]} : {type_of(a[1])}, {type_of(b[1])}) "
            f"outs({zeros} : {out}) -> {out}"
        )

    def softmax(self, scores: str, shape: tuple[int, ...]) -> str:
        """Adds the softmax along the last dimension, rounded to bf16, and returns its name.

        Args:
            scores: the name of the tensor, f32.
            shape: of it.
        """
        type_ = type_of(shape, "f32")
        empty = self.new(f"tensor.empty() : {type_}")
        whole = self.new(
            f"linalg.softmax dimension({len(shape) - 1}) ins({scores} : {type_}) outs({empty} : {type_}) -> {type_}"
        )
        loops = f"({', '.join(f'd{number}' for number in range(len(shape)))})"
        return self.generic(
            loops, shape, "bf16", [(whole, shape, "f32", None)], ["%y = arith.truncf %x0 : f32 to bf16"]
        )

    def attended(
        self,
        maps: tuple[str, str, str, str],
        q: tuple[str, tuple[int, ...]],
        keys_and_values: list[tuple[str, tuple[int, ...]]],
        shape: tuple[int, ...],
        *,
        is_causal: bool,
    ) -> str:
        """Adds the attention of queries, of four dimensions, and returns its name.

        Args:
            maps: loops of the scores, keys and elements of a head last, and those of queries, of keys or values, and of
                scores.
            q: name and shape of the queries.
            keys_and_values: of the keys and of the values.
            shape: of the scores.
            is_causal: whether queries attend to keys with the same number and before.
        """
        loops, of_q, of_k, of_p = maps
        maps_of_scores = (f"{loops} -> {of_q}", f"{loops} -> {of_k}", f"{loops} -> {of_p}")
        scores = self.contracted(maps_of_scores, q, keys_and_values[0], shape)
        scale = f"%scale = arith.constant {self.model.head**-0.5} : f32"
        body = [scale, "%z = arith.mulf %x0, %scale : f32", "%y = arith.truncf %z : f32 to bf16"]
        scores = self.generic(of_p, shape, "bf16", [(scores, shape, "f32", None)], body)
        body = ["%y = arith.extf %x0 : bf16 to f32"]
        if is_causal:
            body = [
                "%t = linalg.index 2 : index",
                "%s = linalg.index 3 : index",
                "%is_before = arith.cmpi ule, %s, %t : index",
                f"%low = arith.constant {_LOW} : f32",
                "%z = arith.extf %x0 : bf16 to f32",
                "%y = arith.select %is_before, %z, %low : f32",
            ]
        scores = self.generic(of_p, shape, "f32", [(scores, shape, "bf16", None)], body)
        parts = self.softmax(scores, shape)
        order = loops.replace("s, d", "d, s")
        maps_of_sums = (f"{order} -> {of_p}", f"{order} -> {of_k}", f"{order} -> {of_q}")
        sums = self.contracted(maps_of_sums, (parts, shape), keys_and_values[1], q[1])
        body = ["%y = arith.truncf %x0 : f32 to bf16"]
        return self.generic("(i, j, k, l)", q[1], "bf16", [(sums, q[1], "f32", None)], body)

    def attention(
        self, q: str, k: str, v: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], *, is_causal: bool
    ) -> str:
        """Returns the text of a function of an attention alone.

        Args:
            q, k, v: names of queries, keys and values: tokens x groups x heads x head, and tokens x groups x head.
            shapes: of the queries, and of the keys and the values.
            is_causal: whether queries attend to keys with the same number and before.
        """
        (queries, groups, heads, _), (keys, *_) = shapes
        keys_and_values = [(k, shapes[1]), (v, shapes[1])]
        rows = self.attended(
            _MAPS, (q, shapes[0]), keys_and_values, (groups, heads, queries, keys), is_causal=is_causal
        )
        return self.function("attention", {rows: shapes[0]})

    def text(self, has_cache: bool) -> str:
        """Returns the text of the function.

        Args:
            has_cache: whether each token is the last one of a sequence, whose other tokens are in a cache; else the
                tokens are a sequence, and attend to those before them.
        """
        context = self.model.context if has_cache else None
        model, m = self.model, self.m
        groups, heads, d = model.key // model.head, model.query // model.key, model.head
        x = self.argument(m, model.hidden)
        cos, sin = (self.argument(m, self.half, element="f32") for _ in range(2))
        caches = []
        if context is not None:
            caches = [self.argument(m, groups, context, d, result=number) for number in (1, 2)]
        inner = self.rms_norm(x, m, model.hidden)
        q, k, v = (self.linear(inner, m, model.hidden, n) for n in (model.query, model.key, model.key))
        q = self.rotated(self.reshaped(q, (m, model.query), (m, groups * heads, d)), groups * heads, cos, sin)
        q = self.reshaped(q, (m, groups * heads, d), (m, groups, heads, d))
        k = self.rotated(self.reshaped(k, (m, model.key), (m, groups, d)), groups, cos, sin)
        v = self.reshaped(v, (m, model.key), (m, groups, d))
        queries = (m, groups, heads, d)
        results: dict[str, tuple[int, ...]] = {}
        if context is None:
            keys, shape = (m, groups, d), (groups, heads, m, m)
            keys_and_values = [(k, keys), (v, keys)]
            maps = _MAPS
        else:
            keys, shape = (m, groups, context, d), (m, groups, heads, context)
            keys_and_values = []
            for new, cache in zip((k, v), caches):
                one_key = (m, groups, 1, d)
                row = self.reshaped(new, (m, groups, d), one_key)
                keys_and_values.append(
                    (
                        self.new(
                            f"tensor.insert_slice {row} into {cache}[0, 0, {context - 1}, 0] "
                            f"[{', '.join(map(str, one_key))}] [1, 1, 1, 1] : {type_of(one_key)} into {type_of(keys)}"
                        ),
                        keys,
                    )
                )
            results = {name: keys for name, _ in keys_and_values}
            maps = "(b, g, h, s, d)", "(b, g, h, d)", "(b, g, s, d)", "(b, g, h, s)"
        rows = self.attended(maps, (q, queries), keys_and_values, shape, is_causal=context is None)
        y = self.linear(self.reshaped(rows, queries, (m, model.query)), m, model.query, model.hidden)
        y = self.elementwise((m, model.hidden), {x: "bf16", y: "bf16"}, ["%y = arith.addf %x0, %x1 : bf16"])
        return self.function("attention", {y: (m, model.hidden), **results})
