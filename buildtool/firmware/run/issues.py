"""Issues of a core's vector unit: counted by a firmware of its own on the host, and what they say of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from buildtool.base.errors import ToolError
from buildtool.firmware.run.execute import Outcome, built, execute
from buildtool.target.registry import plugin
from buildtool.target.types import Issues, VectorUnit

if TYPE_CHECKING:
    from buildtool.emit.sources import Sources
    from buildtool.firmware.planned import Planned
    from buildtool.firmware.run.compare import Array
    from buildtool.schema.boards import Estimate
    from buildtool.schema.runs import (
        IssueCount,
        IssueSummary,
        LayerProfile,
        ProfileLine,
        PublishedProfile,
    )
    from buildtool.target.types import Board, PublishedPart

SOURCE = "counted in a model of the VPU"
LOADS = "LOAD"  # among the operator kinds of a published profile: loading weights


def counted(made: Planned, sources: Sources, inputs: Sequence[Array]) -> Outcome | None:
    """A run that counts the issues of each operator over one set of inputs; None where no model does."""
    board = made.target.board
    find = getattr(plugin(board), "counting_harness", None)
    if find is None or board.vector_unit is None:
        return None
    with built(made, sources, harness=find(board)) as image:
        return execute(made, image, [inputs], count=True)


def refuse_unless_same(counting: Outcome, plain: Outcome) -> None:
    """The program that counts computes what the other one does."""
    if counting.outputs[0] != plain.outputs[0]:
        raise ToolError("the firmware that counts issues gives other outputs", hint="please report this")


def of_operator(found: Issues | None, macs: int, board: Board) -> IssueCount | None:
    """An operator's count; None where its kernel declares no issues."""
    unit = board.vector_unit
    if found is None or unit is None or not found.vpu + found.scalar:
        return None
    return {
        "vpu": found.vpu,
        "mac": found.mac,
        "scalar": found.scalar,
        "slowest": found.slowest,
        "vpu_per_mac": found.vpu / macs if macs else None,
        "seconds": _seconds(found.slowest, board, unit),
    }


def why_uncounted(counts: Mapping[int, Issues], position: int) -> str:
    """Why an operator has no count, of a run that counted."""
    if position not in counts:
        return "no code runs for them"
    return "they run plain C, of which a model of the vector unit sees nothing"


def summary(rows: Sequence[LayerProfile], board: Board) -> IssueSummary | None:
    """The counted operators together; None where there is no vector unit to count."""
    unit = board.vector_unit
    if unit is None:
        return None
    found = [(row, row["issues"]) for row in rows if row["issues"] is not None]
    counts = [issues for _, issues in found if issues is not None]
    return {
        "source": SOURCE,
        "limit_per_mac": 1 / unit.macs,
        "clock_hz": board.clock_hz,
        "cycles_per_issue": unit.cycles,
        "threads": board.core.threads,
        "vpu": sum(one["vpu"] for one in counts),
        "scalar": sum(one["scalar"] for one in counts),
        "slowest": sum(one["slowest"] for one in counts),
        "seconds": sum(one["seconds"] for one in counts),
        "operators": len(counts),
        "macs": sum(row["macs"] for row, _ in found),
        "all_operators": len(rows),
        "all_macs": sum(row["macs"] for row in rows),
    }


def beside_published(
    made: Planned, rows: Sequence[LayerProfile], estimate: Estimate | None
) -> PublishedProfile | None:
    """The published profile of this very network, if there is one."""
    board, plan = made.target.board, made.plan
    known = board.published
    if known is None or known.macs != plan.macs_layerwise:
        return None
    lines = [_line(part, rows, estimate) for part in known.parts]
    return {
        "network": known.network,
        "source": known.source,
        "seconds": known.milliseconds / 1e3,
        "estimated_seconds": estimate["total_seconds"] if estimate else None,
        "lines": lines,
    }


def _line(part: PublishedPart, rows: Sequence[LayerProfile], estimate: Estimate | None) -> ProfileLine:
    own = [row for row in rows if row["operator"] in part.operators]
    macs = sum(row["macs"] for row in own)
    counts = [row["issues"] for row in own]
    known = [one["seconds"] for one in counts if one is not None]
    counted_ = sum(known) if own and len(known) == len(counts) else None
    estimated = macs / estimate["macs_per_second"] if macs and estimate else None
    if LOADS in part.operators:
        estimated = estimate["load_seconds"] if estimate else None
    return {
        "name": part.name,
        "operators": len(own) + (LOADS in part.operators),
        "published": part.milliseconds / 1e3,
        "estimated": estimated,
        "counted": counted_,
    }


def _seconds(issues: int, board: Board, unit: VectorUnit) -> float:
    """The time of a thread that issues one instruction after the other, as often as it can."""
    return issues * unit.cycles / board.clock_hz if board.clock_hz else 0.0
