"""The Markdown pages: links lead somewhere, lines are no longer than 120 columns, and nothing is a list by accident."""

import functools
import itertools
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from documented import ROOT, documents, name_of

pytestmark = pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="not a checkout")

WIDTH = 120


def _tokens(text: str) -> list[Token]:
    """Returns the tokens of a page, inline ones behind those that hold them."""
    return [inner for token in MarkdownIt().enable("table").parse(text) for inner in (token, *(token.children or ()))]


@functools.cache  # pages link to one another hundreds of times
def _anchors(path: Path) -> set[str]:
    """Returns the anchors that a renderer makes of a page's headings, as GitHub does."""
    found: set[str] = set()
    tokens = MarkdownIt().parse(path.read_text())
    for opening, inline in itertools.pairwise(tokens):
        if opening.type != "heading_open":
            continue
        title = "".join(token.content for token in inline.children or ())
        anchor = slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        number = 0
        while anchor in found:
            number += 1
            anchor = f"{slug}-{number}"
        found.add(anchor)
    return found


def broken_links(path: Path, text: str) -> list[str]:
    """Returns the relative links and images of a page's text that lead to no file or no heading."""
    broken = []
    for token in _tokens(text):
        link = token.attrGet("href" if token.type == "link_open" else "src")
        if link is None or re.match(r"\w+:", str(link)):
            continue
        name, _, anchor = unquote(str(link)).partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(str(link))
    return broken


def long_lines(text: str) -> list[int]:
    """Returns the numbers of lines beyond WIDTH columns that are no row of a table and no single long word."""
    return [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > WIDTH and not line.startswith("|") and " " in line.strip()
    ]


def accidental_blocks(text: str) -> list[int]:
    """Returns the lines inside a paragraph that begin a list or a heading, because a line starts with its mark."""
    lines = text.splitlines()
    starts = {
        token.map[0]
        for token in MarkdownIt().parse(text)
        if token.map and token.type in ("bullet_list_open", "ordered_list_open", "heading_open") and token.level == 0
    }
    return [
        start + 1
        for start in sorted(starts)
        if start and lines[start - 1].strip() and not lines[start - 1].startswith(("#", "<!--"))
    ]


@pytest.mark.parametrize("path", documents(), ids=name_of)
def test_a_page_renders(path: Path) -> None:
    text = path.read_text()
    assert not broken_links(path, text)
    assert not long_lines(text)
    assert not accidental_blocks(text)


def test_pages_that_do_not_render_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title, `code`\n")
    good = "[a](page.md) [b](page.md#a-title-code) [c](#a-title-code) [d](https://example.org/x#y)\n"
    assert not broken_links(page, good)
    assert broken_links(page, "[a](other.md) ![b](none.svg)\n\n| [c](page.md#title) |\n| --- |\n| [d](#none) |\n") == [
        "other.md",
        "none.svg",
        "page.md#title",
        "#none",
    ]
    assert long_lines(f"{'word ' * 30}\n| {'cell ' * 30} |\nhttps://{'x' * 130}\n") == [1]
    assert accidental_blocks("C = AB\n+ C, where\n\n- a\n- b\n\n# Title\n\nsum\n# not a title\n") == [2, 10]


def test_pages_name_files_that_are_there() -> None:
    """Paths in code spans, such as `transforms/wmma.mlir`, begin with a folder of the checkout."""
    folders = [path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    named = re.compile(rf"^((?:{'|'.join(map(re.escape, folders))})/[\w./\-]+)$")
    for path in documents():
        for token in _tokens(path.read_text()):
            if token.type == "code_inline" and (found := named.match(token.content)):
                assert (ROOT / found[1]).exists() or _is_ignored(found[1]), f"{name_of(path)}: {found[1]}"


def _is_ignored(name: str) -> bool:
    """Returns whether a path is one that a build makes."""
    return subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT).returncode == 0


def test_the_walk_shows_lines_of_the_files_that_it_names() -> None:
    page = ROOT / "CONTRIBUTING.md"
    walk = page.read_text().partition("\n## A step, ")[2].partition("\n## Measurements")[0]
    sections = re.split(r"\n###? ", walk)[1:]
    assert len(sections) >= 7
    shown = 0
    for section in sections:
        named = [ROOT / path for path in re.findall(r"`((?:runner|transforms|test)/[\w./\-]+\.\w+)`", section)]
        lines = {line.strip() for path in named for line in path.read_text().splitlines()}
        for token in MarkdownIt().parse(section):
            if token.type == "fence" and token.info in ("python", "mlir"):
                wanted = [line.strip() for line in token.content.splitlines()]
                missing = [line for line in wanted if line not in lines and line not in ("", "...", '"""..."""')]
                assert not missing, f"{section.splitlines()[0]}: {missing}"
                shown += 1
    assert shown >= 6
