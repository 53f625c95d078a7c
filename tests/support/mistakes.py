"""Tables of mistakes in files: `what stands there | what stands there instead | what is told | the hint`."""

import pytest


def mistakes(table: str) -> pytest.MarkDecorator:
    r"""A test of each line of a table, whose last columns may be missing; \n begins a line of the file."""
    lines = [[part.strip().replace("\\n", "\n") for part in row.split(" | ")] for row in table.splitlines()]
    rows = [[*line, *[""] * (4 - len(line))] for line in lines if len(line) > 1]
    return pytest.mark.parametrize(("old", "new", "says", "hint"), rows)
