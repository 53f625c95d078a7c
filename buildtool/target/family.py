"""Kernel families as files: a folder with a catalogue.toml, and what stands in it.

    headers = ["nn_fast.h"]

    [packing.conv_pairs]
    bytes = "32 + 2 * cout * cin"

    [[kernel]]
    op = "CONV_2D"
    name = "conv2d_fast"
    symbol = "nn_conv2d_s8_fast"
    call = "geometry, constants, in, out, window, scratch"
    sources = ["nn_conv2d_s8_fast.c"]
    packing = "conv_pairs"
    when = "groups == 1 and kh == 1"
    scratch = "2 * kh * kw * cin"
    cost = "20 * outputs + 8 * macs"

`catalogue_keys` lists every key and every word of their values with its meaning, and
docs/target-reference.md is made from these lists.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from buildtool.base.errors import TargetError, did_you_mean
from buildtool.graph.ops import CLASSES
from buildtool.graph.types import DType, OpKind
from buildtool.target import catalogue_keys as keys
from buildtool.target.catalogue import NO_PACKING
from buildtool.target.costs import load_costs
from buildtool.target.expression import check
from buildtool.target.keys import Key, names, needed
from buildtool.target.types import (
    BYTES,
    Argument,
    Contract,
    KernelFamily,
    KernelVariant,
    Role,
    Routine,
    Windows,
)

CATALOGUE, PACKER = "catalogue.toml", "packing.py"
_VARIABLES = frozenset(keys.VARIABLES)
_SEEN = {  # what is of the core; the layout of constants must not depend on it
    "when": _VARIABLES | {keys.THREADS},
    "scratch": _VARIABLES | {keys.THREADS},
    "cost": _VARIABLES | {keys.THREADS, keys.VECTOR_BITS},
}
# Keys whose values are formulas, with what holds without them.
_EXPRESSIONS = {"when": "True", "scratch": "0", "slices": "False", "cost": "macs", "passes": "1"}


@dataclass(frozen=True)
class Layout:
    """A packing: who makes it, and expressions for the bytes of a block and of each channel in it."""

    packer: Path
    bytes: str
    channel_factors: str = "0"
    channel_weights: str = "0"
    channel_step: str = "1"
    channel_unit: str = "1"
    channel_group: str = "1"
    channel_tail: str = "0"


@dataclass(frozen=True)
class Catalogue:
    """What a family's folder says; its kernels' packings are not looked up yet (see `resolved`)."""

    family: KernelFamily
    uses: tuple[str, ...]
    packings: Mapping[str, Layout]
    kernels: tuple[KernelVariant, ...]
    routines: tuple[Routine, ...]
    costs: Mapping[str, str]
    portable: Mapping[str, str]


def load_family(folder: Path) -> Catalogue:
    """The catalogue of a family's folder; raises TargetError naming file and key."""
    path = folder / CATALOGUE
    table = _read(path)
    try:
        return _Reader(KernelFamily(folder.name, folder)).catalogue(table)
    except TargetError as error:
        raise error.at(path=str(path)) from None


def resolved(catalogue: Catalogue, others: Sequence[Catalogue] = ()) -> tuple[KernelVariant, ...]:
    """The family's kernels with the layouts of their packings: its own, or the first one's of `others`."""
    known: dict[str, Layout] = {}
    for each in (catalogue, *others):
        known = {**each.packings, **known}
    path = str(catalogue.family.folder / CATALOGUE)
    return tuple(_with_layout(variant, known, path) for variant in catalogue.kernels)


def _with_layout(variant: KernelVariant, known: Mapping[str, Layout], path: str) -> KernelVariant:
    if variant.packing == NO_PACKING:
        return variant
    layout = known.get(variant.packing)
    if layout is None:
        hint = did_you_mean(variant.packing, known)
        what = f"packing '{variant.packing}' is unknown"
        raise TargetError(what, path=path, operator=variant.name, hint=hint)
    if variant.slices != "False" and layout.channel_factors == "0":
        raise TargetError(
            f"packing '{variant.packing}' cannot be cut into channels, as 'slices' wants",
            path=path,
            operator=variant.name,
            hint=f"write channel_factors and channel_weights into [packing.{variant.packing}]",
        )
    return dataclasses.replace(
        variant,
        packer=layout.packer,
        constants=layout.bytes,
        channel_factors=layout.channel_factors,
        channel_weights=layout.channel_weights,
        channel_step=layout.channel_step,
        channel_unit=layout.channel_unit,
        channel_group=layout.channel_group,
        channel_tail=layout.channel_tail,
    )


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TargetError(f"cannot read the kernel catalogue: {error.strerror}", path=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TargetError(f"not a TOML file: {error}", path=str(path)) from None


class _Reader:
    """Takes one catalogue's tables apart."""

    def __init__(self, family: KernelFamily) -> None:
        self.family = family
        self.headers: tuple[str, ...] = ()

    def catalogue(self, table: dict[str, object]) -> Catalogue:
        _known(table, keys.TOP)
        self.headers = _optional(table, "headers")
        kernels: list[KernelVariant] = []
        for i, entry in enumerate(_tables(table, "kernel")):
            with self.place(entry.get("name", f"kernel[{i}]")):
                kernels += self.variants(entry)
        routines: list[Routine] = []
        for i, entry in enumerate(_tables(table, "routine")):
            with self.place(entry.get("symbol", f"routine[{i}]")):
                routines += self.routines(entry)
        packings = self.packings(table.get("packing", {}))
        _refuse_twins(kernels)
        uses, costs = _optional(table, "uses"), load_costs(self.family.folder / CATALOGUE)
        portable = self.formulas(table.get("portable", {}))
        return Catalogue(self.family, uses, packings, tuple(kernels), tuple(routines), costs, portable)

    @contextlib.contextmanager
    def place(self, name: object) -> Iterator[None]:
        """Adds the file and the entry's name to an error."""
        try:
            yield
        except TargetError as error:
            raise error.at(path=str(self.family.folder / CATALOGUE), operator=str(name)) from None

    def variants(self, entry: dict[str, object]) -> list[KernelVariant]:
        """One [[kernel]] table; one variant each operator kind it serves."""
        _known(entry, keys.KERNEL)
        when, scratch, slices, cost, passes = (
            _expression(entry, key) if key in entry else default for key, default in _EXPRESSIONS.items()
        )
        call, asks = _call(entry), _string(entry, "asks") if "asks" in entry else ""
        if asks and "scratch" in entry:
            raise TargetError("a kernel has 'scratch' or 'asks', never both")
        if slices != "False" and (Argument.WINDOW not in call or asks):
            raise TargetError("'slices' needs a kernel that computes windows, with a formula of scratch")
        return [
            KernelVariant(
                op=kind,
                name=_string(entry, "name"),
                symbol=_string(entry, "symbol"),
                sources=self.sources(entry),
                packing=_packing(entry),
                overlap=Contract(_choice(entry, "overlap", list(Contract), Contract.NONE)),
                call=call,
                headers=self.declared(entry),
                windows=Windows(_choice(entry, "windows", list(Windows), Windows.ANY)),
                when=when,
                scratch=scratch,
                slices=slices,
                cost=cost,
                passes=passes,
                asks=asks,
                types=_types(entry),
                form=_form(entry),
            )
            for kind in _kinds(entry)
        ]

    def routines(self, entry: dict[str, object]) -> list[Routine]:
        """One [[routine]] table; one routine each operator kind it is for."""
        _known(entry, keys.ROUTINE)
        role = Role(_choice(entry, "role", list(Role), ""))
        sources, call, headers = self.sources(entry), _call(entry), self.declared(entry)
        symbol, packing = _string(entry, "symbol"), _packing(entry)
        if (Argument.CONSTANTS in call) != (packing != NO_PACKING):
            raise TargetError("a routine has 'constants' in its 'call' and a 'packing', or neither")
        kinds = _kinds(entry) if "op" in entry else [""]
        types = _types(entry)
        return [
            Routine(role, kind, symbol, sources, call, headers, packing, types, _form(entry))
            for kind in kinds
        ]

    def declared(self, entry: dict[str, object]) -> tuple[str, ...]:
        """An entry's headers, or those of all the family's."""
        return tuple(_strings(entry, "headers")) if "headers" in entry else self.headers

    def sources(self, entry: dict[str, object]) -> tuple[str, ...]:
        """Files as "family/file"."""
        found = []
        for name in _strings(entry, "sources"):
            parts = PurePosixPath(name).parts
            if PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name:
                raise TargetError(f"source '{name}' is neither a file of the folder nor \"family/file\"")
            found.append(name if len(parts) > 1 else f"{self.family.name}/{name}")
        return tuple(found)

    def packings(self, tables: object) -> dict[str, Layout]:
        """The [packing.NAME] tables."""
        if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
            raise TargetError("'packing' must be tables: [packing.NAME]")
        found = {}
        for name, entry in tables.items():
            with self.place(f"packing.{name}"):
                _known(entry, keys.PACKING)
                if ("channel_factors" in entry) != ("channel_weights" in entry):
                    raise TargetError("'channel_factors' and 'channel_weights' come together")
                packer = self.family.folder / PACKER
                found[name] = Layout(packer, **{key: _expression(entry, key) for key in entry})
        return found

    def formulas(self, table: object) -> dict[str, str]:
        """The table [portable]: what kernels of portable families cost in this family's code."""
        if not isinstance(table, dict):
            raise TargetError("'portable' must be a table: [portable]")
        found = {}
        for name in table:
            with self.place(f"portable.{name}"):
                found[name] = _expression({"cost": table[name]}, "cost")
        return found


def _refuse_twins(kernels: Sequence[KernelVariant]) -> None:
    seen: set[tuple[str, str]] = set()
    for variant in kernels:
        if (variant.op, variant.name) in seen:
            raise TargetError(f"kernel '{variant.name}' appears twice for {variant.op}")
        seen.add((variant.op, variant.name))


def _known(entry: dict[str, object], known: tuple[Key, ...]) -> None:
    for name in entry:
        if name not in names(known):
            raise TargetError(f"unknown key '{name}'", hint=did_you_mean(name, names(known)))
    for name in needed(known):
        if name not in entry:
            raise TargetError(f"key '{name}' is missing")


def _tables(table: dict[str, object], key: str) -> list[dict[str, object]]:
    entries = table.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise TargetError(f"'{key}' must be an array of tables: [[{key}]]")
    return entries


def _kinds(entry: dict[str, object]) -> list[str]:
    """The operators of "op", a class of them ("@lookup") by its members."""
    kinds: list[str] = []
    for name in _strings(entry, "op"):
        if name not in OpKind.__members__ and name not in CLASSES:
            known = (*OpKind.__members__, *CLASSES)
            raise TargetError(f"operator kind '{name}' is unknown", hint=did_you_mean(name, known))
        kinds += CLASSES.get(name, (name,))
    return kinds


def _types(entry: dict[str, object]) -> tuple[DType, DType]:
    """The types of a kernel's first input and of its output: "int16", or "int8 -> int16"."""
    if "types" not in entry:
        return BYTES
    words = [word.strip() for word in _string(entry, "types").split("->")]
    known = [str(dtype) for dtype in DType]
    if len(words) > 2 or any(word not in known for word in words):
        raise TargetError(
            f"types '{entry['types']}' are unknown",
            hint='one type, or two with an arrow: "int8 -> int16"; known: ' + ", ".join(known),
        )
    return DType(words[0]), DType(words[-1])


def _form(entry: dict[str, object]) -> str:
    found = _string(entry, "form") if "form" in entry else ""
    if found not in ("", "uint8"):
        raise TargetError(f"form '{found}' is unknown", hint='"uint8", or none')
    return found


def _packing(entry: dict[str, object]) -> str:
    return _string(entry, "packing") if "packing" in entry else NO_PACKING


def _call(entry: dict[str, object]) -> tuple[Argument, ...]:
    names = [name.strip() for name in _string(entry, "call").split(",")]
    for name in names:
        if name not in list(Argument):
            raise TargetError(f"'call': argument '{name}' is unknown", hint=did_you_mean(name, Argument))
    return tuple(map(Argument, names))


def _choice(entry: dict[str, object], key: str, known: Sequence[str], default: str) -> str:
    value = _string(entry, key) if key in entry else default
    if value not in known:
        raise TargetError(f"{key} '{value}' is unknown", hint="known: " + ", ".join(known))
    return value


def _expression(entry: dict[str, object], key: str) -> str:
    text = _string(entry, key)
    try:
        check(text, _SEEN.get(key, _VARIABLES))
    except TargetError as error:
        raise TargetError(f"'{key}': {error.text}", hint=error.hints) from None
    return text


def _string(entry: dict[str, object], key: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value:
        raise TargetError(f"'{key}' must be a string that is not empty, not {value!r}")
    return value


def _optional(entry: dict[str, object], key: str) -> tuple[str, ...]:
    return tuple(_strings(entry, key)) if key in entry else ()


def _strings(entry: dict[str, object], key: str) -> list[str]:
    value = entry[key]
    items: list[object] = value if isinstance(value, list) else [value]
    values = [item for item in items if isinstance(item, str) and item]
    if not values or len(values) != len(items):
        raise TargetError(f"'{key}' must be a string or a list of strings, not {value!r}")
    return values
