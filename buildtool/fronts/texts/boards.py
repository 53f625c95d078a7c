"""Operators and their kernels, boards, networks as lists; and what is said of a board that nothing ran on."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from textwrap import wrap
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import WIDTH, Cell, count, listing, table

if TYPE_CHECKING:
    from buildtool.schema.boards import (
        BoardFacts,
        BoardsAnswer,
        Estimate,
        Loading,
        OpsAnswer,
        TfliteOperator,
        ZooAnswer,
    )


def ops(answer: OpsAnswer) -> str:
    """TFLite's operators by data type, then every one that is read with its kernels, best first.

    Boards with the same kernels throughout are one group.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for board in answer["boards"]:
        kernels = tuple(row["kernels"][board] for row in answer["operators"])
        groups.setdefault(kernels, []).append(board)
    rows: list[list[Cell]] = []
    for i, row in enumerate(answer["operators"]):
        found: dict[str, list[str]] = {}
        for letter, column in zip(ascii_uppercase, groups, strict=False):
            found.setdefault(column[i] or "not supported", []).append(letter)
        own: list[Cell] = [row["operator"], *([] if row["count"] is None else [row["count"]])]
        for kernels_of, letters in found.items():
            where = "all" if len(letters) == len(groups) else " ".join(letters)
            rows.append([*own, where, kernels_of])
            own = ["", *([] if row["count"] is None else [None])]
    counted = any(row["count"] is not None for row in answer["operators"])
    titles = ["operator", *(["number"] if counted else []), "boards", "kernels"]
    named = zip(ascii_uppercase, map(", ".join, groups.values()), strict=False)
    legend = table(["", "boards"], list(named))
    listed = f"{_by_type(answer['tflite'])}\n\n" if answer["tflite"] else ""
    return f"{listed}{table(titles, rows)}\n\n{legend}"


def _by_type(rows: Sequence[TfliteOperator]) -> str:
    """TFLite's operators by data type: read, or why not; a reason that an earlier type has stands once."""
    lines: list[list[Cell]] = []
    for row in rows:
        cells: list[Cell] = [row["operator"]]
        seen = {""}
        for reason in row["refused"].values():
            cells.append("read" if not reason else "no" if reason in seen else reason)
            seen.add(reason)
        lines.append(cells)
    return table(["TFLite's operator", *rows[0]["refused"]], lines)


def boards(answer: BoardsAnswer) -> str:
    """The boards with the memories of the arena and of the weights."""
    return listing(
        answer["boards"],
        {
            "board": lambda board: board["name"],
            "core": lambda board: board["core"],
            "arena memory bytes": lambda board: board["arena_memory_bytes"],
            "weights memory bytes": lambda board: board["weights_memory_bytes"],
            "emulator": lambda board: board["emulator"] or "none",
            "toolchains": lambda board: ", ".join(board["toolchains"]),
            "title": lambda board: board["title"],
        },
    )


def zoo(answer: ZooAnswer) -> str:
    """The networks that can be made by name."""
    return "\n".join(network["description"] for network in answer["networks"])


def board_lines(answer: BoardFacts) -> list[str]:
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
