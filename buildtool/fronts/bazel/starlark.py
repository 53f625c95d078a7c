"""Text of BUILD files: values and calls as Starlark has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

RULES = Path(__file__).resolve().parent / "rules"  # the .bzl files that come with the package
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Code(str):
    """An expression that stands as it is."""

    __slots__ = ()


def value(found: object) -> str:
    """A value as Starlark writes it: text, whole numbers, None, lists and maps of them."""
    if isinstance(found, Code):
        return found
    if isinstance(found, str):
        return '"' + "".join(_ESCAPES.get(letter, letter) for letter in found) + '"'
    if isinstance(found, Mapping):
        return "{" + ", ".join(f"{value(key)}: {value(item)}" for key, item in found.items()) + "}"
    if isinstance(found, list | tuple):
        return "[" + ", ".join(map(value, found)) + "]"
    return repr(found)


def call(rule: str, **attributes: object) -> str:
    """A rule's call, an attribute a line; those that are None are left out."""
    lines = [f"    {name} = {value(item)},\n" for name, item in attributes.items() if item is not None]
    return f"{rule}(\n{''.join(lines)})\n"


def load(label: str, *names: str) -> str:
    """A load statement."""
    return f"load({', '.join(map(value, (label, *names)))})\n"
