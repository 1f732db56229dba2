"""Script files: finds the file that defines a sequence, parses it, and supplies missing declarations.

A module must declare every named sequence that a `transform.include` names. A script that only this package reads may
omit the declarations: `parse` finds the file that defines the sequence and inserts the declaration after the brace that
opens the module, on the same line, so that the lines in messages are those of the file. A script that a stock mlir-opt
reads declares what it includes.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from pathlib import Path

from stepladder.extension import plugins
from stepladder.extension.lib import faults
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import interpreter, ir
from stepladder.mlir.nesting import check_nesting
from stepladder.mlir.unreadable import check_readable
from stepladder.pipeline.sequences import sequences_by_name
from stepladder.runtime.errors import StepladderError, printable
from stepladder.runtime.files import is_text, read_text
from stepladder.runtime.resources import transforms_dir

# Folders beside a script in which steps are searched, besides its own.
SEARCHED_FOLDERS = _STEPS, _OF_PYTHON_OPS = "steps", "tc"
_SEQUENCE = "transform.named_sequence"

# What a declaration is needed for is known before the text can be parsed, hence by pattern, in code without comments
# and strings. Scripts in the generic form define sequences by their attribute `sym_name`.
_NO_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*')
_MODULE = re.compile(r"\bmodule\b(?:\s+@[\w$.-]+)?(?:\s+attributes\s*\{[^{}]*\})?\s*\{")
_INCLUDED = re.compile(r"\btransform\.include\s+@([\w$.-]+)")
_NAMED = re.compile(r"\btransform\.named_sequence\s+(?:private\s+)?@([\w$.-]+)")
_NAMED_GENERICALLY = re.compile(r'\bsym_name\s*=\s*"([^"]+)"')


def file_of(sequence: ir.Operation) -> Path:
    """Returns the file that a named sequence was parsed from.

    Args:
        sequence: a `transform.named_sequence` of a parsed file.
    """
    return Path(sequence.location.filename)


def _folders(near: Path) -> list[Path]:
    return [near.parent / _STEPS, near.parent, transforms_dir() / _STEPS]


def find(name: str, near: Path) -> Path | None:
    """Returns the file that defines a sequence which the script `near` includes, None where there is none.

    Args:
        name: of the sequence, without `@`.
        near: path of the script; its folder is searched first.
    """
    for folder in _folders(near):
        for path in (folder / f"{name}.mlir", folder / _OF_PYTHON_OPS / f"{name}.mlir"):
            if path.is_file() and path != near:
                return path
    return None


def path_of(name: str, near: Path) -> Path:
    """Returns the file that defines a sequence which the script `near` includes.

    Args:
        name: of the sequence, without `@`.
        near: path of the script; its folder is searched first.

    Raises:
        StepladderError: there is none; lists the folders that are searched.
    """
    path = find(name, near)
    if path is not None:
        return path
    raise StepladderError(
        f"'{near}' includes step '{name}', and no file {name}.mlir defines it",
        notes=[f"looked in {', '.join(str(folder) for folder in _folders(near))}"],
    )


def declared(
    path: Path, including: tuple[Path, ...] = (), parsed: MutableMapping[Path, ir.Module] | None = None
) -> str:
    """Returns the text of a script with a declaration of every sequence that it includes.

    Args:
        path: the script.
        including: the scripts that include it, outermost first.
        parsed: scripts that were parsed in the current MLIR context, by path; those that are parsed here are added.

    Raises:
        StepladderError: a file that cannot be read, an included sequence that no file defines, or scripts without
            declarations that include each other.
    """
    text, _ = read_text(str(path))
    code = _NO_CODE.sub(lambda match: " " * len(match.group()), text)
    module = _MODULE.search(code)
    definitions = {*_NAMED.findall(code), *_NAMED_GENERICALLY.findall(text)}
    missing = [name for name in dict.fromkeys(_INCLUDED.findall(code)) if name not in definitions]
    if module is None or not missing:
        return text
    declarations = [_declaration(name, path, (*including, path), {} if parsed is None else parsed) for name in missing]
    return f"{text[: module.end()]} {' '.join(declarations)}{text[module.end() :]}"


def _declaration(name: str, near: Path, including: tuple[Path, ...], parsed: MutableMapping[Path, ir.Module]) -> str:
    """Returns the declaration of a sequence that another file defines, as text."""
    path = path_of(name, near)
    if path in including:
        raise StepladderError(f"step '{name}' includes itself", location=str(path))
    script = parse_once(path, parsed, including)
    definition = sequences_by_name(script).get(name)
    if definition is None:
        raise StepladderError(f"step file '{path}' defines no named sequence @{name}")
    type_ = ir.TypeAttr(definition.attributes["function_type"]).value
    if "arg_attrs" in definition.attributes:
        marks = [str(marks) for marks in ir.ArrayAttr(definition.attributes["arg_attrs"])]
    else:
        marks = [""] * len(type_.inputs)
    arguments = ", ".join(f"{argument} {mark}".strip() for argument, mark in zip(type_.inputs, marks, strict=True))
    results = f" -> ({', '.join(map(str, type_.results))})" if type_.results else ""
    return f"{_SEQUENCE} private @{name}({arguments}){results}"


def parse_once(path: Path, parsed: MutableMapping[Path, ir.Module], including: tuple[Path, ...] = ()) -> ir.Module:
    """Returns the module of a script, which is parsed unless it is in `parsed`, and added there.

    Args:
        path: the script.
        parsed: modules by the paths of their scripts; grows.
        including: the scripts that include it, outermost first.

    Raises:
        StepladderError: as `parse`.
    """
    if path not in parsed:
        parsed[path] = parse(path, including, parsed)
    return parsed[path]


def parse(
    path: Path, including: tuple[Path, ...] = (), parsed: MutableMapping[Path, ir.Module] | None = None
) -> ir.Module:
    """Parses a script, with the declarations that it leaves out, in the current MLIR context.

    Args:
        path: the script.
        including: the scripts that include it, outermost first.
        parsed: as for `declared`.

    Returns:
        The module, with the declarations in it.

    Raises:
        StepladderError: a file that cannot be read or is not MLIR, with the line and what the parser said; a path that
            is not UTF-8.
    """
    if not is_text(str(path)):  # locations in MLIR, which sequences are found by, are UTF-8
        raise StepladderError(f"the path of script '{printable(path)}' is not UTF-8")
    text = declared(path, including, parsed)
    check_nesting(text, str(path))
    check_readable(text, str(path))
    try:
        if text == read_text(str(path))[0]:  # may be any module, also one that the text does not open
            module: ir.Module = ir.Module.parseFile(str(path)).operation.opview  # type: ignore[assignment]
            return module
        return ir.Operation.parse(text, source_name=str(path))
    except ir.MLIRError as error:
        first = diagnostics.from_error(error)[0]
        raise StepladderError(
            first.message,
            location=first.location or str(path),
            traceback=faults.take(),
            notes=[*first.notes, *plugins.unknown_op_notes(first, text)],
        ) from None


def merge(module: ir.Module, name: str, path: Path, parsed: MutableMapping[Path, ir.Module]) -> None:
    """Copies the sequences of the file `path`, which defines the sequence `name`, into a transform module.

    Args:
        module: the transform module.
        name: of the sequence, without `@`.
        path: the file.
        parsed: as for `declared`.

    Raises:
        StepladderError: a file that does not define the sequence, or one that does not fit what the module has.
    """
    script = parse_once(path, parsed)
    if sequences_by_name(script).get(name) is None:
        raise StepladderError(f"step file '{path}' defines no named sequence @{name}")
    with diagnostics.collect(module.context) as errors:
        try:
            interpreter.copy_symbols_and_merge_into(module, script)
        except ValueError as error:
            first = (
                errors[0]
                if errors
                else diagnostics.from_text(str(error))
                or diagnostics.Diagnostic(str(path), "the step does not fit the pipeline")
            )
            raise StepladderError(
                f"step '{name}': {first.message}", location=first.location, notes=first.notes
            ) from None
