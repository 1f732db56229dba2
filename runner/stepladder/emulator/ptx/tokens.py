"""PTX's text as tokens."""

from __future__ import annotations

import bisect
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from stepladder.runtime.errors import StepladderError

INTEGERS = ("integer", "hexadecimal", "binary")  # kinds of tokens
_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s+|//[^\n]*|/\*.*?\*/)+)
  | (?P<string>"[^"\n]*")
  | (?P<bits>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16})
  | (?P<hexadecimal>0[xX][0-9a-fA-F]+U?)
  | (?P<binary>0[bB][01]+U?)
  | (?P<decimal>\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
  | (?P<integer>\d+U?)
  | (?P<directive>\.[A-Za-z_0-9][\w$]*(?:::\w+)*)
  | (?P<name>[A-Za-z][\w$]*|[_$%][\w$]+)
  | (?P<mark>[-+{}\[\]()<>,;:@!|=_*])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A piece of the text: `kind` is the group of `_TOKEN` that found it, `start` where it begins."""

    kind: str
    text: str
    start: int


class Source:
    """A text, and where its lines begin.

    Attributes:
        text: PTX.
        name: of the file, for messages.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, start: int) -> tuple[int, int]:
        """Returns the line and the column of a character, both counted from 1.

        Args:
            start: the index of the character.
        """
        line = bisect.bisect_right(self._lines, start)
        return line, start - self._lines[line - 1] + 1

    def error(self, start: int, message: str) -> StepladderError:
        """Returns an error located at a character.

        Args:
            start: the index of the character.
            message: of the error.
        """
        line, column = self.place(start)
        return StepladderError(message, location=f"{self.name}:{line}:{column}")

    def tokens(self) -> Iterator[Token]:
        """Yields the tokens, the last of kind "end".

        Raises:
            StepladderError: a character that PTX does not have.
        """
        place = 0
        while place < len(self.text):
            match = _TOKEN.match(self.text, place)
            if match is None:
                raise self.error(place, f"PTX has no {self.text[place]!r} here")
            if match.lastgroup != "space":
                yield Token(str(match.lastgroup), match[0], place)
            place = match.end()
        yield Token("end", "", place)


def integer_of(token: Token) -> int:
    """Returns the value of an integer literal.

    Args:
        token: decimal, hexadecimal, octal or binary.
    """
    text = token.text.removesuffix("U")
    if token.kind == "hexadecimal":
        return int(text, 16)
    if token.kind == "binary":
        return int(text[2:], 2)
    return int(text, 8) if len(text) > 1 and text[0] == "0" and set(text) <= set("01234567") else int(text)


def float_bits(token: Token) -> tuple[int, int]:
    """Returns the bits of a floating-point literal, and their number: 32 or 64.

    Args:
        token: of bits (`0f...`, `0d...`), or decimal.
    """
    if token.kind == "bits":
        return int(token.text[2:], 16), 32 if token.text[1] in "fF" else 64
    return int.from_bytes(struct.pack("<d", float(token.text)), "little"), 64


class Reader:
    """Reads tokens from first to last.

    Args:
        text: PTX.
        name: of the text, for messages.
    """

    def __init__(self, text: str, name: str) -> None:
        self.source = Source(text, name)
        self.tokens = list(self.source.tokens())
        self.place = 0

    @property
    def next(self) -> Token:
        """The token that is read next."""
        return self.tokens[self.place]

    def take(self) -> Token:
        """Returns the next token and advances."""
        token = self.next
        self.place += 1
        return token

    def has(self, text: str) -> bool:
        """Returns whether the next token has this text; if so, the token is consumed.

        Args:
            text: of the token.
        """
        if self.next.text != text or self.next.kind == "end":
            return False
        self.place += 1
        return True

    def want(self, text: str) -> Token:
        """Consumes and returns the next token.

        Args:
            text: that the token has.

        Raises:
            StepladderError: the next token has another text.
        """
        if self.next.text != text:
            raise self.error(f"expected '{text}', got '{self.next.text or 'the end'}'")
        return self.take()

    def kind(self, *kinds: str) -> Token:
        """Consumes and returns the next token.

        Args:
            kinds: of which the token has one.

        Raises:
            StepladderError: the next token is of another kind.
        """
        if self.next.kind not in kinds:
            raise self.error(f"expected {' or '.join(kinds)}, got '{self.next.text or 'the end'}'")
        return self.take()

    def error(self, message: str, token: Token | None = None) -> StepladderError:
        """Returns an error located at a token.

        Args:
            message: of the error.
            token: default: the next one.
        """
        return self.source.error((token or self.next).start, message)

    def integer(self) -> int:
        """Returns an integer, which may have a sign."""
        sign = -1 if self.has("-") else 1
        if self.next.kind not in INTEGERS:
            raise self.error(f"expected an integer, got '{self.next.text or 'the end'}'")
        return sign * integer_of(self.kind(*INTEGERS))

    def integers(self) -> tuple[int, ...]:
        """Returns integers that commas divide, none where there is no number."""
        integers = []
        while self.next.kind in INTEGERS:
            integers.append(self.integer())
            if not self.has(","):
                break
        return tuple(integers)
