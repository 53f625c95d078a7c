"""Prints what costs predict for whole networks, beside counts: python benchmarks/network_costs.py

A Markdown table: for every network and board the predicted instructions over the counted ones, and the
counted ones. Networks run layer by layer on the default compiler. `--boards` and `--networks` choose; a
network is a file or a name of the zoo, and the default is all of the zoo and of ../shared/models.
Nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from buildtool.service import handle
from buildtool.zoo import names

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models"
BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "qemu-virt-rv32v256")


def predicted(board: str, model: str) -> float:
    """Instructions, by the catalogues' formulas."""
    request = {"kind": "plan", "model": model, "board": board, "options": {"strategy": "layerwise"}}
    return float(handle(request)["cost"])


def counted(board: str, model: str) -> int:
    """Executed instructions. Stops if the result is not exact."""
    request = {"kind": "profile", "model": model, "board": board, "options": {"strategy": "layerwise"}}
    answer = handle(request)
    if not answer["exact"]:
        raise SystemExit(f"{model} on {board}: the result differs from the executor's")
    return int(answer["instructions"])


def lines(networks: Sequence[str], boards: Sequence[str]) -> Iterator[str]:
    """The table, and the largest error of each board."""
    yield "| network | " + " | ".join(f"{board} | counted" for board in boards) + " |"
    yield "| --- |" + " ---: | ---: |" * len(boards)
    worst = dict.fromkeys(boards, 0.0)
    for network in networks:
        cells = []
        for board in boards:
            count = counted(board, network)
            error = predicted(board, network) / count - 1
            worst[board] = max(worst[board], abs(error))
            cells.append(f"{error:+.1%} | {count:,}")
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
