"""The reference page of the answers, made from their types: `python -m buildtool.schema.page`."""

from __future__ import annotations

import inspect
import pkgutil
import sys
import types
import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from buildtool import schema
from buildtool.api.requests import EVERY_KIND
from buildtool.api.requests.parts import TYPES, Request

_HEAD = """\
# Answers

This page is made from the types in `buildtool/schema/`:
`python -m buildtool.schema.page > docs/answers.md`.

An answer is what the service returns for a request, and what `--json` prints. Besides the keys below, each
has `schema`, the version of all answers. JSON has no bytes: `--json` leaves them out, and where a command
writes files, it gives their names under `files`. An error is `{"schema": 1, "error": ...}` with an
[ErrorData](#errordata). Sizes are in bytes and `null` stands for what is not known or not there.
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
    """The page as Markdown: a section a kind of request, each type once, where it is first needed."""
    parts, shown = [_HEAD], set[type]()
    for kind in EVERY_KIND:
        parts.append(f"## `{kind}`\n")
        for answer in answers_of(kind):
            for found in (answer, *_below(answer)):
                if found not in shown:
                    shown.add(found)
                    parts.append(_section(found))
                elif found is answer:
                    parts.append(f"See [{found.__name__}](#{found.__name__.lower()}).\n")
    return "\n".join(parts)


def answers_of(kind: str) -> tuple[type, ...]:
    """The types of the answers to a kind of request: those that what answers it says that it returns."""
    names = [name for of in TYPES[kind] for name in _returned(of).split(" | ")]
    known: dict[str, type] = {}
    for found in pkgutil.iter_modules(schema.__path__, f"{schema.__name__}."):
        if found.name != __name__:
            known |= vars(import_module(found.name))
    return tuple(known[name] for name in names)


def _returned(of: type[Request]) -> str:
    """The annotation of what a request is answered with."""
    module, _, function = of.handler.partition(":")
    found: str = (
        getattr(import_module(f"buildtool.{module}"), function).__annotations__["return"]
        if module
        else of.answers
    )
    return found


def _section(answer: type) -> str:
    rows = [f"| `{key}` | {_words(kind)} |" for key, kind in typing.get_type_hints(answer).items()]
    says = inspect.cleandoc(answer.__doc__ or "").replace("None", "null")
    return "\n".join([f"### {answer.__name__}", "", says, "", "| key | value |", "| --- | --- |", *rows, ""])


def _below(answer: type) -> Iterator[type]:
    """The types that an answer is made of, those of its first keys first."""
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
    """A type in words; those with a section of their own as links."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if typing.is_typeddict(kind):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    inner = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin is list:
        return f"list of {_words(inner[0])}"
    if origin is dict:
        return f"map from {_words(inner[0])} to {_words(inner[1])}"
    assert origin in (types.UnionType, typing.Union), kind
    return " or ".join(map(_words, inner))


if __name__ == "__main__":
    sys.stdout.write(page())
