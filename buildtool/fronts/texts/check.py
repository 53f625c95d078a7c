"""The answer of `target` as text: a row for each kernel, then what failed and how to see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.fronts.texts import table
from buildtool.fronts.texts.table import count

if TYPE_CHECKING:
    from buildtool.schema.boards import CheckAnswer, CheckedKernel


def text(answer: CheckAnswer, written: str) -> str:
    """The table and the verdict; `written`: the folder that has the networks that failed ("": none)."""
    head = f"plugin {answer['plugin']}, interface {answer['interface']}, on {', '.join(answer['boards'])}"
    titles = ["board", "kernel", "operator", "networks", "in little memory", "verdict"]
    rows: list[list[table.Cell]] = [
        [row["board"], row["kernel"], row["operator"], row["cases"], row["among"], _verdict(row)]
        for row in answer["kernels"]
    ]
    lines = [head, "", table.table(titles, rows)]
    for row in answer["kernels"]:
        failed = row["failed"]
        if failed is not None:
            file = f"{written}/{failed['name']}" if written else failed["name"]
            lines += [
                "",
                f"{row['kernel']} on {row['board']}: {failed['text']}",
                f"  buildtool validate {file} --board {row['board']} --tensors {failed['options']}",
            ]
    return "\n".join([*lines, "", verdict(answer)])


def verdict(answer: CheckAnswer) -> str:
    """One line: how many kernels are equal, how many failed, how many were not reached."""
    rows = answer["kernels"]
    failed, idle = sum(row["failed"] is not None for row in rows), sum(not row["reached"] for row in rows)
    parts = [f"{count(len(rows) - failed - idle, 'kernel')} EQUAL to buildtool's own executor, to the bit"]
    parts += [f"{failed} FAILED"] if failed else []
    parts += [f"{idle} not reached by any network that was drawn"] if idle else []
    return ", ".join(parts)


def _verdict(row: CheckedKernel) -> str:
    if row["failed"] is not None:
        return "FAILED"
    return "equal" if row["reached"] else "not reached"
