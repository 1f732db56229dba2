"""Facts: what expressions of a pipeline may use of a payload.

The facts of a payload come from its problem; those of a dump from the ops that are left of the matmul, as long as there
are any.
"""

from __future__ import annotations

from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.traverse import walk
from stepladder.runtime.problem import Problem

Facts = dict[str, int | str | list]

FACTS = (
    "form",
    "m",
    "n",
    "k",
    "a_type",
    "b_type",
    "c_type",
    "acc_type",
    "a_bits",
    "b_bits",
    "c_bits",
    "acc_bits",
    "a_layout",
    "b_layout",
    "c_layout",
)


def problem_facts(problem: Problem) -> Facts:
    """Returns sizes, layouts, and types by name and in bits of a problem."""
    facts: Facts = {
        "m": problem.m,
        "n": problem.n,
        "k": problem.k,
        "a_layout": problem.a_layout,
        "b_layout": problem.b_layout,
        "c_layout": "row",
    }
    for role in ("a", "b", "c", "acc"):
        name = getattr(problem, f"{role}_type")
        facts |= {f"{role}_type": name, f"{role}_bits": bits_of_name(name)}
    return facts


def type_facts(module: ir.Module) -> Facts:
    """Returns types, widths and layouts of the matmul in a dump, whole or tiled; none where no matmul is left."""
    matmuls = walk(module, "linalg.matmul") or walk(module, "vector.contract")
    if not matmuls:
        return {}
    facts: Facts = {}
    attributes = matmuls[0].attributes
    maps = attributes.get("indexing_maps", None)
    for number, role in enumerate("abc"):
        element_type = ir.ShapedType(matmuls[0].operands[number].type).element_type
        name = str(element_type)
        facts |= {f"{role}_type": name, f"{role}_bits": bits_of_name(name)}
        if role == "c":  # the matmul does not determine the type that the sums are rounded to
            facts |= {"acc_type": name, "acc_bits": bits_of_name(name)}
        elif maps is None:
            facts[f"{role}_layout"] = "row"
        else:
            outer = ir.AffineMapAttr(maps[number]).value.results[0]
            rows_first = ir.AffineExpr.get_dim(0 if role == "a" else 2)
            facts[f"{role}_layout"] = "row" if outer == rows_first else "column"
    return facts
