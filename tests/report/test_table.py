"""Tables: columns line up, numbers to the right, units and totals where they belong."""

from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.report.table import cell, count, layer, shorten, table

ROWS = st.lists(st.tuples(st.from_regex(r"[a-z/]{1,12}", fullmatch=True), st.integers(0, 10**9)), min_size=1)


def test_numbers_are_right_aligned_with_separators_and_text_is_left_aligned() -> None:
    text = table(["name", "bytes"], [["a", 1234567], ["long name", None], ["b", 7]], ["sum", 1234574])
    assert text.splitlines() == [
        "name           bytes",
        "---------  ---------",
        "a          1,234,567",
        "long name",
        "b                  7",
        "---------  ---------",
        "sum        1,234,574",
    ]


@given(ROWS)
@settings(derandomize=True, deadline=None)
def test_every_value_stands_in_its_column(rows: list[tuple[str, int]]) -> None:
    lines = table(["name", "n"], rows).splitlines()
    names, numbers = (len(part) for part in lines[1].split("  "))
    assert len(lines) == len(rows) + 2
    for line, (name, number) in zip(lines[2:], rows, strict=True):
        assert line[:names].rstrip() == name
        assert line[names + 2 :].rjust(numbers).strip() == f"{number:,}"
        assert len(line) == names + 2 + numbers


def test_cells_have_one_format_each() -> None:
    values = [None, 0, 1234, 2.5, 1234.567, True, False, "text"]
    assert [cell(value) for value in values] == ["", "0", "1,234", "2.50", "1,234.57", "yes", "no", "text"]


@given(st.text(max_size=60), st.integers(4, 40))
@settings(derandomize=True, deadline=None)
def test_shortened_text_keeps_its_end(text: str, width: int) -> None:
    short = shorten(text, width)
    assert len(short) <= width
    assert short == text or (short.startswith("...") and text.endswith(short[3:]))


def test_of_a_converters_joined_names_the_first_is_shown() -> None:
    assert layer("net/relu;net/norm;net/conv", 20) == "net/relu"
    assert layer("a/very/long/name;b", 10) == "...ng/name"


def test_one_is_singular() -> None:
    assert [count(n, "byte") for n in (0, 1, 2048)] == ["0 bytes", "1 byte", "2,048 bytes"]
