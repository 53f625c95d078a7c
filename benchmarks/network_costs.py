"""Prints what costs predict for whole networks, beside counts: python benchmarks/network_costs.py

A Markdown table: for every network and board the predicted cost divided by the count, and the count. The
count is in executed instructions; with `--cycles` it is in the cycles that `profile` estimates, on boards
whose costs are in cycles. A board that a network does not fit is left out. Networks run layer by layer on the
default compiler. `--boards` and `--networks` choose; a network is a file or a name of the zoo, and the
default is all of the zoo and of ../shared/models. Nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from instructions import in_instructions

from buildtool.api import handle
from buildtool.base.errors import PlanError
from buildtool.base.modes import CostUnit, Strategy
from buildtool.base.session import Session
from buildtool.firmware.planned import plan_model
from buildtool.options.values import PlanOptions
from buildtool.zoo import names

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models"
LARGE = str(Path(__file__).resolve().parents[1] / "tests/support/boards/fe310-large.toml")
BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "qemu-virt-rv32v256")
IN_CYCLES = ("cortex-m4", "mps2-an500", "cortex-m55", LARGE)


@dataclass(frozen=True)
class Cell:
    """The predicted and the counted cost of a network on a board."""

    predicted: float
    counted: int

    @property
    def error(self) -> float:
        """The relative error of the prediction."""
        return self.predicted / self.counted - 1


def cell(board: str, model: str, in_cycles: bool) -> Cell | None:
    """Plans and profiles; returns None if the network does not fit on the board.

    Exits if the result is not exact.
    """
    request = {"kind": "profile", "model": model, "board": board, "options": {"strategy": "layerwise"}}
    session = Session()
    try:
        made = plan_model(model, board, PlanOptions(strategy=Strategy.LAYERWISE), session)
        answer = handle(request, session)
    except PlanError:
        return None
    if not answer["exact"]:
        raise SystemExit(f"{model} on {board}: the result differs from the executor's")
    if not in_cycles:
        return Cell(in_instructions(made.plan, made.graph, made.target.board), answer["instructions"])
    if made.target.cost_unit is not CostUnit.CYCLES:
        raise SystemExit(f"costs of {board} are {made.target.cost_unit}")
    return Cell(made.plan.cost, answer["cycles"])


def lines(networks: Sequence[str], boards: Sequence[str], in_cycles: bool) -> Iterator[str]:
    """Yields the lines of the table, and then the errors of each board."""
    names_of = [Path(board).stem for board in boards]
    yield "| network | " + " | ".join(f"{name} | counted" for name in names_of) + " |"
    yield "| --- |" + " ---: | ---: |" * len(boards)
    errors: dict[str, list[float]] = {name: [] for name in names_of}
    for network in networks:
        cells = []
        for name, board in zip(names_of, boards, strict=True):
            found = cell(board, network, in_cycles)
            if found is not None:
                errors[name].append(abs(found.error))
            cells.append(f"{found.error:+.1%} | {found.counted:,}" if found else "|")
        yield f"| {Path(network).stem} | " + " | ".join(cells) + " |"
    yield ""
    for name, own in errors.items():
        mean = sum(own) / len(own)
        yield f"{name}: error {mean:.1%} on average, {max(own):.1%} at most, {len(own)} networks"


def main() -> None:
    """Parses the command line, and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--boards", nargs="+", default=[])
    parser.add_argument("--networks", nargs="+", default=[])
    parser.add_argument("--cycles", action="store_true")
    given = parser.parse_args()
    files = sorted(str(path) for path in SHARED.glob("*.tflite") if "float" not in path.name)
    boards = given.boards or (IN_CYCLES if given.cycles else BOARDS)
    for line in lines(given.networks or [*files, *names()], boards, given.cycles):
        print(line, flush=True)


if __name__ == "__main__":
    main()
