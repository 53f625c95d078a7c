"""Additions to a report: the differences from an earlier one, and the counts of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.base.errors import UsageError
from buildtool.fronts.changes import figures
from buildtool.fronts.changes.compare import Change, RowChange, changes

if TYPE_CHECKING:
    from buildtool.fronts.changes.figures import Figures
    from buildtool.schema.builds import BuildAnswer
    from buildtool.schema.reports import (
        Differences,
        FigureChange,
        ReportAnswer,
        ReportImage,
        ReportLayer,
        ReportRun,
        RowDifference,
    )

_HINT = "give the output of `buildtool profile MODEL --board B --json` for the same network and options"


def compare_reports(answer: ReportAnswer, earlier: Figures) -> ReportAnswer:
    """Returns the report with the differences from an earlier one."""
    differing = changes(earlier, figures.of_answer("", answer))
    differences: Differences = {
        "about": f"{earlier.about} ({Path(earlier.path).name})",
        "totals": [_figure(change) for change in differing.totals],
        "regions": _differing_rows(differing.regions),
        "layers": _differing_rows(differing.layers),
    }
    return {**answer, "against": differences}


def _figure(change: Change) -> FigureChange:
    return {"name": change.name, "unit": change.unit, "before": change.before, "after": change.after}


def _differing_rows(rows: Sequence[RowChange]) -> list[RowDifference]:
    """Returns the rows that differ. A count that only one of the two reports has is not a difference."""
    differing: list[RowDifference] = []
    for row in rows:
        numbers = [_figure(c) for c in row.numbers if row.how != "changed" or c.growth is not None]
        if numbers or row.words:
            differing.append(
                {
                    "name": row.name,
                    "label": row.label,
                    "how": row.how,
                    "numbers": numbers,
                    "words": list(row.words),
                }
            )
    return differing


# ---- counted layers ------------------------------------------------------------------------------------


def read_profile(path: str) -> Mapping[str, Any]:
    """Returns the answer to `profile` that a file has. Raises UsageError for any other file."""
    try:
        content = json.loads(figures.data(path).decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise UsageError("not a JSON file", path=path, hint=_HINT) from None
    if not isinstance(content, dict) or not isinstance(content.get("per_operator"), list):
        raise UsageError("this is not an answer of `buildtool profile`", path=path, hint=_HINT)
    return content


def with_counts(answer: ReportAnswer, profile: Mapping[str, Any], path: str = "") -> ReportAnswer:
    """Returns the report with the instructions and cycles of a profile.

    `path` is the profile's file ("" if the same command made the profile). Raises UsageError if the profile
    has other layers.
    """
    rows = profile["per_operator"]
    try:
        seconds, estimated = profile["seconds"], profile["estimated_ms"]
        same = [(str(row["name"]), str(row["kernel"]), int(row["macs"])) for row in rows] == [
            (layer["name"], layer["kernel"], layer["macs"]) for layer in answer["layers"]
        ]
        layers: list[ReportLayer] = [
            {**layer, "instructions": _whole(row["instructions"]), "cycles": _whole(row["cycles"])}
            for layer, row in zip(answer["layers"], rows if same else (), strict=same)
        ]
        run: ReportRun = {
            "how": f"{profile['level_text']}, {profile['compiler']}",
            "instructions": _whole(profile["instructions"]),
            "cycles": _whole(profile["cycles"]),
            "cycles_are": str(profile["cycles_are"]),
            "milliseconds": estimated if seconds is None else 1e3 * seconds,
        }
        time = run["milliseconds"]
        if time is not None and not (isinstance(time, float) and 0 <= time < figures.MOST):
            raise TypeError("not a time")
    except (LookupError, TypeError, ValueError):
        raise UsageError("this is not an answer of `buildtool profile`", path=path, hint=_HINT) from None
    if not same:
        raise UsageError("the profile is of another network or of another plan", path=path, hint=_HINT)
    return {**answer, "layers": layers, "run": run}


def with_image(answer: ReportAnswer, build: BuildAnswer) -> ReportAnswer:
    """Returns the report with the parts of the firmware image that was linked for its plan."""
    image: ReportImage = {"compiler": build["compiler"], "sizes": build["sizes"], "parts": build["parts"]}
    return {**answer, "linked": image}


def _whole(value: object) -> int | None:
    """Returns a count, or None if there is none. Raises TypeError if the value is not a whole number."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < figures.MOST:
        raise TypeError("not a count")
    return value
