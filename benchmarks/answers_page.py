"""The reference page of the answers, made from their types: `python -m benchmarks.answers_page`."""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
import types
import typing
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from buildtool import schema
from buildtool.api.requests import EVERY_KIND
from buildtool.api.requests.parts import TYPES

_HEAD = """\
# Answers

This page is made from the types in `buildtool/schema/`:
`python -m benchmarks.answers_page > docs/reference/answers.md`.

An answer is what the service returns for a request and what `--json` prints. Each answer also has `schema`,
the version of all answers. JSON has no bytes: `--json` leaves out keys of this type, and if a command writes
files, their names are under `files`. An error is `{"schema": 1, "error": ...}` with an
[ErrorData](#errordata). Sizes are in bytes; `null` means unknown or absent.
"""
_PLAIN = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    bytes: "bytes",
    type(None): "null",
}


def page() -> str:
    """Returns the page as Markdown, with a section for each kind of request. Each type is described once."""
    parts, shown = [_HEAD], set[type]()
    for kind in EVERY_KIND:
        parts.append(f"## `{kind}`\n")
        for answer in answers_of(kind):
            for one in (answer, *_below(answer)):
                if one not in shown:
                    shown.add(one)
                    parts.append(_section(one))
                elif one is answer:
                    parts.append(f"See [{one.__name__}](#{one.__name__.lower()}).\n")
    return "\n".join(parts)


def answers_of(kind: str) -> tuple[type, ...]:
    """Returns the types of the answers to a kind of request: the return types of its handlers."""
    names: list[str] = []
    for request in TYPES[kind]:
        module, _, function = request.handler.partition(":")
        handler = getattr(import_module(f"buildtool.{module}"), function) if module else None
        names += (handler.__annotations__["return"] if handler else request.answers).split(" | ")
    return tuple(_types()[name.rpartition(".")[2]] for name in names)


@cache
def _types() -> dict[str, Any]:
    """Returns all names that the schema's modules define, with their values."""
    modules = (one.name for one in pkgutil.iter_modules(schema.__path__, f"{schema.__name__}."))
    return {name: value for module in modules for name, value in vars(import_module(module)).items()}


def _section(answer: type) -> str:
    rows = [f"| `{key}` | {_words(kind)} |" for key, kind in typing.get_type_hints(answer).items()]
    says = "\n\n".join(_docs(answer)).replace("None", "null")
    return "\n".join([f"### {answer.__name__}", "", says, "", "| key | value |", "| --- | --- |", *rows, ""])


def _docs(answer: type) -> Iterator[str]:
    """Yields the docstring of an answer's type, and then those of its base types."""
    yield inspect.cleandoc(answer.__doc__ or "")
    bases = re.search(r"^class \w+\((.*)\)", inspect.getsource(answer), re.MULTILINE)
    for base in bases[1].split(", ") if bases else ():
        if typing.is_typeddict(_types().get(base)):
            yield from _docs(_types()[base])


def _below(answer: type) -> Iterator[type]:
    """Yields the types of an answer's values, each followed by the types of its own values."""
    for kind in typing.get_type_hints(answer).values():
        for part in _parts(kind):
            yield part
            yield from _below(part)


def _parts(kind: Any) -> Iterator[type]:
    if typing.is_typeddict(kind):
        yield kind
    for part in typing.get_args(kind):
        yield from _parts(part)


def _words(kind: Any) -> str:
    """Returns a description of a type for the page; a type with a section of its own becomes a link."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if typing.is_typeddict(kind):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    inner = [_words(part) for part in typing.get_args(kind)]
    origin = typing.get_origin(kind)
    if origin is list:
        return f"list of {inner[0]}"
    if origin is dict:
        return f"map from {inner[0]} to {inner[1]}"
    assert origin in (types.UnionType, typing.Union), kind
    return " or ".join(inner)


if __name__ == "__main__":
    sys.stdout.write(page())
