"""Solves arena problems (.csv) within a capacity and to the lowest height: heights, nodes, CPU seconds.

    python benchmarks/arena.py [--budget NODES] [--capacity N] [FILE.csv ...]

Without files, the problems are those in ../shared/minimalloc.
"""

import argparse
import time
from pathlib import Path

from buildtool.api.answers.arena import COMMON_NODES
from buildtool.fronts.texts.table import table
from buildtool.plan.place.arena import validate
from buildtool.plan.place.csvfile import read_problem
from buildtool.plan.place.solver import Result, decide, solve

CAPACITY = 1_048_576
FILES = Path(__file__).resolve().parents[1] / "../shared/minimalloc"


def row(path: Path, capacity: int | None, budget: int) -> list[str | int | float | None]:
    """Solves one problem, and returns its row of the table with the CPU seconds that this took."""
    problem = read_problem(path.read_bytes(), path=str(path)).problem
    start = time.process_time()
    result: Result = solve(problem, budget) if capacity is None else decide(problem, capacity, budget)
    seconds = time.process_time() - start
    if result.solution is not None:
        validate(problem, result.solution.offsets)
    height = None if result.solution is None else result.solution.height
    return [path.name, len(problem.items), height, result.bound, result.status.value, result.nodes, seconds]


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--budget", type=int, default=COMMON_NODES)
    parser.add_argument("--capacity", type=int, default=CAPACITY)
    arguments = parser.parse_args()
    files = arguments.files or sorted(FILES.glob(f"*.{CAPACITY}.csv"))
    titles = ["file", "buffers", "height", "bound", "status", "nodes", "CPU seconds"]
    for title, capacity in ((f"within {arguments.capacity:,} bytes", arguments.capacity), ("lowest", None)):
        print(f"\n{title}")
        print(table(titles, [row(path, capacity, arguments.budget) for path in files]))


if __name__ == "__main__":
    main()
