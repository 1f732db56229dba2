"""The documents: their tables are what docs/results and the scripts give."""

import json
import re
import subprocess
import sys

import pytest

from stepladder import extension as public
from stepladder.pipeline import attributes as script_attributes
from stepladder.pipeline import library
from stepladder.pipeline.context import mlir_context
from stepladder.runtime.resources import transforms_dir

DOCS = transforms_dir().parent / "docs"
RENDER = DOCS.parent / "benchmarks" / "render.py"
# The line of a step with a long name is folded.
LABEL = re.compile(r"^\[(\w+)\.mlir\]\(\.\./transforms/steps/\S+\):\s(\w+),\s(`tc`|upstream\sops)[;.]", re.MULTILINE)


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
def test_documents_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(RENDER), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
def test_commands_of_results_are_committed_or_say_that_they_are_not() -> None:
    for path in sorted((DOCS / "results").glob("*.json")):
        command = json.loads(path.read_text()).get("command", "stepladder")
        text = " ".join(command) if isinstance(command, list) else command
        first = text.split()[0]
        known = first in ("stepladder", "python") or (DOCS.parent / first).is_file()
        assert known or text.startswith("not a committed command: "), f"{path.name}: {text}"


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
def test_results_name_no_place_of_a_machine() -> None:
    for path in sorted((DOCS / "results").glob("*.json")):
        places = re.findall(r'"/[^"]*"', path.read_text())
        assert not places, f"{path.name}: {places[0]}"


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
def test_steps_are_labelled_as_the_runner_reads_them() -> None:
    labels = {
        name: (kind, " ".join(ops.split()))
        for document in DOCS.glob("*.md")
        for name, kind, ops in LABEL.findall(document.read_text())
    }
    read = {}
    for pipeline in ("wmma", "mma_sync", "wgmma_single_stage", "wgmma_multistage", "wgmma"):
        with mlir_context():
            for step in library.load(pipeline).steps:
                read[step.name] = (
                    "optimization" if step.optimization else "lowering",
                    "`tc`" if step.dialects else "upstream ops",
                )
    assert labels == {name: read[name] for name in labels}
    assert set(read) - set(labels) == set(), "every step is described"


def rows_of(text: str, heading: str) -> list[str]:
    """Returns the names in the first column of the first table below a heading."""
    table = text.partition(heading)[2]
    found = re.search(r"^\| .*\n\| ---.*\n((?:\|.*\n)+)", table, re.MULTILINE)
    return [re.match(r"\| `(\w+)` \|", row)[1] for row in found[1].splitlines()]


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
def test_extending_describes_what_there_is() -> None:
    text = (DOCS / "extending.md").read_text()
    attributes = [*script_attributes.OF_STEPS, *script_attributes.OF_PIPELINES, *script_attributes.OF_OPS]
    assert rows_of(text, "### Attributes") == attributes
    assert sorted(rows_of(text, "## An op")) == sorted(public.__all__)


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
@pytest.mark.parametrize(
    "name", ["occupancy.py", "steps/limit_registers.mlir", "tests/lit.cfg.py", "tests/limit_registers.mlir"]
)
def test_extending_shows_the_example_that_is_tested(name: str) -> None:
    example = transforms_dir().parent / "test" / "inputs" / "plugin" / name
    assert f"\n{example.read_text()}```" in (DOCS / "extending.md").read_text()


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
def test_readme_lists_the_environment_variables_that_the_package_reads() -> None:
    sources = (DOCS.parent / "runner" / "stepladder").rglob("*.py")
    read = {name for path in sources for name in re.findall(r"\bSTEPLADDER_[A-Z_]*[A-Z]\b", path.read_text())}
    table = (DOCS.parent / "README.md").read_text().partition("## Environment variables")[2].partition("\n## ")[0]
    assert read == set(re.findall(r"`(STEPLADDER_\w+)`", table))


# Names of knobs and steps that are not the field's terms.
NO_TERMS = [
    "last_tiles",
    "parts_in",
    "store_buffers",
    "alternate_tiles",
    "copy_asynchronously",
    "fit_boxes",
    "hide_latency",
    "issue_loads_ahead",
    "issue_loads_early",
    "join_fragment_loads",
    "keep_products_in_flight",
    "overlap_launches",
    "persist_blocks",
    "place_shared_memory",
    "share_last_tiles",
    "split_reduction",
    "spread_copies",
    "store_by_tma",
    "store_from_registers",
    "tile_reduction",
]


@pytest.mark.skipif(not RENDER.is_file(), reason="not a checkout")
def test_names_of_knobs_and_steps_are_terms() -> None:
    """Names of upstream ops, such as `transform.structured.split_reduction`, have a point before them."""
    root = DOCS.parent
    pattern = re.compile(rf"(?<![\w.])({'|'.join(NO_TERMS)})(?!\w)")
    pages = list(root.glob("*.md"))
    assert len(pages) >= 3
    for folder in ("benchmarks", "docs", "runner", "test", "transforms"):
        for path in [*pages, *sorted((root / folder).rglob("*"))]:
            if path.suffix in (".py", ".md", ".mlir", ".test", ".pyi") and path.name != "test_docs.py":
                assert not (found := pattern.search(path.read_text(errors="replace"))), (
                    f"{path.relative_to(root)}: {found[1]}"
                )
