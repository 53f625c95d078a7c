"""Text in emitted C: names and comments from models with any content, and lines that are too long."""

import re
import subprocess

import pytest
from cbuilds import WARNINGS
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs_tool

from buildtool.emit.ctext import (
    comment,
    identifier,
)

HOSTILE = [
    "*/ int evil; /*",
    "/* /*",
    "*/*/*/",
    "/*/",
    "a\\",
    "a\\\nint evil;",
    "line\nbreak",
    "??/",
    "what??/",
    "é?/é?/",
    "éé/x",
    "日本語/層",
    "???/???>",
    "\x00\x1b[31m",
    "%s%n",
    "x" * 500,
    "*" * 79 + "/",
    "?" * 200,
    "/" * 200,
    "*/" * 100,
    "",
    "   ",
]
_quick = settings(derandomize=True, deadline=None, max_examples=100)
_text = st.text() | st.text("*/\\?\n ab")


def _is_safe(text):
    return (
        len(text) <= 80
        and all(" " <= c <= "~" for c in text)
        and not any(part in text for part in ("*/", "/*", "??", "\\"))
        and text == text.strip()
    )


@_quick
@given(_text | st.sampled_from(HOSTILE))
def test_any_text_makes_a_safe_comment(text):
    assert _is_safe(comment(text))


@_quick
@given(_text)
def test_any_text_makes_an_identifier(text):
    word = identifier(text)
    assert re.fullmatch(r"[a-z][a-z0-9_]*", word)
    assert len(word) <= 60
    assert not word.startswith("nn_")
    assert identifier(word) == word


@pytest.mark.parametrize("name", ["string", "stdio", "float", "assert", "harness_net", "ucontext", "nn_view"])
def test_no_network_takes_the_name_of_a_header(name):
    """<net>.h precedes the C library's headers in the include path."""
    assert identifier(name) == f"net_{name}"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_agree_that_the_comments_are_harmless(compiler, tmp_path):
    """Trigraphs are on with -std=c99. A continued comment would hide the declaration below it."""
    lines = []
    for number, text in enumerate(HOSTILE):
        lines += [
            f"/* {comment(text)} */",
            f"int before_{number};",
            f"// {comment(text)}",
            f"int after_{number};",
        ]
    lines.append("int sum(void) { return 0")
    lines += [f"    + before_{n} + after_{n}" for n in range(len(HOSTILE))]
    source = tmp_path / "comments.c"
    source.write_text("\n".join(lines) + ";\n}\n")
    warnings = [w for w in WARNINGS if w != "-pedantic"]  # allows // in C99 with every compiler
    command = [needs_tool(compiler), *warnings, "-Wcomment", "-Wtrigraphs", "-fsyntax-only", str(source)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
