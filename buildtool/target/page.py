"""Writes the reference page of board files and catalogues: `python -m buildtool.target.page`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import get_args

from buildtool.base.plain import BESIDE, Key, Kind, Slot, has_names, slots, words_of
from buildtool.target.board_file import EXTENDS, WITHOUT
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
from buildtool.target.variables import SOFT_FLOAT, THREADS, VARIABLES, VECTOR_BITS

_HEAD = """\
# Board files and kernel catalogues

This page is made from the types by which buildtool reads these files (`buildtool/target/types.py` and
`family.py`): `python -m buildtool.target.page > docs/reference/target-reference.md`. Any other key is an
error. The page describes interface {interface} of the plugins. [new-boards.md](../guides/new-boards.md)
shows how to write a board file, a kernel and a plugin.

Sizes are bytes, or strings with K (1,024 bytes), M or G. A formula is an expression over the
[variables](#variables-of-formulas) with numbers, `+ - * / // %`, comparisons, `and`, `or`, `not`,
`x if c else y`, and the functions `min`, `max`, `abs`, `ceil_div(a, b)` and `align(a, to)`. Bytes are rounded
up. A formula may have several lines, and may use the names of a `let`.
"""
_ROLES = Key("Which memory holds what. A memory may have several roles.")
_BASE = Key("Keys that this file does not have are those of this board or core; of a list, later ones win.")
_WITHOUT = Key("Tables and keys of those boards that this one does not have, such as `memory.psram`.", "none")
TOP = "The file's own keys."
Table = tuple[str, str, list[Slot]]  # its heading in a file, a description, its keys


def _make_slot(name: str, key: Key, words: str, *, needed: bool = False) -> Slot:
    """Returns a key for the page that is not a field of a dataclass. `words` describe its value."""
    return Slot(name, name, None, None, key, Kind(words), needed)


def _list_keys(kind: type) -> list[Slot]:
    """Returns the keys of a dataclass's TOML table. Several keys that lie in one inner table appear as that
    table.
    """
    keys = list[Slot]()
    for slot in slots(kind):
        if slot.name == BESIDE:
            first, *others = slots(slot.hint)
            keys += [first._replace(is_needed=False), *others]
        elif "." not in slot.name:
            keys.append(slot)
        elif keys[-1].name != "roles":
            keys.append(_make_slot("roles", _ROLES, "table", needed=True))
    return keys


def _describe(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


def _list_tables(slot: Slot, before: str) -> Iterator[Table]:
    """Yields the table of a key whose type is a dataclass, then the tables inside it. `before` is the dotted
    name of the table around it, with a dot. Nothing for other keys.
    """
    kind, name = (get_args(slot.hint) or (slot.hint,))[0], before + slot.name
    if slot.name == "roles":
        roles = [s._replace(name=s.name.partition(".")[2]) for s in slots(Board) if "." in s.name]
        yield f"[{name}]", _ROLES.meaning.partition(".")[0] + ".", roles
    elif kind is Probe:
        yield (
            f"[{name}]",
            _describe(kind),
            [_make_slot(word, Key(word.meaning), word.words) for word in ProbeKey],
        )
    elif is_dataclass(kind):
        assert isinstance(kind, type)
        by_name = kind is not slot.hint and not has_names(kind)
        heading = f"[{name}.NAME]" if by_name else f"[{name}]" if kind is slot.hint else f"[[{name}]]"
        yield heading, _describe(kind), _list_keys(kind)
        for inner in _list_keys(kind):
            yield from _list_tables(inner, f"{name}.")


def board_tables() -> list[Table]:
    """Returns the tables of a board file."""
    kinds = "a known board, `cores/NAME`, the path of a board file, or a list of them"
    own = [_make_slot(EXTENDS, _BASE, kinds), _make_slot(WITHOUT, _WITHOUT, "list of names")]
    tables = [("", TOP, [*own, *_list_keys(Board)])]
    for slot in _list_keys(Board):
        tables += _list_tables(slot, "")
    return tables


def catalogue_tables() -> list[Table]:
    """Returns the tables of a kernel catalogue."""
    return [
        ("", TOP, _list_keys(Catalogue)),
        ("[packing.NAME]", "A layout of constants.", _list_keys(Layout)),
        (
            "[[kernel]]",
            "A kernel.",
            [*_list_keys(KernelVariant), _make_slot("let", LET, "expressions by names")],
        ),
        ("[[routine]]", "A function that is called in addition to kernels.", _list_keys(Routine)),
        ("[costs]", "The costs of a call outside its kernel.", _list_keys(Costs)),
    ]


def page() -> str:
    """Returns the page as Markdown."""
    return "\n".join([_HEAD.format(interface=INTERFACE), *_sections()]).rstrip() + "\n"


def _sections() -> Iterator[str]:
    yield "## Keys of a board file\n"
    for table in board_tables():
        yield from _format_keys(*table)
    yield "## Keys of a kernel catalogue\n"
    for table in catalogue_tables():
        yield from _format_keys(*table)
    yield "## Keys of a file of costs in cycles\n"
    about = "The costs of the family's kernels on cores with LLVM's pipeline model of this name."
    yield from _format_keys(f"{FOLDER}/MODEL.toml", about, _list_keys(CycleCosts))
    yield "## Variables of formulas\n"
    yield (
        "They describe an operator. A variable without a meaning for the operator is 0 or 1. The vectors of "
        "a dense layer are columns of a row.\n"
    )
    yield from _format_words("variable", VARIABLES)
    yield (
        f"`cost` may also use `{VECTOR_BITS}`, the bits of the core's vector registers (128 if its file has"
        f" none), and `{SOFT_FLOAT}`, which is 1 if the core computes float32 in software, and else 0.\n"
    )
    yield (
        f"`when`, `scratch` and `cost` of kernels may also use `{THREADS}`: the number of threads that "
        "share a call ([threads.md](../internals/threads.md)).\n"
    )
    kinds = {"Arguments of a call": Argument, "Contracts of overlap": Contract}
    for title, kind in {**kinds, "Windows": Windows, "Roles of routines": Role}.items():
        yield f"## {title}\n"
        head = "windows" if kind is Windows else kind.__name__.lower()
        yield from _format_words(head, {word: word.meaning for word in kind})


def _format_keys(heading: str, about: str, keys: Iterable[Slot]) -> Iterator[str]:
    yield f"### {f'`{heading}`' if heading else 'At the top'}\n\n{about}\n"
    yield "| key | value | without it | what it means |\n| --- | --- | --- | --- |"
    for slot in keys:
        value, without = words_of(slot)
        yield f"| `{slot.name}` | {value} | {without or 'an error'} | {slot.key.meaning} |"
    yield ""


def _format_words(head: str, meanings: Mapping[str, str]) -> Iterator[str]:
    yield f"| {head} | what it is |\n| --- | --- |"
    for word, meaning in meanings.items():
        yield f"| `{word}` | {meaning} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(page())
