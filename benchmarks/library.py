"""Counts CMSIS-NN on the kernels of library_counts.toml: python benchmarks/library.py PATH [--write]

PATH is a checkout of the library, version 6 or later. Every kernel is counted on the boards of the columns
M4 and M55 with each compiler that is installed, clang and arm-none-eabi-gcc, and the fewer instructions are
the library's. The calls go through the adapters of kernels/cortex_m_cmsis_nn, as ours go through theirs;
dense layers, which have none, are called by library_dense.c without the sums of their weights. Results are
compared: with the executor, and dense layers with the library's arithmetic (two roundings).
`--write` puts the counts with their compilers into library_counts.toml where they are fewer than what stands
there: a C library with a better memcpy than ours may have counted for it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import single

from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))

from kernelboard import Call, Firmware, Memory  # noqa: E402

from buildtool.target.registry import load_board, plugin  # noqa: E402

COUNTS = HERE / "library_counts.toml"
COLUMNS = ("M4", "M55")
TOOLCHAINS = ("clang", "gcc")
INPUT_OFFSET, OUTPUT_OFFSET, MULTIPLIER, SHIFT = 128, -5, 1 << 30, -9


def dense(board: str, toolchain: str, library: str, layers: list[list[int]]) -> list[int]:
    """Instructions of dense layers of [inputs, outputs]."""
    found = plugin(load_board(board)).library(load_board(board), "cmsis_nn", library)
    extra = Path(library).resolve().glob("Source/FullyConnectedFunctions/arm_fully_connected_s8.c")
    files = dict.fromkeys((HERE / "library_dense.c", *map(Path, found.sources), *extra))
    symbols = ("library_dense_sums", "library_dense")
    image = Firmware(board, toolchain, tuple(files), symbols, found.cflags)
    calls, wanted = [], []
    for i, (inputs, outputs) in enumerate(layers):
        for n, symbol in enumerate(symbols):
            call, result = _dense_call(symbol, inputs, outputs, 2 * i + n)
            calls.append(call)
            wanted.append(result)
    for call, done, result in zip(calls, image.run(calls, count=True), wanted, strict=True):
        if call.symbol == symbols[0]:
            continue
        if not np.array_equal(done.array(call.arguments[4], result.shape), result):
            raise SystemExit(f"{board}, {toolchain}: a dense layer of the library is not what it documents")
    return [image.counts[2 * i + 1] - image.counts[2 * i] for i in range(len(layers))]


def _dense_call(symbol: str, inputs: int, outputs: int, marker: int) -> tuple[Call, np.ndarray]:
    """The call, and what the library documents as its output."""
    rng, memory = np.random.default_rng(inputs), Memory(marker)
    x, weights = rng.integers(-128, 128, inputs, np.int8), rng.integers(-127, 128, (outputs, inputs), np.int8)
    bias = rng.integers(-2000, 2000, outputs, np.int32)
    sums = weights.astype(np.int64) @ (x.astype(np.int64) + INPUT_OFFSET) + bias
    scaled = multiply_by_quantized_multiplier(sums, MULTIPLIER, SHIFT) + OUTPUT_OFFSET
    places = (memory.room(4 * outputs), memory.put(x), memory.put(weights), memory.put(bias))
    arguments = (*places, memory.room(outputs), inputs, outputs, INPUT_OFFSET, MULTIPLIER, SHIFT)
    return Call(symbol, arguments, memory, marker), np.clip(scaled, -128, 127).astype(np.int8)


def counted(kernels: list[dict], board: str, toolchain: str, library: str) -> tuple[list[int], str]:
    """Instructions of every kernel, and the compiler."""
    denses = [kernel["call"]["dense"] for kernel in kernels if "dense" in kernel["call"]]
    others = [kernel for kernel in kernels if "dense" not in kernel["call"]]
    singles = [getattr(single, name)(*given) for k in others for name, given in k["call"].items()]
    rows = single.count(singles, board, toolchain, cmsis_nn=library)
    strange = {row["kernel"] for row in rows if "cmsis_nn" not in row["kernel"]}
    if strange:
        raise SystemExit(f"{board}: computed by {', '.join(sorted(strange))}, not by the library")
    found = iter([row["instructions"] for row in rows])
    of_dense = iter(dense(board, toolchain, library, denses))
    return [next(of_dense if "dense" in k["call"] else found) for k in kernels], rows[0]["compiler"]


def strongest(kernels: list[dict], board: str, library: str) -> list[tuple[int, str]]:
    """For every kernel the fewest instructions, and the compiler they are from."""
    tables = [counted(kernels, board, toolchain, library) for toolchain in TOOLCHAINS]
    return [min((counts[i], compiler) for counts, compiler in tables) for i in range(len(kernels))]


def written(text: str, kernels: list[dict], column: str, found: list[tuple[int, str]]) -> str:
    """library_counts.toml with a column's counts and compilers, where they are fewer."""
    for kernel, (count, compiler) in zip(kernels, found, strict=True):
        before, name, rest = text.partition(f'name = "{kernel["name"]}"\n')
        entry, *behind = re.split(r"(?=^\[\[)", rest, maxsplit=1, flags=re.MULTILINE)
        known = re.search(rf"\b{column} = (\d+)", entry)
        if known is None or int(known[1]) <= count:
            continue
        entry = re.sub(rf"\b{column} = \d+", f"{column} = {count}", entry)
        entry = re.sub(rf'\b{column} = "[^"]*"', f'{column} = "{compiler}"', entry)
        text = "".join([before, name, entry, *behind])
    return text


def lines(kernels: list[dict], found: dict[str, list[tuple[int, str]]]) -> Iterator[str]:
    """A row for each kernel."""
    for i, kernel in enumerate(kernels):
        cells = [f"{column} {found[column][i][0]:,} ({found[column][i][1]})" for column in found]
        yield f"{kernel['name']:26s} " + "  ".join(cells)


def main() -> None:
    """Counts, prints, and writes where that is asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library", metavar="PATH")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    text = COUNTS.read_text(encoding="utf-8")
    table = tomllib.loads(text)
    kernels = table["kernel"] + [entry for entry in table["operator"] if "counts" in entry]
    found = {c: strongest(kernels, table["columns"][c], given.library) for c in COLUMNS}
    for line in lines(kernels, found):
        print(line)
    if given.write:
        for column in COLUMNS:
            text = written(text, kernels, column, found[column])
        COUNTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
