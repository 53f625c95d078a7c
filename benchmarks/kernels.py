"""Prints the table of kernels beside a library's: python benchmarks/kernels.py [BOARD...] [--cycles]

    python benchmarks/kernels.py cortex-m4 --odd named|tune|show [--cycles] [--first N] [--library PATH]

Figures are executed instructions of one call, counted exactly in QEMU, with the code that makes the views;
with `--cycles` the cycles that `profile` estimates, with waits for the board's memories. The results are
compared with the executor. library_counts.toml has the library's figures, and says which board belongs to
which column. Without boards, the table has every board of the columns that this checkout has. Nothing is
written.

`--odd` takes the shapes of odd_shapes.py instead: one of each family (`named`), or the N first of either half
of those that are drawn. CMSIS-NN (`--library`: a checkout) is then counted too, with clang and gcc: the
fewer instructions stand in the table. On RISC-V it is muriscv-nn, with clang; `wrong`: its result is not
LiteRT's. `--only TEXT`: those with the text in their names.
"""

from __future__ import annotations

import argparse
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import library
import odd_shapes
import single
from library import Unit

from buildtool.target.registry import board_names

Entry = dict[str, Any]  # of the file


def measured(kernels: Sequence[Entry], board: str, toolchain: str) -> list[dict[str, Any]]:
    """Returns our row for each kernel. It asserts that the MACs are those of the library's kernel."""
    operators = [
        getattr(single, name)(*given) for kernel in kernels for name, given in kernel["call"].items()
    ]
    rows = single.count(operators, board, toolchain)
    for kernel, row in zip(kernels, rows, strict=True):
        assert row["macs"] == kernel.get("macs", 0), kernel["name"]
    return rows


def cells(kernel: Entry, column: str, ours: int, unit: Unit) -> list[str]:
    """Returns a kernel's cells for one column; a hyphen where the library's count is not known."""
    theirs = kernel.get(unit.counts, {}).get(column)
    macs = kernel.get("macs", 0)
    per_mac = [f"{ours / macs:.2f}"] if macs and unit is library.INSTRUCTIONS else []
    return [f"{ours:,}", *per_mac, *((f"{theirs:,}", f"{ours / theirs:.2f}") if theirs else ("-", "-"))]


Found = dict[str, list[dict[str, Any]]]  # rows by column


def lines(
    kernels: Sequence[Entry], heading: str, columns: Sequence[tuple[str, str]], found: Found, unit: Unit
) -> Iterator[str]:
    """Yields the lines of a Markdown table with our counts, the library's, and ours divided by the library's.

    `columns` are (column, board). The counts per multiply-accumulate are left out for operators without
    these.
    """
    counted = "macs" in kernels[0]
    headings = [heading, *(["MACs"] if counted else [])]
    for column in found:
        per_mac = ["per MAC"] if counted and unit is library.INSTRUCTIONS else []
        headings += [f"{column}: ours", *per_mac, "library", "ratio"]
    yield "| " + " | ".join(headings) + " |"
    yield "| --- |" + " ---: |" * (len(headings) - 1)
    for i, kernel in enumerate(kernels):
        own = [cell for c in found for cell in cells(kernel, c, found[c][i][unit.name], unit)]
        macs = [f"{kernel['macs']:,}"] if counted else []
        yield "| " + " | ".join([kernel["name"], *macs, *own]) + " |"
    yield ""
    for column, board in columns:
        yield summary(kernels, column, Path(board).stem, found[column], unit)


def summary(
    kernels: Sequence[Entry], column: str, board: str, rows: Sequence[dict[str, Any]], unit: Unit
) -> str:
    """Returns the compilers of a column's counts, and the median and the largest of its ratios."""
    ratios = ratios_of(kernels, column, rows, unit)
    theirs = sorted({k[unit.compilers][column] for k in kernels if column in k.get(unit.compilers, ())})
    by = f"; the library by {', '.join(theirs)}" if theirs else ""
    ends = f"; ratio: {shown(ratios)}" if ratios else ""
    return f"{column}: board {board}, {rows[0]['compiler']}{by}{ends}"


def ratios_of(
    kernels: Sequence[Entry], column: str, rows: Sequence[Mapping[str, Any]], unit: Unit
) -> list[float]:
    """Returns our counts divided by the library's, for the kernels whose library count is known."""
    counts = [kernel.get(unit.counts, {}).get(column) for kernel in kernels]
    return [row[unit.name] / count for count, row in zip(counts, rows, strict=True) if count]


def shown(ratios: Sequence[float]) -> str:
    """Returns the median and the largest of the ratios as text."""
    return f"median {statistics.median(ratios):.2f}, largest {max(ratios):.2f}"


def odd_entries(which: str, first: int, only: str) -> list[Entry]:
    """Returns the entries that `--odd`, `--first` and `--only` ask for."""
    halves = {"named": odd_shapes.named, "tune": lambda: odd_shapes.drawn()[::2]}
    entries = halves.get(which, lambda: odd_shapes.drawn()[1::2])()
    return [entry for entry in entries[:first] if only in entry["name"]]


def print_odd(entries: list[Entry], board: str, toolchain: str, path: str, unit: Unit) -> None:
    """Prints the row of each entry: the kernel that serves it, our count, the library's, and their ratio."""
    operators = [getattr(single, name)(*given) for entry in entries for name, given in entry["call"].items()]
    rows = single.count(operators, board, toolchain)
    best = library.strongest(entries, board, path, unit) if path else []
    print("| operator | kernel | ours | per MAC | library | ratio |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    ratios = []
    for i, (entry, row) in enumerate(zip(entries, rows, strict=True)):
        ours = row[unit.name]
        per_mac = f"{ours / row['macs']:.2f}" if row["macs"] else ""
        beside = ["-", "-"]
        if best and not best[i][0]:
            beside = ["wrong", "-"]
        elif best:
            ratios.append(ours / best[i][0])
            beside = [f"{best[i][0]:,}", f"{ratios[-1]:.2f}"]
        print("| " + " | ".join([entry["name"], row["kernel"], f"{ours:,}", per_mac, *beside]) + " |")
    compilers = {rows[0]["compiler"], *(compiler for _, compiler in best)}
    print(f"\n{Path(board).stem}, {', '.join(sorted(compilers))}" + (f": {shown(ratios)}" if ratios else ""))


def _absolute(board: str) -> str:
    """Returns a board's name, or the absolute path of its file."""
    return str(Path(board).resolve()) if board.endswith(".toml") else board


def main() -> None:
    """Parses the command line, and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("boards", nargs="*", type=_absolute)
    parser.add_argument("--toolchain", default="")
    parser.add_argument("--cycles", action="store_true")
    parser.add_argument("--odd", choices=("named", "tune", "show"))
    parser.add_argument("--first", type=int, default=odd_shapes.COUNT)
    parser.add_argument("--only", default="")
    parser.add_argument("--library", default="", metavar="PATH")
    given = parser.parse_args()
    given.library = given.library and str(Path(given.library).resolve())
    unit = library.CYCLES if given.cycles else library.INSTRUCTIONS
    table = tomllib.loads(library.COUNTS.read_text(encoding="utf-8"))
    known = library.column_boards(table, unit)
    if given.odd:
        for number, board in enumerate(given.boards or ["M4"]):
            print(end="\n" if number else "")
            entries = odd_entries(given.odd, given.first, given.only)
            print_odd(entries, known.get(board, board), given.toolchain, given.library, unit)
        return
    own = [column for column, board in known.items() if board in board_names() or Path(board).is_file()]
    wanted = given.boards or own
    if unknown := set(wanted) - {*known, *known.values()}:
        parser.error(f"library_counts.toml has no column for {', '.join(sorted(unknown))}")
    columns = [(c, b) for c, b in known.items() if {c, b} & set(wanted)]
    headings = {"kernel": "kernel, HxWxC -> out, stride", "operator": "operator, HxWxC, stride"}
    ratios: dict[str, list[float]] = {column: [] for column, _ in columns}
    for part, heading in headings.items():
        found = {column: measured(table[part], board, given.toolchain) for column, board in columns}
        for line in lines(table[part], heading, columns, found, unit):
            print(line)
        print()
        for column, _ in columns:
            ratios[column] += ratios_of(table[part], column, found[column], unit)
    for column, known_ratios in ratios.items():
        print(f"{column}, both tables: {len(known_ratios)} ratios, {shown(known_ratios)}")


if __name__ == "__main__":
    main()
