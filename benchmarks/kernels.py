"""Prints the table of kernels beside a library's: python benchmarks/kernels.py [BOARD...] [--toolchain NAME]

Executed instructions of one call, counted exactly in QEMU, the code that makes the views included; the
results are compared with the executor. The library's figures and which board belongs to which column are
in library_counts.toml. Without boards: every one of the columns that this checkout has. Nothing is written.
"""

from __future__ import annotations

import argparse
import statistics
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import single

from buildtool.target.registry import board_names

COUNTS = Path(__file__).resolve().parent / "library_counts.toml"


def operators(kernels: Sequence[dict[str, Any]]) -> list[single.Single]:
    """What the file's kernels compute."""
    return [getattr(single, name)(*given) for kernel in kernels for name, given in kernel["call"].items()]


def measured(kernels: Sequence[dict[str, Any]], board: str, toolchain: str) -> list[dict[str, Any]]:
    """Our rows, checked to be of the same work."""
    rows = single.count(operators(kernels), board, toolchain)
    for kernel, row in zip(kernels, rows, strict=True):
        assert row["macs"] == kernel["macs"], kernel["name"]
    return rows


def lines(columns: Sequence[tuple[str, str]], toolchain: str) -> Iterator[str]:
    """A Markdown table: for each (column, board) ours, the library's, and the first over the second."""
    kernels = tomllib.loads(COUNTS.read_text(encoding="utf-8"))["kernel"]
    headings, cells, ratios, compilers = ["kernel, HxWxC -> out, stride", "MACs"], [], [], []
    for column, board in columns:
        rows = measured(kernels, board, toolchain)
        headings += [f"{column}: ours", "per MAC", "library", "ratio"]
        counts = [
            (row["instructions"], kernel["counts"][column]) for row, kernel in zip(rows, kernels, strict=True)
        ]
        ratios.append([ours / theirs for ours, theirs in counts])
        compilers.append(f"{column}: board {board}, {rows[0]['compiler']}")
        cells.append(
            [
                (f"{ours:,}", f"{ours / kernel['macs']:.2f}", f"{theirs:,}", f"{ours / theirs:.2f}")
                for (ours, theirs), kernel in zip(counts, kernels, strict=True)
            ]
        )
    yield "| " + " | ".join(headings) + " |"
    yield "| --- |" + " ---: |" * (len(headings) - 1)
    for i, kernel in enumerate(kernels):
        own = [value for column in cells for value in column[i]]
        yield "| " + " | ".join([kernel["name"], f"{kernel['macs']:,}", *own]) + " |"
    yield ""
    for name, found, (column, _) in zip(compilers, ratios, columns, strict=True):
        theirs = sorted({kernel["compilers"][column] for kernel in kernels if column in kernel["compilers"]})
        by = f"; the library by {', '.join(theirs)}" if theirs else ""
        yield f"{name}{by}; ratio: median {statistics.median(found):.2f}, largest {max(found):.2f}"


def main() -> None:
    """Parses the command line, and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("boards", nargs="*")
    parser.add_argument("--toolchain", default="")
    given = parser.parse_args()
    known = tomllib.loads(COUNTS.read_text(encoding="utf-8"))["columns"]
    wanted = given.boards or [board for board in known.values() if board in board_names()]
    unknown = set(wanted) - set(known.values())
    if unknown:
        parser.error(f"library_counts.toml has no column for {', '.join(sorted(unknown))}")
    for line in lines([(c, b) for c, b in known.items() if b in wanted], given.toolchain):
        print(line)


if __name__ == "__main__":
    main()
