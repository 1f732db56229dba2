"""Products whose algorithm the payload names, as `jax.nn.dot_product_attention` and `precision=` of JAX do.

An algorithm has the types that factors are rounded to and that sums are computed in. Kernels sum in f32, and multiply
f32 as three products of tf32: what is at least as exact as the algorithm replaces it.
"""

from __future__ import annotations

import re

from stepladder.mlir.bindings import ir
from stepladder.mlir.diagnostics import location_text
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.traverse import attributes_of, walk
from stepladder.payload.stablehlo.builder import Tensor, created
from stepladder.runtime.errors import StepladderError

_OP = "stablehlo.dot_general"
_ALGORITHM = "algorithm"
_FIELD = re.compile(r"(\w+) = (\w+)")
# The type that wider factors are rounded to. Products of f32 by kernels are more exact than tf32's.
_ROUNDED = ("f16", "bf16")
# Accumulators that are as exact as those of kernels, or less; one of fewer bits than the result is that of the result.
_SUMS = ("f16", "bf16", "f32", "f64", "i32")


def rewrite(module: ir.Module) -> None:
    """Replaces the algorithms of products by conversions of their factors and of their results.

    Args:
        module: with functions of StableHLO.

    Raises:
        StepladderError: sums in another type than kernels have.
    """
    for op in walk(module, _OP):
        if _ALGORITHM not in op.attributes:
            continue
        fields = dict(_FIELD.findall(str(op.attributes[_ALGORITHM])))
        sums, result = fields["accumulation_type"], Tensor(op.results[0])
        if sums not in _SUMS:
            raise StepladderError(
                f"'{op.name}' with sums in {sums}",
                location=location_text(op.location),
                notes=[f"accepted: an accumulation_type of {', '.join(_SUMS)}"],
            )
        with ir.InsertionPoint(op), op.location:
            is_wider = bits_of_name(sums) > bits_of_name(str(result.element))
            element = ir.Type.parse(sums) if is_wider else result.element
            factors = [Tensor(value) for value in op.operands]
            if fields["num_primitive_operations"] == "1":  # several are as exact as products of f32
                factors = [_rounded(x, fields[f"{side}_precision_type"]) for side, x in zip(("lhs", "rhs"), factors)]
            attributes = {key: value for key, value in attributes_of(op).items() if key != _ALGORITHM}
            type_ = ir.RankedTensorType.get(result.shape, element)
            product = Tensor(created(op.name, type_, *(factor.value for factor in factors), **attributes))
            product = product.convert(result.element)
        op.results[0].replace_all_uses_with(product.value)
        op.erase()


def _rounded(factor: Tensor, type_: str) -> Tensor:
    """Returns a factor in the type of an algorithm, if that has fewer bits."""
    is_narrower = type_ in _ROUNDED and bits_of_name(type_) < bits_of_name(str(factor.element))
    return factor.convert(ir.Type.parse(type_)) if is_narrower else factor
