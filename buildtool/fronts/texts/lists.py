"""Lists of what there is: operators and their kernels, boards, networks."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import Cell, table

if TYPE_CHECKING:
    from buildtool.schema.boards import BoardsAnswer, OpsAnswer, TfliteOperator, ZooAnswer


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
    titles = [
        "board",
        "core",
        "arena memory bytes",
        "weights memory bytes",
        "emulator",
        "toolchains",
        "title",
    ]
    rows: list[list[Cell]] = [
        [
            board["name"],
            board["core"],
            board["arena_memory_bytes"],
            board["weights_memory_bytes"],
            board["emulator"] or "none",
            ", ".join(board["toolchains"]),
            board["title"],
        ]
        for board in answer["boards"]
    ]
    return table(titles, rows)


def zoo(answer: ZooAnswer) -> str:
    """The networks that can be made by name."""
    return "\n".join(network["description"] for network in answer["networks"])
