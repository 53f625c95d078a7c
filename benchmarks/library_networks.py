"""Prints whole networks beside CMSIS-NN: python benchmarks/library_networks.py PATH [--networks ...]

PATH is a checkout of the library. Every network runs layer by layer twice on each board, on our kernels and
on those of the library's family (`--cmsis-nn`), built by the same compiler with the same flags. The table has
the executed instructions, and ours divided by theirs. Operators that the library does not have run on our
kernels in both; the column "in the library" says which part of its count its own functions take. All results
are compared with the executor. A board that a network does not fit is left out. `--toolchain` chooses the
compiler of both, `--boards` the boards. The default networks are those of ../shared/models and of the zoo.
Nothing is written.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.api import handle
from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.zoo import names

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models"
BOARDS = ("cortex-m4", "cortex-m55")


@dataclass(frozen=True)
class Cell:
    """The executed instructions of a network on a board, with our kernels and with the library's.

    `within`: the instructions in the library's kernels, a part of `library`.
    """

    ours: int
    library: int
    within: int
    compiler: str

    @property
    def ratio(self) -> float:
        """Our instructions divided by the library's."""
        return self.ours / self.library


def cell(board: str, model: str, library: str, toolchain: str, session: Session) -> Cell | None:
    """Profiles the network on our kernels and on the library's; returns None if it does not fit the board.

    Exits if a result is not exact.
    """
    request = {"kind": "profile", "model": model, "board": board, "toolchain": toolchain}
    request |= {"options": {"strategy": "layerwise"}}
    try:
        ours, theirs = (handle(request | more, session) for more in ({}, {"cmsis_nn": library}))
    except PlanError:
        return None
    if not (ours["exact"] and theirs["exact"]):
        raise SystemExit(f"{model} on {board}: the result differs from the executor's")
    within = sum(row["instructions"] for row in theirs["per_operator"] if "cmsis_nn" in row["kernel"])
    return Cell(ours["instructions"], theirs["instructions"], within, ours["compiler"])


def lines(networks: Sequence[str], boards: Sequence[str], library: str, toolchain: str) -> Iterator[str]:
    """Yields the lines of the table, and then each board's compiler and the median of its ratios."""
    headings = [f"{board}: ours | library | in the library | ratio" for board in boards]
    yield "| network | " + " | ".join(headings) + " |"
    yield "| --- |" + " ---: | ---: | ---: | ---: |" * len(boards)
    found: dict[str, list[Cell]] = {board: [] for board in boards}
    session = Session()
    for network in networks:
        cells = []
        for board in boards:
            made = cell(board, network, library, toolchain, session)
            if made is None:
                cells.append("- | - | - | -")
                continue
            found[board].append(made)
            part = made.within / made.library
            cells.append(f"{made.ours:,} | {made.library:,} | {part:.0%} | {made.ratio:.2f}")
        yield f"| `{Path(network).stem}` | " + " | ".join(cells) + " |"
    yield ""
    for board, own in found.items():
        ratios = [made.ratio for made in own]
        ends = f"from {min(ratios):.2f} to {max(ratios):.2f}"
        yield f"{board}: {own[0].compiler} on both sides; median {statistics.median(ratios):.2f}, {ends}"


def main() -> None:
    """Parses the command line, and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library", metavar="PATH")
    parser.add_argument("--boards", nargs="+", default=list(BOARDS))
    parser.add_argument("--networks", nargs="+", default=[])
    parser.add_argument("--toolchain", default="")
    given = parser.parse_args()
    files = sorted(str(path) for path in SHARED.glob("*.tflite") if "float" not in path.name)
    networks = given.networks or [*files, *names()]
    for line in lines(networks, given.boards, given.library, given.toolchain):
        print(line, flush=True)


if __name__ == "__main__":
    main()
