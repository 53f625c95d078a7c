"""Counts CMSIS-NN on the kernels of library_counts.toml.

    python benchmarks/library.py PATH [--cycles] [--columns NAME...] [--write]

PATH is a checkout of the library, version 6 or later. Every kernel is counted on the boards of the columns
with each compiler that is installed, clang and arm-none-eabi-gcc. The library's figure is the smaller number
of instructions; with `--cycles` it is the smaller number of estimated cycles, with waits for the board's
memories. The calls go through the adapters of kernels/cortex_m_cmsis_nn, as our kernels' calls go through
theirs. Functions without an adapter are called by library_calls.c: dense layers without the sums of their
weights, operands that are repeated by a call for each pixel. Results are compared with the executor, and
those of dense layers with the library's arithmetic (two roundings).

`--write` writes the counts with their compilers into library_counts.toml, if it has no counts or larger ones:
another C library may have a better memcpy.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import library_calls
import single

from buildtool.target.registry import load_board

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ROOT / "benchmarks" / "library_counts.toml"
TOOLCHAINS = ("clang", "gcc")


@dataclass(frozen=True)
class Unit:
    """What is counted, instructions or cycles.

    The fields are its key in a row of single.count, and its keys in library_counts.toml: of the columns'
    boards, and of an entry's counts and compilers.
    """

    name: str
    columns: str
    counts: str
    compilers: str


INSTRUCTIONS = Unit("instructions", "columns", "counts", "compilers")
CYCLES = Unit("cycles", "cycle_columns", "cycles", "cycle_compilers")
OF_CORTEX_M = re.compile(r"M\d+")  # columns


def column_boards(table: dict, unit: Unit) -> dict[str, str]:
    """Returns the board of each column of the table. If it is a file, its absolute path."""
    names = table[unit.columns]
    return {c: str(ROOT / name) if name.endswith(".toml") else name for c, name in names.items()}


def counted(
    kernels: list[dict], board: str, toolchain: str, library: str, unit: Unit
) -> tuple[list[int], str]:
    """Returns the library's count for every kernel, and the compiler."""
    called = [kernel for kernel in kernels if library_calls.is_called(kernel, board)]
    others = [kernel for kernel in kernels if not library_calls.is_called(kernel, board)]
    singles = [getattr(single, name)(*given) for k in others for name, given in k["call"].items()]
    rows = single.count(singles, board, toolchain, cmsis_nn=library) if singles else []
    strange = {row["kernel"] for row in rows if "cmsis_nn" not in row["kernel"]}
    if strange:
        raise SystemExit(f"{board}: computed by {', '.join(sorted(strange))}, not by the library")
    found = iter([row[unit.name] for row in rows])
    of_called = iter(library_calls.count(called, board, toolchain, library, unit.name))
    counts = [next(of_called if library_calls.is_called(k, board) else found) for k in kernels]
    return counts, rows[0]["compiler"] if rows else toolchain


def strongest(
    kernels: list[dict], board: str, library: str, unit: Unit = INSTRUCTIONS
) -> list[tuple[int, str]]:
    """Returns the smallest count of every kernel, and the compiler that achieved it."""
    toolchains = [name for name in TOOLCHAINS if name in load_board(board).toolchains]
    tables = [counted(kernels, board, toolchain, library, unit) for toolchain in toolchains]
    return [min((counts[i], compiler) for counts, compiler in tables) for i in range(len(kernels))]


def written(text: str, kernels: list[dict], column: str, found: list[tuple[int, str]], unit: Unit) -> str:
    """Returns the text of library_counts.toml with a column's new counts, if they are lower or the first."""
    for kernel, (count, compiler) in zip(kernels, found, strict=True):
        counts, compilers = (kernel.setdefault(key, {}) for key in (unit.counts, unit.compilers))
        if counts.get(column, count + 1) <= count:
            continue
        counts[column], compilers[column] = count, compiler
        before, name, rest = text.partition(f'name = "{kernel["name"]}"\n')
        entry, *behind = re.split(r"\n(?=\n|$)", rest, maxsplit=1)
        old = (f"{unit.counts} =", f"{unit.compilers} =")
        known = [row for row in entry.split("\n") if not row.startswith(old)]
        known.append(f"{old[0]} {{ " + ", ".join(f"{c} = {n}" for c, n in counts.items()) + " }")
        known.append(f"{old[1]} {{ " + ", ".join(f'{c} = "{by}"' for c, by in compilers.items()) + " }")
        text = "".join([before, name, "\n".join(known), "\n", *behind])
    return text


def lines(kernels: list[dict], found: dict[str, list[tuple[int, str]]]) -> Iterator[str]:
    """Yields a row for each kernel."""
    for i, kernel in enumerate(kernels):
        cells = [f"{column} {found[column][i][0]:,} ({found[column][i][1]})" for column in found]
        yield f"{kernel['name']:34s} " + "  ".join(cells)


def main() -> None:
    """Counts, prints, and writes to the file if --write is given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library", metavar="PATH")
    parser.add_argument("--cycles", action="store_true")
    parser.add_argument("--columns", nargs="*", metavar="NAME")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    text = COUNTS.read_text(encoding="utf-8")
    table, unit = tomllib.loads(text), CYCLES if given.cycles else INSTRUCTIONS
    boards = {c: board for c, board in column_boards(table, unit).items() if OF_CORTEX_M.fullmatch(c)}
    wanted = given.columns or list(boards)
    if unknown := set(wanted) - set(boards):
        parser.error(f"library_counts.toml has no column for {', '.join(sorted(unknown))}")
    kernels = [entry for entry in table["kernel"] + table["operator"] if "mean" not in entry["call"]]
    found = {c: strongest(kernels, boards[c], given.library, unit) for c in wanted}
    for line in lines(kernels, found):
        print(line)
    if given.write:
        for column in wanted:
            text = written(text, kernels, column, found[column], unit)
        COUNTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
