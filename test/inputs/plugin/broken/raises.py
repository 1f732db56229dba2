"""A plug-in whose op raises an error of Python, three calls deep."""

from stepladder.extension import Handle, Tc, transform_op


class Raises(Tc.Operation, name="raises"):
    """Divides by zero."""

    target: Handle


def ratio(sizes: dict[str, int]) -> int:
    return sizes["m"] // sizes["n"]


@transform_op(Raises)
def raises(payload, op, rewriter) -> None:
    ratio({"m": 1, "n": 0})
