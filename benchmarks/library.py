"""Counts CMSIS-NN on the kernels of library_counts.toml.

    python benchmarks/library.py PATH [--columns NAME...] [--write]

PATH is a checkout of the library, version 6 or later. Every kernel is counted on the boards of the columns
(M0, M3, M4, M55) with each compiler that is installed, clang and arm-none-eabi-gcc, and the fewer
instructions are the library's. The calls go through the adapters of kernels/cortex_m_cmsis_nn, as ours go
through theirs; what has none is called by library_calls.c: dense layers without the sums of their weights,
operands that are repeated by a call for each pixel. Results are compared: with the executor, and dense layers
with the library's arithmetic (two roundings).
`--write` puts the counts with their compilers into library_counts.toml where none stand there, or they are
fewer: a C library with a better memcpy than ours may have counted for it.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import library_calls
import single

COUNTS = Path(__file__).resolve().parent / "library_counts.toml"
COLUMNS = ("M0", "M3", "M4", "M55")
TOOLCHAINS = ("clang", "gcc")


def counted(kernels: list[dict], board: str, toolchain: str, library: str) -> tuple[list[int], str]:
    """Returns the instructions of every kernel, computed by the library, and the compiler."""
    called = [kernel for kernel in kernels if library_calls.is_called(kernel)]
    others = [kernel for kernel in kernels if not library_calls.is_called(kernel)]
    singles = [getattr(single, name)(*given) for k in others for name, given in k["call"].items()]
    rows = single.count(singles, board, toolchain, cmsis_nn=library)
    strange = {row["kernel"] for row in rows if "cmsis_nn" not in row["kernel"]}
    if strange:
        raise SystemExit(f"{board}: computed by {', '.join(sorted(strange))}, not by the library")
    found = iter([row["instructions"] for row in rows])
    of_called = iter(library_calls.count(called, board, toolchain, library))
    counts = [next(of_called if library_calls.is_called(k) else found) for k in kernels]
    return counts, rows[0]["compiler"]


def strongest(kernels: list[dict], board: str, library: str) -> list[tuple[int, str]]:
    """Returns for every kernel the fewest instructions, and the compiler that achieved them."""
    tables = [counted(kernels, board, toolchain, library) for toolchain in TOOLCHAINS]
    return [min((counts[i], compiler) for counts, compiler in tables) for i in range(len(kernels))]


def written(text: str, kernels: list[dict], column: str, found: list[tuple[int, str]]) -> str:
    """Returns the text of library_counts.toml with a column's new counts, if they are lower or the first."""
    for kernel, (count, compiler) in zip(kernels, found, strict=True):
        counts, compilers = kernel.setdefault("counts", {}), kernel.setdefault("compilers", {})
        if counts.get(column, count + 1) <= count:
            continue
        counts[column], compilers[column] = count, compiler
        before, name, rest = text.partition(f'name = "{kernel["name"]}"\n')
        entry, *behind = re.split(r"\n(?=\n|$)", rest, maxsplit=1)
        known = [row for row in entry.split("\n") if not row.startswith(("counts =", "compilers ="))]
        known.append("counts = { " + ", ".join(f"{c} = {n}" for c, n in counts.items()) + " }")
        known.append("compilers = { " + ", ".join(f'{c} = "{by}"' for c, by in compilers.items()) + " }")
        text = "".join([before, name, "\n".join(known), "\n", *behind])
    return text


def lines(kernels: list[dict], found: dict[str, list[tuple[int, str]]]) -> Iterator[str]:
    """Yields a row for each kernel."""
    for i, kernel in enumerate(kernels):
        cells = [f"{column} {found[column][i][0]:,} ({found[column][i][1]})" for column in found]
        yield f"{kernel['name']:34s} " + "  ".join(cells)


def main() -> None:
    """Counts the instructions, prints them, and writes them to the file if --write is given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library", metavar="PATH")
    parser.add_argument("--columns", nargs="*", choices=COLUMNS, default=COLUMNS)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    text = COUNTS.read_text(encoding="utf-8")
    table = tomllib.loads(text)
    kernels = [entry for entry in table["kernel"] + table["operator"] if "mean" not in entry["call"]]
    found = {c: strongest(kernels, table["columns"][c], given.library) for c in given.columns}
    for line in lines(kernels, found):
        print(line)
    if given.write:
        for column in given.columns:
            text = written(text, kernels, column, found[column])
        COUNTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
