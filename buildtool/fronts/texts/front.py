"""The answer to `front` (the Pareto front of memory and work) as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import Cell, count, listing

if TYPE_CHECKING:
    from buildtool.schema.fronts import Figures, FrontAnswer, Peer, Point
    from buildtool.schema.plans import OtherPlan, PlanAnswer


def milliseconds(figures: Figures | OtherPlan | PlanAnswer) -> list[Cell]:
    """Returns the cell for a cost in estimated milliseconds, in a list; [] if they are not known."""
    time = figures["estimated_ms"]
    return [] if time is None else [time]


def text(answer: FrontAnswer) -> str:
    """Returns a table of the points by ascending memory. Each point does less work than the one above it."""
    head = (
        f"{answer['model']} on {answer['board']}, image {answer['image']}: "
        f"{len(answer['points'])} plans on the Pareto front up to F {answer['max_f']:g}"
    )
    plans: list[tuple[Cell, Point | Peer]] = [(point["live_bytes"], point) for point in answer["points"]]
    plans += [(None, peer) for peer in answer["beside"] if "error" not in peer]
    columns: dict[str, Callable[[tuple[Cell, Point | Peer]], Cell]] = {
        "strategy": lambda one: one[1]["strategy"],
        "live bytes": lambda one: one[0],
        "arena bytes": lambda one: one[1]["arena_bytes"],
        "state bytes": lambda one: _state_bytes(one[1]),
        "all bytes": lambda one: _all_bytes(one[1]),
        "F": lambda one: f"{one[1]['f']:.4f}",
        answer["cost_unit"]: lambda one: round(one[1]["cost"]),
        "est. ms": lambda one: next(iter(milliseconds(one[1])), None),
        "regions": lambda one: one[1]["regions"],
        "streamed": lambda one: one[1]["streamed_regions"],
        "groups": lambda one: one[1]["groups"],
    }
    if answer["hop"] is None:
        del columns["state bytes"], columns["all bytes"]
    if answer["points"][0]["estimated_ms"] is None:
        del columns["est. ms"]
    lines = [head, "", listing(plans, columns), "", *_notes(answer)]
    lines += [f"{peer['strategy']}: {peer['error']}" for peer in answer["beside"] if "error" in peer]
    return "\n".join(lines)


def _all_bytes(one: Point | Peer) -> Cell:
    """Returns the bytes of a point's arena and of what is kept between invokes on a moving window."""
    kept = _state_bytes(one)
    return None if kept is None else one["arena_bytes"] + kept


def _state_bytes(one: Point | Peer) -> int | None:
    """Returns the bytes of state that a point keeps between invokes; None for another strategy's plan."""
    kept = one.get("state_bytes")
    return kept if isinstance(kept, int) else None


def _notes(answer: FrontAnswer) -> list[str]:
    fitting = [p for p in answer["points"] if p["arena_bytes"] <= answer["available_bytes"]]
    hand_offs = ", ".join(map(str, answer["hand_offs"]))
    notes = [
        "live: the fullest region; arena: after placing. "
        f"Work is F times {answer['macs']:,} multiply-accumulates.",
        f"Hand-offs of {hand_offs} pixels and whole rows. Of the {len(answer['points'])} plans listed, "
        f"{len(fitting)} fit the board's {answer['available_bytes']:,} bytes.",
    ]
    if answer["hop"] is not None:
        notes.append(
            f"Each invoke takes {count(answer['hop'], 'new row')}; state is what is kept of the window. "
            "The option ram limits arena and state together."
        )
    elif answer["state_bytes"]:
        notes.append(
            f"Beside each arena, {count(answer['state_bytes'], 'byte')} of state live between invokes."
        )
    if len(answer["arenas_in"]) > 1:
        notes.append(
            f"These arenas are in one piece, not divided over {' and '.join(answer['arenas_in'])}. The "
            "board's bytes are the sum of both, and a plan within them may not fit when divided; `plan` "
            "shows whether it does."
        )
    if answer["hop"] is None and any(point["f"] < 1 for point in answer["points"]):
        notes.append("F is below 1 where rows and columns that no later operator reads are not computed.")
    if answer["search_factor"] > 1:
        notes.append(
            "The budget ended the search. For every possible plan, one of these needs at most "
            f"{answer['search_factor']:.2f} times its live bytes and at most as many times its work."
        )
    if answer["placing_ended"]:
        notes.append("The budget for placing ended first: these plans are not proven to be the smallest.")
    if answer["order_status"] == "feasible":
        notes.append("The budget for orders of the operators ended before one was proven to be the best.")
    return notes
