"""What changed between the results of two sweeps, candidate by candidate, with limits for CI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from buildtool.base.errors import UsageError
from buildtool.fronts.changes.compare import Change, Floor, Limit, changes, exceeded_limits
from buildtool.fronts.changes.figures import COST, MEMORY, METRICS, Figures
from buildtool.fronts.sweep.worker import FAILED, STATUS, Row


@dataclass(frozen=True)
class CandidateChange:
    """A candidate that differs between two sweeps.

    `how` is changed, added, removed, failed (only in the later sweep) or works (only in the later sweep).
    """

    name: str
    how: str
    totals: tuple[Change, ...] = ()
    exceeded: tuple[str, ...] = ()
    error: str = ""


def compare(
    before: Sequence[Row], after: Sequence[Row], limits: Sequence[Limit | Floor] = ()
) -> list[CandidateChange]:
    """Returns the candidates that differ, in the order of the later results.

    If there are limits, a candidate that fails only now exceeds them, too. Raises UsageError for a limit on a
    figure that the results do not have, and for limits if the results have no candidate in common.
    """
    old, new = ({name_of(row): row for row in rows} for rows in (before, after))
    if limits and old.keys().isdisjoint(new):
        hint = "give the results of an earlier run of this sweep, or leave --fail-if out"
        raise UsageError("the earlier results have none of these candidates", hint=hint)
    differing = [_compare(name, old.get(name), row, limits) for name, row in new.items()]
    gone = [CandidateChange(name, "removed") for name in old if name not in new]
    return [*(one for one in differing if one is not None), *gone]


def name_of(row: Mapping[str, object]) -> str:
    """Returns a candidate's name: its network, its board and its options."""
    options = [f"{key.partition('.')[2]}={row[key]}" for key in sorted(row) if key.startswith("options.")]
    return " ".join([f"{row['network']} on {row['board']}", *options])


def _compare(
    name: str, before: Row | None, after: Row, limits: Sequence[Limit | Floor]
) -> CandidateChange | None:
    if before is None:
        return CandidateChange(name, "added")
    fails, failed = (row[STATUS] == FAILED for row in (after, before))
    if fails:
        error = f"{after['error']} [{after['code']}]"
        exceeded: tuple[str, ...] = ("it fails",) if limits else ()
        return None if failed else CandidateChange(name, "failed", exceeded=exceeded, error=error)
    if failed:
        return CandidateChange(name, "works")
    whole = changes(_figures(name, before), _figures(name, after))
    exceeded = tuple(exceeded_limits(limits, whole.totals))
    differing = tuple(one for one in whole.totals if one.before != one.after)
    return CandidateChange(name, "changed", differing, exceeded) if differing or exceeded else None


def _figures(name: str, row: Row) -> Figures:
    names = {metric.name: metric.unit for metric in METRICS} | {COST: str(row.get("cost_unit", ""))}
    own = {key: value for key, value in row.items() if key in names or key.startswith(MEMORY)}
    totals = {key: value for key, value in own.items() if isinstance(value, int | float)}
    return Figures("", name, totals, {key: names.get(key, "bytes") for key in totals}, (), ())
