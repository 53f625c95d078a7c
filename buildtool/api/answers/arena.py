"""Placements for arena problems: of files, and of networks for TensorFlow Lite Micro."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import BuildtoolError
from buildtool.plan.place.csvfile import MOST_BYTES, read_problem, write_solution
from buildtool.plan.place.solver import solve_problem

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Arena, Tflm
    from buildtool.base.session import Session
    from buildtool.schema.builds import ArenaAnswer, TflmAnswer

# The default number of search nodes: at most half a minute for COMMON_ITEMS buffers. The time of a node grows
# with the number of buffers (6 us for 256 buffers, 34 us for 1,000), so larger problems get fewer nodes.
COMMON_NODES = 5_000_000
COMMON_ITEMS = 256


def arena(request: Arena, session: Session) -> ArenaAnswer:
    """Returns the lowest placement that was found, or the first one within a given capacity.

    `files` of the answer has the problem's table with the offsets of the placement.
    """
    path, name, capacity = request.file.path, Path(request.file.path).name, request.capacity
    table = read_problem(request.file.read("the problem", MOST_BYTES), path=path)
    count = len(table.names)
    budget = common_budget(count) if request.budget is None else request.budget
    problem = table.problem
    try:
        result = solve_problem(problem, capacity, budget, session)
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
    """Returns the number of search nodes that takes about the same time for any number of buffers,
    `items`.
    """
    return COMMON_NODES * COMMON_ITEMS // max(COMMON_ITEMS, items)


def tflm(request: Tflm, session: Session) -> TflmAnswer:
    """Returns the model's file with arena offsets for TensorFlow Lite Micro in its metadata."""
    from buildtool.plan.models import load_model, tflite_file
    from buildtool.plan.others.tflm import write_plan_into_file

    model = load_model(request.model, session)
    data, allocation = write_plan_into_file(tflite_file(model), path=model.path, session=session)
    return {
        "model": model.name,
        "arena_bytes": allocation.height,
        "arena_bound_bytes": allocation.bound,
        "placed_tensors": allocation.tensors,
        "tensors": len(allocation.offsets),
        "files": {f"{model.name}.tflite": data},
    }
