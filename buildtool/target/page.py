"""The reference page of board files and catalogues: `python -m buildtool.target.page`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from buildtool.base.plain import BESIDE, Key, Slot, Word, slots, words_of
from buildtool.target.board_file import EXTENDS
from buildtool.target.cycle_costs import FOLDER, CycleCosts
from buildtool.target.family import LET, Catalogue, Layout
from buildtool.target.geometry import THREADS, VARIABLES, VECTOR_BITS
from buildtool.target.plugin import INTERFACE
from buildtool.target.speeds import Cache, Pipeline
from buildtool.target.types import (
    Argument,
    Board,
    Chip,
    Contract,
    Core,
    Costs,
    Emulator,
    Estimate,
    FlashImage,
    KernelVariant,
    Mcuboot,
    Memory,
    ProbeProgram,
    Published,
    PublishedPart,
    Role,
    Routine,
    Uart,
    VectorUnit,
    Windows,
)

_HEAD = """\
# Board files and kernel catalogues

This page is made from the types by which buildtool reads these files (`buildtool/target/types.py` and
`family.py`): `python -m buildtool.target.page > docs/target-reference.md`. A key that is not here is
refused. It describes interface {interface} of the plugins. [new-boards.md](new-boards.md) shows how a board,
a kernel and a plugin come about.

Sizes are bytes, or strings with K, M or G (1024). A formula is an expression over the
[variables](#variables-of-formulas) with numbers, `+ - * / // %`, comparisons, `and`, `or`, `not`,
`x if c else y`, and the functions `min`, `max`, `abs`, `ceil_div(a, b)` and `align(a, to)`. Bytes are rounded
up. A formula may have several lines, and the names of a `let` in it stand for their expressions.
"""
_ROLES = Key("Which memory holds what. A memory may have several roles.", "table")
_SERVER = (
    Key("One of these by its name.", "`openocd` or `pyocd`", name="server"),
    Key("The words that `server` needs.", "list of texts", name="options"),
)
# In the order of the page: how the table is written in a file, what it is about, its keys.
Tables = Sequence[tuple[str, str, Iterable[Slot]]]


def _slot(name: str, key: Key, *, needed: bool = False) -> Slot:
    """A key that no field has."""
    return Slot(name, name, None, None, key, needed)


def _own(kind: type) -> list[Slot]:
    """The keys of a dataclass's table; tables of which several fields are stand there once."""
    found = []
    for slot in slots(kind):
        if slot.name == BESIDE:
            first, *others = slots(slot.hint)
            found += [first._replace(is_needed=False), *others]
        elif "." not in slot.name:
            found.append(slot)
    return found


def board_tables() -> Tables:
    """The tables of a board file."""
    extends = Key("Its keys hold where this file has none.", "a known board, or the path of a board file")
    top, roles = _own(Board), _slot("roles", _ROLES, needed=True)
    at = next(i for i, slot in enumerate(top) if slot.field == "memories") + 1
    within = [s._replace(name=s.name.partition(".")[2]) for s in slots(Board) if s.name.startswith("roles.")]
    programs = [_slot(word, Key(word.meaning, "list of texts")) for word in ProbeProgram]
    return (
        ("", "The file's own keys", [_slot(EXTENDS, extends), *top[:at], roles, *top[at:]]),
        ("[core]", "The processor core", _own(Core)),
        ("[memory.NAME]", "One memory; any number of them", _own(Memory)),
        ("[cache.NAME]", "One cache; any number of them", _own(Cache)),
        ("[pipeline]", "The timing of the core, for estimates of cycles", _own(Pipeline)),
        ("[roles]", "Which memory holds what", within),
        ("[image]", "How firmware and weights lie in flash", _own(FlashImage)),
        ("[image.mcuboot]", "A slot of the boot loader MCUboot", _own(Mcuboot)),
        ("[emulator]", "What runs images", _own(Emulator)),
        (
            "[probe]",
            "How programs reach the board, the preferred one first",
            [*programs, *(_slot(key.name, key) for key in _SERVER)],
        ),
        ("[uart]", "The serial port of test firmware", _own(Uart)),
        ("[chip]", "What the chip needs after a reset", _own(Chip)),
        ("[estimate]", "A board that cannot be measured", _own(Estimate)),
        ("[vector_unit]", "The limits of a vector unit", _own(VectorUnit)),
        ("[published]", "A published profile", _own(Published)),
        ("[[published.part]]", "A line of a published profile", _own(PublishedPart)),
    )


def catalogue_tables() -> Tables:
    """The tables of a kernel catalogue."""
    return (
        ("", "The file's own keys", _own(Catalogue)),
        ("[packing.NAME]", "A layout of constants", _own(Layout)),
        ("[[kernel]]", "A kernel", [*_own(KernelVariant), _slot("let", LET)]),
        ("[[routine]]", "What is called beside kernels", _own(Routine)),
        ("[costs]", "What calls cost beside their kernels", _own(Costs)),
    )


def page() -> str:
    """The page as Markdown."""
    return "\n".join([_HEAD.format(interface=INTERFACE), *_boards(), *_catalogues()]).rstrip() + "\n"


def _boards() -> Iterator[str]:
    yield "## Keys of a board file\n"
    for table in board_tables():
        yield from _keys(*table)


def _catalogues() -> Iterator[str]:
    yield "## Keys of a kernel catalogue\n"
    for table in catalogue_tables():
        yield from _keys(*table)
    yield "## Keys of a file of costs in cycles\n"
    about = "What the family's kernels cost on the cores that LLVM's pipeline model of this name is of"
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
    yield "## Arguments of a call\n"
    yield from _words("argument", _meanings(Argument))
    yield "## Contracts of overlap\n"
    yield from _words("contract", _meanings(Contract))
    yield "## Windows\n"
    yield from _words("windows", _meanings(Windows))
    yield "## Roles of routines\n"
    yield from _words("role", _meanings(Role))


def _meanings(words: type[Word]) -> dict[str, str]:
    return {word: word.meaning for word in words}


def _keys(written: str, about: str, keys: Iterable[Slot]) -> Iterator[str]:
    title = f"### `{written}`\n\n{about}.\n" if written else f"### At the top\n\n{about}.\n"
    yield title
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
