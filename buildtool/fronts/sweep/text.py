"""What `buildtool sweep` prints: the front of each board, failures by their reason, and what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from buildtool.fronts.sweep.changes import CandidateChange
from buildtool.fronts.sweep.unbeaten import by_board, front, measures
from buildtool.fronts.sweep.worker import FAILED, STATUS, Row
from buildtool.fronts.texts import table
from buildtool.fronts.texts.table import count, plain

MOST_ROWS = 20  # of a front
MOST_CHANGES = 40
_PARTS = (("changed", "changed"), ("added", "new"), ("removed", "gone"), ("failed", "failing now"))
_EVERY = (*_PARTS, ("works", "working again"))


def text(rows: Sequence[Row]) -> str:
    """Returns the fronts of all boards, and the failures."""
    lines = [f"{count(len(rows), 'candidate')}, {sum(row[STATUS] == FAILED for row in rows):,} failed"]
    for board, own in by_board(rows).items():
        best, compared = front(own), measures(own)
        options = [
            key for key in dict.fromkeys(key for row in own for key in row) if key.startswith("options.")
        ]
        shown = [key for key in options if len({row.get(key) for row in own}) > 1]
        body: list[list[table.Cell]] = [
            [
                plain(row["network"]),
                *(_word(row.get(key)) for key in shown),
                *(row[one.key] for one in compared),
            ]
            for row in best[:MOST_ROWS]
        ]
        titles = ["network", *(key.partition(".")[2] for key in shown), *(one.title for one in compared)]
        lines += ["", f"{plain(board)}: {count(len(best), 'candidate')} that no other one beats"]
        lines += [table.table(titles, body)] if body else []
        lines += [f"and {count(len(best) - MOST_ROWS, 'further row')}"] if len(best) > MOST_ROWS else []
    reasons = Counter(row["code"] for row in rows if row[STATUS] == FAILED)
    for code, number in sorted(reasons.items()):
        example = next(row for row in rows if row.get("code") == code)
        lines += [
            "",
            f"{code}: {number:,} failed, such as {plain(example['network'])}: {plain(example['error'])}",
        ]
    return "\n".join(lines)


def changes_text(changes: Sequence[CandidateChange]) -> str:
    """Returns the candidates that differ from earlier results; those that exceed a limit come first."""
    if not changes:
        return "nothing changed"
    numbers = Counter(change.how for change in changes)
    lines = [", ".join(f"{numbers[how]:,} {words}" for how, words in _EVERY if numbers[how])]
    for change in sorted(changes, key=lambda one: not one.exceeded)[:MOST_CHANGES]:
        words = [_figure(one.name, one.before, one.after) for one in change.totals] or [change.how]
        lines.append(
            f"{plain(change.name)}: {', '.join(words)}{f': {plain(change.error)}' if change.error else ''}"
        )
        lines += [f"  LIMIT EXCEEDED: {limit}" for limit in change.exceeded]
    hidden = len(changes) - MOST_CHANGES
    return "\n".join([*lines, *([f"and {count(hidden, 'further candidate')}"] if hidden > 0 else [])])


def _word(value: object) -> table.Cell:
    return "" if value is None else str(value)


def _figure(name: str, before: float | None, after: float | None) -> str:
    old, new = (table.cell(value) or "missing" for value in (before, after))
    return f"{name} {old} -> {new}"
