"""Converts dataclasses to plain values and back, for all that is written to a file, compared or hashed.

A plain value is a number, a text, bytes, None, a list, or a map whose keys are texts: msgpack can hold it.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, Self, TypeVar

from buildtool.base.errors import did_you_mean, shown
from buildtool.base.sizes import parse_size

_LARGEST = (1 << 63) - 1  # upper limit for the absolute value of an integer
_LEAVES = frozenset((int, str, float, bool, bytes, type(None)))


class Mismatch(ValueError):
    """A plain value or a value in a table that people write does not fit.

    `what`: the text of the error.
    `key`: for a table, the dotted key of the wrong value ("": the whole table is wrong).
    `hint`: what would help.
    `at`: the key near which the mistake is.
    """

    def __init__(self, what: str, key: str = "", hint: str = "", at: str = "") -> None:
        super().__init__(f"{key}: {what}" if key else what)
        self.what, self.key, self.hint, self.at = what, key, hint, at or key


def to_plain(value: object, *, named: bool = False, defaults: bool = True) -> Any:
    """Returns the plain value of `value`. Dataclasses become lists of their fields in declared order,
    enumerations their values, tuples lists. Maps are sorted by key. With `named`, dataclasses become maps;
    these leave out fields that have their default, unless `defaults`.
    """
    kind: Any = type(value)
    if kind in _LEAVES:
        return value
    if isinstance(value, tuple | list):
        if kind is tuple and value and type(value[0]) is int:  # then all items are integers, as in plans
            return list(value)
        return [to_plain(item, named=named, defaults=defaults) for item in value]
    if isinstance(value, enum.Enum):
        return value.value
    fields = _names_of(kind)
    if fields is not None:
        pairs = [(name, default, getattr(value, name)) for name, default in fields]
        if not named:
            return [item if type(item) in _LEAVES else to_plain(item) for _, _, item in pairs]
        return {
            name: to_plain(item, named=True, defaults=defaults)
            for name, default, item in pairs
            if defaults or item != default
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(value[key], named=named, defaults=defaults) for key in sorted(value)}
    raise TypeError(f"{kind.__name__} is not a plain value")


@cache
def _names_of(kind: type) -> tuple[tuple[str, Any], ...] | None:
    """Returns the name and default of each field of a dataclass; None for any other class."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple((field.name, field.default) for field in dataclasses.fields(kind))


def to_tuples(value: object) -> Any:
    """Returns `to_plain(value)` with tuples instead of lists, so that it can be hashed."""

    def frozen(plain: Any) -> Any:
        return tuple(map(frozen, plain)) if isinstance(plain, list) else plain

    return frozen(to_plain(value))


@cache
def fields_of(kind: type) -> tuple[tuple[str, Any, Any], ...]:
    """Returns name, type and default (or dataclasses.MISSING) of each field of a dataclass, in order."""
    hints = typing.get_type_hints(kind)
    return tuple((f.name, hints[f.name], f.default) for f in dataclasses.fields(kind))


def from_plain(value: Any, kind: Any, where: str) -> Any:
    """Returns the value of the type `kind` (a field's annotation, or a TypedDict) whose plain value is
    `value`: the inverse of `to_plain`.

    Raises Mismatch if the plain value does not fit, for an integer of over 64 bits, and for a float that is
    not finite. `where` names the value in the error.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple or origin is list:
        if isinstance(value, list | tuple):
            if origin is list or arguments[-1:] == (...,):
                arguments = (arguments[0],) * len(value)
            if len(arguments) != len(value):
                raise Mismatch(f"{where} has {len(value)} items, not {len(arguments)}")
            pairs = enumerate(zip(value, arguments, strict=True))
            return origin([from_plain(item, inner, f"{where}[{i}]") for i, (item, inner) in pairs])
    elif origin is typing.Union or origin is types.UnionType:
        return _read_any(value, arguments, where)
    elif origin is not None:  # Mapping[str, T], dict[str, T]
        if isinstance(value, dict):
            return {str(key): from_plain(item, arguments[1], f"{where}.{key}") for key, item in value.items()}
    elif typing.is_typeddict(kind):
        if isinstance(value, dict):
            return _read_map(value, typing.get_type_hints(kind), kind.__required_keys__, where)
    elif dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        fields = fields_of(kind)
        if isinstance(value, Mapping):
            needed = [name for name, _, default in fields if default is dataclasses.MISSING]
            return kind(**_read_map(value, {name: hint for name, hint, _ in fields}, needed, where))
        if isinstance(value, list | tuple) and len(value) == len(fields):
            members = zip(value, fields, strict=True)
            return kind(*(from_plain(item, hint, f"{where}.{name}") for item, (name, hint, _) in members))
    elif issubclass(kind, enum.Enum):
        if any(value == one.value and type(value) is type(one.value) for one in kind):
            return kind(value)
    elif type(value) is kind and not (
        (isinstance(value, int) and abs(value) > _LARGEST)
        or (isinstance(value, float) and not math.isfinite(value))
    ):
        return value
    raise Mismatch(f"{where} is a {type(value).__name__}")


def _read_any(value: Any, kinds: Iterable[Any], where: str) -> Any:
    """Returns the value, read as the first type of `kinds` that fits. Raises Mismatch if none fits."""
    for kind in kinds:
        try:
            return from_plain(value, kind, where)
        except Mismatch as error:
            last = error
    raise last


def _read_map(
    value: Mapping[str, Any], hints: Mapping[str, Any], needed: Iterable[str], where: str
) -> dict[str, Any]:
    """Returns the values of a map whose keys have the types `hints`. Raises Mismatch for an unknown key, and
    if one of the keys `needed` is missing.
    """
    for name in value:
        if name not in hints:
            raise Mismatch(f"{where} has no field '{name}'")
    for name in needed:
        if name not in value:
            raise Mismatch(f"{where} has no '{name}'")
    return {name: from_plain(item, hints[name], f"{where}.{name}") for name, item in value.items()}


# The tables that people write in a .toml file. A field that may be given there is annotated with its `Key`.
# The reader (`from_table`) and the page about the file both use it.


class Word(enum.StrEnum):
    """A word that a TOML file may have as a value, with its meaning."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Self:
        """Makes a member whose value is the word."""
        member = str.__new__(cls, word)
        member._value_, member.meaning = word, meaning
        return member


Reader = Callable[[Any, str], Any]  # value in the table, dotted key -> the field's value; raises Mismatch


@dataclasses.dataclass(frozen=True)
class Kind:
    """A requirement for a value in a TOML table.

    `words`: describe the allowed values.
    `read`: converts the value to that of the field.
    `wrong`: returns what is wrong with a converted value ("": nothing).
    """

    words: str = ""
    read: Reader | None = None
    wrong: Callable[[Any], str] | None = None


def must(be: str, holds: Callable[[Any], bool], words: str = "") -> Kind:
    """Returns the Kind of values for which `holds` is true.

    `be` completes the error message "must be ...". The reference page describes the kind with `words`, or
    with `be` where `words` is empty.
    """
    return Kind(words or be, wrong=lambda value: "" if holds(value) else f"must be {be}, not {value}")


def power(least: int, most: int) -> Kind:
    """Returns the Kind of values that are a power of two, at least `least` and at most `most`."""
    return must(f"a power of two from {least} to {most}", lambda n: least <= n <= most and n & (n - 1) == 0)


@dataclasses.dataclass(frozen=True)
class Key:
    """Marks a field of a dataclass as the key of a TOML table.

    `meaning`: a sentence about the key.
    `without`: what applies where the key is missing ("": the field's default, if any).
    `name`: the key, if it differs from the field's name; "roles.code" is the key `code` of the inner table
    `roles`. If it is BESIDE, the field is a dataclass whose keys are in the same table; the field keeps its
    default where the first of these keys is missing.
    `needed`: whether files must have the key although the field has a default.
    """

    meaning: str
    without: str = ""
    name: str = ""
    needed: bool = False


BESIDE = "*"
Mark = TypeVar("Mark")
Made = TypeVar("Made")
Table = dict[str, Any]


@cache
def fields_with_mark(kind: type, mark: type[Mark]) -> dict[str, Mark]:
    """Returns the fields of a class that have an annotation of the type `mark`: name of the field -> first
    such annotation.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    marks = ((name, one) for name, hint in hints.items() for one in getattr(hint, "__metadata__", ())[::-1])
    return {name: one for name, one in marks if isinstance(one, mark)}


class Slot(NamedTuple):
    """A key of a TOML table, and the field of a dataclass that it sets.

    `name`: the key.
    `field`, `hint`, `default`: the field's name, type and default.
    `key`, `kind`: the field's annotations.
    `is_needed`: whether a file must have the key.
    """

    name: str
    field: str
    hint: Any
    default: Any
    key: Key
    kind: Kind
    is_needed: bool = False


@cache
def slots(kind: type) -> tuple[Slot, ...]:
    """Returns the keys of a dataclass's TOML table, in the order of its fields, without those of a base
    class.
    """
    keys, kinds, entries = fields_with_mark(kind, Key), fields_with_mark(kind, Kind), list[Slot]()
    with_factory = {f.name for f in dataclasses.fields(kind) if f.default_factory is not dataclasses.MISSING}
    for name, hint, default in fields_of(kind):
        if name in keys and name in kind.__annotations__:
            key = keys[name]
            has_default = default is not dataclasses.MISSING or name in with_factory or key.without
            inner = [one for one in typing.get_args(hint) if one is not type(None)]
            hint = inner[0] if isinstance(hint, types.UnionType) and len(inner) == 1 else hint  # noqa: PLW2901
            fields = (key.name or name, name, hint, default, key, kinds.get(name, Kind()))
            entries.append(Slot(*fields, not has_default or key.needed))
    return tuple(entries)


def has_names(kind: Any) -> bool:
    """Whether the tables of the dataclass `kind` have a key `name`. If not, the key of the table itself is
    the name.
    """
    return "name" in fields_with_mark(kind, Key)


def key_names(kind: type) -> tuple[str, ...]:
    """Returns the keys of a dataclass's TOML table; of an inner table, it returns the table's own key."""
    names: dict[str, None] = {}
    for slot in slots(kind):
        names |= dict.fromkeys(key_names(slot.hint) if slot.name == BESIDE else [slot.name.partition(".")[0]])
    return tuple(names)


def from_table(
    value: object, kind: type[Made], where: str = "", *, also: Iterable[str] = (), **own: Any
) -> Made:
    """Returns the dataclass `kind` that a TOML table describes (see `Key`).

    `where` is the table's dotted key ("": the file's top level). `own` gives the values of fields that are
    not in the table. `also` names keys that may be in the table but are read elsewhere. Raises Mismatch if a
    key is unknown, missing, or has a wrong value.
    """
    return kind(**own, **values_of(a_table(value, where), kind, where, also=also))


def values_of(table: Mapping[str, Any], kind: type, where: str = "", *, also: Iterable[str] = ()) -> Table:
    """Returns, by name, the fields of the dataclass `kind` that a TOML table gives. The table may leave out
    fields that have a default. `where` and `also` are those of `from_table`.
    """
    before = f"{where}." if where else ""
    check_keys(table, (*also, *key_names(kind)), before)
    values, inner = dict[str, Any](), dict[str, Table]()
    for slot in slots(kind):
        outer, _, name = slot.name.rpartition(".")
        place, path = table, before
        if outer:
            if outer not in inner:
                inner[outer] = a_table(require_key(table, outer, before), before + outer)
                names = [s.name for s in slots(kind) if s.name.startswith(f"{outer}.")]
                check_keys(inner[outer], [one.rpartition(".")[2] for one in names], f"{before}{outer}.")
            place, path = inner[outer], f"{before}{outer}."
        if slot.name == BESIDE:
            own = _read_beside(table, slot.hint, where)
            values |= {slot.field: own} if own is not None else {}
        elif name in place:
            values[slot.field] = _read_value(place[name], slot, path + name)
        elif slot.is_needed:
            require_key(place, name, path)
    return values


def _read_beside(table: Mapping[str, Any], kind: type, where: str) -> Any:
    """Returns the dataclass `kind`, whose keys are in the table of another dataclass; None if all these keys
    are missing. Raises Mismatch if the first key is missing and another one is not.
    """
    first, *others = key_names(kind)
    if first in table:
        return from_table({name: table[name] for name in (first, *others) if name in table}, kind, where)
    for name in others:
        if name in table:
            raise Mismatch(f"it has no effect without {first}", f"{where}.{name}", f"write {first} too")
    return None


def _read_value(value: Any, slot: Slot, key: str) -> Any:
    """Returns the value of a field, converted by the field's own reader or by that of its type."""
    result = slot.kind.read(value, key) if slot.kind.read else _read_typed(slot.hint, value, key)
    if slot.kind.wrong and (wrong := slot.kind.wrong(result)):
        raise Mismatch(wrong, key)
    return result


def _read_typed(hint: Any, value: Any, key: str) -> Any:
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return _read_tables(value, inner, key) if dataclasses.is_dataclass(inner) else texts(value, key)
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return from_table(value, hint, key)
    if issubclass(hint, enum.StrEnum):
        return choice(value, key, hint)
    return {int: size, float: positive, str: text}[hint](value, key)


def _read_tables(value: Any, kind: Any, key: str) -> tuple[Any, ...]:
    """Returns dataclasses of the type `kind`, read from a list of tables, or from a table of tables by
    name.
    """
    if not has_names(kind):
        return tuple(
            from_table(one, kind, f"{key}.{name}", name=a_name(name, f"{key}.{name}"))
            for name, one in a_table(value, key).items()
        )
    if not isinstance(value, list) or not value:
        raise Mismatch("must be a list of tables", key, f"write [[{key}]]")
    return tuple(from_table(one, kind, key) for one in value)


_MOST = 1 << 48  # upper limit for numbers that people write: bytes, hertz, or bytes a second
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def duration(seconds: float) -> str:
    """Returns a time in seconds as text with about two digits: 40 s, 12 min, 3.2 h."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"
    return f"{seconds:.0f} s"


def check_keys(table: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Raises Mismatch for a key that is not one of `names`. `where` ends with a dot, or is empty."""
    known = tuple(names)
    for key in table:
        if key not in known:
            raise Mismatch(f"unknown key {shown(where + key)}", hint=did_you_mean(key, known), at=where + key)


def require_key(table: Mapping[str, Any], key: str, where: str) -> Any:
    """Returns the value of a key. Raises Mismatch where the key is missing."""
    if key not in table:
        raise Mismatch(f"key '{where}{key}' is missing", at=where.rstrip("."))
    return table[key]


def a_table(value: object, key: str) -> Table:
    """Returns `value`. Raises Mismatch unless it is a table."""
    if not isinstance(value, dict):
        raise Mismatch(f"must be a table, not {shown(value)}", key, f"write [{key}]")
    return value


def text(value: object, key: str) -> str:
    """Returns `value`. Raises Mismatch unless it is one line of text and not empty."""
    if not isinstance(value, str) or not value:
        raise Mismatch(f"must be a string that is not empty, not {shown(value)}", key)
    if not value.isprintable():
        raise Mismatch(f"must be one line without control characters, not {shown(value)}", key)
    return value


def texts(value: object, key: str) -> tuple[str, ...]:
    """Returns `value` as a tuple. Raises Mismatch unless it is a list of texts (see `text`)."""
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise Mismatch(f"must be a list of strings that are not empty, not {shown(value)}", key)
    return tuple(text(item, key) for item in value)


def choice(value: object, key: str, known: type[enum.StrEnum]) -> enum.StrEnum:
    """Returns the member of the enumeration `known` that the value names. Raises Mismatch if there is
    none.
    """
    word = text(value, key)
    if word not in list(known):
        raise Mismatch(f"{shown(word)} is unknown", key, "known: " + ", ".join(known))
    return known(word)


def size(value: object, key: str) -> int:
    """Returns the number that `value` gives, such as 65536 or "64K". Raises Mismatch unless it is a whole
    number from 0 to 2^48.
    """
    number = parse_size(value)
    if number is None:
        hint = 'bytes (65536), or a string with K, M or G ("64K")'
        raise Mismatch(f"must be a size, not {shown(value)}", key, hint)
    if number > _MOST:
        raise Mismatch(f"{shown(value)} is too large: at most {_MOST:,}", key)
    return number


def a_name(name: str, key: str) -> str:
    """Returns `name`. Raises Mismatch unless it is allowed in file names and linker scripts."""
    if not _NAME.fullmatch(name):
        hint = "letters, digits, '_', '-' and '.', a letter first"
        raise Mismatch(f"{shown(name)} is not a name", key, hint)
    return name


def positive(value: object, key: str) -> float:
    """Returns `value`. Raises Mismatch unless it is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST:
        raise Mismatch(f"must be a number above 0, not {shown(value)}", key)
    return value


def whole(value: object, key: str) -> int:
    """Returns `value`. Raises Mismatch unless it is a whole number above 0."""
    number = positive(value, key)
    if not isinstance(number, int):
        raise Mismatch(f"must be a whole number, not {shown(number)}", key)
    return number


def words_of(slot: Slot) -> tuple[str, str]:
    """Returns two texts for the reference page of a TOML file: what the value of a key is, and what applies
    where the key is missing ("": the key is needed).
    """
    key, hint = slot.key, slot.hint
    words = slot.kind.words
    if not words and typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        is_named = dataclasses.is_dataclass(inner) and not has_names(inner)
        words = "list of texts" if inner is str else "tables by name" if is_named else "list of tables"
    elif not words:
        words = "table" if dataclasses.is_dataclass(hint) else _WORDS.get(hint, "")
    if slot.is_needed:
        return words, ""
    is_plain = type(slot.default) is int or (isinstance(slot.default, str) and slot.default)
    return words, key.without or (str(slot.default) if is_plain else "none")


_WORDS: Mapping[Any, str] = {int: "size", str: "text", float: "number above 0"}
