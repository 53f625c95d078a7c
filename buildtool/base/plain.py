"""Plain values and dataclasses: one walker for whatever is written down, compared or hashed.

A plain value is what JSON and msgpack have: a number, text, bytes, None, a list, or a map with text as keys.
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

_LARGEST = (1 << 63) - 1  # of any integer
_LEAVES = frozenset((int, str, float, bool, bytes, type(None)))


class Mismatch(ValueError):
    """A plain value that is not of its type. Of a table that people write: `what` is wrong with `key` ("":
    with the whole, near the key `at`), and the `hint`.
    """

    def __init__(self, what: str, key: str = "", hint: str = "", at: str = "") -> None:
        super().__init__(f"{key}: {what}" if key else what)
        self.what, self.key, self.hint, self.at = what, key, hint, at or key


def to_plain(value: object, *, named: bool = False, defaults: bool = True) -> Any:
    """Dataclasses as lists of their fields in declared order, enumerations as values, tuples as lists, maps
    sorted. `named`: dataclasses as maps, without fields that have their default unless `defaults`.
    """
    kind = type(value)
    if kind in _LEAVES:
        return value
    if isinstance(value, tuple | list):
        if kind is tuple and value and type(value[0]) is int:  # all are: most of a plan's tuples
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
    raise TypeError(f"{kind.__name__} is not a plain value")


def to_tuples(value: object) -> Any:
    """As `to_plain`, with tuples in place of lists, so that it can be hashed."""

    def frozen(plain: Any) -> Any:
        return tuple(map(frozen, plain)) if isinstance(plain, list) else plain

    return frozen(to_plain(value))


@cache
def fields_of(kind: type) -> tuple[tuple[str, Any, Any], ...]:
    """Name, type and default (dataclasses.MISSING: none) of each field of a dataclass, in declared order."""
    hints = typing.get_type_hints(kind)
    return tuple((f.name, hints[f.name], f.default) for f in dataclasses.fields(kind))


def from_plain(value: Any, kind: Any, where: str) -> Any:
    """The value of the type `kind` (as a field is annotated, or a TypedDict) that `to_plain` made `value` of.
    Raises Mismatch, with its place, for anything else, numbers of over 64 bits and infinite ones included.
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
        return _of_any(value, arguments, where)
    elif origin is not None:  # Mapping[str, T], dict[str, T]
        if isinstance(value, dict):
            return {str(key): from_plain(held, arguments[1], f"{where}.{key}") for key, held in value.items()}
    elif typing.is_typeddict(kind):
        if isinstance(value, dict):
            return _by_name(value, typing.get_type_hints(kind), kind.__required_keys__, where)
    elif dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        fields = fields_of(kind)
        if isinstance(value, Mapping):
            needed = [name for name, _, default in fields if default is dataclasses.MISSING]
            return kind(**_by_name(value, {name: hint for name, hint, _ in fields}, needed, where))
        if isinstance(value, list | tuple) and len(value) == len(fields):
            held = zip(value, fields, strict=True)
            return kind(*(from_plain(item, hint, f"{where}.{name}") for item, (name, hint, _) in held))
    elif issubclass(kind, enum.Enum):
        if any(value == one.value and type(value) is type(one.value) for one in kind):
            return kind(value)
    elif type(value) is kind and not (
        (isinstance(value, int) and abs(value) > _LARGEST)
        or (isinstance(value, float) and not math.isfinite(value))
    ):
        return value
    raise Mismatch(f"{where} is a {type(value).__name__}")


def _of_any(value: Any, kinds: Iterable[Any], where: str) -> Any:
    """The value, read as the first of the types that it has."""
    for kind in kinds:
        try:
            return from_plain(value, kind, where)
        except Mismatch as error:
            last = error
    raise last


def _by_name(
    value: Mapping[str, Any], hints: Mapping[str, Any], needed: Iterable[str], where: str
) -> dict[str, Any]:
    """The values of a map whose keys are fields with type hints; Mismatch for an unknown or missing one."""
    for name in value:
        if name not in hints:
            raise Mismatch(f"{where} has no field '{name}'")
    for name in needed:
        if name not in value:
            raise Mismatch(f"{where} has no '{name}'")
    return {name: from_plain(held, hints[name], f"{where}.{name}") for name, held in value.items()}


# What people write: the tables of a .toml file. A field that can stand there is annotated with its `Key`,
# from which its reader (`from_table`) and the page about it derive.


class Word(enum.StrEnum):
    """A word of a file, with what it means."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Self:
        """The word as text."""
        made = str.__new__(cls, word)
        made._value_, made.meaning = word, meaning
        return made


Reader = Callable[[Any, str], Any]  # what a table has, the dotted key -> the field's value; raises Mismatch


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a value has to be: in words, with its own reader, and what is `wrong` with one ("": nothing)."""

    words: str = ""
    read: Reader | None = None
    wrong: Callable[[Any], str] | None = None


def must(be: str, holds: Callable[[Any], bool], words: str = "") -> Kind:
    """A number has to `be` something; `words`: what the page says in its place."""
    return Kind(words or be, wrong=lambda value: "" if holds(value) else f"must be {be}, not {value}")


def power(least: int, most: int) -> Kind:
    """The value is a power of two, from `least` to `most`."""
    return must(f"a power of two from {least} to {most}", lambda n: least <= n <= most and n & (n - 1) == 0)


@dataclasses.dataclass(frozen=True)
class Key:
    """How a field stands in a table: `meaning` is a sentence about it; see `Kind` for its value.

    `without`: what holds where the key is missing ("": the field's default, if any). `name`: of the key, if
    not the field's; behind a dot, in a table of its own ("roles.code"); BESIDE: the keys of the field's
    dataclass stand in this table, and its first one says whether it is there. `needed`: files must have it,
    although the field has a default.
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
    """The fields of a class, named with the first of their annotations that is a `mark`."""
    hints = typing.get_type_hints(kind, include_extras=True)
    marks = ((name, one) for name, hint in hints.items() for one in getattr(hint, "__metadata__", ())[::-1])
    return {name: one for name, one in marks if isinstance(one, mark)}


class Slot(NamedTuple):
    """A key of a table: its name there, and the field: name, type (`hint`), default, annotations."""

    name: str
    field: str
    hint: Any
    default: Any
    key: Key
    kind: Kind
    is_needed: bool = False


@cache
def slots(kind: type) -> tuple[Slot, ...]:
    """The keys of a dataclass's table, in the order of its fields. A base class has another table."""
    keys, kinds, entries = fields_with_mark(kind, Key), fields_with_mark(kind, Kind), list[Slot]()
    with_factory = {f.name for f in dataclasses.fields(kind) if f.default_factory is not dataclasses.MISSING}
    for name, hint, default in fields_of(kind):
        if name in keys and name in kind.__annotations__:
            key = keys[name]
            given = default is not dataclasses.MISSING or name in with_factory or key.without
            inner = [one for one in typing.get_args(hint) if one is not type(None)]
            hint = inner[0] if isinstance(hint, types.UnionType) and len(inner) == 1 else hint  # noqa: PLW2901
            own = (key.name or name, name, hint, default, key, kinds.get(name, Kind()))
            entries.append(Slot(*own, not given or key.needed))
    return tuple(entries)


def has_names(kind: Any) -> bool:
    """Whether a dataclass's tables say what they are called; others stand below their names."""
    return "name" in fields_with_mark(kind, Key)


def key_names(kind: type) -> tuple[str, ...]:
    """The keys of a dataclass's own table."""
    names: dict[str, None] = {}
    for slot in slots(kind):
        names |= dict.fromkeys(key_names(slot.hint) if slot.name == BESIDE else [slot.name.partition(".")[0]])
    return tuple(names)


def from_table(
    value: object, kind: type[Made], where: str = "", *, also: Iterable[str] = (), **own: Any
) -> Made:
    """The dataclass that the table at the dotted key `where` gives; see `Key`. Raises Mismatch.
    `own` are fields that the table does not give, `also` keys that are read elsewhere.
    """
    return kind(**own, **values_of(a_table(value, where), kind, where, also=also))


def values_of(table: Mapping[str, Any], kind: type, where: str = "", *, also: Iterable[str] = ()) -> Table:
    """The fields that a table gives to a dataclass, by name; others have their defaults."""
    before = f"{where}." if where else ""
    check_keys(table, (*also, *key_names(kind)), before)
    values, inner = dict[str, Any](), dict[str, Table]()
    for slot in slots(kind):
        outer, _, name = slot.name.rpartition(".")
        place, path = table, before
        if outer:
            if outer not in inner:
                inner[outer] = a_table(require_key(table, outer, before), before + outer)
                named = [s.name for s in slots(kind) if s.name.startswith(f"{outer}.")]
                check_keys(inner[outer], [one.rpartition(".")[2] for one in named], f"{before}{outer}.")
            place, path = inner[outer], f"{before}{outer}."
        if slot.name == BESIDE:
            own = _beside(table, slot.hint, where)
            values |= {slot.field: own} if own is not None else {}
        elif name in place:
            values[slot.field] = _read(place[name], slot, path + name)
        elif slot.is_needed:
            require_key(place, name, path)
    return values


def _beside(table: Mapping[str, Any], kind: type, where: str) -> Any:
    """A dataclass whose keys stand among others; None without the first of them."""
    first, *others = key_names(kind)
    if first in table:
        return from_table({name: table[name] for name in (first, *others) if name in table}, kind, where)
    for name in others:
        if name in table:
            raise Mismatch(f"it says nothing without {first}", f"{where}.{name}", f"write {first} too")
    return None


def _read(value: Any, slot: Slot, key: str) -> Any:
    """The value of a field, by its own reader or that of its type."""
    result = slot.kind.read(value, key) if slot.kind.read else _typed_value(slot.hint, value, key)
    if slot.kind.wrong and (wrong := slot.kind.wrong(result)):
        raise Mismatch(wrong, key)
    return result


def _typed_value(hint: Any, value: Any, key: str) -> Any:
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return _tables(value, inner, key) if dataclasses.is_dataclass(inner) else texts(value, key)
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return from_table(value, hint, key)
    if issubclass(hint, enum.StrEnum):
        return choice(value, key, hint)
    return {int: size, float: positive, str: text}[hint](value, key)


def _tables(value: Any, kind: Any, key: str) -> tuple[Any, ...]:
    """The dataclasses of a list of tables, or of tables that stand below their names."""
    if not has_names(kind):
        return tuple(
            from_table(one, kind, f"{key}.{name}", name=a_name(name, f"{key}.{name}"))
            for name, one in a_table(value, key).items()
        )
    if not isinstance(value, list) or not value:
        raise Mismatch("must be a list of tables", key, f"write [[{key}]]")
    return tuple(from_table(one, kind, key) for one in value)


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST = 1 << 48  # of any number that people write: bytes, hertz, or either a second
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def parse_size(value: object) -> int | None:
    """Bytes from a non-negative integer or a string such as "512K"; None if it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    match = re.fullmatch(r"([0-9]{1,18})([KMG]?)", value) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[match[2]] if match else None


def show_size(size: int) -> str:
    """Bytes in the largest unit that divides them: 524288 -> "512K"."""
    for unit in ("G", "M", "K"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)


def duration(seconds: float) -> str:
    """A time in words, of about two digits: 40 s, 12 min, 3.2 h."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"
    return f"{seconds:.0f} s"


def check_keys(table: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Raises Mismatch for a key that is not one of `names`; `where` ends with a dot, or is empty."""
    known = tuple(names)
    for key in table:
        if key not in known:
            raise Mismatch(f"unknown key {shown(where + key)}", hint=did_you_mean(key, known), at=where + key)


def require_key(table: Mapping[str, Any], key: str, where: str) -> Any:
    """The value of a key that cannot be left out."""
    if key not in table:
        raise Mismatch(f"key '{where}{key}' is missing", at=where.rstrip("."))
    return table[key]


def a_table(value: object, key: str) -> Table:
    """A value that is a table."""
    if not isinstance(value, dict):
        raise Mismatch(f"must be a table, not {shown(value)}", key, f"write [{key}]")
    return value


def text(value: object, key: str) -> str:
    """One line of text that is not empty."""
    if not isinstance(value, str) or not value:
        raise Mismatch(f"must be a string that is not empty, not {shown(value)}", key)
    if not value.isprintable():
        raise Mismatch(f"must be one line without control characters, not {shown(value)}", key)
    return value


def texts(value: object, key: str) -> tuple[str, ...]:
    """A list of such texts."""
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise Mismatch(f"must be a list of strings that are not empty, not {shown(value)}", key)
    return tuple(text(item, key) for item in value)


def choice(value: object, key: str, known: type[enum.StrEnum]) -> enum.StrEnum:
    """One of the words of an enumeration."""
    word = text(value, key)
    if word not in list(known):
        raise Mismatch(f"{shown(word)} is unknown", key, "known: " + ", ".join(known))
    return known(word)


def size(value: object, key: str) -> int:
    """A number of bytes, or another whole number that is not negative."""
    number = parse_size(value)
    if number is None:
        hint = 'bytes (65536), or a string with K, M or G ("64K")'
        raise Mismatch(f"must be a size, not {shown(value)}", key, hint)
    if number > _MOST:
        raise Mismatch(f"{shown(value)} is too large: at most {_MOST:,}", key)
    return number


def a_name(name: str, key: str) -> str:
    """A name that can stand in file names and linker scripts."""
    if not _NAME.fullmatch(name):
        hint = "letters, digits, '_', '-' and '.', a letter first"
        raise Mismatch(f"{shown(name)} is not a name", key, hint)
    return name


def positive(value: object, key: str) -> float:
    """A number above 0, which is not infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST:
        raise Mismatch(f"must be a number above 0, not {shown(value)}", key)
    return value


def whole(value: object, key: str) -> int:
    """A whole number above 0."""
    number = positive(value, key)
    if not isinstance(number, int):
        raise Mismatch(f"must be a whole number, not {shown(number)}", key)
    return number


def words_of(slot: Slot) -> tuple[str, str]:
    """What the value of a key is, and what holds without it ("": it cannot be left out), for a page."""
    key, hint = slot.key, slot.hint
    words = slot.kind.words
    if not words and typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        by_name = dataclasses.is_dataclass(inner) and not has_names(inner)
        words = "list of texts" if inner is str else "tables by name" if by_name else "list of tables"
    elif not words:
        words = "table" if dataclasses.is_dataclass(hint) else _WORDS.get(hint, "")
    if slot.is_needed:
        return words, ""
    plain = type(slot.default) is int or (isinstance(slot.default, str) and slot.default)
    return words, key.without or (str(slot.default) if plain else "none")


_WORDS: Mapping[Any, str] = {int: "size", str: "text", float: "number above 0"}
