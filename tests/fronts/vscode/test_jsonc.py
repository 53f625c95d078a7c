"""JSON with comments is edited in place: what was there stays to the byte, what is added is found again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.fronts.vscode.merge import DamagedError, Document

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text('ab"\\/*é\n\t,]}', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz/", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
BLANKS = st.sampled_from(["", " ", "\n    ", "\r\n\t", "// c }\n", ' /* ], " */ ', '\n// "a": 1\n  '])


@st.composite
def texts(draw: st.DrawFn, value: Any) -> str:
    """A text that means `value`, with comments and trailing commas wherever they may be."""

    def written(one: Any) -> str:
        if isinstance(one, dict):
            pairs = [f"{json.dumps(k)}{draw(BLANKS)}:{draw(BLANKS)}{written(v)}" for k, v in one.items()]
            return nested("{", pairs, "}")
        if isinstance(one, list):
            return nested("[", [written(item) for item in one], "]")
        return json.dumps(one, ensure_ascii=draw(st.booleans()))

    def nested(begin: str, parts: list[str], end: str) -> str:
        inner = ",".join(f"{draw(BLANKS)}{part}{draw(BLANKS)}" for part in parts)
        comma = "," if parts and draw(st.booleans()) else ""
        return f"{begin}{inner}{comma}{draw(BLANKS)}{end}"

    return draw(BLANKS) + written(value) + draw(BLANKS)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.dictionaries(st.text("xyz", max_size=3), VALUES, max_size=4), VALUES)
def test_what_is_added_is_there_and_all_but_blanks_stays(data: st.DataObject, value: Any, more: Any) -> None:
    value = {**value, "list": [1, {"a": 2}]}
    text = data.draw(texts(value))
    document = Document(text)
    assert document.root.value == value
    document.set_member((), "new", more)
    document.append(("list",), more)
    assert document.root.value == {**value, "list": [*value["list"], more], "new": more}
    rest = iter(document.text)
    assert all(character in rest for character in "".join(text.split()))  # in this order: nothing is gone


def test_an_entry_follows_the_comments_behind_the_last_one_in_the_indent_of_the_file() -> None:
    text = '// mine\n{\n\t"a": [\n\t\t1, // one\n\t\t2 // two, [3\n\t\t// end\n\t] /* a */\n}\n'
    document = Document(text)
    document.append(("a",), {"b": [3]})
    assert document.text == text.replace("2 //", "2, //").replace(
        "// end\n\t]", '// end\n\t\t{\n\t\t\t"b": [\n\t\t\t\t3\n\t\t\t]\n\t\t}\n\t]'
    )


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("[]", 1, 1),
        ('{"a": 1 "b": 2}', 1, 9),
        ('{\n  "a": [1,\n  2', 3, 4),
        ("{} x", 1, 4),
        ('{"a" 1}', 1, 6),
        ("{a: 1}", 1, 2),
        ('{"a": tru}', 1, 7),
        ('{"a": ,}', 1, 7),
        ("{/* }", 1, 2),
        ('{"a": ' + "[" * 5000, 1, 207),
        ('{"\\q": 1}', 1, 2),
    ],
)
def test_a_mistake_has_a_line_and_a_column(text: str, line: int, column: int) -> None:
    with pytest.raises(DamagedError) as caught:
        Document(text)
    assert (caught.value.line, caught.value.column) == (line, column)
