"""docs/architecture.md lists the packages, and what each imports."""

import ast
import re

import pytest

import sources
from sources import PACKAGE
from stepladder.runtime.resources import transforms_dir

PAGE = transforms_dir().parent / "docs" / "architecture.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="not a checkout")


def documented() -> dict[str, set[str]]:
    """Returns package -> packages that the page says it imports."""
    text = PAGE.read_text().partition("| package | contents | imports |")[2]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", text.partition("\n\n")[0], re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", imports)) for name, imports in rows}


def imported(package: str) -> dict[str, str]:
    """Returns package -> a file of `package` that imports it; imports for type checkers do not count."""
    found: dict[str, str] = {}
    for path in sorted((PACKAGE / package).rglob("*.py")):
        tree = sources.trees()[path]
        for_types = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if id(node) in for_types:
                continue
            if isinstance(node, ast.ImportFrom) and node.module == "stepladder":
                names = [f"stepladder.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                first, _, rest = name.partition(".")
                other = rest.partition(".")[0]
                if first == "stepladder" and (PACKAGE / other).is_dir() and other not in ("", package):
                    found.setdefault(other, str(path.relative_to(PACKAGE)))
    return found


def test_every_package_is_listed() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert set(documented()) == packages
    assert len(list(PACKAGE.glob("[!_]*"))) <= 12


@pytest.mark.parametrize("package", sorted(documented()) if PAGE.is_file() else [])
def test_imports_are_those_of_the_page(package: str) -> None:
    found = imported(package)
    assert {name: path for name, path in found.items() if name not in documented()[package]} == {}
    assert documented()[package] <= set(found), "the page lists a package that is not imported"


def test_packages_have_no_cycle() -> None:
    left = documented()
    while left:
        free = [name for name, others in left.items() if not others & set(left)]
        assert free, f"a cycle among {', '.join(left)}"
        left = {name: others for name, others in left.items() if name not in free}


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/extending.md", "CONTRIBUTING.md"])
def test_names_of_the_code_are_in_the_file_that_a_page_says(page: str) -> None:
    root = PAGE.parents[1]
    named = re.findall(r"`(\w+)`\s+in\s+`((?:runner|benchmarks)/[\w/]+\.py)`", (root / page).read_text())
    assert named or page == "docs/extending.md"
    missing = [
        f"{name} in {path}"
        for name, path in named
        if not re.search(rf"^(?:def|class) {name}\b|^{name}\b.* = ", (root / path).read_text(), re.MULTILINE)
    ]
    assert not missing
