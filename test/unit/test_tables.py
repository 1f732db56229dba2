"""Tables for people, in a file or a pipe."""

import io

from stepladder.cli.tables import print_table


def test_lines_stay_whole_whatever_their_length() -> None:
    out = io.StringIO()
    location, text = "/a/long/path" * 30, "several words of prose " * 20
    print_table([{"where": location, "n": 1, "what": text}, {"where": "-", "n": 200, "what": ""}], title="T", file=out)
    rows = out.getvalue().splitlines()
    assert len([row for row in rows if row.strip()]) == 5  # title, head, rule, two rows
    assert any(location in row and text.strip() in row for row in rows)
