"""What an answer says of a board that nothing ran on: the estimate, what is loaded, and the board's note."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import count

if TYPE_CHECKING:
    from buildtool.schema.boards import BoardFacts, Estimate, Loading

WIDTH = 110  # columns


def lines(answer: BoardFacts) -> list[str]:
    """Nothing for boards that are emulated or real."""
    return [*_time(answer["estimate"]), *_loads(answer["loading"]), *note_lines(answer["note"])]


def _time(estimate: Estimate | None) -> list[str]:
    if not estimate:
        return []
    rates = f"{estimate['macs_per_second'] / 1e9:.2f} GMAC/s: {estimate['source']}"
    if estimate["bytes_per_second"]:
        rates += f"; weights come at {estimate['bytes_per_second'] / 1e6:.0f} MB/s"
    return [
        f"estimated time: {1e3 * estimate['total_seconds']:.1f} ms: computing "
        f"{1e3 * estimate['compute_seconds']:.1f} ms, loading weights "
        f"{1e3 * estimate['load_seconds']:.1f} ms, in part at once",
        f"  ({rates})",
    ]


def _loads(loads: Loading | None) -> list[str]:
    if not loads:
        return []
    found = [
        f"weights are loaded: {count(loads['bytes'], 'byte')} of {loads['operators']} operators, "
        f"{loads['ahead']} of them ahead, {loads['in_slices']} in slices"
    ]
    if loads["again"]:
        found.append(
            f"  those of {loads['again']} come again and again while their region runs: "
            f"{count(loads['again_bytes'], 'byte')} more"
        )
    if loads["bind"]:
        found.append(f"  their buffers bind: all else takes {count(loads['fullest_without'], 'byte')}")
    return found


def note_lines(note: str) -> list[str]:
    """A board's note, if it has one."""
    return wrap(f"note: {note}", WIDTH, subsequent_indent="  ") if note else []
