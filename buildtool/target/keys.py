"""The keys of board files and of kernel catalogues: what readers accept and the reference page says."""

from __future__ import annotations

from typing import NamedTuple

NEEDED = ""  # the default of a key that a file, or one that it extends, has to have


class Key(NamedTuple):
    """A key of a table: its name, what its value is, what holds where it is missing, and what it means."""

    name: str
    value: str
    default: str
    meaning: str


def names(keys: tuple[Key, ...]) -> tuple[str, ...]:
    """The names of some keys, in their order."""
    return tuple(key.name for key in keys)


def needed(keys: tuple[Key, ...]) -> tuple[str, ...]:
    """The names of those that cannot be left out."""
    return tuple(key.name for key in keys if key.default == NEEDED)
