"""Where a key stands in a TOML file: every way to write one, and in files that are damaged behind it."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from buildtool.base.errors import TargetError
from buildtool.base.toml import place, read_toml
from buildtool.target.registry import load_board

TEXT = '''\
# title = "no"
title = "a = b [c]" # d = 1
"quoted key" = 'x'
list = [ # e = 1
  { kind = "ram", "odd \\" one" = [1, 2] },
  "f = 1", 'g',
]
long = """
h = 1
[i]
"""
other = \'\'\'
j = 1\'\'\'

[core] # [k]
name.first = 1
  cflags = ["-a", "]"]
[memory . "ram"]
size = "2K"
at = 1979-05-27 07:32:00
[[kernel]]
op = { a = { b = 1 } }
'''


def keys(value: Any, before: str = "") -> list[str]:
    if not isinstance(value, dict):
        return []
    named = [(f"{before}{key}", inner) for key, inner in value.items()]
    return [key for name, inner in named for key in (name, *keys(inner, f"{name}."))]


def test_every_key_is_found_where_it_stands() -> None:
    lines = TEXT.splitlines()
    found = {key: place(TEXT, key) for key in keys(tomllib.loads(TEXT))}
    assert {key: lines[line - 1][column - 1 :].split()[0] for key, (line, column) in found.items()} == {
        "title": "title",
        "quoted key": '"quoted',
        "list": "list",
        "long": "long",
        "other": "other",
        "core": "core]",
        "core.name": "name.first",
        "core.name.first": "name.first",
        "core.cflags": "cflags",
        "memory": "memory",
        "memory.ram": "memory",
        "memory.ram.size": "size",
        "memory.ram.at": "at",
        "kernel": "kernel]]",
    }
    assert place(TEXT, "kernel.op.a.b")[0] == lines.index("op = { a = { b = 1 } }") + 1


@pytest.mark.parametrize("key", ["d", "e", "f", "h", "i", "j", "k", "", "titl", "title.x"])
def test_what_is_no_key_is_not_found(key: str) -> None:
    assert place(TEXT, key) == (0, 0)


def test_every_beginning_of_a_file_is_searched_to_its_end() -> None:
    for end in range(len(TEXT)):
        assert place(TEXT[:end], "memory.ram.size") in ((0, 0), (19, 1))
    assert place("a = " + "[" * 10_000, "b") == (0, 0)


@pytest.mark.parametrize(
    ("text", "at", "error"),
    [
        ('extends = "cortex-m4"\n[memory.psram]\n  size = "2Q"\n', (3, 3), "memory.psram.size: must be"),
        ('extends = "cortex-m4"\n\nstack_bites = 1\n', (3, 1), "unknown key 'stack_bites'"),
        ('extends = "cortx-m4"\n', (1, 1), "extends: unknown board"),
        ('extends = "cortex-m4"\n[memory.extra]\nkind = "ram"\n', (2, 2), "key 'memory.extra.base' is miss"),
        ('extends = "cortex-m4"\nstack_bytes = = 4\n', (2, 15), "not a TOML file: Invalid value"),
        ('extends = "cortex-m4"\ntitle = "', (2, 10), "not a TOML file: Unterminated string"),
        ('extends = "cortex-m4"\nroles = {code = "x"}\n', (2, 10), "roles.code: there is no memory 'x'"),
    ],
)
def test_an_error_of_a_board_has_the_line_and_the_column(tmp_path, text, at, error) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(TargetError) as caught:
        load_board(str(path))
    assert caught.value.message().startswith(f"{path}:{at[0]}:{at[1]}: error: {error}")


def test_a_key_of_a_board_that_is_extended_has_no_line_in_this_one(tmp_path) -> None:
    (tmp_path / "base.toml").write_text('extends = "cortex-m4"\nstack_bytes = 7\n')
    path = tmp_path / "mine.toml"
    path.write_text('extends = "base.toml"\n')
    with pytest.raises(TargetError) as caught:
        load_board(str(path))
    assert caught.value.message().startswith(f"{path}: error: stack_bytes: must be a multiple of 8")
    assert read_toml(path, "file") == {"extends": "base.toml"}
