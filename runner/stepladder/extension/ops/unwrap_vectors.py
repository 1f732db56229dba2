"""`tc.unwrap_vectors`: replaces vectors of one element by scalars, in the LLVM dialect."""

from stepladder.extension.lib.dialect import Handle, Refusal, Rewriter, Tc, transform_op
from stepladder.mlir.bindings import ir
from stepladder.mlir.traverse import walk


class UnwrapVectors(Tc.Operation, name="unwrap_vectors"):
    """Gives values of type `vector<1xT>` the type `T`: SPIR-V has no vectors of one element.

    A lane's part of a row of 16 elements is such a vector. Elementwise ops, loads and stores of the LLVM dialect take
    scalars as well; insertions and extractions go away, and shuffles become insertions.

    Operands: a handle to any op; the functions of the LLVM dialect below are rewritten.
    Refuses: a non-splat constant for one.
    """

    target: Handle


@transform_op(UnwrapVectors)
def unwrap_vectors(payload: ir.Operation, op: UnwrapVectors, rewriter: Rewriter) -> None:
    """Rewrites every function below `payload`; see the op."""
    for function in walk(payload, "llvm.func"):
        for shuffle in walk(function, "llvm.shufflevector"):
            _restore_length(shuffle)
            if _is_one(shuffle.operands[0].type) or _is_one(shuffle.results[0].type):
                _insert_instead(shuffle, rewriter)
        moves = [
            move
            for move in walk(function, "llvm.extractelement", "llvm.insertelement")
            if _is_one(move.operands[0].type)
        ]
        for inner in walk(function):
            for region in inner.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        _retype(argument)
            for result in inner.results:
                if _is_one(result.type):
                    _retype_constant(inner)
                    _retype(result)
        for move in moves:
            operand = move.operands[0 if move.name == "llvm.extractelement" else 1]
            move.results[0].replace_all_uses_with(operand)
            rewriter.erase_op(move)


def _is_one(type_: ir.Type) -> bool:
    return isinstance(type_, ir.VectorType) and list(type_.shape) == [1]


def _retype(value: ir.Value) -> None:
    if _is_one(value.type):
        value.set_type(ir.VectorType(value.type).element_type)


def _retype_constant(op: ir.Operation) -> None:
    """Gives a constant the number of its one element."""
    value = op.attributes["value"] if op.name == "llvm.mlir.constant" else None
    if isinstance(value, ir.DenseElementsAttr):
        if not value.is_splat:
            raise Refusal(op, f"{op.name} of {value} is not a number")
        op.attributes["value"] = value.get_splat_value()


def _restore_length(shuffle: ir.Operation) -> None:
    """Gives the result of a shuffle the length of its mask: bitcasts that MLIR moves before one lose it."""
    type_ = ir.VectorType(shuffle.results[0].type)
    length = len(ir.DenseI32ArrayAttr(shuffle.attributes["mask"]))
    if type_.shape != [length]:
        shuffle.results[0].set_type(ir.VectorType.get([length], type_.element_type))


def _insert_instead(shuffle: ir.Operation, rewriter: Rewriter) -> None:
    """Replaces a shuffle of, or to, vectors of one element by extractions and insertions."""
    count = ir.VectorType(shuffle.operands[0].type).shape[0]
    type_ = ir.VectorType(shuffle.results[0].type)
    i64 = ir.IntegerType.get_signless(64)
    with ir.InsertionPoint(shuffle), shuffle.location:
        result = _create("poison", [], type_, "llvm.mlir.")
        for place, number in enumerate(ir.DenseI32ArrayAttr(shuffle.attributes["mask"])):
            if number < 0:
                continue
            source, at = shuffle.operands[number // count], _constant(number % count, i64)
            element = _create("extractelement", [source, at], type_.element_type)
            result = _create("insertelement", [result, element, _constant(place, i64)], type_)
    shuffle.results[0].replace_all_uses_with(result)
    rewriter.erase_op(shuffle)


def _create(name: str, operands: list[ir.Value], type_: ir.Type, prefix: str = "llvm.") -> ir.Value:
    return ir.Operation.create(f"{prefix}{name}", results=[type_], operands=operands).results[0]


def _constant(number: int, type_: ir.Type) -> ir.Value:
    attributes = {"value": ir.IntegerAttr.get(type_, number)}
    return ir.Operation.create("llvm.mlir.constant", results=[type_], attributes=attributes).results[0]
