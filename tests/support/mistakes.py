"""Tables of mistakes in files: `old text | new text | error message | hint`."""

import pytest


def mistakes(table: str) -> pytest.MarkDecorator:
    r"""Makes a test of each line of a table. The last columns may be missing; \n is a line break."""
    lines = [[part.strip().replace("\\n", "\n") for part in row.split(" | ")] for row in table.splitlines()]
    rows = [[*line, *[""] * (4 - len(line))] for line in lines if len(line) > 1]
    return pytest.mark.parametrize(("old", "new", "says", "hint"), rows)
