"""How a network runs on a moving window, as plain values: the rows that each invoke computes and keeps.

A hop is one move of the input's window by some rows; there is one invoke for each hop. A moment is a point in
time that has one row of the window.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError, suggest
from buildtool.graph.hop.choices import keep_all
from buildtool.graph.hop.moments import Analysis, Work
from buildtool.graph.hop.needs import Needs, ring_bytes, sums_bytes
from buildtool.graph.macs import op_macs, total_macs

if TYPE_CHECKING:
    from buildtool.firmware.planned import Planned
    from buildtool.schema.plans import WholeOperator, WindowTensor, WindowView


def describe_window(planned: Planned, period: float | None, ms: float | None) -> WindowView | None:
    """Returns what an invoke computes and keeps on a moving window; None if each invoke has an input of its
    own.

    `period` is the time in milliseconds from hop to hop (None: not known), and `ms` the estimated time of an
    invoke (None: not known). Raises UsageError if there is a period but no moving window.
    """
    if planned.hop is None:
        if period is not None:
            text = "it has no effect without hop: each invoke has an input of its own"
            raise UsageError(text, option="period", hint=suggest(period=None))
        return None
    needs, window = planned.hop.needs, planned.hop.window
    analysis, shown = needs.analysis, planned.hop.graph.window
    assert shown is not None
    sums = [window.ops[position] for position in needs.sums]
    return {
        "rows": analysis.hop,
        "window_rows": shown.rows,
        "hops": shown.hops,
        "tensors": _tensors(needs),
        "whole": _whole_operators(needs),
        "sums": [window.tensors[op.outputs[0]].name for op in sums],
        "sums_bytes": sum(sums_bytes(window, op, analysis.moments[op.inputs[0]]) for op in sums),
        "f_without_edges": _without_edges(analysis),
        "period_ms": period,
        "duty": ms / period if period and ms is not None else None,
    }


def _tensors(needs: Needs) -> list[WindowTensor]:
    graph, moments, makers = needs.analysis.graph, needs.analysis.moments, needs.analysis.graph.producers()
    rows: list[WindowTensor] = []
    for t, image in moments.items():
        if t not in needs.made or (t in makers and not needs.made[t]):
            continue
        kept, tensor = needs.kept.get(t), graph.tensors[t]
        rows.append(
            {
                "name": tensor.name,
                "operator": str(graph.ops[makers[t]].kind) if t in makers else "",
                "rows": image.rows,
                "computed": [list(span) for span in needs.made[t]],
                "kept": None if kept is None else list(kept),
                "kept_bytes": 0 if kept is None else ring_bytes(image, kept[1] - kept[0], tensor.dtype),
                "edge_rows": min(image.rows, image.top + image.bottom),
            }
        )
    return rows


def _whole_operators(needs: Needs) -> list[WholeOperator]:
    """Returns the operators that read the whole window at each hop, as they would without a moving window."""
    graph, roles = needs.analysis.graph, needs.analysis.roles
    return [
        {
            "operator": op.place,
            "name": graph.op_name(position),
            "why": role.why or "what it sums is not kept: that takes more memory",
            "macs": op_macs(graph, op),
        }
        for position, (op, role) in enumerate(zip(graph.ops, roles, strict=True))
        if (role.work is Work.WHOLE and role.why) or (role.work is Work.POOLS and position not in needs.sums)
    ]


def _without_edges(analysis: Analysis) -> float:
    """Returns the work factor F that all rows kept would give if no row depended on padding at the window's
    edges.
    """
    free = {t: image._replace(top=0, bottom=0) for t, image in analysis.moments.items()}
    return keep_all(replace(analysis, moments=free)).macs / max(1, total_macs(analysis.graph))
