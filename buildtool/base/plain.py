"""Plain values and dataclasses: one walker for whatever is written down, compared or hashed.

A plain value is what JSON and msgpack have: a number, text, bytes, None, a list, or a map with text as keys.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

_LARGEST = (1 << 63) - 1  # of any integer
_LEAVES = frozenset((int, str, float, bool, bytes, type(None)))


class Mismatch(ValueError):
    """A plain value that is not of the type that it should be of; its text says where and what."""


def to_plain(value: object, *, named: bool = False, defaults: bool = True) -> Any:
    """Dataclasses as lists of their fields in declared order, enumerations as their values, tuples as lists.

    `named`: dataclasses as maps instead, without fields that have their default unless `defaults`. Maps are
    sorted by their keys.
    """
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is tuple or kind is list:
        assert isinstance(value, tuple | list)
        if value and type(value[0]) is int:  # all are: most of a plan's tuples
            return list(value)
        return [to_plain(item, named=named, defaults=defaults) for item in value]
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(kind):
        pairs = [(field, getattr(value, field.name)) for field in dataclasses.fields(kind)]
        if not named:
            return [to_plain(held) for _, held in pairs]
        return {
            field.name: to_plain(held, named=True, defaults=defaults)
            for field, held in pairs
            if defaults or held != field.default
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(value[key], named=named, defaults=defaults) for key in sorted(value)}
    if isinstance(value, tuple):
        return [to_plain(item, named=named, defaults=defaults) for item in value]
    raise TypeError(f"{kind.__name__} is no plain value")


def to_tuples(value: object) -> Any:
    """As `to_plain`, with tuples in place of lists, so that it can be hashed."""
    return _frozen(to_plain(value))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@cache
def fields_of(kind: type) -> tuple[tuple[str, Any, Any], ...]:
    """Name, type and default (dataclasses.MISSING: none) of each field of a dataclass, in declared order."""
    hints = typing.get_type_hints(kind)
    return tuple((f.name, hints[f.name], f.default) for f in dataclasses.fields(kind))


def from_plain(value: Any, kind: Any, where: str) -> Any:
    """The value of the type `kind` that `to_plain` made `value` of, by position or by name.

    `kind` is a type as a dataclass's fields are annotated, or a TypedDict. Raises Mismatch, with `where` and
    the way from there, for anything else: numbers are finite, integers have 64 bits, a bool is no integer.
    """
    origin = typing.get_origin(kind)
    if origin is tuple or origin is list:
        if isinstance(value, list | tuple):
            return _items(value, origin, typing.get_args(kind), where)
    elif origin is typing.Union or origin is types.UnionType:
        return _one_of(value, typing.get_args(kind), where)
    elif origin is not None:  # Mapping[str, T], dict[str, T]
        if isinstance(value, dict):
            inner = typing.get_args(kind)[1]
            return {str(key): from_plain(held, inner, f"{where}.{key}") for key, held in value.items()}
    elif typing.is_typeddict(kind):
        if isinstance(value, dict):
            return _typed(value, kind, where)
    elif dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        if isinstance(value, Mapping):
            return _by_name(value, kind, where)
        if isinstance(value, list | tuple) and len(value) == len(fields_of(kind)):
            pairs = zip(value, fields_of(kind), strict=True)
            return kind(*(from_plain(held, hint, f"{where}.{name}") for held, (name, hint, _) in pairs))
    elif issubclass(kind, enum.Enum):
        if any(value == one.value and type(value) is type(one.value) for one in kind):
            return kind(value)
    elif type(value) is kind and _is_bounded(value):
        return value
    raise Mismatch(f"{where} is a {type(value).__name__}")


def _is_bounded(value: object) -> bool:
    """Whether a number is one that every format has."""
    return (
        math.isfinite(value)
        if isinstance(value, float)
        else not isinstance(value, int) or abs(value) <= _LARGEST
    )


def _items(value: Any, origin: type, kinds: tuple[Any, ...], where: str) -> Any:
    """The items of a list, or of a tuple of one length or any."""
    if origin is list or kinds[-1:] == (...,):
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise Mismatch(f"{where} has {len(value)} items, not {len(kinds)}")
    found = [
        from_plain(item, kind, f"{where}[{i}]")
        for i, (item, kind) in enumerate(zip(value, kinds, strict=True))
    ]
    return found if origin is list else tuple(found)


def _one_of(value: Any, kinds: tuple[Any, ...], where: str) -> Any:
    """The value as the first of some types that it can be."""
    for kind in kinds:
        try:
            return from_plain(value, kind, where)
        except Mismatch as error:
            last = error
    raise last


def _typed(value: dict[str, Any], kind: Any, where: str) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    for name in kind.__required_keys__:
        if name not in value:
            raise Mismatch(f"{where} has no '{name}'")
    return {
        name: from_plain(held, _hint(hints, name, where), f"{where}.{name}") for name, held in value.items()
    }


def _hint(hints: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in hints:
        raise Mismatch(f"{where} has no field '{name}'")
    return hints[name]


def _by_name(value: Mapping[str, Any], kind: type, where: str) -> Any:
    """A dataclass of a map: a field that the map lacks has its default."""
    hints = {name: hint for name, hint, _ in fields_of(kind)}
    given = {
        name: from_plain(held, _hint(hints, name, where), f"{where}.{name}") for name, held in value.items()
    }
    for name, _, default in fields_of(kind):
        if name not in given and default is dataclasses.MISSING:
            raise Mismatch(f"{where} has no '{name}'")
    return kind(**given)
