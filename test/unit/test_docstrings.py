"""Docstrings of functions that other rooms use: what they take, what they return, and the errors that they raise."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from test_architecture import MAX_LINES, MODULES, ROOT, TREES, room_of

# Words of a docstring that say what a function returns: a section, or the first sentence.
RETURNS = re.compile(r"\b(?:[Rr]eturns|Yields|Tells|Whether|Opens|Enters)\b")
# What has no value for the caller.
NOTHING = ("None", "NoReturn")
# What registers a function for one op of MLIR, or one instruction or function: all that it registers have one
# signature, and their docstring says what the op does.
REGISTERS = ("executes", "lowers", "checks", "instruction", "brings", "_execute")
# Modules whose public functions and methods are all described: of a room, and scripts.
DESCRIBED = [path for name, path in MODULES.items() if name.startswith("stepladder.emulator")]
DESCRIBED += (ROOT / "benchmarks").glob("*.py")


def used_elsewhere() -> dict[str, set[str]]:
    """Returns module -> the names in it that modules of other rooms import, or use as attributes of the module."""
    used: dict[str, set[str]] = defaultdict(set)
    for name, tree in TREES.items():
        modules = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in MODULES:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    if whole in MODULES:
                        modules[alias.asname or alias.name] = whole
                    elif room_of(node.module) != room_of(name):
                        used[node.module].add(alias.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                module = modules[node.value.id]
                if room_of(module) != room_of(name):
                    used[module].add(node.attr)
    return used


def own_statements(function: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a function without those of functions in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from own_statements(child)


def missing(function: ast.FunctionDef) -> list[str]:
    """Returns what a function's docstring does not say."""
    text = ast.get_docstring(function) or ""
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    parameters += [extra for extra in (function.args.vararg, function.args.kwarg) if extra is not None]
    names = [parameter.arg for parameter in parameters if parameter.arg not in ("self", "cls")]
    described = text.partition("Args:")[2]
    found = [name for name in names if not re.search(rf"\b{name}\b", described)]
    if function.returns is not None and ast.unparse(function.returns) not in NOTHING and not RETURNS.search(text):
        found.append("what it returns")
    raises = any(isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) for node in own_statements(function))
    if raises and not re.search(r"\b[Rr]aises\b", text):
        found.append("what it raises")
    return found


def test_functions_that_other_rooms_use_are_described() -> None:
    used = used_elsewhere()
    functions = {
        f"{name}.{function.name}": function
        for name, names in used.items()
        for function in TREES[name].body
        if isinstance(function, ast.FunctionDef) and function.name in names
    }
    assert len(functions) > 100
    assert not {name: missing(function) for name, function in functions.items() if missing(function)}


def public_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yields the public functions of a module, and the public methods of its public classes, with their names."""
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]
        for function in inside:
            if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
                yield function.name if function is node else f"{node.name}.{function.name}", function


def has_parameters(function: ast.FunctionDef) -> bool:
    names = [parameter.arg for parameter in (*function.args.args, *function.args.kwonlyargs)]
    return bool({*names} - {"self", "cls"} or function.args.vararg or function.args.kwarg)


def is_execution(function: ast.FunctionDef) -> bool:
    """Whether a function executes one op: it is registered, or takes a fiber, an instruction and operands alone."""
    called = [node.func if isinstance(node, ast.Call) else node for node in function.decorator_list]
    types = [ast.unparse(part.annotation) for part in function.args.args if part.annotation is not None]
    return any(isinstance(name, ast.Name) and name.id in REGISTERS for name in called) or (
        types[:2] == ["Fiber", "Instruction"] and {*types[2:]} <= {"Value"} and not function.args.kwonlyargs
    )


def undescribed(tree: ast.Module, lines: int) -> dict[str, list[str]]:
    """Returns what docstrings of a module do not say, by function.

    Args:
        tree: of the module.
        lines: that it has; where a line for each thing that is not said would make them too many, short ones stay.
    """
    functions = {name: function for name, function in public_functions(tree) if has_parameters(function)}
    found = {name: missing(function) for name, function in functions.items() if not is_execution(function)}
    # A section that is not there has a blank line, a title and a closing line of its own.
    texts = {name: ast.get_docstring(functions[name]) or "" for name in found}
    needed = sum(len(said) + 3 * ("Args:" not in texts[name]) for name, said in found.items() if said)
    return {} if lines + needed >= MAX_LINES else {name: said for name, said in found.items() if said}


def test_functions_of_whole_rooms_are_described() -> None:
    texts = {path: path.read_text() for path in DESCRIBED}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    assert sum(len([*public_functions(tree)]) for tree in trees.values()) > 600
    found = {path.stem: undescribed(tree, len(texts[path].splitlines())) for path, tree in trees.items()}
    assert not {name: said for name, said in found.items() if said}


def test_what_executes_an_op_may_have_a_short_docstring() -> None:
    short = """
@executes("arith.addi")
def addi(fiber: Fiber, op: Instruction, left: Value, *, wraps: bool = True) -> Value:
    pass
def move(fiber: Fiber, op: Instruction, *operands: Value) -> Value:
    pass
def _own(left: Value) -> None:
    pass
def narrow(fiber: Fiber, op: Instruction, mask: np.ndarray) -> None:
    pass
class Fiber:
    def split(self, mask: np.ndarray) -> None:
        pass
    def reset(self) -> None:
        pass
"""
    assert undescribed(ast.parse(short), 20) == {"narrow": ["fiber", "op", "mask"], "Fiber.split": ["mask"]}
    assert undescribed(ast.parse(short), MAX_LINES - 10) == {}
    assert undescribed(ast.parse(short), MAX_LINES - 11) != {}


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
