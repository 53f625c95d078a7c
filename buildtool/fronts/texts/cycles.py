"""What a profile says of cycles: measured, or estimated and of what, or why there are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.schema.runs import CycleEstimate, ProfileAnswer

ESTIMATED = "estimated"


def lines(answer: ProfileAnswer) -> list[str]:
    """A line for measured cycles, a few for estimated ones, the reason where there are none."""
    cycles, how = answer["cycles"], answer["estimated_by"]
    if cycles is None:
        return [f"no cycles: {answer['no_cycles']}"] if answer["no_cycles"] else []
    if how is None:
        return [_measured(answer, cycles)]
    return _estimated(answer, cycles, how)


def _measured(answer: ProfileAnswer, cycles: int) -> str:
    """What the core's own counter says of the whole."""
    outside = cycles - sum(row["cycles"] or 0 for row in answer["per_operator"])
    text = f"cycles are measured, by the core's own counter; {outside:,} of them between layers"
    if answer["seconds"] is None:
        return text
    return f"{text}; {answer['seconds'] * 1000:,.2f} ms at the board's clock"


def _estimated(answer: ProfileAnswer, cycles: int, how: CycleEstimate) -> list[str]:
    """The whole, and its parts."""
    whole = f"cycles are an estimate, not measured: {cycles:,} of them"
    if answer["estimated_ms"] is not None:
        whole += f", {answer['estimated_ms']:,.2f} ms at {how['clock_hz'] / 1e6:,g} MHz"
    parts = how["parts"]
    refill = f"{how['taken_branches']:,} x {how['taken_branch_cycles']}; {how['source']}"
    found = [
        f"{whole}; {how['between']:,} of them between layers",
        f"  pipeline {parts['pipeline']:,} ({how['model']}{_skipped(how['skipped'])})",
        f"  taken branches {parts['branches']:,} ({refill})",
    ]
    if parts["words"]:
        found.insert(2, f"  loads and stores of several words {parts['words']:,} more than the model counts")
    found += [
        f"  waiting for {wait['memory']} {wait['code'] + wait['data']:,} "
        f"(code {wait['code']:,}, data {wait['data']:,}, by a simple model of the memory)"
        for wait in how["waits"]
        if wait["code"] + wait["data"]
    ]
    if how["ideal"]:
        found.append(f"  memory ideal: {', '.join(how['ideal'])} (the board's file gives no speed)")
    return found


def _skipped(names: Sequence[str]) -> str:
    """Instructions that take no time in the model."""
    return f"; without {', '.join(names)}, of which it knows nothing" if names else ""
