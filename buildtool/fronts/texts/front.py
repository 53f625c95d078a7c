"""The answer of `front` as text, and how costs stand in tables: their unit, how long where that is a time."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import WIDTH, Cell, count, table

if TYPE_CHECKING:
    from buildtool.schema.fronts import Figures, FrontAnswer, Peer
    from buildtool.schema.plans import OtherPlan, PlanAnswer


def cost_titles(unit: str, milliseconds: float | None) -> list[str]:
    """The columns of a table that has costs: the unit's name, and `est. ms` where there are milliseconds."""
    return [unit] if milliseconds is None else [unit, "est. ms"]


def milliseconds(figures: Figures | OtherPlan | PlanAnswer) -> list[Cell]:
    """What stands in the second of these columns, if there is one."""
    found = figures["estimated_ms"]
    return [] if found is None else [f"{found:,.2f}"]


def in_ms(answer: PlanAnswer) -> str:
    """The milliseconds behind a plan's cost, "" where none are known."""
    found = answer["estimated_ms"]
    return "" if found is None else f", about {found:,.1f} ms"


def by_ratio(answer: PlanAnswer) -> list[str]:
    """A line for kernels whose cycles are instructions times a mean."""
    names = answer["cost_by_ratio"]
    if not names:
        return []
    said = "their" if len(names) > 1 else "its"
    text = f"{', '.join(names)}: no formula in cycles, {said} instructions at the mean of cycles"
    return wrap(text, WIDTH, initial_indent="         - ", subsequent_indent="           ")


def text(answer: FrontAnswer) -> str:
    """Points by memory, ascending; each does less work than the one before it."""
    head = (
        f"{answer['model']} on {answer['board']}, image {answer['image']}: "
        f"{len(answer['points'])} plans up to F {answer['max_f']:g} that no other beats in memory and work"
    )
    rows: list[list[Cell]] = [
        _row(point["strategy"], point, point["live_bytes"]) for point in answer["points"]
    ]
    rows += [_row(peer["strategy"], peer, None) for peer in answer["beside"] if "error" not in peer]
    titles = [
        "strategy",
        "live bytes",
        "arena bytes",
        "F",
        *cost_titles(answer["cost_unit"], answer["points"][0]["estimated_ms"]),
    ]
    titles += ["regions", "streamed", "groups"]
    lines = [head, "", table(titles, rows), "", *_notes(answer)]
    lines += [f"{peer['strategy']}: {peer['error']}" for peer in answer["beside"] if "error" in peer]
    return "\n".join(lines)


def _row(strategy: str, figures: Figures | Peer, live: int | None) -> list[Cell]:
    return [
        strategy,
        live,
        figures["arena_bytes"],
        f"{figures['f']:.4f}",
        f"{figures['cost']:,.0f}",
        *milliseconds(figures),
        figures["regions"],
        figures["streamed_regions"],
        figures["groups"],
    ]


def _notes(answer: FrontAnswer) -> list[str]:
    fitting = [p for p in answer["points"] if p["arena_bytes"] <= answer["available_bytes"]]
    hand_offs = ", ".join(map(str, answer["hand_offs"]))
    notes = [
        f"live: the fullest region; arena: placed. Work is F times {answer['macs']:,} multiply-accumulates.",
        f"Hand-offs of {hand_offs} pixels and whole rows. Of the {len(answer['points'])} plans listed, "
        f"{len(fitting)} fit the board's {answer['available_bytes']:,} bytes.",
    ]
    if answer["state_bytes"]:
        notes.append(
            f"Beside each arena, {count(answer['state_bytes'], 'byte')} of state live between invokes."
        )
    if len(answer["arenas_in"]) > 1:
        notes.append(
            f"These arenas are in one piece, not divided over {' and '.join(answer['arenas_in'])}: "
            "the board's bytes are both together, and a plan within them may not fit divided; plan tells."
        )
    if any(point["f"] < 1 for point in answer["points"]):
        notes.append("F is below 1 where rows and columns that no later operator reads are not computed.")
    if answer["search_factor"] > 1:
        notes.append(
            "The budget ended the search. For every plan there is one of these that needs at most "
            f"{answer['search_factor']:.2f} times its live bytes and does at most as many times its work."
        )
    if answer["placing_ended"]:
        notes.append("The budget for placing plans ended first: these are not proven least.")
    if answer["order_status"] == "feasible":
        notes.append("The budget for orders of the operators ended before one was proven to be the best.")
    return notes
