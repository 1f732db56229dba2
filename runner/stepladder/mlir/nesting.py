"""Measures the nesting depth of MLIR text before it is parsed.

MLIR's parser, verifier and printer recurse, and end the process when the stack overflows.
"""

from __future__ import annotations

import re

from stepladder.runtime.errors import StepladderError

# On a stack of 8 MiB, MLIR parses and prints 2,300 nested regions in generic form, and more brackets of any other kind.
# The rest is a margin for smaller stacks, for passes, and for the emulator's own recursion.
MAX_DEPTH = 256

# Operators at one level of brackets make an affine expression as deep as there are operators: MLIR parses 64,000 sums.
MAX_OPERATORS = 16_384

_TOKEN = re.compile(
    r"""
    (?P<text> // [^\n]* | "(?:[^"\\\n]|\\.)*" | -> | [<>]= )   # where no bracket opens or closes
  | (?P<alias> ^[ \t]* [#!][\w$.-]+ (?= [ \t]*=) )
  | (?P<open> [(\[{<] )
  | (?P<close> [)\]}>] )
  | (?P<minus> -+ )
  | (?P<use> [#!][A-Za-z_$][\w$.-]* )
""",
    re.VERBOSE | re.MULTILINE,
)
_TEXT = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
_ONE_KIND = bytes.maketrans(b"[{<]}>", b"((()))")
_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}<>"))
_ALIAS = re.compile(r"^[ \t]*[#!]", re.MULTILINE)
# The definition of an alias that uses no other, such as that of a map.
_PLAIN_ALIAS = re.compile(r"^[ \t]*#[\w$-]+ = affine_(?:map|set)<[^<>\n#!]*>$", re.MULTILINE)
_MAX_MINUS_SIGNS = 8  # in a row, in text of which the bound below is taken
_OPERATORS = re.compile(
    r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|->|(?P<operator>[-+*]|\b(?:floordiv|ceildiv|mod)\b)'
    r"|(?P<end>[()\[\]{}<>,=])"
)


def check_nesting(text: str, name: str) -> None:
    """Checks that text does not nest too deeply for MLIR to parse.

    Brackets of all kinds count, minus signs in a row, and aliases, which are as deep as what they represent.

    Args:
        text: MLIR, or the text of a pass pipeline.
        name: of its file, for the message.

    Raises:
        StepladderError: more than `MAX_DEPTH` levels, with the location where the first one too many begins.
    """
    if sum(map(text.count, "([{<#!-+*")) + text.count("div") + text.count("mod") <= MAX_DEPTH:
        return  # as most scripts: there is not enough to nest
    if _depth_bound(text) > MAX_DEPTH:
        _check_depth(text, name)
    if sum(text.count(operator) for operator in ("+", "-", "*", "floordiv", "ceildiv", "mod")) > MAX_OPERATORS:
        _check_operators(text, name)


def _depth_bound(text: str) -> int:
    """Returns a bound of the depth, from what `str` and `re` count without a step for each token."""
    if "-" * _MAX_MINUS_SIGNS in text:
        return MAX_DEPTH + 1
    text = _TEXT.sub(" ", text)
    for operator in ("->", ">=", "<="):
        text = text.replace(operator, " ")
    brackets = text.encode("utf-8", "replace").translate(_ONE_KIND, _NO_BRACKETS)
    levels, inner = 0, brackets.replace(b"()", b"")
    while inner != brackets and levels <= MAX_DEPTH:
        levels, brackets, inner = levels + 1, inner, inner.replace(b"()", b"")
    # Each alias may use the one before it, but for those that use none.
    aliases = len(_ALIAS.findall(text)) - len(plain := _PLAIN_ALIAS.findall(text)) + bool(plain)
    return (levels + brackets.count(b"(") + _MAX_MINUS_SIGNS) * (aliases + 1)


def _check_depth(text: str, name: str) -> None:
    """Raises StepladderError where more than `MAX_DEPTH` levels begin."""
    depth = 0
    aliases: dict[str, int] = {}
    alias: str | None = None  # being defined
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        line_depth = depth
        if kind == "open":
            depth = line_depth = depth + 1
        elif kind == "close":
            depth -= 1
        elif kind == "alias":
            alias = token.group().strip() if depth == 0 else None
        elif kind == "use":
            line_depth += aliases.get(token.group(), 0)
        elif kind == "minus":
            line_depth += len(token.group())
        if line_depth > MAX_DEPTH:
            raise _too_deep(text, name, token.start(), f"nested deeper than the {MAX_DEPTH} levels that are accepted")
        if alias is not None:
            aliases[alias] = max(aliases.get(alias, 0), line_depth)
            if depth == 0 and kind in ("close", "use"):
                alias = None


def _check_operators(text: str, name: str) -> None:
    """Raises StepladderError where too many operators are between two brackets, commas or equals signs."""
    operators = 0
    for token in _OPERATORS.finditer(text):
        if token.lastgroup == "end":
            operators = 0
        elif token.lastgroup == "operator":
            operators += 1
            if operators > MAX_OPERATORS:
                raise _too_deep(
                    text,
                    name,
                    token.start(),
                    f"an expression of more than the {MAX_OPERATORS} operators that are accepted",
                )


def _too_deep(text: str, name: str, offset: int, message: str) -> StepladderError:
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    return StepladderError(f"{message}; MLIR's parser could overflow the stack", location=f"{name}:{line}:{column}")
