"""Docstrings of public functions: what they take, what they return, and the errors that they raise."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest

from test_architecture import MODULES, ROOT, package_of, trees

# Words of a docstring that say what a function returns: a section, or the first sentence.
RETURNS = re.compile(r"\b(?:[Rr]eturns|Yields|Tells|Whether|Opens|Enters)\b")
# What has no value for the caller.
NOTHING = ("None", "NoReturn")

# Packages, and parts of packages, of which every public function with parameters is described, also where no other
# package uses it.
DESCRIBED = ("payload", "pipeline", "verify", "runtime", "extension.lib", "mlir", "api", "measure", "cli")

NEARLY_FULL = 370  # lines, of modules that have no room for more docstrings below `MAX_LINES`

# What registers a function of the emulator for one op of MLIR, or for one instruction or function: all that it
# registers have one signature, and their docstrings say in a sentence what the op does.
REGISTERS = ("executes", "lowers", "checks", "instruction", "brings", "_execute")

# The emulator and the scripts, of which every public function with parameters is described as well.
EMULATOR_AND_SCRIPTS = [path for name, path in MODULES.items() if package_of(name) == "emulator"]
EMULATOR_AND_SCRIPTS += sorted((ROOT / "benchmarks").glob("*.py"))
FULL_PATHS = {
    *("runner/stepladder/emulator/core/program.py", "runner/stepladder/emulator/memory/sanitizer.py"),
    *("runner/stepladder/emulator/ptx/flow.py", "benchmarks/measure.py"),
}


def used_elsewhere() -> dict[str, set[str]]:
    """Returns module -> the names in it that modules of other packages import, or use as attributes of the module."""
    used: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees().items():
        modules = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in MODULES:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    if whole in MODULES:
                        modules[alias.asname or alias.name] = whole
                    elif package_of(node.module) != package_of(name):
                        used[node.module].add(alias.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                module = modules[node.value.id]
                if package_of(module) != package_of(name):
                    used[module].add(node.attr)
    return used


def own_statements(function: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a function without those of functions in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from own_statements(child)


def parameters_of(function: ast.FunctionDef) -> list[ast.arg]:
    """Returns the parameters of a function, without the object or the class of a method."""
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    parameters += [extra for extra in (function.args.vararg, function.args.kwarg) if extra is not None]
    return [parameter for parameter in parameters if parameter.arg not in ("self", "cls")]


def missing(function: ast.FunctionDef) -> list[str]:
    """Returns what a function's docstring does not say."""
    text = ast.get_docstring(function) or ""
    parameters = parameters_of(function)
    described = text.partition("Args:")[2]
    found = [parameter.arg for parameter in parameters if not re.search(rf"\b{parameter.arg}\b", described)]
    if function.returns is not None and ast.unparse(function.returns) not in NOTHING and not RETURNS.search(text):
        found.append("what it returns")
    raises = any(isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) for node in own_statements(function))
    if raises and not re.search(r"\b[Rr]aises\b", text):
        found.append("what it raises")
    return found


def test_functions_that_other_packages_use_are_described() -> None:
    used = used_elsewhere()
    functions = {
        f"{name}.{function.name}": function
        for name, names in used.items()
        for function in trees()[name].body
        if isinstance(function, ast.FunctionDef) and function.name in names
    }
    assert len(functions) > 100
    assert not {name: missing(function) for name, function in functions.items() if missing(function)}


def public_functions(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yields the public functions, and methods of public classes, of a module or a class, with their names."""
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from ((f"{node.name}.{name}", method) for name, method in public_functions(node.body))


@pytest.mark.parametrize("package", DESCRIBED)
def test_public_functions_of_a_package_are_described(package: str) -> None:
    functions = {
        f"{name}.{qualified}": function
        for name, tree in trees().items()
        if f"{name}.".startswith(f"stepladder.{package}.")
        for qualified, function in public_functions(tree.body)
        # ruff (D1) asserts that there is a docstring, except in protocols of what other packages define.
        if parameters_of(function) and ast.get_docstring(function) is not None
    }
    assert functions
    assert not {name: missing(function) for name, function in functions.items() if missing(function)}


def is_execution(function: ast.FunctionDef) -> bool:
    """Whether a function executes one op: it is registered, or takes a fiber, an instruction and operands alone."""
    called = [node.func if isinstance(node, ast.Call) else node for node in function.decorator_list]
    if any(isinstance(name, ast.Name) and name.id in REGISTERS for name in called):
        return True
    types = [part.annotation and ast.unparse(part.annotation) for part in parameters_of(function)]
    return types[:2] == ["Fiber", "Instruction"] and {*types[2:]} <= {"Value"}


def undescribed(text: str) -> dict[str, list[str]]:
    """Returns what the docstrings of a module do not say, by function; those that execute one op are left out."""
    functions = {
        name: function
        for name, function in public_functions(ast.parse(text).body)
        if parameters_of(function) and not is_execution(function)
    }
    return {name: missing(function) for name, function in functions.items() if missing(function)}


def test_public_functions_of_the_emulator_and_of_scripts_are_described() -> None:
    paths = {path.relative_to(ROOT).as_posix(): path for path in EMULATOR_AND_SCRIPTS}
    assert {*paths} > FULL_PATHS
    found = {name: undescribed(path.read_text()) for name, path in paths.items() if name not in FULL_PATHS}
    assert not {name: functions for name, functions in found.items() if functions}


def test_functions_that_execute_one_op_have_short_docstrings() -> None:
    text = """
@executes("arith.addi")
def addi(fiber: Fiber, op: Instruction, left: Value, *, wraps: bool = True) -> Value: ...
def move(fiber: Fiber, op: Instruction, *operands: Value) -> Value: ...
def narrow(fiber: Fiber, op: Instruction, mask: np.ndarray) -> None: ...
@functools.cache
def doubled(value: int) -> None: ...
"""
    assert undescribed(text) == {"narrow": ["fiber", "op", "mask"], "doubled": ["value"]}


def test_modules_that_are_left_out_have_no_room() -> None:
    paths = [ROOT / name for name in FULL_PATHS]
    assert {path for path in paths if len(path.read_text().splitlines()) < NEARLY_FULL} == set()


def test_public_functions_are_those_of_modules_and_of_public_classes() -> None:
    text = "def f(): ...\ndef _g(): ...\nclass A:\n    def h(self): ...\n    def _i(self): ...\n"
    text += "class _B:\n    def j(self): ..."
    assert [name for name, _ in public_functions(ast.parse(text).body)] == ["f", "A.h"]


@pytest.mark.parametrize(
    "text, wrong",
    [
        ('"""Returns a sum.\n\n    Args:\n        a: one.\n        b: another.\n    """\n    return a + b', []),
        ('"""Returns a sum.\n\n    Args:\n        a: one.\n    """\n    return a + b', ["b"]),
        ('"""Adds.\n\n    Args:\n        a, b: numbers.\n    """\n    return a + b', ["what it returns"]),
        (
            '"""Returns a sum.\n\n    Args:\n        a, b: numbers.\n    """\n    raise ValueError("no sum")',
            ["what it raises"],
        ),
        ("return a + b", ["a", "b", "what it returns"]),
    ],
)
def test_what_a_docstring_does_not_say_is_found(text: str, wrong: list[str]) -> None:
    (function,) = ast.parse(f"def add(a: int, b: int) -> int:\n    {text}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert missing(function) == wrong
