"""Warns about a board file that extends another chip's board and so inherits wrong facts.

A board that extends another one has all keys of that board that it does not state itself: also the clock, the
start-up code, the serial port and the tools that flash it. If its core or addresses are different, these
facts are probably wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from buildtool.base.plain import Table
from buildtool.target.board_file import WITHOUT, resolve

FACTS = ("clock_hz", "chip", "uart", "probe")  # keys that belong to a chip or its board


def kept_facts(files: Sequence[tuple[Path, Table]]) -> str:
    """Returns a sentence about inherited facts that are probably wrong, "" if there are none.

    `files` is from `board_file.chain`: a board's file, and the files that it extends. A file is for another
    chip than the board that it extends if it changes the base address of one of that board's memories. If
    that board is a product (it has [chip] or [probe]), a change of a memory's size or of the core also shows
    another chip.
    """
    changed = [at for at in range(len(files) - 1) if _is_another_chip(files[at][1], resolve(files[at + 1 :]))]
    if not changed:
        return ""
    table, kept = resolve(files), []
    for fact in FACTS:
        stated = next((at for at, (_, own) in enumerate(files) if _states(own, fact)), None)
        if fact in table and stated is not None and stated > changed[0]:
            kept.append((fact, files[stated][0].stem))
    if not kept:
        return ""
    facts = ", ".join(f"{_spell(fact, table[fact])} of {name}" for fact, name in kept)
    names = ", ".join(f'"{fact}"' for fact, _ in kept)
    kept_text = f"memories or core are another chip's, but kept are {facts}"
    return f"{kept_text}: state them, or write without = [{names}]"


def _states(own: Table, fact: str) -> bool:
    left_out = own.get(WITHOUT, [])
    return fact in own or (isinstance(left_out, list) and fact in left_out)


def _is_another_chip(own: Table, base: Table) -> bool:
    """Whether a board file is for another chip than the board that it extends, as `kept_facts` describes.

    `own` is the file's own table, and `base` the table of that board.
    """
    is_product = "chip" in base or "probe" in base
    if is_product and _differs(own.get("core"), base.get("core"), ("name", "isa", "cflags")):
        return True
    own_memories, memories = own.get("memory"), base.get("memory")
    if not isinstance(own_memories, dict) or not isinstance(memories, dict):
        return False
    keys = ("base", "size") if is_product else ("base",)
    return any(
        _differs(own_memories[name], memories[name], keys) for name in own_memories if name in memories
    )


def _differs(own: object, base: object, keys: Sequence[str]) -> bool:
    if not isinstance(own, Mapping) or not isinstance(base, Mapping):
        return False
    return any(key in own and own[key] != base.get(key) for key in keys)


def _spell(fact: str, value: object) -> str:
    """Returns a fact with its value as a short text, such as "clock_hz = 64000000"."""
    if not isinstance(value, Mapping):
        return f"{fact} = {value}"
    what = value.get("start") or value.get("driver")
    return f"[{fact}] {what}" if isinstance(what, str) else f"[{fact}]"
