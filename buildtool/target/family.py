"""Reads kernel families: folders with a catalogue.toml.

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
    let.quads = "ceil_div(cout, 4)"
    cost = "20 * outputs + 8 * oh * ow * quads * cin"

The keys are defined by the fields of `KernelVariant`, `Routine`, `Costs`, `Layout` and `Catalogue`, from
which docs/reference/target-reference.md is made. `let` names expressions: in a kernel's entry for its own
formulas, in the table [let] for the whole file. The reader replaces the names by the expressions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import keyword
import re
from collections import ChainMap, Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from buildtool.base.errors import TargetError, did_you_mean
from buildtool.base.expression import FUNCTIONS, check
from buildtool.base.plain import Key, Kind, Mismatch, Table, a_table, slots, values_of
from buildtool.base.toml import add_place, read_toml
from buildtool.target import readers
from buildtool.target.readers import Formulas, Headers, Stated
from buildtool.target.types import (
    COST,
    NO_PACKING,
    Argument,
    Costs,
    Formula,
    KernelFamily,
    KernelVariant,
    Layout,
    Routine,
)

CATALOGUE, PACKER = "catalogue.toml", "packing.py"
WHAT = "kernel catalogue"
_TAKEN = frozenset({*COST.sees, *FUNCTIONS, *keyword.kwlist})
LET = Key("Names for expressions that several formulas use. An expression may use the names before it.")
Entry = TypeVar("Entry", KernelVariant, Routine)
Let = Annotated[Mapping[str, str], Kind("expressions by names", readers.formulas)]


def _tables(value: object, key: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise Mismatch(f"'{key}' must be an array of tables: [[{key}]]", at=key)
    return value


def _layouts(value: object, key: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise Mismatch(f"'{key}' must be tables: [{key}.NAME]", at=key)
    return value


@dataclass(frozen=True)
class Catalogue:
    """The content of a family's catalogue.toml. Its kernels do not have the layouts of their constants yet
    (see `resolve_packings`).

    `names` maps a kernel's name to the expressions that [let] and the kernel's own `let` define.
    """

    family: KernelFamily
    headers: Annotated[
        Headers, Key("Headers of the folder, or of kernels/include, that declare the symbols.")
    ] = ()
    uses: Annotated[
        tuple[str, ...],
        Kind("list of families", readers.words),
        Key("Other families whose sources and packings this one needs."),
    ] = ()
    let: Annotated[Let, LET] = field(default_factory=dict)
    costs: Annotated[
        Stated, Key("The costs of a call outside its kernel.", "those of the core's next family")
    ] = field(default_factory=dict)
    portable: Annotated[
        Formulas,
        Key("The costs of kernels of portable families on this core, in place of their own formulas."),
    ] = field(default_factory=dict)
    packings: Annotated[
        Mapping[str, Layout],
        Kind("tables by name", _layouts),
        Key("Layouts of constants, in which the folder's packing.py packs them.", name="packing"),
    ] = field(default_factory=dict)
    kernels: Annotated[
        tuple[KernelVariant, ...],
        Kind("array of tables", _tables),
        Key("The kernels. Earlier ones are preferred to later ones.", name="kernel"),
    ] = ()
    routines: Annotated[
        tuple[Routine, ...],
        Kind("array of tables", _tables),
        Key("Functions that emitted code calls in addition to kernels.", name="routine"),
    ] = ()
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def load_family(folder: Path) -> Catalogue:
    """Returns the catalogue in a family's folder. Raises TargetError with file and key if it has a
    mistake.
    """
    path = folder / CATALOGUE
    table = read_toml(path, WHAT)
    with mistake(path):
        return _Reader(KernelFamily(folder.name, folder)).catalogue(table)


def resolve_packings(catalogue: Catalogue, others: Sequence[Catalogue] = ()) -> tuple[KernelVariant, ...]:
    """Returns the family's kernels with the layouts of their constants. A layout comes from the family
    itself, or from the first of the catalogues `others` that has it. Raises TargetError for an unknown
    packing.
    """
    layouts = ChainMap(*(dict(each.packings) for each in (catalogue, *others)))

    def with_layout(variant: KernelVariant) -> KernelVariant:
        name = variant.packing
        if name == NO_PACKING:
            return variant
        if name not in layouts:
            raise TargetError(f"packing '{name}' is unknown", hint=did_you_mean(name, layouts))
        if variant.slices != "False" and (layouts[name].channel_factors, layouts[name].channel_weights) == (
            "0",
            "0",
        ):
            hint = f"write channel_factors and channel_weights into [packing.{name}]"
            what = f"packing '{name}' cannot be cut into channels, which 'slices' needs"
            raise TargetError(what, hint=hint)
        return dataclasses.replace(variant, **vars(layouts[name]))

    kernels = []
    for variant in catalogue.kernels:
        with mistake(catalogue.family.folder / CATALOGUE, variant.name):
            kernels.append(with_layout(variant))
    return tuple(kernels)


@contextlib.contextmanager
def mistake(path: Path, operator: object = "") -> Iterator[None]:
    """A context that adds the file `path` to errors about a catalogue, and makes them TargetErrors.

    `operator` is the name of the entry that the errors are about ("": the whole file).
    """
    try:
        yield
    except Mismatch as error:
        what = error.what
        if error.key:
            key = error.key if what.endswith("is unknown") else f"'{error.key}'"
            what = f"{key}{': ' if what.startswith('expression') else ' '}{what}"
        raise TargetError(what, path=str(path), operator=str(operator), hint=error.hint) from None
    except TargetError as error:
        raise error.at(path=str(path), operator=str(operator)) from None


@contextlib.contextmanager
def mistake_with_place(path: Path) -> Iterator[None]:
    """A context that turns a Mismatch into a TargetError with file, key and line. Each key must appear once
    in the file.
    """
    try:
        yield
    except Mismatch as error:
        mismatch = TargetError(error.what, path=str(path), operator=error.at, hint=error.hint)
        raise add_place(mismatch, error.at) from None


class _Reader:
    """Reads the tables of one catalogue.toml."""

    def __init__(self, family: KernelFamily) -> None:
        self.family, self.path = family, family.folder / CATALOGUE
        self.headers: tuple[str, ...] = ()
        self.names: Mapping[str, str] = {}
        self.own_names: dict[str, Mapping[str, str]] = {}  # by kernel

    def catalogue(self, table: dict[str, Any]) -> Catalogue:
        """Returns the catalogue that the file's top-level table describes."""
        values = values_of(table, Catalogue)
        self.headers = values.get("headers", ())
        self.names = define_names(values.get("let", {}))
        kernels = tuple(self.each(values.get("kernels", ()), "kernel", "name", self.variants))
        values |= {
            "kernels": kernels,
            "routines": tuple(self.each(values.get("routines", ()), "routine", "symbol", self.routines)),
            "packings": self.packings(values.get("packings", {})),
        }
        for name, count in Counter((variant.op, variant.name) for variant in kernels).items():
            if count > 1:
                raise TargetError(f"kernel '{name[1]}' appears twice for {name[0]}")
        portable = {}
        for kernel, formula in values.get("portable", {}).items():
            with mistake(self.path, f"portable.{kernel}"):
                portable[kernel] = formula_of(formula, "cost", self.names, COST.sees)
        values |= {"portable": portable, "costs": costs_of(table.get("costs", {}), self.path, self.names)}
        return Catalogue(self.family, **values, names=self.own_names)

    def each(
        self, entries: Iterable[Table], kind: str, label: str, read: Callable[[Table], list[Entry]]
    ) -> Iterator[Entry]:
        """Yields what `read` returns for each table of an array. Errors name the entry by its key `label`, or
        by `kind` and index.
        """
        for i, entry in enumerate(entries):
            with mistake(self.path, entry.get(label, f"{kind}[{i}]")):
                yield from read(entry)

    def packings(self, tables: Mapping[str, Table]) -> dict[str, Layout]:
        """Returns the layouts of constants by name, read from the tables [packing.NAME]."""
        packings = {}
        for name, entry in tables.items():
            with mistake(self.path, f"packing.{name}"):
                layout = values_of(_in_lines(entry), Layout)
                if ("channel_factors" in entry) != ("channel_weights" in entry):
                    raise TargetError("needs both 'channel_factors' and 'channel_weights', or neither")
                layout |= expand_formulas(layout, Layout, self.names)
                packings[name] = Layout(packer=self.family.folder / PACKER, **layout)
        return packings

    def variants(self, entry: Table) -> list[KernelVariant]:
        """Returns a kernel for each operator kind that one [[kernel]] table serves."""
        values = self.entry(entry, KernelVariant)
        call, question, slices = values["call"], values.get("asks", ""), values.get("slices", "False")
        names = define_names(readers.formulas(entry.get("let", {}), "let"), self.names)
        values |= expand_formulas(values, KernelVariant, names)
        if question and "scratch" in entry:
            raise TargetError("a kernel cannot have both 'scratch' and 'asks'")
        if slices != "False" and (Argument.WINDOW not in call or question):
            raise TargetError("'slices' needs a kernel that computes windows, with a formula of scratch")
        self.own_names[values["name"]] = names
        return [KernelVariant(**values | {"op": kind}) for kind in values["op"]]

    def routines(self, entry: Table) -> list[Routine]:
        """Returns a routine for each operator kind that one [[routine]] table serves."""
        values = self.entry(entry, Routine)
        packs = values.get("packing", NO_PACKING) != NO_PACKING
        if (Argument.CONSTANTS in values["call"]) != packs:
            raise TargetError("a routine needs 'constants' in its 'call' and a 'packing', or neither of them")
        return [Routine(**values | {"op": kind}) for kind in values.get("op", ("",))]

    def entry(self, entry: Table, kind: type) -> dict[str, Any]:
        """Returns the fields of a [[kernel]] or [[routine]] table, with sources as "family/file" and default
        headers. `kind` is the dataclass.
        """
        values = values_of(_in_lines(entry), kind, also=("let",) if kind is KernelVariant else ())
        names = values.get("sources", (f"{values['symbol']}.c",))
        sources = (name if "/" in name else f"{self.family.name}/{name}" for name in names)
        return {"headers": self.headers} | values | {"sources": tuple(sources)}


def define_names(stated: Mapping[str, str], outer: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the expressions of the names that a `let` defines, and those of `outer`.

    An expression may use names that are defined before it. Raises Mismatch for a name that already has a
    meaning in formulas, such as a variable or a function.
    """
    names = dict(outer or {})
    for name, expression in stated.items():
        if not name.isidentifier() or name in _TAKEN:
            what = f"'{name}' is not a name for an expression"
            raise Mismatch(what, at="let", hint="use a word that formulas do not use otherwise")
        text = formula_of(expression, f"let.{name}", names, COST.sees)
        names[name] = text if check(text, COST.sees) else f"({text})"
    return names


def formula_of(text: str, key: str, names: Mapping[str, str], sees: Collection[str]) -> str:
    """Returns a formula with its names replaced by their expressions. `key` is its key, for errors.

    Raises Mismatch if the formula is malformed, or uses a variable that is not in `sees`.
    """
    try:
        check(text, frozenset({*sees, *names}))
        expanded = re.sub(r"\b[A-Za-z_]\w*\b", lambda word: names.get(word[0], word[0]), text)
        if expanded != text:
            check(expanded, frozenset(sees))
    except TargetError as error:
        raise Mismatch(error.text, key, error.hint) from None
    return expanded


def expand_formulas(
    values: Mapping[str, Any], kind: type, names: Mapping[str, str], where: str = ""
) -> dict[str, str]:
    """Returns those fields of a table that are formulas, each expanded by `formula_of`. `kind` is the table's
    dataclass.
    """
    return {
        slot.field: formula_of(values[slot.field], where + slot.name, names, slot.kind.sees)
        for slot in slots(kind)
        if isinstance(slot.kind, Formula) and slot.field in values
    }


def costs_of(table: object, path: Path, names: Mapping[str, str]) -> dict[str, str]:
    """Returns the formulas in the table [costs] of a file. Raises TargetError with file and key if it has a
    mistake.
    """
    with mistake_with_place(path):
        values = values_of(_in_lines(a_table(table, "costs")), Costs, "costs")
        return expand_formulas(values, Costs, names, "costs.")


def _in_lines(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the table with the line breaks in its texts replaced by blanks."""
    return {key: " ".join(v.split()) if isinstance(v, str) else v for key, v in entry.items()}
