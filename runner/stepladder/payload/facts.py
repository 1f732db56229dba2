"""What a dump still tells about its payload: element types and layouts, as long as there are products in it."""

from __future__ import annotations

import re

from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk


def type_bits(element_type: ir.Type | str) -> int:
    """Returns the width of an element type (MLIR's, or its name there) in bits, 0 where its name does not say.

    The number that a name begins with is the width: 8 of f8E4M3FN, whose other numbers are those of its exponent and
    its significand.
    """
    found = re.match(r"[a-z]+(\d+)", str(element_type))
    return int(found[1]) if found else 0


def type_facts(module) -> dict[str, int | str | list]:
    """Returns types, widths and layouts of the matmul in a module, whole or in parts; nothing where there is none."""
    matmuls = walk(module, "linalg.matmul") or walk(module, "vector.contract")
    if not matmuls:
        return {}
    facts: dict[str, int | str | list] = {}
    maps = matmuls[0].attributes["indexing_maps"] if "indexing_maps" in matmuls[0].attributes else None
    for number, role in enumerate("abc"):
        element_type = ir.ShapedType(matmuls[0].operands[number].type).element_type
        facts[f"{role}_type"] = str(element_type)
        facts[f"{role}_bits"] = type_bits(element_type)
        if role == "c":  # what the sums are rounded to is not said by the product
            facts |= {"acc_type": facts["c_type"], "acc_bits": facts["c_bits"]}
        if role != "c" and maps is not None:
            outer = ir.AffineMapAttr(maps[number]).value.results[0]
            rows_first = ir.AffineExpr.get_dim(0 if role == "a" else 2)
            facts[f"{role}_layout"] = "row" if outer == rows_first else "column"
        elif role != "c":
            facts[f"{role}_layout"] = "row"
    return facts
