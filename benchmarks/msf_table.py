"""msf-CNN's Table 1, cell by cell, against plans of the real networks.

    python benchmarks/msf_table.py [--board host] [--image stream]

For every cell of P1 and P2 with a result (tests/support/msf_tables.py): the plan of the front with the least
arena that does no more work than the paper's choice, and whether its arena is no larger. The networks are the
files in ../shared/models. The paper counts neither the input image nor the last output, residuals, pooling
and dense layers, and its F ignores what blocks repeat at their borders. Our plans count everything in the
arena, aligned and placed, but not stack, weights and code; F is of executed work. Below the table: the least
arena of msf-CNN's own blocks on the same file, counted as ours.

The image: `stream` delivers it row by row, so that no whole image is in RAM (this compares with the paper,
which does not count it); `overwritable` has it in the arena.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from buildtool.fronts.texts.table import Cell, layer, table
from buildtool.plan.baselines.msf import plans
from buildtool.plan.check.check import check
from buildtool.plan.models import load_model, read_graph
from buildtool.plan.search.front import Front, Settings, front
from buildtool.plan.summary.summary import summarize
from buildtool.plan.types import Plan
from buildtool.target.registry import load_target

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

from msf_tables import P1, P2  # noqa: E402

MODELS = ROOT / "../shared/models"
NETWORKS = {
    "MBV2-w0.35": "mbv2_w035_144_random",
    "MN2-vww5": "mcunet_vww5",
    "MN2-320K": "mcunet_320k_imagenet",
}
# What the paper's own plans of least RAM do when every tile is counted.
TRUE_F = {("MBV2-w0.35", 1.68): 1.88, ("MN2-vww5", 1.96): 2.45, ("MN2-320K", 2.69): 3.47}


class PaperCell(NamedTuple):
    """One cell of the paper's table: the network, the problem with its limit, and its result (bytes, F)."""

    network: str
    problem: str
    bytes: int
    f: float


def cells(network: str) -> Iterator[PaperCell]:
    """Yields the paper's cells of one network that have a result: first those of P1, then those of P2."""
    for limit, (size, f) in P1[network].items():
        yield PaperCell(network, f"P1 {limit:g}", size, f)
    for limit, found in P2[network].items():
        if found is not None:
            yield PaperCell(network, f"P2 {limit // 1000} kB", *found)


def least(found: Front, most_f: float, enough: int) -> Plan | None:
    """Returns the plan with the least arena among the points with F up to `most_f`; None if there are none.

    Points whose live bytes are not below the least arena of the points before are not placed. Points with
    more live bytes than `enough` are not placed either, except for the first one.
    """
    best: Plan | None = None
    for index, point in enumerate(found.points):
        if point.f > most_f + 1e-9:
            continue
        if best is not None and point.live_bytes >= min(best.arena_bytes, enough):
            break
        plan = found.plan(index)
        if best is None or plan.arena_bytes < best.arena_bytes:
            best = plan
    return best


def rows(network: str, board: str, image: str) -> Iterator[list[Cell]]:
    """Yields a row for each cell; each plan is checked on a model of its memory."""
    target = load_target(board)
    graph = read_graph(load_model(str(MODELS / f"{NETWORKS[network]}.tflite")))[1]
    every = list(cells(network))
    most = max(cell.f for cell in every)
    found = front(graph, target, Settings(image=image, max_f=most))
    checked: dict[int, str] = {}
    for cell in every:
        plan = least(found, cell.f, cell.bytes)
        true_f = TRUE_F.get((network, cell.f))
        row: list[Cell] = [
            network,
            cell.problem,
            cell.bytes,
            f"{cell.f:.2f}",
            "" if true_f is None else f"{true_f:.2f}",
        ]
        if plan is None:
            yield [*row, None, "", "no plan does so little", ""]
            continue
        if id(plan) not in checked:
            check(plan, graph, target)
            found_at = summarize(plan, graph, target.kernels_by_name(plan.kernels), target.costs)
            peak = found_at.regions[found_at.fullest].fullest.step.op
            checked[id(plan)] = layer(graph.op_name(peak), 28) if peak >= 0 else "the image's rows"
        won = plan.arena_bytes <= cell.bytes
        verdict = "won" if won else f"{plan.arena_bytes - cell.bytes:,} too many"
        yield [*row, plan.arena_bytes, f"{plan.f:.3f}", verdict, checked[id(plan)]]


def own_scheme(network: str, board: str, image: str) -> str:
    """Returns a line about the least arena that msf-CNN's blocks need if all memory is counted."""
    graph = read_graph(load_model(str(MODELS / f"{NETWORKS[network]}.tflite")))[1]
    found = plans(graph, load_target(board), image=image)
    plan = min(found, key=lambda plan: (plan.arena_bytes, plan.macs))
    return f"{network}: {plan.arena_bytes:,} bytes at F {plan.f:.3f}"


def main() -> int:
    """Prints a table, and in how many cells our arena is not larger than the paper's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="host")
    parser.add_argument("--image", action="append", choices=("stream", "overwritable"))
    arguments = parser.parse_args()
    titles = ["network", "cell", "paper RAM", "F", "true F", "our arena", "our F", "verdict", "fullest at"]
    for image in arguments.image or ("stream", "overwritable"):
        found = [row for network in NETWORKS for row in rows(network, arguments.board, image)]
        won = sum(row[7] == "won" for row in found)
        print(f"image {image}, board {arguments.board}: {won} of {len(found)} cells")
        print(table(titles, found), flush=True)
        own = "; ".join(own_scheme(network, arguments.board, image) for network in NETWORKS)
        print(f"msf-CNN's blocks on the same files, least arena: {own}", end="\n\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
