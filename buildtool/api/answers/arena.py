"""Arena problems from files, solved exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import BuildtoolError
from buildtool.plan.place.csvfile import MOST_BYTES, read_problem, write_solution
from buildtool.plan.place.known import solved

if TYPE_CHECKING:
    from buildtool.base.files import File
    from buildtool.base.session import Session
    from buildtool.schema.builds import ArenaAnswer

# Nodes that the search visits by default: half a minute at most for COMMON_ITEMS buffers. The time of a node
# grows with the number of buffers (6 us with 256 of them, 34 us with 1,000): larger problems get fewer nodes.
COMMON_NODES = 5_000_000
COMMON_ITEMS = 256


def arena(
    file: File, capacity: int | None, budget: int | None, session: Session | None = None
) -> ArenaAnswer:
    """The lowest placement that was found; with a capacity in bytes, any placement that fits.

    `files` has the problem's table with the offsets.
    """
    path, name = file.path, Path(file.path).name
    table = read_problem(file.read("the problem", MOST_BYTES), path=path)
    count = len(table.names)
    if budget is None:
        budget = common_budget(count)
    problem = table.problem
    try:
        result = solved(problem, capacity, budget, session)
    except BuildtoolError as error:
        raise error.at(path=path) from None
    solution = result.solution
    return {
        "problem": name,
        "status": result.status.value,
        "height_bytes": None if solution is None else solution.height,
        "bound_bytes": result.bound,
        "capacity_bytes": capacity,
        "nodes": result.nodes,
        "offsets": None if solution is None else dict(zip(table.names, solution.offsets, strict=True)),
        "files": {} if solution is None else {name: write_solution(table, solution.offsets)},
    }


def common_budget(items: int) -> int:
    """Nodes for a problem of so many items: about as much time for all."""
    return COMMON_NODES * COMMON_ITEMS // max(COMMON_ITEMS, items)
