"""nvvm: ops that execute as the PTX that LLVM makes of them.

Source: PTX ISA, and the ops' descriptions in MLIR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepladder.emulator.core.program import Builder, decode_attributes
from stepladder.emulator.core.registry import EXECUTED, lowers
from stepladder.emulator.ptx.inline import lower_text
from stepladder.mlir.bindings import ir
from stepladder.mlir.printed import keyword
from stepladder.runtime.errors import StepladderError

_CLUSTER = "!llvm.ptr<7>"
_TENSOR_MAP_BYTES = 128
_FP8 = {"f8E4M3FN": "e4m3x2", "f8E5M2": "e5m2x2"}
_FLOATS = ("f16", "f32", "f64", "bf16")


def _refused(builder: Builder, op: ir.Operation, form: str) -> StepladderError:
    return StepladderError(f"the emulator does not support {op.name} {form}", location=builder.location)


def _numbered(op: ir.Operation, sizes: Sequence[int]) -> list[list[str]]:
    """Returns the names of operands in the text, by segment: those of results are first."""
    names = [f"${len(op.results) + number}" for number in range(len(op.operands))]
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    return [names[end - size : end] for end, size in zip(ends, sizes)]


def _hint(hint: list[str]) -> tuple[str, str]:
    """Returns the modifier and the operand of a cache policy, where there is one."""
    return (".L2::cache_hint", f", {hint[0]}") if hint else ("", "")


# Bulk copies.


@lowers("nvvm.cp.async.bulk.shared.cluster.global")
def bulk_load(builder: Builder, op: ir.Operation) -> None:
    """A bulk copy from global memory to the block's shared memory, or to that of the blocks of a mask."""
    sizes = decode_attributes(op)["operandSegmentSizes"]
    (target,), (source,), (barrier,), (size,), mask, hint = _numbered(op, sizes)
    modifier, policy = _hint(hint)
    multicast, blocks = (".multicast::cluster", f", {mask[0]}") if mask else ("", "")
    space = "shared::cluster" if mask or str(op.operands[0].type) == _CLUSTER else "shared::cta"
    opcode = f"cp.async.bulk.{space}.global.mbarrier::complete_tx::bytes{multicast}{modifier}"
    lower_text(builder, op, f"{opcode} [{target}], [{source}], {size}, [{barrier}]{blocks}{policy};")


@lowers("nvvm.cp.async.bulk.shared.cluster.shared.cta")
def bulk_to_block(builder: Builder, op: ir.Operation) -> None:
    """A bulk copy from the block's shared memory to that of another block."""
    ((target, source, barrier, size),) = _numbered(op, (4,))
    opcode = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    lower_text(builder, op, f"{opcode} [{target}], [{source}], {size}, [{barrier}];")


@lowers("nvvm.cp.async.bulk.global.shared.cta")
def bulk_store(builder: Builder, op: ir.Operation) -> None:
    """A bulk copy from shared to global memory."""
    sizes = decode_attributes(op)["operandSegmentSizes"]
    (target,), (source,), (size,), hint, byte_mask = _numbered(op, sizes)
    if byte_mask:
        raise _refused(builder, op, "with a byte mask, which no GPU before sm_100 has")
    modifier, policy = _hint(hint)
    opcode = f"cp.async.bulk.global.shared::cta.bulk_group{modifier}"
    lower_text(builder, op, f"{opcode} [{target}], [{source}], {size}{policy};")


@lowers("nvvm.cp.async.bulk.tensor.reduce")
def bulk_reduce(builder: Builder, op: ir.Operation) -> None:
    """The combination of a box in shared memory with a tensor."""
    attributes = decode_attributes(op)
    (tensor_map,), (source,), coordinates, hint = _numbered(op, attributes["operandSegmentSizes"])
    mode = keyword(attributes.get("mode", "tile"))
    if mode != "tile":
        raise _refused(builder, op, f"in mode {mode}")
    modifier, policy = _hint(hint)
    kind = keyword(attributes["redKind"])
    opcode = f"cp.reduce.async.bulk.tensor.{len(coordinates)}d.global.shared::cta.{kind}.tile.bulk_group{modifier}"
    lower_text(builder, op, f"{opcode} [{tensor_map}, {{{', '.join(coordinates)}}}], [{source}]{policy};")


# mbarriers and fences.


@lowers("nvvm.mbarrier.arrive_drop.expect_tx")
def arrive_drop_expect_tx(builder: Builder, op: ir.Operation) -> None:
    """An arrival for this phase and for good, which announces bytes."""
    ((address, count),) = _numbered(op, (2,))
    is_relaxed = decode_attributes(op).get("relaxed")
    token = "$0" if len(op.results) else "_"
    opcode = f"mbarrier.arrive_drop.expect_tx.{'relaxed' if is_relaxed else 'release'}.cta"
    space = "shared::cluster" if str(op.operands[0].type) == _CLUSTER else "shared::cta"
    lower_text(builder, op, f"{opcode}.{space}.b64 {token}, [{address}], {count};")


@lowers("nvvm.fence.proxy.acquire")
def fence_tensor_map(builder: Builder, op: ir.Operation) -> None:
    """The fence after which TMA sees a descriptor that a kernel has written."""
    ((address, _),) = _numbered(op, (2,))
    scope = keyword(decode_attributes(op)["scope"])
    opcode = f"fence.proxy.tensormap::generic.acquire.{scope}"
    lower_text(builder, op, f"{opcode} [{address}], {_TENSOR_MAP_BYTES};")


# Conversions.


@lowers("nvvm.convert.f16x2.to.f8x2")
def halves_to_fp8(builder: Builder, op: ir.Operation) -> None:
    """Two f16 values as fp8, rounded to nearest; what is larger is its largest value."""
    attributes = decode_attributes(op)
    target = _FP8.get(str(ir.TypeAttr(op.attributes["dstTy"]).value))
    if target is None:
        raise _refused(builder, op, f"to {ir.TypeAttr(op.attributes['dstTy']).value}")
    clamps = ".relu" if attributes.get("relu") else ""
    lower_text(builder, op, f"cvt.rn.satfinite{clamps}.{target}.f16x2 $0, $1;")


# Arithmetic: ops that have another rounding than to nearest, saturates, or flushes subnormals.


def _arithmetic(name: str, opcode: str) -> Callable:
    """Returns what lowers an op: to its own execution without modifiers, else to an instruction of PTX."""
    execute = EXECUTED[name]

    def lower(builder: Builder, op: ir.Operation) -> None:
        """Arithmetic with the modifiers of PTX."""
        attributes = decode_attributes(op)
        rounding, saturation = (keyword(attributes.get(key, "none")) for key in ("rnd", "sat"))
        modifiers = "".join(f".{flag}" for flag in ("ftz", "relu") if attributes.get(flag))
        modifiers += ".sat" if saturation == "sat" else ""
        is_plain = rounding in ("none", "rn") and not modifiers
        type_ = str(op.results[0].type)
        types = {str(operand.type) for operand in op.operands} | {type_}
        if saturation not in ("none", "sat") or attributes.get("oob"):
            raise _refused(builder, op, "with these modifiers")
        if is_plain:
            builder.emit(op.name, execute, builder.used(op.operands), builder.defined(op.results), attributes)
            return
        if len(types) > 1 or type_ not in _FLOATS:
            type_names = ", ".join(sorted(types))
            raise _refused(
                builder, op, f"of {type_names} with .{rounding}{modifiers}: expected one of {', '.join(_FLOATS)}"
            )
        rounds = f".{rounding}" if rounding != "none" and "." not in opcode else ""
        operands = ", ".join(f"${number}" for number in range(1 + len(op.operands)))
        lower_text(builder, op, f"{opcode}{rounds}{modifiers}.{type_} {operands};")

    return lower


for _name, _opcode in {
    "addf": "add",
    "subf": "sub",
    "mulf": "mul",
    "divf": "div",
    "fma": "fma",
    "sqrt": "sqrt",
    "sqrt.approx": "sqrt.approx",
    "rsqrt": "rsqrt.approx",
    "ex2": "ex2.approx",
    "log2": "lg2.approx",
    "sin": "sin.approx",
    "cos": "cos.approx",
}.items():
    lowers(f"nvvm.{_name}")(_arithmetic(f"nvvm.{_name}", _opcode))
