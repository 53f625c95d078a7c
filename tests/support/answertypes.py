"""Checks plain values against the type of an answer."""

import types
import typing
from typing import Any


def wrong(value: Any, kind: Any, at: str = "answer") -> list[str]:
    """Returns where a value does not match a type. A dictionary must have exactly the type's keys."""
    if typing.is_typeddict(kind):
        if not isinstance(value, dict):
            return [f"{at}: {value!r} is no {kind.__name__}"]
        hints = typing.get_type_hints(kind)
        missing, unknown = kind.__required_keys__ - value.keys(), value.keys() - hints.keys()
        return [f"{at}: {key}" for key in missing | unknown] + [
            line
            for key in value.keys() & hints.keys()
            for line in wrong(value[key], hints[key], f"{at}.{key}")
        ]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return min((wrong(value, one, at) for one in inner), key=len)
    if origin is list:
        if not isinstance(value, list):
            return [f"{at}: {value!r} is not a list"]
        return [line for i, item in enumerate(value) for line in wrong(item, inner[0], f"{at}[{i}]")]
    if origin is dict:
        if not isinstance(value, dict):
            return [f"{at}: {value!r} is not a dictionary"]
        keys = [line for key in value for line in wrong(key, inner[0], f"{at} key")]
        return keys + [line for key in value for line in wrong(value[key], inner[1], f"{at}.{key}")]
    fits = isinstance(value, (int, float) if kind is float else kind)
    return [] if fits and (kind is bool or not isinstance(value, bool)) else [f"{at}: {value!r} is no {kind}"]
