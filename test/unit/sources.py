"""The source of the package, parsed, for the tests that read it."""

import ast
import functools
import gc
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "runner" / "stepladder"


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Returns the parsed modules of the package; they are not to be changed.

    They are more than a million objects, which are kept out of garbage collection: it would search them while they are
    made and in all later tests of the process.
    """
    gc.collect()
    gc.disable()
    try:
        parsed = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
        gc.freeze()
    finally:
        gc.enable()
    return parsed
