"""The reference page of board files and catalogues: `python -m buildtool.target.page`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from buildtool.target import board_keys, catalogue_keys
from buildtool.target.keys import NEEDED, Key
from buildtool.target.plugin import INTERFACE

Word = TypeVar("Word", bound=str)
_HEAD = """\
# Board files and kernel catalogues

This page is made from the lists by which buildtool reads these files (`buildtool/target/board_keys.py` and
`catalogue_keys.py`): `python -m buildtool.target.page > docs/target-reference.md`. A key that is not here is
refused. It describes interface {interface} of the plugins. [new-boards.md](new-boards.md) shows how a board,
a kernel and a plugin come about.

Sizes are bytes, or strings with K, M or G (1024). A formula is an expression over the
[variables](#variables-of-formulas) with numbers, `+ - * / // %`, comparisons, `and`, `or`, `not`,
`x if c else y`, and the functions `min`, `max`, `abs`, `ceil_div(a, b)` and `align(a, to)`. Bytes are rounded
up.
"""


def page() -> str:
    """The page as Markdown."""
    return "\n".join([_HEAD.format(interface=INTERFACE), *_boards(), *_catalogues()]).rstrip() + "\n"


def _boards() -> Iterator[str]:
    yield "## Keys of a board file\n"
    for written, about, keys in board_keys.TABLES:
        yield from _keys(written, about, keys)


def _catalogues() -> Iterator[str]:
    yield "## Keys of a kernel catalogue\n"
    for written, about, keys in catalogue_keys.TABLES:
        yield from _keys(written, about, keys)
    yield "## Keys of a file of costs in cycles\n"
    yield from _keys(
        "costs/MODEL.toml",
        "What the family's kernels cost on the cores that LLVM's pipeline model of this name is of",
        catalogue_keys.CYCLES,
    )
    yield "## Variables of formulas\n"
    yield "Of an operator, 0 or 1 where one has no meaning. A dense layer's vectors are columns of a row.\n"
    yield from _words("variable", catalogue_keys.VARIABLES)
    bits = catalogue_keys.VECTOR_BITS
    yield f"`cost` also sees `{bits}`, the bits of the core's vector registers (128 if it says none).\n"
    yield (
        f"`when`, `scratch` and `cost` of kernels also see `{catalogue_keys.THREADS}`: how many threads "
        "share a call ([threads.md](threads.md)).\n"
    )
    yield "## Arguments of a call\n"
    yield from _words("argument", catalogue_keys.ARGUMENTS)
    yield "## Contracts of overlap\n"
    yield from _words("contract", catalogue_keys.CONTRACTS)
    yield "## Windows\n"
    yield from _words("windows", catalogue_keys.WINDOWS)
    yield "## Roles of routines\n"
    yield from _words("role", catalogue_keys.ROLES)


def _keys(written: str, about: str, keys: Sequence[Key]) -> Iterator[str]:
    title = f"### `{written}`\n\n{about}.\n" if written else f"### At the top\n\n{about}.\n"
    yield title
    yield "| key | value | without it | what it means |\n| --- | --- | --- | --- |"
    for key in keys:
        without = "an error" if key.default == NEEDED else key.default
        yield f"| `{key.name}` | {key.value} | {without} | {key.meaning} |"
    yield ""


def _words(head: str, meanings: Mapping[Word, str]) -> Iterator[str]:
    yield f"| {head} | what it is |\n| --- | --- |"
    for word, meaning in meanings.items():
        yield f"| `{word}` | {meaning} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(page())
