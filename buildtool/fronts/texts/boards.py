"""Lists of operators, boards and networks as text, and the lines that answers have about a board."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase
from textwrap import wrap
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import WIDTH, Cell, count, listing, table

if TYPE_CHECKING:
    from buildtool.schema.boards import (
        BoardFacts,
        BoardsAnswer,
        CheckAnswer,
        OpsAnswer,
        ZooAnswer,
    )


def ops(answer: OpsAnswer) -> str:
    """Returns tables of TFLite's operators by data type, and of supported operators with their kernels.

    The best kernel comes first. Boards that have the same kernels for all operators form a group.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for board in answer["boards"]:
        kernels = tuple(row["kernels"][board] for row in answer["operators"])
        groups.setdefault(kernels, []).append(board)
    rows: list[list[Cell]] = []
    for i, row in enumerate(answer["operators"]):
        letters_of: dict[str, list[str]] = {}
        for letter, column in zip(ascii_uppercase, groups, strict=False):
            letters_of.setdefault(column[i] or "not supported", []).append(letter)
        first: list[Cell] = [row["operator"], *([] if row["count"] is None else [row["count"]])]
        for names, letters in letters_of.items():
            where = "all" if len(letters) == len(groups) else " ".join(letters)
            rows.append([*first, where, names])
            first = ["", *([] if row["count"] is None else [None])]
    counted = any(row["count"] is not None for row in answer["operators"])
    titles = ["operator", *(["number"] if counted else []), "boards", "kernels"]
    legend = table(["", "boards"], list(zip(ascii_uppercase, map(", ".join, groups.values()), strict=False)))
    by_type_text = []
    if by_type := answer["tflite"]:
        lines: list[list[Cell]] = []
        for operator in by_type:
            cells: list[Cell] = [operator["operator"]]
            for reason in operator["refused"].values():  # the reason of an earlier type is not repeated
                cells.append("read" if not reason else "no" if reason in cells else reason)
            lines.append(cells)
        by_type_text = [table(["TFLite's operator", *by_type[0]["refused"]], lines)]
    return "\n\n".join([*by_type_text, table(titles, rows), legend])


def boards(answer: BoardsAnswer) -> str:
    """Returns the boards with the memories for the arena and the weights."""
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
    """Returns the networks of the zoo."""
    return "\n".join(network["description"] for network in answer["networks"])


def board_lines(answer: BoardFacts) -> Iterator[str]:
    """Yields lines about the estimated time, the loading of weights and the board's note, if present."""
    if estimate := answer["estimate"]:
        rates = f"{estimate['macs_per_second'] / 1e9:.2f} GMAC/s: {estimate['source']}"
        if estimate["bytes_per_second"]:
            rates += f"; weights are loaded at {estimate['bytes_per_second'] / 1e6:.0f} MB/s"
        yield (
            f"estimated time: {1e3 * estimate['total_seconds']:.1f} ms: computing "
            f"{1e3 * estimate['compute_seconds']:.1f} ms, loading weights "
            f"{1e3 * estimate['load_seconds']:.1f} ms, partly at the same time"
        )
        yield f"  ({rates})"
    if loads := answer["loading"]:
        yield (
            f"weights are loaded: {count(loads['bytes'], 'byte')} of {loads['operators']} operators, "
            f"{loads['early']} of them ahead, {loads['in_slices']} in slices"
        )
        if loads["again"]:
            yield (
                f"  those of {loads['again']} are loaded again and again while their region runs: "
                f"{count(loads['again_bytes'], 'byte')} more"
            )
        if loads["enlarge_arena"]:
            yield f"  their buffers bind: everything else takes {count(loads['fullest_without'], 'byte')}"
    yield from note_lines(answer["note"])


def note_lines(note: str) -> list[str]:
    """Returns the lines of a board's note, or [] if it is ""."""
    return wrap(f"note: {note}", WIDTH, subsequent_indent="  ") if note else []


def check_text(answer: CheckAnswer, written: str) -> str:
    """Returns a table of the checked kernels, and for each failure how to reproduce it.

    `written` is the folder with the networks that failed ("": they are not written).
    """
    head = f"plugin {answer['plugin']}, interface {answer['interface']}, on {', '.join(answer['boards'])}"
    titles = ["board", "kernel", "operator", "networks", "in little memory", "verdict"]
    rows: list[list[Cell]] = []
    for row in answer["kernels"]:
        verdict = "FAILED" if row["failed"] is not None else "equal" if row["reached"] else "not reached"
        rows.append([row["board"], row["kernel"], row["operator"], row["cases"], row["in_networks"], verdict])
    lines = [head, "", table(titles, rows)]
    for row in answer["kernels"]:
        failed = row["failed"]
        if failed is not None:
            file = f"{written}/{failed['name']}" if written else failed["name"]
            lines += [
                "",
                f"{row['kernel']} on {row['board']}: {failed['text']}",
                f"  buildtool validate {file} --board {row['board']} --tensors {failed['options']}",
            ]
    failures = sum(row["failed"] is not None for row in answer["kernels"])
    idle = sum(not row["reached"] for row in answer["kernels"])
    equal = count(len(answer["kernels"]) - failures - idle, "kernel")
    totals = [f"{equal} EQUAL to buildtool's own executor, to the bit"]
    totals += [f"{failures} FAILED"] if failures else []
    totals += [f"{idle} not reached by any random network"] if idle else []
    return "\n".join([*lines, "", ", ".join(totals)])
