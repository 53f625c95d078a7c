"""Prints what costs predict for whole networks, beside counts: python benchmarks/network_costs.py

A Markdown table: for every network and board the predicted instructions over the counted ones, and the
counted ones. Networks run layer by layer on the default compiler. `--boards` and `--networks` choose; a
network is a file or a name of the zoo, and the default is all of the zoo and of ../shared/models.
Nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.service import handle
from buildtool.session import Session
from buildtool.zoo import names

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models"
BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "qemu-virt-rv32v256")


@dataclass(frozen=True)
class Cell:
    """A network on a board: instructions by the catalogues' formulas, and executed ones."""

    predicted: float
    counted: int

    @property
    def error(self) -> float:
        """Of the prediction, relative to the count."""
        return self.predicted / self.counted - 1


def cell(board: str, model: str) -> Cell:
    """Plans and profiles. Stops if the result is not exact."""
    request = {"model": model, "board": board, "options": {"strategy": "layerwise"}}
    session = Session()
    answer = handle({"kind": "profile", **request}, session)
    if not answer["exact"]:
        raise SystemExit(f"{model} on {board}: the result differs from the executor's")
    return Cell(handle({"kind": "plan", **request}, session)["cost"], answer["instructions"])


def lines(networks: Sequence[str], boards: Sequence[str]) -> Iterator[str]:
    """The table, and the largest error of each board."""
    yield "| network | " + " | ".join(f"{board} | counted" for board in boards) + " |"
    yield "| --- |" + " ---: | ---: |" * len(boards)
    worst = dict.fromkeys(boards, 0.0)
    for network in networks:
        cells = []
        for board in boards:
            found = cell(board, network)
            worst[board] = max(worst[board], abs(found.error))
            cells.append(f"{found.error:+.1%} | {found.counted:,}")
        yield f"| {Path(network).stem} | " + " | ".join(cells) + " |"
    yield ""
    yield "largest error: " + ", ".join(f"{board} {error:.1%}" for board, error in worst.items())


def main() -> None:
    """Parses the command line, and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--boards", nargs="+", default=BOARDS)
    parser.add_argument("--networks", nargs="+", default=[])
    given = parser.parse_args()
    files = sorted(str(path) for path in SHARED.glob("*.tflite") if "float" not in path.name)
    for line in lines(given.networks or [*files, *names()], given.boards):
        print(line, flush=True)


if __name__ == "__main__":
    main()
