"""The packages of Stepladder: which imports which, and how large a module is."""

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import sources
from sources import PACKAGE

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "runner"
MAX_LINES = 400
MAX_ENTRIES = 12

# The packages that the modules of a package import; each imports its own too. `pipeline.codegen` is within another.
IMPORTS = {
    "runtime": set(),
    "verify": {"runtime"},
    "measure": {"runtime", "verify"},
    "mlir": {"runtime"},
    "payload": {"mlir", "runtime"},
    "extension": {"payload", "mlir", "runtime"},
    "pipeline.codegen": {"mlir", "runtime"},
    "pipeline": {"pipeline.codegen", "payload", "extension", "mlir", "runtime", "measure.tuning"},
    "emulator": {"pipeline", "payload", "mlir", "runtime", "verify"},
    "api": {"emulator", "pipeline", "payload", "extension", "runtime", "measure"},
    "cli": {"emulator", "pipeline", "payload", "extension", "mlir", "runtime", "verify", "measure"},
}
WITHOUT_MLIR = ("runtime", "verify", "measure")

# Modules that are not yet cut to `MAX_LINES`.
LONG: set[str] = set()


def module_name(path: Path) -> str:
    parts = path.relative_to(RUNNER).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


def trees() -> dict[str, ast.Module]:
    """Returns the parsed modules; when a test asks for them, since each process that runs tests imports this file."""
    return {name: sources.trees()[path] for name, path in MODULES.items()}


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(node: ast.AST, *, types: bool, functions: bool) -> Iterator[str]:
    """Yields what is imported below a node; with `types`, for annotations too, and with `functions`, when called."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0 and child.module:
            for alias in child.names:
                name = f"{child.module}.{alias.name}"
                yield name if name in MODULES else child.module
        elif is_for_types(child) and not types:
            for statement in child.orelse:
                yield from imports(statement, types=types, functions=functions)
        elif functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(child, types=types, functions=functions)


def package_of(name: str) -> str:
    """Returns the innermost package that a module is in."""
    inner = name.removeprefix("stepladder").removeprefix(".")
    packages = [package for package in IMPORTS if f"{inner}.".startswith(f"{package}.")]
    return max(packages, key=len, default=inner.split(".")[0])


@functools.cache
def graph(*, types: bool, functions: bool) -> dict[str, set[str]]:
    return {
        name: {other for other in imports(tree, types=types, functions=functions) if other in MODULES}
        for name, tree in trees().items()
    }


def test_every_package_is_known() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert folders == {package.split(".")[0] for package in IMPORTS}
    assert {package for package in IMPORTS if "." in package} == {
        package for name in MODULES if "." in (package := package_of(name))
    }


def test_the_package_has_few_entries() -> None:
    entries = [path.name for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "transforms")]
    assert len(entries) <= MAX_ENTRIES, entries


@pytest.mark.parametrize("package", IMPORTS)
def test_packages_import_in_one_direction(package: str) -> None:
    wrong = [
        f"{name} imports {other}"
        for name, others in graph(types=True, functions=True).items()
        for other in others
        if package_of(name) == package
        and package_of(other) not in ("", package)
        and not any(other == f"stepladder.{to}" or other.startswith(f"stepladder.{to}.") for to in IMPORTS[package])
    ]
    assert not wrong


def test_packages_form_no_cycle() -> None:
    """What is right for each package is right for all: the packages themselves can be put in an order."""
    left = {package: {package_of(f"stepladder.{to}") for to in imported} for package, imported in IMPORTS.items()}
    while left:
        lowest = [package for package, imported in left.items() if not imported & set(left)]
        assert lowest, left
        for package in lowest:
            del left[package]


@pytest.mark.parametrize("package", WITHOUT_MLIR)
def test_what_runs_on_a_gpu_machine_imports_no_mlir(package: str) -> None:
    """No module of MLIR is reached, also not by imports within functions."""
    edges = graph(types=False, functions=True)
    pending = [name for name in MODULES if package_of(name) == package]
    reached = set(pending)
    while pending:
        for other in edges[pending.pop()] - reached:
            reached.add(other)
            pending.append(other)
    assert not [name for name in reached if package_of(name) == "mlir"]
    outside = {name: set(imports(trees()[name], types=False, functions=True)) for name in reached}
    assert not [
        name for name, found in outside.items() if any(other.split(".")[0] in ("mlir", "torch_mlir") for other in found)
    ]


def cycles(edges: dict[str, set[str]]) -> list[str]:
    """Returns the cycles of a graph, one at least where there are any."""
    state: dict[str, int] = defaultdict(int)
    found = []

    def visit(name: str, path: list[str]) -> None:
        state[name] = 1
        for other in sorted(edges.get(name, ())):
            if state[other] == 1:
                found.append(" -> ".join([*path[path.index(other) :], other]))
            elif state[other] == 0:
                visit(other, [*path, other])
        state[name] = 2

    for name in sorted(edges):
        if state[name] == 0:
            visit(name, [name])
    return found


def test_no_import_cycle() -> None:
    """No module imports itself through others when it is loaded, or, but for the package, when it is called."""
    assert not cycles(graph(types=False, functions=False))
    # The package has the version, and imports the interface when that is asked for.
    called = {name: others - {"stepladder"} for name, others in graph(types=False, functions=True).items()}
    called.pop("stepladder")
    assert not cycles(called)


def test_annotations_have_no_cycle() -> None:
    """Nor do modules use one another's types, except those of what is emulated, and of how operands are prepared."""
    edges = graph(types=True, functions=True)
    names = {name for name in edges if package_of(name) not in ("", "emulator")} - {"stepladder.payload.prepared"}
    assert not cycles({name: edges[name] & names for name in names})


def bound_names(tree: ast.Module) -> set[str]:
    """Returns the names that a module binds, in any block outside functions and classes."""
    names: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            pending += ast.iter_child_nodes(node)
    return names


def missing_names(tree: ast.Module, bound: Mapping[str, set[str]]) -> Iterator[str]:
    """Yields what a module takes from modules of the project that do not have it."""
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name in bound}
        elif isinstance(node, ast.ImportFrom) and node.module in bound:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name in bound:
                    modules[alias.asname or alias.name] = name
                elif alias.name not in bound[node.module]:
                    yield f"line {node.lineno}: {name}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stepladder"):
            yield f"line {node.lineno}: {node.module}"
    for node in ast.walk(tree):  # a variable or parameter may have the name of a module
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            modules.pop(node.id, None)
        elif isinstance(node, ast.arg):
            modules.pop(node.arg, None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module and node.attr not in bound[module] and f"{module}.{node.attr}" not in bound:
                yield f"line {node.lineno}: {module}.{node.attr}"


def test_benchmarks_use_names_that_exist() -> None:
    """A rename in the package is followed in the scripts, most of which need a GPU to run."""
    scripts = {path.stem: ast.parse(path.read_text()) for path in (ROOT / "benchmarks").glob("*.py")}
    bound = {name: bound_names(tree) for name, tree in (trees() | scripts).items()}
    missing = [f"{name}: {found}" for name, tree in scripts.items() for found in missing_names(tree, bound)]
    assert not missing


def test_a_name_that_is_gone_is_found() -> None:
    bound = {"stepladder": {"compile"}, "stepladder.runtime": set(), "stepladder.runtime.files": {"read"}}
    source = """import stepladder
from stepladder.runtime import files as kept, gone
from stepladder.runtime.files import read, write
from stepladder.lost import anything
stepladder.compile(kept.read, stepladder.load, kept.write, stepladder.runtime)
"""
    assert list(missing_names(ast.parse(source), bound)) == [
        "line 2: stepladder.runtime.gone",
        "line 3: stepladder.runtime.files.write",
        "line 4: stepladder.lost",
        "line 5: stepladder.load",
        "line 5: stepladder.runtime.files.write",
    ]


@pytest.mark.parametrize("folder", ["runner", "test", "benchmarks"])
def test_modules_are_short(folder: str) -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert not {name: count for name, count in lines.items() if count > MAX_LINES and name not in LONG}
    assert not [name for name in LONG if name.startswith(folder) and lines.get(name, 0) <= MAX_LINES]


def private_uses(tree: ast.Module) -> Iterator[str]:
    """Yields uses of private names of what a module imports, and of private attributes that it does not define."""
    defined = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    defined |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stepladder"):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in defined:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


# Private names of libraries that have no public ones for the same: argparse, os, and the MLIR bindings.
FOREIGN = (
    "argparse._SubParsersAction",
    "dialect._mlir_module",
    "op_class._attach_traits",
    "op_class._dialect_obj",
    "op_class._fields",
    "os._exit",
    "torch._int_mm",
    "torch._scaled_mm",
    *("torch._C", "torch._C._cuda_getCurrentRawStream", "torch._C._cuda_getDevice"),
)


def test_no_private_name_is_used_elsewhere() -> None:
    wrong = [
        f"{name}: {use}" for name, tree in trees().items() for use in private_uses(tree) if not use.endswith(FOREIGN)
    ]
    assert not wrong
