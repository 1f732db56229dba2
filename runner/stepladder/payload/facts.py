"""Facts: the properties of a payload that expressions of a pipeline use.

The facts of a payload come from its problem. Those of a dump come from the ops of the matmul that are left in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stepladder.mlir.bindings import ir
from stepladder.mlir.element_types import bits_of_name
from stepladder.mlir.traverse import producer, walk
from stepladder.mlir.types import OF_BF16, matrix_descriptor_tile
from stepladder.mlir.windows import CAST, division_of, strided_reads
from stepladder.payload.approximations import approximates, module_approximates
from stepladder.payload.consumers import NAMED
from stepladder.payload.launched_tiles import has_copied_tiles, has_private_tiles
from stepladder.payload.linalg_bodies import rounds
from stepladder.payload.reductions import is_reduction
from stepladder.runtime.element_types import FP8_TYPES
from stepladder.runtime.problem import EpilogueOperand, Problem, Window

Facts = dict[str, int | str | list]

# The ops that a payload's product may be; `linalg.contract` where an operand is both broadcast and column-major.
MATMULS = ("linalg.matmul", "linalg.batch_matmul", "linalg.contract")

# Products of warpgroups, with the number of an operand that is a matrix descriptor.
_WARPGROUP_MMAS = {
    "nvgpu.warpgroup.mma": 0,
    "tc.warpgroup_mma_3xtf32": 0,
    "tc.warpgroup_mma_3xtf32_registers": 1,
}

FACTS = (
    "form",
    "batched",
    "batch",
    "is_sized",
    "a_matrices",
    "b_matrices",
    "m",
    "n",
    "k",
    "a_type",
    "b_type",
    "c_type",
    "acc_type",
    "a_bits",
    "b_bits",
    "a_source_bits",
    "b_source_bits",
    "register_source_bits",
    "producer_cost",
    "c_bits",
    "acc_bits",
    "a_layout",
    "b_layout",
    "a_transposed",
    "b_transposed",
    "has_consumer",
    "has_elementwise",
    "has_producer",
    "read_matrices",
    "c_layout",
    "results",
    "result_bits",
    "reductions",
    "approximates",
    "products",
    "is_f32",
    "windows",
    "read_windows",
    "windows_aligned",
    "batch_strides",
    "read_batch_strides",
    "is_i8",
    "is_fp8",
    "has_private_tiles",
    "has_copied_tiles",
)

# Functions of `math` that are an instruction or two, and the instructions of the others and of a division.
_SHORT_FUNCTIONS = tuple(
    f"math.{name}" for name in ("absf", "absi", "ceil", "copysign", "floor", "fma", "round", "roundeven")
)
_DIVISIONS = tuple(f"arith.{name}" for name in ("divf", "remf", "divsi", "divui", "remsi", "remui", "floordivsi"))
_FUNCTION_COST = 20
# Bits that the rows of operands that are parts of buffers begin at multiples of.
_ROW_BITS = 128


def problem_facts(problem: Problem) -> Facts:
    """Returns sizes, layouts, and types by name and in bits of a problem.

    Args:
        problem: of a payload.

    Returns:
        Values by the names that expressions use.
    """
    facts: Facts = {
        "batched": int(problem.batch is not None),
        "batch": problem.matmuls,
        "a_matrices": _matrices(problem, problem.a_window, is_broadcast=problem.a_broadcast),
        "b_matrices": _matrices(problem, problem.b_window, is_broadcast=problem.b_broadcast),
        "is_sized": 1,
        "m": problem.m,
        "n": problem.n,
        "k": problem.k,
        "a_layout": problem.a_layout,
        "b_layout": problem.b_layout,
        # Whether a preceding kernel transposes them, which a step sets.
        "a_transposed": 0,
        "b_transposed": 0,
        "has_consumer": int(problem.has_epilogue or problem.acc_type != problem.c_type),
        # C that is added before the sums are rounded counts: an elementwise op reads it.
        "has_elementwise": int(problem.has_epilogue or (problem.accumulate and problem.acc_type != problem.c_type)),
        "has_producer": int(problem.is_prepared),
        "read_matrices": _read_matrices(problem),
        "c_layout": "row",
        "results": 1 + len(problem.results) - problem.reductions,
        "reductions": problem.reductions,
        "products": problem.products,
        "approximates": int(approximates(problem)),
        "is_f32": int(problem.a_type == "f32"),
        "windows": int(problem.has_windows),
        "read_windows": sum(problem.window(role) is not None for role in "ab"),
        "windows_aligned": int(_windows_are_aligned(problem)),
        "batch_strides": len(problem.c_window.batch) if problem.c_window and problem.c_window.batch else 1,
        "read_batch_strides": max(
            len(window.batch) if window else 0 for window in (problem.a_window, problem.b_window)
        ),
        "is_i8": int(problem.a_type == "i8"),
        "is_fp8": int(problem.a_type in FP8_TYPES),
        # Of dumps alone: steps make the tiles that they need.
        "has_private_tiles": 0,
        "has_copied_tiles": 0,
        "a_source_bits": _source_bits(problem, problem.a_source, problem.m * problem.k),
        "b_source_bits": _source_bits(problem, problem.b_source, problem.k * problem.n),
        "register_source_bits": 0,
        "producer_cost": sum(map(_cost, problem.producers)),
    }
    for role in ("a", "b", "c", "acc"):
        name = getattr(problem, f"{role}_type")
        facts |= {f"{role}_type": name, f"{role}_bits": bits_of_name(name)}
    matrices = [result for result in problem.results if len(result.shape) == len(problem.c_shape)]
    types = [problem.c_type, *(result.element_type for result in matrices)]
    facts["result_bits"] = min(map(bits_of_name, types))
    return facts


def _matrices(problem: Problem, window: Window | None, *, is_broadcast: bool) -> int:
    """Returns how many matrices of A, or of B, the matmuls of a batch read."""
    if is_broadcast:
        return 1
    return problem.matmuls if window is None else window.matrices(problem.matmuls)


def _cost(name: str) -> int:
    """Returns about how many instructions of arithmetic on floating-point numbers a scalar op takes, by its name."""
    if (name.startswith("math.") and name not in _SHORT_FUNCTIONS) or name in _DIVISIONS:
        return _FUNCTION_COST
    return int(name.endswith("f") or name in ("arith.sitofp", "arith.uitofp"))


def _read_matrices(problem: Problem) -> int:
    """Returns how many matrices with the rows of C its elementwise ops read, C among them."""
    operands = (item for number, item in enumerate(problem.epilogue_operands) if number != problem.second_b)
    reads_c = problem.accumulate and (problem.has_epilogue or problem.acc_type != problem.c_type)
    return sum(item.shape == problem.c_shape for item in operands) + reads_c


def _source_bits(problem: Problem, source: EpilogueOperand | None, elements: int) -> int:
    """Returns the bits that elementwise ops make an element of an operand from; 0 where they do not make it, or only
    have its axes in another order, in which TMA reads them in place."""
    if source is None or not problem.producers:
        return 0
    return math.prod(source.shape) * bits_of_name(source.element_type) // elements


def _windows_are_aligned(problem: Problem) -> bool:
    """Returns whether the rows of operands that are parts of buffers begin at multiples of 16 bytes, and whether those
    of C end there too: vectors are as wide as pitches allow, and none may reach beyond a row.
    """
    for role in "abc":
        window = problem.window(role)
        unit = 0 if window is None else window.unit
        if window is not None and role == "c":
            unit = math.gcd(unit, problem.n)
        if unit * bits_of_name(problem.operand(role).element_type) % _ROW_BITS:
            return False
    return True


def _tile_facts(module: ir.Module) -> Facts:
    """Returns types and widths of the product of a XeTile program, as far as there is one."""
    facts: Facts = {}
    for product in walk(module, "xetile.tile_mma")[:1]:
        for role, value in zip("abc", (*list(product.operands)[:2], product.results[0])):
            name = str(ir.ShapedType(value.type).element_type)
            facts |= {f"{role}_type": name, f"{role}_bits": bits_of_name(name), f"{role}_layout": "row"}
        facts |= {"acc_type": facts["c_type"], "acc_bits": facts["c_bits"]}
    return facts


def type_facts(module: ir.Module) -> Facts:
    """Returns types, widths and layouts of the matmul in a dump, whole or tiled, as far as one is left, and whether it
    is a batch; and its sizes, as far as they are known (`is_sized`).

    Elementwise ops on the product are known as long as there are any, also after the matmul.

    Args:
        module: a dump.
    """
    producers = _producers(module)
    consumers = [op for op in walk(module) if _is_consumer(op) and op not in producers]
    facts_of_function, types = _noted(module), _operand_types(module)
    facts: Facts = {
        "has_consumer": int(bool(consumers)),
        "has_elementwise": int(not all(map(rounds, consumers))),
        "has_producer": int(bool(producers)),
        "a_transposed": 0,
        "b_transposed": 0,
        "a_source_bits": 0,
        "register_source_bits": 0,
        "producer_cost": 0,
        "b_source_bits": 0,
        "batched": 0,
        **facts_of_function,
        "results": 1,
        "products": 1,
        "reductions": sum(
            is_reduction(op) for op in walk(module, "linalg.reduce", "linalg.generic") if op not in producers
        ),
        "result_bits": 32,
        "windows": int(bool(walk(module, CAST))),
        "read_windows": int(bool(walk(module, CAST))),
        "batch_strides": 1 + any(map(division_of, walk(module, "bufferization.materialize_in_destination"))),
        "read_batch_strides": int(any(map(strided_reads, walk(module, "tensor.reshape")))),
        "approximates": int(module_approximates(module, consumers)),
        "is_f32": int(not types.isdisjoint(("f32", "tf32"))),
        "is_i8": int("i8" in (*types, facts_of_function.get("a_type"))),
        "is_fp8": int(not set(FP8_TYPES).isdisjoint((*types, facts_of_function.get("a_type")))),
        "has_private_tiles": int(has_private_tiles(module)),
        "has_copied_tiles": int(has_copied_tiles(module)),
    }
    matmuls = [op for op in walk(module, *MATMULS) if _is_of_matrices(op)] or walk(module, "vector.contract")
    facts |= _result_facts(module, consumers)
    return facts | (_matmul_facts(matmuls, is_sized=bool(facts["is_sized"])) if matmuls else _tile_facts(module))


def _result_facts(module: ir.Module, consumers: Sequence[ir.Operation]) -> Facts:
    """Returns how many results elementwise ops on the product have, and the bits of the narrowest one."""
    generics = (op for op in consumers if op.name == "linalg.generic")
    outputs = [outputs_of_op for op in generics if (outputs_of_op := list(op.operands)[_inputs(op) :])]
    if not outputs:
        return {}
    types = [str(ir.ShapedType(output.type).element_type) for output in outputs[0]]
    # Reductions of workspaces: the op makes what they reduce, too.
    separate = len(walk(module, "linalg.reduce"))
    return {"results": max(1, len(types) - separate), "result_bits": min(map(bits_of_name, types))}


def _matmul_facts(matmuls: Sequence[ir.Operation], *, is_sized: bool) -> Facts:
    """Returns the types and layouts of the first of several products, and its sizes where it is not tiled yet.

    Args:
        matmuls: at least one; contractions of vectors are products of many fragments.
        is_sized: whether the sizes are known already.
    """
    matmul = matmuls[0]
    attributes = matmul.attributes
    # A loop over the batch comes before those over m, n and k, until blocks have a matmul each.
    first = int(ir.ShapedType(matmul.operands[2].type).rank > 2)
    facts: Facts = {"products": 2 if len(matmuls) == 2 and matmul.name in MATMULS else 1, "batched": first}
    maps = attributes.get("indexing_maps", None)
    for number, role in enumerate("abc"):
        element_type = ir.ShapedType(matmul.operands[number].type).element_type
        name = "bf16" if OF_BF16 in attributes and role != "c" else str(element_type)
        facts |= {f"{role}_type": name, f"{role}_bits": bits_of_name(name)}
        if role == "c":  # the matmul does not determine the type that the accumulators are rounded to
            facts |= {"acc_type": name, "acc_bits": bits_of_name(name)}
        elif maps is None:
            facts[f"{role}_layout"] = "row"
        else:
            outer = ir.AffineMapAttr(maps[number]).value.results[-2]
            rows_first = ir.AffineExpr.get_dim(first + (0 if role == "a" else 2))
            facts[f"{role}_layout"] = "row" if outer == rows_first else "column"
    parent = matmul.parent
    if not is_sized and parent is not None and parent.name == "func.func":  # not tiled
        a, _, c = (ir.ShapedType(operand.type).shape for operand in matmul.operands)
        facts |= {"is_sized": 1, "m": c[-2], "n": c[-1], "k": a[-1 if facts["a_layout"] == "row" else -2]}
    return facts


def _is_of_matrices(op: ir.Operation) -> bool:
    """Returns whether a contraction is of matrices, or batches of them: one in a function that is not divided yet may
    be of tensors of any rank.
    """
    return all(len(ir.ShapedType(operand.type).shape) in (2, 3) for operand in op.operands)


def _operand_types(module: ir.Module) -> set[str]:
    """Returns the types of A in a dump: of a matmul, of its tiles and fragments, or of tiles of warpgroups."""
    operands = [op.operands[0] for op in walk(module, *MATMULS, *_TILE_PRODUCTS)]
    tiles = [
        matrix_descriptor_tile(op.operands[_WARPGROUP_MMAS[op.name]].type) for op in walk(module, *_WARPGROUP_MMAS)
    ]
    types = [*(ir.ShapedType(operand.type) for operand in operands), *tiles]
    return {str(type_.element_type) for type_ in types}


# Products of tiles and of fragments.
_TILE_PRODUCTS = ("xetile.tile_mma", "vector.contract", "nvgpu.mma.sync")

# Attributes of a function by the facts that the step `prepare_edges` notes in them.
_NOTED = {
    "m": "size_m",
    "n": "size_n",
    "k": "size_k",
    "a_bits": "operand_bits",
    "a_type": "operand_type",
    "a_layout": "a_layout",
    "b_layout": "b_layout",
    "has_consumer": "has_consumer",
}


def _noted(module: ir.Module) -> Facts:
    """Returns what the step `prepare_edges` has noted of the problem of a dump, if it ran."""
    for function in walk(module, "func.func"):
        if "size_m" in function.attributes:
            names = {fact: name for fact, name in _NOTED.items() if name in function.attributes}
            return {"is_sized": 1, **{fact: function.attributes[name].value for fact, name in names.items()}}
    return {"is_sized": 0}


def _producers(module: ir.Module) -> set[ir.Operation]:
    """Returns the ops of a dump that make what workspaces are written from, before `prepare_operands`."""
    ops: set[ir.Operation] = set()
    pending: list[ir.Operation | None] = []
    for store in walk(module, "bufferization.materialize_in_destination"):
        target = producer(store.operands[1])
        if target is not None and "whole" in target.attributes:  # the mark of their workspaces
            pending.append(producer(store.operands[0]))
    while pending:
        op = pending.pop()
        if op is not None and op not in ops:
            ops.add(op)
            pending += map(producer, op.operands)
    return ops


def _inputs(op: ir.Operation) -> int:
    return list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[0]


def _is_consumer(op: ir.Operation) -> bool:
    """Returns whether an op of a dump reads the product: a `linalg.generic`, which may only round, or a named
    elementwise op or reduction on tensors.

    Steps make copies, of tensors too, and other named ops on buffers.
    """
    if op.name == "linalg.generic":
        return True
    return op.name in (NAMED | {"linalg.reduce"}) - {"linalg.copy"} and len(op.results) > 0
