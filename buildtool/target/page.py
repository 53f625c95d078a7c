"""The reference page of board files and catalogues: `python -m buildtool.target.page`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import get_args

from buildtool.base.plain import BESIDE, Key, Kind, Slot, has_names, slots, words_of
from buildtool.target.board_file import EXTENDS
from buildtool.target.cycle_costs import FOLDER, CycleCosts
from buildtool.target.family import LET, Catalogue
from buildtool.target.hardware import Probe, ProbeKey
from buildtool.target.plugin import INTERFACE
from buildtool.target.types import (
    Argument,
    Board,
    Contract,
    Costs,
    KernelVariant,
    Layout,
    Role,
    Routine,
    Windows,
)
from buildtool.target.variables import THREADS, VARIABLES, VECTOR_BITS

_HEAD = """\
# Board files and kernel catalogues

This page is made from the types by which buildtool reads these files (`buildtool/target/types.py` and
`family.py`): `python -m buildtool.target.page > docs/target-reference.md`. A key that is not here is
refused. It describes interface {interface} of the plugins. [new-boards.md](new-boards.md) shows how a board,
a kernel and a plugin come about.

Sizes are bytes, or strings with K (1,024 bytes), M or G. A formula is an expression over the
[variables](#variables-of-formulas) with numbers, `+ - * / // %`, comparisons, `and`, `or`, `not`,
`x if c else y`, and the functions `min`, `max`, `abs`, `ceil_div(a, b)` and `align(a, to)`. Bytes are rounded
up. A formula may have several lines, and the names of a `let` in it stand for their expressions.
"""
_ROLES = Key("Which memory holds what. A memory may have several roles.")
_BASE = Key("Its keys hold where this file has none.")
TOP = "The file's own keys."
Table = tuple[str, str, list[Slot]]  # how it is written in a file, what it is about, its keys


def _slot(name: str, key: Key, words: str, *, needed: bool = False) -> Slot:
    """A key that no field has."""
    return Slot(name, name, None, None, key, Kind(words), needed)


def _own(kind: type) -> list[Slot]:
    """The keys of a dataclass's table; of those that stand in a table of their own the table, once."""
    found = list[Slot]()
    for slot in slots(kind):
        if slot.name == BESIDE:
            first, *others = slots(slot.hint)
            found += [first._replace(is_needed=False), *others]
        elif "." not in slot.name:
            found.append(slot)
        elif found[-1].name != "roles":
            found.append(_slot("roles", _ROLES, "table", needed=True))
    return found


def _about(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


def _inner(slot: Slot, before: str) -> Iterator[Table]:
    """The tables of a field that is made of dataclasses."""
    kind, name = (get_args(slot.hint) or (slot.hint,))[0], before + slot.name
    if slot.name == "roles":
        named = [s._replace(name=s.name.partition(".")[2]) for s in slots(Board) if "." in s.name]
        yield f"[{name}]", _ROLES.meaning.partition(".")[0] + ".", named
    elif kind is Probe:
        yield f"[{name}]", _about(kind), [_slot(word, Key(word.meaning), word.words) for word in ProbeKey]
    elif is_dataclass(kind):
        assert isinstance(kind, type)
        by_name = kind is not slot.hint and not has_names(kind)
        written = f"[{name}.NAME]" if by_name else f"[{name}]" if kind is slot.hint else f"[[{name}]]"
        yield written, _about(kind), _own(kind)
        for inner in _own(kind):
            yield from _inner(inner, f"{name}.")


def board_tables() -> list[Table]:
    """The tables of a board file."""
    extends = _slot(EXTENDS, _BASE, "a known board, or the path of a board file")
    tables = [("", TOP, [extends, *_own(Board)])]
    for slot in _own(Board):
        tables += _inner(slot, "")
    return tables


def catalogue_tables() -> list[Table]:
    """The tables of a kernel catalogue."""
    return [
        ("", TOP, _own(Catalogue)),
        ("[packing.NAME]", "A layout of constants.", _own(Layout)),
        ("[[kernel]]", "A kernel.", [*_own(KernelVariant), _slot("let", LET, "expressions by names")]),
        ("[[routine]]", "What is called beside kernels.", _own(Routine)),
        ("[costs]", "What calls cost beside their kernels.", _own(Costs)),
    ]


def page() -> str:
    """The page as Markdown."""
    return "\n".join([_HEAD.format(interface=INTERFACE), *_sections()]).rstrip() + "\n"


def _sections() -> Iterator[str]:
    yield "## Keys of a board file\n"
    for table in board_tables():
        yield from _keys(*table)
    yield "## Keys of a kernel catalogue\n"
    for table in catalogue_tables():
        yield from _keys(*table)
    yield "## Keys of a file of costs in cycles\n"
    about = "What the family's kernels cost on the cores that LLVM's pipeline model of this name is of."
    yield from _keys(f"{FOLDER}/MODEL.toml", about, _own(CycleCosts))
    yield "## Variables of formulas\n"
    yield "Of an operator, 0 or 1 where one has no meaning. A dense layer's vectors are columns of a row.\n"
    yield from _words("variable", VARIABLES)
    yield (
        f"`cost` also sees `{VECTOR_BITS}`, the bits of the core's vector registers (128 if it says none).\n"
    )
    yield (
        f"`when`, `scratch` and `cost` of kernels also see `{THREADS}`: how many threads "
        "share a call ([threads.md](threads.md)).\n"
    )
    kinds = {"Arguments of a call": Argument, "Contracts of overlap": Contract}
    for title, kind in {**kinds, "Windows": Windows, "Roles of routines": Role}.items():
        yield f"## {title}\n"
        head = "windows" if kind is Windows else kind.__name__.lower()
        yield from _words(head, {word: word.meaning for word in kind})


def _keys(written: str, about: str, keys: Iterable[Slot]) -> Iterator[str]:
    yield f"### {f'`{written}`' if written else 'At the top'}\n\n{about}\n"
    yield "| key | value | without it | what it means |\n| --- | --- | --- | --- |"
    for slot in keys:
        value, without = words_of(slot)
        yield f"| `{slot.name}` | {value} | {without or 'an error'} | {slot.key.meaning} |"
    yield ""


def _words(head: str, meanings: Mapping[str, str]) -> Iterator[str]:
    yield f"| {head} | what it is |\n| --- | --- |"
    for word, meaning in meanings.items():
        yield f"| `{word}` | {meaning} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(page())
