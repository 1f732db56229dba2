"""The dimensions of a contraction by role: the batch, m, n and k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from stepladder.payload.front.digits import Digit, extent, flat
from stepladder.payload.front.trace import ACCEPTED
from stepladder.payload.front.traced import Contraction
from stepladder.payload.refusal import refuse

# The least rows or columns of the matrices of a batch: LEAST_OF_FEW_ROWS if the matrix that all of them are multiplied
# by has at most FEW_ROWS rows, else LEAST_EXTENT. Source: measured on an H200, docs/results/expert_weights.json.
FEW_ROWS, LEAST_OF_FEW_ROWS, LEAST_EXTENT = 512, 16, 96


@dataclass(frozen=True)
class Dimensions:
    """The digits of each dimension of C[batch, m, n] = A[batch, m, k] B[batch, k, n], outermost first.

    Attributes:
        batch: none for one matmul.
        m, n: in their order in C.
        k: in their order in A.
        swaps: whether the second operand of the contraction is A.
    """

    batch: list[Digit]
    m: list[Digit]
    n: list[Digit]
    k: list[Digit]
    swaps: bool

    @property
    def of_c(self) -> list[list[Digit]]:
        """The dimensions of C."""
        return [*([self.batch] if self.batch else []), self.m, self.n]


def dimensions_of(contraction: Contraction, c_order: list[Digit]) -> Dimensions:
    """Returns the dimensions of a contraction.

    C is row-major: the operand whose digits come first in it is A. An extent of 1 is that of m, so that rows are long.

    Args:
        contraction: the contraction.
        c_order: the digits of C in memory, outermost first.

    Raises:
        StepladderError: an operand with a diagonal or a part of its buffer, a dimension that one operand alone has, or
            a C whose dimensions of m and n alternate.
    """
    orders = {"A": flat(contraction.a.storage), "B": flat(contraction.b.storage)}
    digits = {name: set(order) for name, order in orders.items()}
    for name, view in (("A", contraction.a), ("B", contraction.b)):
        if len(orders[name]) != len(digits[name]) or not digits[name] <= set(view.digits()):
            raise refuse(contraction.op, f"{contraction.op.name} reads a diagonal or a part of {name}", ACCEPTED)
    of_c = set(c_order)
    for digit in [*orders["A"], *orders["B"], *c_order, *contraction.a.digits(), *contraction.b.digits()]:
        owners = [name for name, digits_of_operand in (*digits.items(), ("C", of_c)) if digit in digits_of_operand]
        if len(owners) < 2:
            owner = f"only {owners[0]}" if owners else "no operand"
            raise refuse(
                contraction.op,
                f"{contraction.op.name} has a dimension of {digit.size} that {owner} has; it must be m, n or k, which "
                "two operands have",
            )
    batch = _batch(c_order, orders)
    rest = [digit for digit in c_order if digit not in batch]
    m = [digit for digit in rest if digit in digits["A"]]
    n = [digit for digit in rest if digit in digits["B"]]
    k = [digit for digit in orders["A"] if digit not in of_c]
    swaps = rest != m + n or not n
    if swaps and rest != n + m:
        raise interleaved(contraction, "C", None, c_order, Dimensions(batch, m, n, k, False))
    return Dimensions(batch, n, m, k, True) if swaps else Dimensions(batch, m, n, k, False)


def _batch(c_order: list[Digit], orders: Mapping[str, list[Digit]]) -> list[Digit]:
    """Returns the digits of C that enumerate the matmuls of a batch: those that A and B have, and of the others those
    of one operand that C or the operand has apart from its rows and columns, such as the heads of queries that share
    the keys and values of each sequence.

    Args:
        c_order: the digits of C, outermost first.
        orders: those of A and B.
    """
    shared = {digit for digit in c_order if all(digit in order for order in orders.values())}
    rest = [digit for digit in c_order if digit not in shared]
    own_orders = {name: [digit for digit in order if digit not in shared] for name, order in orders.items()}
    apart = _divided(c_order, orders, shared) if shared else _around(c_order, orders)
    apart = apart or _outer(rest, own_orders) or _exchanged(rest, own_orders)
    return [digit for digit in c_order if digit in shared or digit in apart]


def _divided(c_order: list[Digit], orders: Mapping[str, list[Digit]], shared: Set[Digit]) -> list[Digit]:
    """Returns the digits that one operand alone has, but for the most that lie next to each other, where C or the
    operand has digits of the batch between them: such as the heads of queries outside of those that the keys have too,
    where each of these is repeated (`h mod 4`). None where both operands have some, or where the matrices are so small
    that one large matmul of a copied operand or result is faster.

    Args:
        c_order: the digits of C, outermost first.
        orders: those of A and B.
        shared: those of the batch.
    """
    batches = []
    for order in orders.values():
        own = [digit for digit in c_order if digit in order and digit not in shared]
        groups: list[list[Digit]] = []
        for digit in own:
            before = groups[-1][-1] if groups else digit
            is_next = all(not shared & {*_between(item, before, digit)} for item in (c_order, order))
            if groups and is_next:
                groups[-1].append(digit)
            else:
                groups.append([digit])
        if len(groups) > 1:
            kept = max(groups, key=extent)
            is_large = extent(kept) >= _least([digit for digit in c_order if digit not in shared], order)
            batches.append([digit for digit in own if digit not in kept] if is_large else [])
    return batches[0] if len(batches) == 1 else []


def _between(order: Sequence[Digit], one: Digit, other: Digit) -> Sequence[Digit]:
    """Returns the digits between two digits of an order."""
    first, last = sorted((order.index(one), order.index(other)))
    return order[first + 1 : last]


def _around(c_order: list[Digit], orders: Mapping[str, list[Digit]]) -> list[Digit]:
    """Returns the outermost digits of C, of one operand, that the other operand's are behind, before more of its
    own."""
    owners = ["A" if digit in orders["A"] else "B" for digit in c_order]
    runs = [owner for number, owner in enumerate(owners) if number == 0 or owner != owners[number - 1]]
    if len(runs) != 3:
        return []
    return c_order[: next(number for number, owner in enumerate(owners) if owner != owners[0])]


def _outer(c_order: list[Digit], orders: Mapping[str, list[Digit]]) -> list[Digit]:
    """Returns the digits that one operand alone has before k, where it has others of C after k, such as the experts of
    `td,edf->tef`: matrices, one after the other, that the matrix of the other operand is multiplied by. None where
    both operands have some, or where the matrices have so few rows or columns that one large matmul is faster, of an
    operand that is copied or loaded from where it is.

    Args:
        c_order: the digits of C, outermost first.
        orders: those of A and B.
    """
    of_c, batches = set(c_order), []
    for order in orders.values():
        is_sum = [digit not in of_c for digit in order]
        if True not in is_sum:
            continue
        first, last = is_sum.index(True), len(order) - is_sum[::-1].index(True)
        outer, inner = order[:first], order[last:]
        if outer and inner and all(is_sum[first:last]):
            batches.append(outer if extent(inner) >= _least(c_order, order) else [])
    return [digit for digit in c_order if digit in batches[0]] if len(batches) == 1 else []


def _exchanged(c_order: list[Digit], orders: Mapping[str, list[Digit]]) -> list[Digit]:
    """Returns the digits that one operand alone has, if it has its digits of C in two groups that C has in the other
    order, such as the heads and the queries of `qhd,td->hqt`, where all heads share the keys: the group beside which
    the matrices are the larger. None where both operands have some, or where the matrices are so small that one large
    matmul of an operand or a result that is copied is faster.

    Args:
        c_order: the digits of C, outermost first.
        orders: those of A and B.
    """
    batches = []
    for order in orders.values():
        in_c = [digit for digit in c_order if digit in order]
        own = [digit for digit in order if digit in in_c]
        if own == in_c or len(in_c) == len(c_order):
            continue
        count = len(own) - own.index(in_c[0])
        groups = sorted((in_c[:count], in_c[count:]), key=extent)
        is_exchange = own == [*in_c[count:], *in_c[:count]]
        batches.append(groups[0] if is_exchange and extent(groups[1]) >= _least(c_order, order) else [])
    return batches[0] if len(batches) == 1 else []


def _least(c_order: list[Digit], order: list[Digit]) -> int:
    """Returns how many rows or columns each matrix of an operand must have, to be one of a batch.

    Args:
        c_order: the digits of C.
        order: those of the operand; the matrix that all of its matrices are multiplied by has the others.
    """
    rows = extent([digit for digit in c_order if digit not in order])
    return LEAST_OF_FEW_ROWS if rows <= FEW_ROWS else LEAST_EXTENT


def interleaved(
    contraction: Contraction, name: str, argument: int | None, order: Sequence[Digit], dimensions: Dimensions
) -> Exception:
    """Returns the refusal of an operand or a result whose dimensions are in another order than those of a matrix.

    Args:
        contraction: the contraction.
        name: A, B or C; A and B may be exchanged.
        argument: number of the function's argument that A or B is; None for C.
        order: its dimensions, outermost first.
        dimensions: of the contraction.
    """
    by_name = {"batch": dimensions.batch, "m": dimensions.m, "n": dimensions.n, "k": dimensions.k}
    words = []
    for digit in order:
        role, of_role = next((role, digits) for role, digits in by_name.items() if digit in digits)
        words.append(f"{role}{of_role.index(digit) if len(of_role) > 1 else ''} ({digit.size})")
    subject = name if argument is None else f"{name} is argument {argument}, which"
    return refuse(
        contraction.op,
        f"{contraction.op.name}: the dimensions of {name} are in an order that is neither row- nor column-major",
        f"{subject} has the dimensions {', '.join(words)}, outermost first",
        "accepted: an operand that holds all dimensions of m (or n) next to each other and all of k next to each "
        "other, in the same order as the other operands; `stepladder compile` takes other orders as functions of "
        "several kernels, which transpose operands",
    )
