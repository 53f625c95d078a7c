"""Tables: aligned columns, numbers to the right, units, totals and widths."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.fronts.texts.table import (
    BOLD,
    GREEN,
    RED,
    RESET,
    coloured,
    fold,
    shorten,
    table,
    width,
)


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


@given(st.text(max_size=60), st.integers(4, 40))
@settings(derandomize=True, deadline=None)
def test_shortened_text_keeps_its_beginning_and_more_of_its_end(text: str, width: int) -> None:
    short = shorten(text, width)
    assert len(short) == min(len(text), width)
    if short != text:
        begin = (width - 3) // 3
        assert short[begin : begin + 3] == "..." and len(short) - begin - 3 > begin
        assert text.startswith(short[:begin]) and text.endswith(short[begin + 3 :])


@pytest.mark.parametrize(
    ("line", "word", "colour"),
    [
        ("EQUAL to LiteRT", "EQUAL to", GREEN),
        ("WITHIN THE BOUNDS of every operator", "WITHIN THE BOUNDS", GREEN),
        ("DIFFERENT from LiteRT", "DIFFERENT", RED),
        ("BEYOND THE BOUNDS of every operator", "BEYOND THE BOUNDS", RED),
        ("BEYOND ITS BOUND: #0 CONV_2D", "BEYOND ITS BOUND", RED),
    ],
)
def test_a_verdict_has_its_colour(line, word, colour):
    assert coloured(line) == line.replace(word, f"{BOLD}{colour}{word}{RESET}")


WORDS = st.lists(st.text("abcxyz,", min_size=1, max_size=12), min_size=1, max_size=12).map(" ".join)
TEXT = st.lists(WORDS, min_size=3, max_size=3)  # a longer word may lose its middle


@pytest.mark.slow
@given(st.lists(TEXT, min_size=1, max_size=5), st.integers(50, 130))
@settings(derandomize=True, deadline=None)
def test_a_table_keeps_to_its_width_and_loses_no_word(rows: list[list[str]], most: int) -> None:
    token = width.set(most)
    try:
        text = table(["a name", "bytes there", "kernels"], [[r[0], 12345678, f"{r[1]} {r[2]}"] for r in rows])
    finally:
        width.reset(token)
    assert max(map(len, text.splitlines())) <= most
    letters = "".join(sorted("".join(text.split())))
    for row in rows:
        assert all(letters.count(c) >= "".join(row).count(c) for c in "abcxyz,")


def test_prose_that_is_too_wide_goes_on_below_itself_and_tables_stay() -> None:
    token = width.set(40)
    try:
        text = fold("weights  80 bytes of flash and more of it than there is\na  b  c" + "  d" * 20)
    finally:
        width.reset(token)
    assert text.splitlines()[:2] == ["weights  80 bytes of flash and more of", "         it than there is"]
    assert text.splitlines()[2] == "a  b  c" + "  d" * 20
