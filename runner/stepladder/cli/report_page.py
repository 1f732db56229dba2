"""The page that `stepladder report` writes: HTML that needs no other file, no network and no script."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from stepladder import __version__

# Characters from which on the data of a constant is left out, as by MLIR's -mlir-elide-elementsattrs-if-larger.
_LONG = 256
_ELIDED = "dense_resource<__elided__>"
_CONSTANT = re.compile(r'dense<(?:"0x[0-9A-Fa-f]*"|\[[^<>]*\])>')
_BLOB = re.compile(rf'"0x[0-9A-Fa-f]{{{_LONG},}}"')

_STYLE = """\
:root { color-scheme: light dark; --text: #1c2024; --back: #ffffff; --soft: #f3f4f6; --line: #d3d7dc; --dim: #5b6470;
  --good: #116329; --bad: #b3261e; --plus: #dafbe1; --minus: #ffe3e0; --link: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e6ea; --back: #14171b; --soft: #1e2329; --line: #3a414a;
  --dim: #9aa4b0; --good: #6fdd8b; --bad: #ff8a80; --plus: #12381f; --minus: #4a1d1a; --link: #7cb0ff; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 76rem;
  margin: 1.5rem auto; padding: 0 1rem; }
a { color: var(--link); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; border-top: 2px solid var(--line); padding-top: 1rem; }
h3 { font-size: 1.05rem; } h2, h3, td { overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: .4rem 0 1rem; } .wide { overflow-x: auto; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .15rem .6rem .15rem 0; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; font: 12.5px/1.4 ui-monospace, monospace; }
details { border: 1px solid var(--line); border-radius: 4px; margin: .3rem 0; padding: .25rem .6rem; }
summary { cursor: pointer; } summary code { font-weight: 600; } .dim { color: var(--dim); }
.PASS { color: var(--good); font-weight: 600; } .FAIL { color: var(--bad); font-weight: 600; }
.plus { background: var(--plus); } .minus { background: var(--minus); }
"""


@dataclass(frozen=True)
class Table:
    """A table: its title, and rows with the same column titles as keys."""

    title: str
    rows: Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class Step:
    """A step of a pipeline, as the page shows it.

    Attributes:
        name: of the dump, `NN-step`.
        summary: what the step does, in a sentence.
        text: the IR after it.
        verdict: `PASS`, `FAIL`, or empty where the IR was not executed.
        lines: what the check of its results says, and findings of the sanitizer.
        tables: its counters.
    """

    name: str
    summary: str
    text: str
    verdict: str = ""
    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Section:
    """A section of the page: a kernel, or a function with several.

    Attributes:
        name: of the payload, the bundle, or the kernel in it.
        verdict: `PASS`, `FAIL`, or empty where nothing was executed.
        facts: what is known of it, name -> value.
        lines: what is to be said before the tables.
        tables: knobs, predicted times, counters by step, and speed.
        steps: in order, the input first.
        is_part: whether it is a kernel of the function of the section before.
    """

    name: str
    verdict: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()
    steps: Sequence[Step] = ()
    is_part: bool = False


def page(sections: Sequence[Section], provenance: str = "") -> str:
    """Returns the page.

    Args:
        sections: in order, one at least; a table at the top links to them where there are several.
        provenance: when and how, for the last line.
    """
    title = "Stepladder report" if len(sections) > 1 else f"Stepladder report: {sections[0].name}"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{_STYLE}</style></head>",
        f"<body>\n<h1>{escape(title)}</h1>",
    ]
    if len(sections) > 1:
        parts += _contents(sections)
    for number, section in enumerate(sections, 1):
        parts += _section(number, section)
    last = f"stepladder {__version__}{', ' * bool(provenance)}{provenance}"
    parts.append(f'<p class="dim">{escape(last)}</p>\n</body>\n</html>')
    return "\n".join(parts) + "\n"


def elided(text: str) -> str:
    """Returns IR without the data of long constants.

    Args:
        text: the IR.
    """
    text = _CONSTANT.sub(lambda match: match[0] if len(match[0]) < _LONG else _ELIDED, text)
    return _BLOB.sub('"0x..."', text)


def _contents(sections: Sequence[Section]) -> Iterable[str]:
    yield "<table><tr><th>section</th><th>problem</th><th>results</th></tr>"
    for number, section in enumerate(sections, 1):
        indent = "&emsp;" * section.is_part
        link = f'{indent}<a href="#s{number}">{escape(section.name)}</a>'
        problem = escape(section.facts.get("problem", ""))
        yield f"<tr><td>{link}</td><td>{problem}</td><td>{_verdict(section.verdict)}</td></tr>"
    yield "</table>"


def _section(number: int, section: Section) -> Iterable[str]:
    heading = "h3" if section.is_part else "h2"
    yield f'<section id="s{number}">'
    yield f"<{heading}>{escape(section.name)} {_verdict(section.verdict)}</{heading}>"
    if section.facts:
        yield "<table>"
        yield from (f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in section.facts.items())
        yield "</table>"
    yield from _lines(section.lines)
    for table in section.tables:
        yield from _table(table)
    previous: Step | None = None
    target = ""
    for place, step in enumerate(section.steps):
        anchor = f"s{number}-{place}"
        is_same = previous is not None and previous.text == step.text
        target = target if is_same else anchor
        yield from _step(anchor, step, previous, target)
        previous = step
    yield "</section>"


def _step(anchor: str, step: Step, previous: Step | None, target: str) -> Iterable[str]:
    """Yields the lines of a step; `target` is the anchor of the step that shows its IR."""
    text = elided(step.text)
    diff = _diff(previous, step.name, text) if previous is not None and target == anchor else []
    added, removed = (sum(line.startswith(sign) for line in diff[2:]) for sign in "+-")
    change = f"+{added} -{removed}" if diff else f"{text.count(chr(10))} lines" if previous is None else "unchanged"
    yield f'<details id="{anchor}"><summary><code>{escape(step.name)}</code> {escape(step.summary)} '
    yield f'<span class="dim">{change}</span> {_verdict(step.verdict)}</summary>'
    yield from _lines(step.lines)
    for table in step.tables:
        yield from _table(table)
    if target != anchor:
        yield f'<p>The step leaves the <a href="#{target}">IR</a> as it is.</p></details>'
        return
    if diff:
        yield "<details><summary>difference to the step before</summary>"
        head = [f'<span class="dim">{escape(line)}</span>' for line in diff[:2]]
        yield f"<pre>{chr(10).join([*head, *map(_marked, diff[2:])])}</pre></details>"
    yield f"<pre>{escape(text)}</pre></details>"


def _diff(previous: Step, name: str, text: str) -> list[str]:
    old = elided(previous.text).splitlines()
    return list(difflib.unified_diff(old, text.splitlines(), previous.name, name, lineterm=""))


def _marked(line: str) -> str:
    kind = {"+": "plus", "-": "minus", "@": "dim"}.get(line[:1])
    return f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line)


def _lines(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        # A finding of the sanitizer has several lines.
        yield f"<pre>{escape(line)}</pre>" if "\n" in line else f"<p>{escape(line)}</p>"


def _table(table: Table) -> Iterable[str]:
    if not table.rows:
        return
    yield f'<div class="wide"><table><caption>{escape(table.title)}</caption>'
    yield "<tr>" + "".join(f"<th>{escape(column)}</th>" for column in table.rows[0]) + "</tr>"
    for row in table.rows:
        yield "<tr>" + "".join(_cell(value) for value in row.values()) + "</tr>"
    yield "</table></div>"


def _cell(value: object) -> str:
    if value in ("PASS", "FAIL"):
        return f"<td>{_verdict(str(value))}</td>"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'<td class="number">{value}</td>' if is_number else f"<td>{escape(str(value))}</td>"


def _verdict(verdict: str) -> str:
    return f'<span class="{escape(verdict)}">{escape(verdict)}</span>' if verdict else ""
