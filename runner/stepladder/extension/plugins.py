"""Plug-ins: Python files and installed packages that define transform ops of their own (docs/extending.md).

A plug-in is loaded into the process before an MLIR context is created: a context has the ops that are defined at that
time.
"""

from __future__ import annotations

import contextlib
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path

from stepladder.extension.lib import dialect, faults
from stepladder.mlir import diagnostics
from stepladder.mlir.bindings import ext, import_dialects, ir
from stepladder.runtime.errors import StepladderError, suggest

ENTRY_POINTS = "stepladder.plugins"

# Messages of MLIR's parser and verifier about an unknown op in a script.
_UNKNOWN_OP = ("unregistered dialect", "expected children ops to implement TransformOpInterface")
# Named ops of linalg that earlier versions of MLIR had.
_TRANSPOSED = re.compile(r"custom op '(linalg\.(?:batch_)?matmul)_transpose_([ab])' is unknown")
_GENERIC_OP = re.compile(r'"([a-z_]\w*\.[\w.]+)"\s*\(')

_files: dict[Path, str] = {}
_owners: dict[str, str] = {}
_installed_are_loaded = False


def files() -> tuple[str, ...]:
    """Returns the plug-in files loaded by `load_file`, in order, as they were named."""
    return tuple(_files.values())


def are_loaded() -> bool:
    """Returns whether any plug-in is loaded."""
    return bool(_owners)


def load_files(paths: list[str]) -> None:
    """Loads plug-in files, in order. Raises StepladderError as `load_file`.

    Args:
        paths: of Python files.
    """
    for path in paths:
        load_file(path)


def load_file(path: str) -> None:
    """Runs a Python file that defines transform ops; contexts created later have them.

    A file that is loaded already is not loaded again.

    Args:
        path: the file.

    Raises:
        StepladderError: a file that cannot be read or raises an exception, that defines no op, or whose ops or
            dialects cannot be loaded. None of its ops is known then.
    """
    resolved_path = Path(path).resolve()
    if resolved_path in _files:
        return
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise StepladderError(f"cannot read plug-in '{path}': {error.strerror}") from None
    load_installed()  # first, so that a clash of names is reported for the same plug-in in every process
    module = types.ModuleType(f"stepladder_plugin_{len(_files)}_{resolved_path.stem}")
    module.__file__ = path

    def run() -> types.ModuleType:
        try:
            code = compile(source, path, "exec", dont_inherit=True)
        except ValueError as error:  # how Python before 3.11.4 refuses null bytes
            raise SyntaxError(str(error), (path, 0, 0, None)) from None
        exec(code, module.__dict__)
        return module

    sys.modules[module.__name__] = module  # as an import does: dataclasses and pickle look there
    try:
        _register(f"plug-in '{path}'", run)
    except StepladderError:
        del sys.modules[module.__name__]
        raise
    _files[resolved_path] = path


def load_installed() -> None:
    """Loads the plug-ins of installed packages: the modules that their entry points `stepladder.plugins` name.

    Runs once per process. A plug-in that cannot be loaded is skipped with a warning: an installed package must not stop
    commands that do not need it.
    """
    global _installed_are_loaded
    if _installed_are_loaded:
        return
    _installed_are_loaded = True
    if not _any_package_declares_plugins():
        return
    import importlib.metadata  # slow to import

    for entry in sorted(importlib.metadata.entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        package = f" of package '{entry.dist.name}'" if entry.dist else ""
        try:
            _register(f"plug-in '{entry.name}'{package}", entry.load)
        except StepladderError as error:
            print(f"warning: {error.location + ': ' if error.location else ''}{error.message}", file=sys.stderr)


def _any_package_declares_plugins() -> bool:
    """Returns whether any installed package may have an entry point of the group, from the texts on disk."""
    for folder in sys.path:
        for path in Path(folder or ".").glob("*-info/entry_points.txt"):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                if ENTRY_POINTS in path.read_text():
                    return True
    return False


def _register(owner: str, run: Callable[[], object]) -> None:
    """Runs a plug-in and registers all ops and dialects that it defines, or none of them."""
    import_dialects()  # a plug-in may use the classes of ops
    before = dialect.registered()
    existing_names = {name for names in before[2].values() for name in (op.OPERATION_NAME for op in names)}
    try:
        module = _run(owner, run)
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, ext.Dialect) and value is not ext.Dialect:
                dialect.register_dialect(value)
        new_ops = _added(before)
        if not new_ops:
            raise StepladderError(
                f"{owner} defines no op",
                notes=[
                    "an op is a class derived from Tc.Operation, or from the Operation of a "
                    "Dialect of its own, with a name (docs/extending.md)"
                ],
            )
        _check_names(owner, before, existing_names, new_ops)
        _check_fields(owner, new_ops)
        _check_loads(owner)
    except StepladderError:
        dialect.restore(before)
        raise
    _owners.update({op.OPERATION_NAME: owner for op in new_ops})
    _owners.update({new.DIALECT_NAMESPACE: owner for new in dialect.dialects() if new not in before[1]})


def _run(owner: str, run: Callable[[], object]) -> object:
    try:
        return run()
    except SyntaxError as error:
        location = f"{error.filename}:{error.lineno}:{error.offset}" if error.lineno else error.filename
        raise StepladderError(f"{owner} is not valid Python: {error.msg}", location=location) from None
    except (Exception, SystemExit) as error:
        raise StepladderError(f"{owner} raised {faults.describe(error)}", traceback=faults.text_of(error)) from None


def _added(before: dialect.Registered) -> list[dialect.OpClass]:
    """Returns the op classes that were registered since `before`."""
    return [op for new in dialect.dialects() for op in new.operations if op not in before[2].get(new, [])]


def _check_names(
    owner: str, before: dialect.Registered, existing_names: set[str], new_ops: list[dialect.OpClass]
) -> None:
    """Raises StepladderError where the name of an op or a dialect is taken."""
    for op in new_ops:
        if op.OPERATION_NAME in existing_names:
            raise StepladderError(
                f"{owner} defines {op.OPERATION_NAME}, which {_owners.get(op.OPERATION_NAME, 'stepladder')} defines"
            )
        existing_names.add(op.OPERATION_NAME)
    names = {old.DIALECT_NAMESPACE for old in before[1]}
    with ir.Context() as context:
        for new in dialect.dialects():
            name = new.DIALECT_NAMESPACE
            if new in before[1]:
                continue
            if name in names:
                raise StepladderError(
                    f"{owner} defines the dialect '{name}', which {_owners.get(name, 'stepladder')} defines",
                    notes=["for more ops in `tc`, derive them from stepladder.extension.Tc"] if name == "tc" else [],
                )
            if _is_upstream(context, name):
                raise StepladderError(f"{owner} defines the dialect '{name}', which is one of MLIR's")
            names.add(name)


def _check_fields(owner: str, new_ops: list[dialect.OpClass]) -> None:
    """Raises StepladderError where the type of a field of an op is a string, which is not resolved to a constraint."""
    for op in new_ops:
        for name, type_ in op.__annotations__.items():
            if isinstance(type_, str):
                raise StepladderError(
                    f"{owner}: the type of field '{name}' of {op.OPERATION_NAME} is a text",
                    notes=["`from __future__ import annotations` makes it one: leave it out"],
                )


def _is_upstream(context: ir.Context, name: str) -> bool:
    try:
        context.get_dialect_descriptor(name)
    except ValueError:
        return False
    return True


def _check_loads(owner: str) -> None:
    """Raises StepladderError where the ops cannot be loaded into a context."""
    with ir.Context() as context, ir.Location.unknown(), diagnostics.collect(context):
        try:
            dialect.load()
        except ir.MLIRError as error:
            reasons = [diagnostic.message for diagnostic in diagnostics.from_error(error)]
            raise StepladderError(f"the ops of {owner} cannot be loaded: {reasons[0] if reasons else error}") from None
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            raise StepladderError(
                f"the ops of {owner} cannot be loaded: {type(error).__name__}: {error}",
                notes=[
                    "fields are handles, and attributes of type ir.IntegerAttr, ir.FloatAttr, "
                    "ir.StringAttr, ir.ArrayAttr, ir.TypeAttr or ir.UnitAttr"
                ],
                traceback=faults.text_of(error),
            ) from None


def unknown_op_notes(error: diagnostics.Diagnostic, text: str) -> list[str]:
    """Returns the notes for a parser's error about an op that the context does not know; none for other errors.

    Args:
        error: the error, which does not name the op.
        text: the parsed text.
    """
    if match := _TRANSPOSED.search(error.message):
        return [
            f"MLIR has removed this op: write {match[1]} with indexing_maps, as `stepladder payload matmul "
            f"--{match[2]}-layout column` does"
        ]
    if not any(part in error.message for part in _UNKNOWN_OP):
        return []
    number = (error.location.rsplit(":", 2) + ["", ""])[1]
    lines = text.splitlines()
    op_match = _GENERIC_OP.search(lines[int(number) - 1]) if number.isdecimal() and int(number) <= len(lines) else None
    own = [op.OPERATION_NAME for known_dialect in dialect.dialects() for op in known_dialect.operations]
    about = (
        f"'{op_match[1]}' is not an op of upstream MLIR or of a loaded dialect{suggest(op_match[1], own)}; "
        if op_match
        else ""
    )
    return [f"{about}ops of your own are loaded by --plugin FILE.py"]
