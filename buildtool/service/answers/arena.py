"""Arena problems from files, solved exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from buildtool.errors import BuildtoolError, ModelError, UsageError
from buildtool.plan.place.csvfile import MOST_BYTES, read_problem, write_solution
from buildtool.plan.place.solver import decide, solve

MOST_NODES = 1 << 40
MOST_CAPACITY = 1 << 50  # bytes
COMMON_NODES = 4_000_000  # the budget unless told otherwise: seconds, for
COMMON_ITEMS = 256  # that many buffers; a node's cost grows with their square


def arena(path: str, capacity: int | None, budget: int | None) -> dict[str, Any]:
    """The lowest placement found, or with a capacity in bytes any that fits; `files`: it as a table."""
    table = read_problem(_read(Path(path)), path=path)
    count = len(table.names)
    if budget is None:
        budget = COMMON_NODES * COMMON_ITEMS**2 // max(COMMON_ITEMS, count) ** 2
    problem = table.problem
    try:
        result = solve(problem, budget) if capacity is None else decide(problem, capacity, budget)
    except BuildtoolError as error:
        raise error.at(path=path) from None
    solution = result.solution
    return {
        "problem": Path(path).name,
        "status": result.status.value,
        "height_bytes": None if solution is None else solution.height,
        "bound_bytes": result.bound,
        "capacity_bytes": capacity,
        "nodes": result.nodes,
        "offsets": None if solution is None else dict(zip(table.names, solution.offsets, strict=True)),
        "files": {} if solution is None else {Path(path).name: write_solution(table, solution.offsets)},
    }


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read the problem: {error.strerror}", path=str(path)) from None
    except ValueError:  # a null character
        raise ModelError("no path", path=repr(str(path))) from None
