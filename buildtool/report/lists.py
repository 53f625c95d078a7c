"""Lists of what there is: operators and their kernels, boards, networks."""

from __future__ import annotations

from buildtool.report.table import Cell, table
from buildtool.schema.boards import BoardsAnswer, OpsAnswer, ZooAnswer


def ops(answer: OpsAnswer) -> str:
    """Every operator, with its kernels on each group of boards that have the same."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for board in answer["boards"]:
        kernels = tuple(row["kernels"][board] for row in answer["operators"])
        groups.setdefault(kernels, []).append(board)
    rows = [
        [row["operator"], *(column[i] or "not supported" for column in groups)]
        for i, row in enumerate(answer["operators"])
    ]
    return table(["operator", *map(", ".join, groups.values())], rows)


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
