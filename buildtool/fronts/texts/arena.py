"""The answer of `arena` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import count

if TYPE_CHECKING:
    from buildtool.schema.builds import ArenaAnswer

_MEANING = {
    "optimal": "optimal: no placement is lower",
    "feasible": "feasible: whether a lower one exists is not known",
    "infeasible": "infeasible: proven, nothing fits",
    "unknown": "unknown: nothing found so far; a larger --budget may",
}


def text(answer: ArenaAnswer) -> str:
    """Height, bound, what is proven, effort: one a line."""
    height, capacity = answer["height_bytes"], answer["capacity_bytes"]
    lines = [
        f"{answer['problem']}: {_MEANING[answer['status']]}",
        f"height    {'none' if height is None else count(height, 'byte')}",
        f"bound     {count(answer['bound_bytes'], 'byte')}",
        *([] if capacity is None else [f"capacity  {count(capacity, 'byte')}"]),
        f"nodes     {answer['nodes']:,}",
    ]
    return "\n".join(lines)
