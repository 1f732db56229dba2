"""`--split-input-file`: runs each of several payloads in one file on its own, as in mlir-opt."""

from __future__ import annotations

MARKER = "// -----"


def split(text: str) -> list[str]:
    """Returns the chunks of a file, which lines of `// -----` separate.

    Each chunk is padded with empty lines in front, so that its line numbers, which messages have, are those of the
    file.

    Args:
        text: of the file.
    """
    chunks: list[list[str]] = [[]]
    for number, line in enumerate(text.splitlines(), start=1):
        if line.rstrip() == MARKER:
            chunks.append([""] * number)
        else:
            chunks[-1].append(line)
    return ["\n".join([*chunk, ""]) for chunk in chunks]


def join(chunks: list[str]) -> str:
    """Returns the text of chunks in one file; the inverse of `split`, but for the empty lines.

    Args:
        chunks: of a file each, in order.
    """
    return f"{MARKER}\n".join(chunks)
