"""`tc.outline_matmuls`: outlines each matmul, with the ops that its kernel computes, to a function."""

import math
from collections.abc import Callable, Sequence

from stepladder.extension.lib.arithmetic import constant
from stepladder.extension.lib.control_flow import operations_of
from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.extension.lib.multi_kernel.added_starts import added_start
from stepladder.extension.lib.multi_kernel.columns import dissolve
from stepladder.extension.lib.multi_kernel.plain_operands import (
    add_in_wide_sums,
    fold_transposes,
    simplify,
    sums_are_widened,
    with_wide_sums,
)
from stepladder.extension.lib.multi_kernel.products import (
    dequantizing_ops,
    is_product,
    is_without_units,
    layout_sources,
    smallest,
    widens_operand,
)
from stepladder.extension.lib.multi_kernel.stages import (
    STARTS,
    in_order,
    is_elementwise,
    is_start,
    one_function,
    outline,
    with_producers,
)
from stepladder.extension.lib.multi_kernel.trials import is_accepted
from stepladder.extension.lib.narrow_constants import narrow_constants
from stepladder.mlir.bindings import ir
from stepladder.mlir.constant_numbers import repeated_number
from stepladder.mlir.linalg_ops import create_named_op
from stepladder.mlir.reshapes import TENSOR_VIEWS
from stepladder.mlir.traverse import producer, users_of, walk
from stepladder.payload.reductions import is_reduction, reduction_of
from stepladder.payload.rewrites import zero_points
from stepladder.runtime.errors import StepladderError

# Groups that the front refuses before a stage ends: one op alone, such as a reshape, may not be what a kernel computes.
_AHEAD = 4
# Ops after a stage that are looked at together, as those of a GELU are, which read the sums several times.
_FURTHEST = 64


class OutlineMatmuls(Tc.Operation, name="outline_matmuls"):
    """Moves each matmul of a function on tensors to a private function, with the ops that its kernel computes.

    The front of payloads (`payload.front`) and its rule define what a kernel computes: a group of ops is outlined where
    they accept it as a payload. Before the matmul these are views, transposes, broadcasts and wider types of A and B;
    behind it, elementwise ops and views of the result, as long as one value of the group is used elsewhere, and
    reductions of these values, which are further results. A cast to a wider type that only later matmuls read is
    theirs. A transpose or broadcast that the front does not take stays in the function.

    A batch of products in which m, n or k is 1 stays, and becomes a kernel without matrix units.

    A second matmul of the same A joins the group with the op that combines both (`payload.pairs`), where `pairs`
    is 1 and nothing else reads what it makes.

    Elementwise ops that make A or B from narrower values of the function's arguments, as those that dequantize
    weights, join the group where `dequantizing` is 1 and the matmul alone reads what they make. A pair of products
    takes what kernels of their own dequantize.

    Slices of columns that are A or B, whose rows have the pitch of the tensor, join the group where `columns` is 1
    and all pipelines read them in place.

    A transpose after the matmul that only changes where its matrices begin and the pitch of their rows, such as that
    which merges the heads of an attention, joins the group where `columns` is 1.

    An elementwise op whose body does not read the tensor that it writes over gets an empty one in its place, and a
    scalar that of a splat tensor: arithmetic on whole tensors becomes ops with both.

    Roundings of constants are folded first, and comparisons with constants are those of the type that is compared, as
    no epilogue computes in f64, in which front ends write constants. Zero points become corrections of the products
    (`payload.rewrites.zero_points`), whose sums are kernels of their own. An A or B that is a splat is copied to a
    buffer, which another kernel writes. What elementwise ops after a matmul read of its A and B is an argument of its
    own.

    Operands: a handle to a module with one public function, which gets the attribute `has_stages`. Refuses a matmul
    that is no payload even alone.
    Attributes: pairs, whether two matmuls of one A may become one function; dequantizing, whether kernels of matmuls
    dequantize their operands; columns, whether they read and write rows with a pitch.
    """

    target: Handle
    pairs: ir.IntegerAttr
    dequantizing: ir.IntegerAttr
    columns: ir.IntegerAttr


@transform_op(OutlineMatmuls)
def outline_matmuls(payload: ir.Operation, op: OutlineMatmuls, rewriter: Rewriter) -> None:
    """Rewrites the function below `payload`; see the op."""
    if payload.name != "builtin.module":
        raise Refusal(payload, f"the op is a {payload.name}; accepted: the module, which gets further functions")
    function = one_function(payload)
    function.attributes["has_stages"] = ir.UnitAttr.get()
    narrow_constants(function, rewriter)
    simplify(function, rewriter)
    zero_points.expand(function)
    body = function.regions[0].blocks[0]
    while True:
        product = next((item for item in operations_of(body) if is_product(item) and not is_without_units(item)), None)
        if product is None:
            break
        _store_constants(product)
        columns = bool(op.columns.value)
        _read_apart(product, columns=columns)
        product = _from_zeros(product, rewriter)
        kernel_ops, result = smallest(product, columns=columns)
        ops, results = _stage(product, kernel_ops, result, with_pairs=bool(op.pairs.value), columns=columns)
        dequantizing = _with_dequantizing(product, kernel_ops, result) if op.dequantizing.value else kernel_ops
        if dequantizing != kernel_ops and sum(map(is_product, ops)) == 1:
            ops, results = _stage(product, dequantizing, result, with_pairs=False, columns=columns)
        if len(results) == 1:
            ops, results = _with_further_results(product, ops, results[0], rewriter, columns=columns)
        outline(ops, results, "matmul", rewriter)
    dissolve(body, walk(payload, "func.func"), rewriter)


def _with_dequantizing(product: ir.Operation, ops: list[ir.Operation], result: ir.Value) -> list[ir.Operation]:
    """Returns the ops of a kernel that computes a matmul, with those that dequantize A and B where it computes them."""
    a, b = (dequantizing_ops(value) for value in list(product.operands)[:2])
    for dequantizing in ([*a, *b], b, a):
        attempt = with_producers([*ops, *dequantizing], STARTS)
        if dequantizing and is_accepted(attempt, result):
            return attempt
    return ops


def _store_constants(product: ir.Operation) -> None:
    """Has a kernel write an A or B that is a splat, such as the first state of a recurrent layer, to a buffer."""
    for place, value in enumerate(list(product.operands)[:2]):
        sources = layout_sources(product, [value])
        first = producer(sources[-1].operands[0] if sources else value)
        if first is None or first.name == "tensor.empty" or not is_start(first):
            continue
        type_ = ir.RankedTensorType(value.type)
        with ir.InsertionPoint(product), product.location:
            empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
            product.operands[place] = create_named_op("linalg.copy", [value], empty).results[0]


def _read_apart(product: ir.Operation, *, columns: bool) -> None:
    """Has elementwise ops after a matmul read its A and B, as those of a residual connection do, as casts that change
    nothing: operands of an epilogue are arguments of their own, which may be the same buffers. The casts fold later."""
    factors = list(product.operands)[:2]
    layouts = layout_sources(product, factors, columns=columns)
    for value in dict.fromkeys([*factors, *(source.operands[0] for source in layouts)]):
        behind = [
            (user, place)
            for user in users_of(value)
            if is_elementwise(user) and not is_product(user) and user not in layouts and user.block == product.block
            for place, operand in enumerate(list(user.operands)[:-1])
            if operand == value and product.is_before_in_block(user)
        ]
        if behind and isinstance(value.type, ir.RankedTensorType):
            with ir.InsertionPoint(product), product.location:
                cast = ir.Operation.create("tensor.cast", results=[value.type], operands=[value]).results[0]
            for user, place in behind:
                user.operands[place] = cast


def _is_other_number(start: ir.Operation) -> bool:
    """Returns whether a matmul starts from a splat constant other than 0."""
    number = repeated_number(start.results[0])
    return number is not None and number.value != 0


def _from_zeros(product: ir.Operation, rewriter: Rewriter) -> ir.Operation:
    """Returns the matmul, from zeros, with what it starts from added after it: a kernel writes a buffer of its own."""
    initial = product.operands[2]
    source = producer(initial)
    if source is not None and source.name in STARTS and not _is_other_number(source):
        return product
    if sums_are_widened(product):
        return add_in_wide_sums(product, rewriter)
    type_ = ir.RankedTensorType(initial.type)
    with ir.InsertionPoint(product), product.location:
        empty = ir.Operation.create("tensor.empty", results=[type_]).results[0]
        zeros = create_named_op("linalg.fill", [constant(type_.element_type, 0)], empty).results[0]
        product.operands[2] = zeros
    with ir.InsertionPoint.after(product), product.location:
        total = added_start(product, initial, empty)
    product.results[0].replace_all_uses_except(total.results[0], total)
    return product


def _stage(
    product: ir.Operation, ops: list[ir.Operation], result: ir.Value, *, with_pairs: bool, columns: bool
) -> tuple[list[ir.Operation], list[ir.Value]]:
    """Returns a stage with the ops after it that its kernel computes too: elementwise ops, and reductions of them."""
    folded_ops, matrix = _grown(product, ops, result, _is_folded, with_pairs=False, columns=columns)
    reductions = [user for op in folded_ops for value in op.results for user in users_of(value) if _is_folded(user)]
    if reductions:
        stage = with_producers([*folded_ops, *reductions], STARTS)
        results = [matrix, *(op.results[0] for op in in_order(list(dict.fromkeys(reductions))))]
        if _precede_others(stage) and is_accepted(stage, *results, columns=columns):
            return stage, results
    stage_without_folds, matrix = _grown(product, ops, result, lambda op: False, with_pairs=with_pairs, columns=columns)
    return stage_without_folds, [matrix]


def _with_further_results(
    product: ir.Operation, ops: list[ir.Operation], result: ir.Value, rewriter: Rewriter, *, columns: bool
) -> tuple[list[ir.Operation], list[ir.Value]]:
    """Returns a stage with elementwise ops on its result whose results are stored beside it, such as the rounding of a
    sum that is returned too."""
    results: list[ir.Value] = [result]
    group, ahead = ops, 0
    while ahead < _AHEAD and (user := _next_user(product, group, lambda op: False)) is not None:
        ahead += 1
        layouts = layout_sources(user, [operand for operand in user.operands if not _is_from(operand, group)])
        group = with_producers([*group, *layouts, user], STARTS)
        values = _used_outside(product, group, lambda op: False)
        if not all(map(_is_stored, values)) or not _precede_others(group):
            continue
        if not is_accepted(group, *values, columns=columns):
            # Of a product in another form, the front of payloads takes results in one order of dimensions.
            transposes = fold_transposes(product)
            further_ops = [
                [op for op in group_ops if op not in [product, *transposes] and not is_start(op)]
                for group_ops in (ops, group)
            ]
            is_product_alone = results == list(product.results)
            plain = with_wide_sums(product, rewriter)
            ops, group = (with_producers([*plain, *group_ops], STARTS) for group_ops in further_ops)
            results = list(plain[-1].results) if is_product_alone else results
            product = plain[0]
            values = _used_outside(product, group, lambda op: False)
        if is_accepted(group, *values, columns=columns):
            ops, results, ahead = group, values, 0
    return ops, results


def _is_stored(value: ir.Value) -> bool:
    """Returns whether a tensor is a buffer, whatever kernels compute it: one that is returned, or an operand of a
    matmul, maybe in another shape.
    """
    users = users_of(value)
    for user in users:  # grows in the loop
        if user.name == "func.return" or (is_product(user) and value not in list(user.operands)[2:]):
            return True
        if user.name in TENSOR_VIEWS:
            users += users_of(user.results[0])
    return False


def _is_folded(op: ir.Operation) -> bool:
    """Returns whether an op is a reduction that an epilogue may compute."""
    if not is_reduction(op):
        return False
    try:
        reduction_of(op)
    except StepladderError:
        return False
    return True


def _precede_others(ops: Sequence[ir.Operation]) -> bool:
    """Returns whether ops, except constants and fills, are before all others that use what they compute."""
    own_ops = [op for op in ops if not is_start(op)]
    users = [user for op in own_ops for value in op.results for user in users_of(value) if user not in ops]
    if any(user.block != ops[0].block for user in users):
        return False
    return not users or in_order([*own_ops, *users])[: len(own_ops)] == in_order(own_ops)


def _grown(
    product: ir.Operation,
    ops: list[ir.Operation],
    result: ir.Value,
    is_ignored: Callable[[ir.Operation], bool],
    *,
    with_pairs: bool,
    columns: bool,
) -> tuple[list[ir.Operation], ir.Value]:
    """Returns a stage with the elementwise ops after it that its kernel computes too; uses by ops that are ignored do
    not count.

    Ops are added in the order of the function. A group that only one value of is used outside may be a stage; one that
    several values of are used outside may become one with the next op, as that of x * sigmoid(x) does.
    """
    group, ahead, refusals = list(ops), 0, 0
    while ahead < _FURTHEST and refusals < _AHEAD:
        user = _next_user(product, group, is_ignored)
        if user is None:
            break
        ahead, is_refused = ahead + 1, False
        layouts = layout_sources(user, [operand for operand in user.operands if not _is_from(operand, group)])
        partner = _partner(user, group) if with_pairs else []
        pair = [with_producers([*group, *partner, user], STARTS)] if partner else []
        more = [layouts, []] if layouts else [[]]
        if any(map(_repeats, layouts)):
            more = [layouts]  # a kernel would repeat the elements in memory
        attempts = [with_producers([*group, *further, user], STARTS) for further in more]
        group = attempts[0]
        for attempt in (*pair, *attempts):
            # What only ignored ops use is a result all the same: a kernel writes one matrix at least.
            values = _used_outside(product, attempt, is_ignored) or [user.results[0]]
            if len(values) > 1:
                continue
            if is_accepted(attempt, values[0], columns=columns):
                ops, result, group, ahead, refusals, is_refused = attempt, values[0], attempt, 0, 0, False
                break
            is_refused = True
        refusals += is_refused
    return ops, result


def _repeats(layout: ir.Operation) -> bool:
    """Returns whether an op repeats elements of its operand, such as those of a mask for all heads."""
    values = (layout.operands[0], layout.results[0])
    if not all(isinstance(value.type, ir.RankedTensorType) for value in values):
        return False
    source_size, result_size = (math.prod(ir.RankedTensorType(value.type).shape) for value in values)
    return result_size > source_size


def _partner(user: ir.Operation, group: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Returns a second product, with what makes its operands and the ops after it, that an op combines with a group;
    none where something else reads one of them."""
    partner: list[ir.Operation] = []
    pending = [operand for operand in user.operands if not _is_from(operand, group)]
    products: list[ir.Operation] = []
    while pending:
        source = producer(pending.pop())
        if source is None or source.block != user.block or source in partner or source in group:
            continue
        if is_product(source):
            products.append(source)
            partner += [source, *layout_sources(source, list(source.operands)[:2])]
        elif is_elementwise(source) or source.name in TENSOR_VIEWS:
            partner.append(source)
            pending += list(source.operands)
    if len(products) != 1:
        return []
    attempt = [*group, *partner, user]
    return partner if _used_outside(products[0], in_order(attempt), lambda op: False) == list(user.results) else []


def _behind(group: Sequence[ir.Operation], is_ignored: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    """Returns the ops that depend on ignored ones that use what a group computes."""
    dependents = [user for op in group for value in op.results for user in users_of(value) if is_ignored(user)]
    for op in dependents:  # grows in the loop
        dependents += [user for value in op.results for user in users_of(value) if user not in dependents]
    return dependents


def _is_from(value: ir.Value, group: Sequence[ir.Operation]) -> bool:
    """Returns whether a value is the result of an op of a group."""
    source = producer(value)
    return source is not None and source in group


def _used_outside(
    product: ir.Operation, group: Sequence[ir.Operation], is_ignored: Callable[[ir.Operation], bool]
) -> list[ir.Value]:
    """Returns the values of a group that depend on the product and that ops outside use, but for those ignored."""
    dependent = [product]
    for op in group:
        if any(_is_from(operand, dependent) for operand in op.operands):
            dependent.append(op)
    return [
        result
        for op in dependent
        for result in op.results
        if any(user not in group and not is_ignored(user) for user in users_of(result))
    ]


def _next_user(
    product: ir.Operation, group: Sequence[ir.Operation], is_ignored: Callable[[ir.Operation], bool]
) -> ir.Operation | None:
    """Returns the first op outside of a group that uses what it computes, if it is elementwise or a view."""
    values = _used_outside(product, group, is_ignored)
    users = {user for value in values for user in users_of(value) if user not in group}
    users = {user for user in users if not widens_operand(user) and not is_ignored(user)}
    if not users:
        return None
    first = in_order(list(users))[0] if all(user.block == group[0].block for user in users) else None
    if (
        first is None
        or not (is_elementwise(first) or first.name in TENSOR_VIEWS)
        or first in _behind(group, is_ignored)
    ):
        return None
    begin = producer(first.operands[len(first.operands) - 1])
    if first.name not in TENSOR_VIEWS and begin is not None and begin in group and not is_start(begin):
        return None  # the op begins from values of the group, or writes over them
    return first
