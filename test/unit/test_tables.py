"""Tables for people, in a file, in a pipe, and on a terminal."""

import io

import pytest

from stepladder.cli.tables import print_table


def test_lines_stay_whole_whatever_their_length() -> None:
    out = io.StringIO()
    location, text = "/a/long/path" * 30, "several words of prose " * 20
    print_table([{"where": location, "n": 1, "what": text}, {"where": "-", "n": 200, "what": ""}], title="T", file=out)
    rows = out.getvalue().splitlines()
    assert len([row for row in rows if row.strip()]) == 5  # title, head, rule, two rows
    assert any(location in row and text.strip() in row for row in rows)


def test_columns_are_aligned() -> None:
    rows = [
        {"op": "store", "bytes": 5, "us": "9.5", "at": "a.mlir:1"},
        {"op": "a load", "bytes": 1024, "us": "10.0", "at": ""},
    ]
    out, other = io.StringIO(), io.StringIO()
    print_table(rows, title="Traffic", file=out)
    assert out.getvalue() == (
        "Traffic\n\n op       bytes     us   at\n ────────────────────────────────\n"
        " store        5    9.5   a.mlir:1\n a load    1024   10.0\n\n"
    )
    # Characters that are two columns wide are left to rich.
    print_table([*rows, {"op": "行", "bytes": 7, "us": "0.0", "at": ""}], title="Traffic", file=other)
    assert other.getvalue().splitlines()[:6] == out.getvalue().splitlines()[:6]


def test_the_rule_has_a_character_of_the_encoding() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    print_table([{"op": "store", "bytes": 5}], file=out)
    out.flush()
    assert raw.getvalue().splitlines()[2] == b" -------------"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("width", "paragraphs"), [(30, True), (80, False)])
def test_rows_are_paragraphs_where_a_terminal_is_too_narrow(
    monkeypatch: pytest.MonkeyPatch, width: int, paragraphs: bool
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    print_table(
        [{"": 1, "knobs": "block_m=64 persistent_blocks=132", "main loop": "1.1", "bound": "epilogue"}], file=out
    )
    lines = [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]
    if paragraphs:
        assert lines == [
            "1; knobs block_m=64",
            "    persistent_blocks=132;",
            "    main loop 1.1; bound",
            "    epilogue",
        ]
    else:
        assert lines[-1] == " 1   block_m=64 persistent_blocks=132         1.1   epilogue"
