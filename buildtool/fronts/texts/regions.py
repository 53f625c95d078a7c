"""The regions of a streamed plan as text: how each runs, its live bytes, and its largest buffers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from buildtool.base.layers import short_names
from buildtool.fronts.texts.table import Cell, count, layer, shorten, table

if TYPE_CHECKING:
    from buildtool.schema.plans import BufferView, Peak, PlanAnswer, RegionView, WorkView
    from buildtool.schema.reports import PointRegion


LAYERS_WIDTH = 28
FORMS_WIDTH = 20
BUFFER_WIDTH = 28


def extent(buffer: BufferView) -> str:
    """Returns how much of its tensor a buffer holds, such as "2 rows" or "whole"."""
    if buffer["kind"] not in ("ring", "tensor", "lines"):
        return ""
    if not buffer["rows"]:
        return "whole"
    rows = count(buffer["rows"], "row")
    return f"{rows} x {buffer['columns']}" if buffer["columns"] else rows


def owner(answer: PlanAnswer, buffer: BufferView) -> str:
    """Returns the name of the layer that a buffer belongs to."""
    if buffer["op"] >= 0:
        return layer_of(answer, buffer["op"], BUFFER_WIDTH)
    names = buffer["tensor_names"]
    indices = _indices(_all_names(answer)) if names else {}
    if names and names[0] in indices:
        return layer_of(answer, answer["operators"][indices[names[0]]]["position"], BUFFER_WIDTH)
    return layer(names[0] if names else buffer["name"], BUFFER_WIDTH)


def layer_of(answer: PlanAnswer, position: int, width: int) -> str:
    """Returns the name of the layer at a position, in at most `width` characters."""
    return shorten(_names(answer)[position], width)


def _names(answer: PlanAnswer) -> list[str]:
    return _short_names(_all_names(answer))


def _all_names(answer: PlanAnswer) -> tuple[str, ...]:
    return tuple(op["name"] for op in answer["operators"])


@lru_cache(maxsize=1)  # a report calls it for every row
def _short_names(names: tuple[str, ...]) -> list[str]:
    return short_names(list(names))


@lru_cache(maxsize=1)
def _indices(names: tuple[str, ...]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}


def span(answer: PlanAnswer, ops: Sequence[int]) -> str:
    """Returns the names of the first and the last layer, without a common end or a repeated common folder.

    If both names do not fit into the column, it returns the first name and the number of layers that follow.
    """
    if len(ops) == 1:
        return layer_of(answer, ops[0], LAYERS_WIDTH)
    names = _names(answer)
    first, last = (names[p] for p in (ops[0], ops[-1]))
    folder = first.rpartition("/")[0] + "/"
    if len(folder) > 1 and last.startswith(folder):
        last = last.removeprefix(folder)
    elif len(first) + len(last) > LAYERS_WIDTH - 3:
        first, last = _remove_common_end(first, last)
    if len(first) + len(last) <= LAYERS_WIDTH - 3:
        return f"{first} - {last}"
    more = f" +{len(ops) - 1}"
    return shorten(names[ops[0]], LAYERS_WIDTH - len(more)) + more


def _remove_common_end(first: str, last: str) -> tuple[str, str]:
    """Returns two names without the last words that they have in common."""
    words = re.split("(?=[_/])", first)
    others = re.split("(?=[_/])", last)
    while len(words) > 1 and len(others) > 1 and words[-1] == others[-1]:
        words.pop()
        others.pop()
    return "".join(words), "".join(others)


def forms(answer: PlanAnswer, ops: Sequence[int]) -> str:
    """Returns the forms of some operators (kind, window and stride, such as "dw 3x3/2"), separated by commas.

    If there are too many for the column, only the first ones are listed, and the number of the others.
    """
    names = [answer["operators"][position]["form"] for position in ops]
    text = ", ".join(names)
    while len(text) > FORMS_WIDTH and len(names) > 1:
        names.pop()
        text = ", ".join(names) + f", +{len(ops) - len(names)}"
    return text


MOST_AT_PEAK = 8
MOST_OF_A_REGION = 4

SCHEMES = {
    "operator": "by rows",
    "h-cached": "columns",
    "edges": "edges",
    "bands": "bands",
    "swaps": "swaps",
    "halo": "strips",
    "branches": "branches",
}
_HOLDS = {
    "input": "input",
    "output": "output",
    "kept": "kept for later",
    "rings": "row ring",
    "windows": "window",
    "accumulators": "sums",
    "scratch": "scratch",
    "weights": "weights",
}
USES = tuple(_HOLDS)
_LEGEND = {
    "by rows": "by rows: through a ring of rows; nothing is computed twice",
    "strips": "strips: whole rows, operator by operator; shared rows are computed again",
    "columns": "columns: some pixels at a time; columns are kept, rows are computed again",
    "edges": "edges: as columns; the first and the last step make more rows, so fewer are computed again",
    "bands": "bands: some pixels at a time; columns and shared rows are kept; nothing is computed twice",
    "swaps": "swaps: as bands; shared rows are either in their lines or in a window",
    "branches": "branches: operators advance together; rows are kept until read; nothing is computed twice",
    "whole": "whole: one operator after the other",
}


class Run(NamedTuple):
    """Regions that tables show as one row: a streamed region, or neighbours that are not streamed."""

    first: int
    last: int

    @property
    def number(self) -> str:
        """The name of the run in tables, such as 3 or 3-5."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def runs(regions: Sequence[RegionView] | Sequence[PointRegion]) -> list[Run]:
    """Returns all regions as runs. Neighbours that are not streamed are one run."""
    result: list[Run] = []
    for streamed, group in groupby(enumerate(regions), lambda one: one[1]["streamed"]):
        indices = [index for index, _ in group]
        result += [Run(i, i) for i in indices] if streamed else [Run(indices[0], indices[-1])]
    return result


# ---- figures ---------------------------------------------------------------------------------------


def peak_lines(answer: PlanAnswer) -> Iterator[str]:
    """Yields lines about the fullest step of the arena, its parts, and the bytes lost between buffers."""
    peak, placement = _peak(answer), answer["placement"]
    where = "while a row of the input image arrives"
    if peak["operator"] >= 0:
        rows = "row {}".format(peak["rows"][0])
        if peak["rows"][1] - peak["rows"][0] > 1:
            rows = "rows {}-{}".format(peak["rows"][0], peak["rows"][1] - 1)
        name = layer_of(answer, peak["operator"], BUFFER_WIDTH)
        short = answer["operators"][peak["operator"]]["form"]
        where = f"at {name} ({short}), {rows}"
    yield (
        f"         fullest in region {peak['region']}, step {peak['step']:,}, {where}: "
        f"{peak['live_bytes']:,} live"
    )
    parts = ", ".join(f"{use} {peak['parts'][use]:,}" for use in USES if use in peak["parts"])
    yield f"         = {parts}" + (f", less {peak['shared_bytes']:,} shared" if peak["shared_bytes"] else "")
    if placement["lost_bytes"]:
        yield f"         {count(placement['lost_bytes'], 'byte')} of the arena are unused then"


def work_lines(answer: PlanAnswer) -> Iterator[str]:
    """Yields lines about kernel calls, moved bytes, and repeated work (the largest first)."""
    repeats = [
        (region["macs"] - region["macs_once"], index) for index, region in enumerate(answer["regions"])
    ]
    repeated = sorted((n, -index) for n, index in repeats if n > 0)[::-1]
    calls = sum(region["calls"] for region in answer["regions"])
    yield f"         {calls:,} kernel calls"
    moved = [
        (region["moved_bytes"], i) for i, region in enumerate(answer["regions"]) if region["moved_bytes"]
    ]
    if moved:
        places = ", ".join(str(i) for _, i in moved[:8]) + (", ..." if len(moved) > 8 else "")
        total = count(sum(size for size, _ in moved), "byte")
        yield f"         {total} moved within the arena, before region {places}"
    if repeated:
        places = ", ".join(f"region {-index} {n:,}" for n, index in repeated[:3])
        rest = ", ..." if len(repeated) > 3 else ""
        yield f"         {sum(n for n, _ in repeated):,} repeated: {places}{rest}"
    passes = answer["second_passes"]
    if passes:
        region_of = {op: i for i, region in enumerate(answer["regions"]) for op in region["operators"]}
        places = ", ".join(str(region_of[one["reader"]]) for one in passes[:8])
        rest = ", ..." if len(passes) > 8 else ""
        yield (
            f"         {sum(one['macs'] for one in passes):,} in second passes, which save "
            f"{count(len(passes), 'whole tensor')} before gates: region {places}{rest}"
        )
    # Channels that are not copied: they are views in the pixels of wider tensors.
    read = {one["operator"] for one in answer["views"] if not one["written"]}
    joined = {one["operator"] for one in answer["views"] if one["written"]}
    views = [
        *([f"{count(len(read), 'slice')} read inside the wider tensor"] if read else []),
        *([f"{count(len(joined), 'concatenation')} written in place, part by part"] if joined else []),
    ]
    if views:
        yield f"         channels not copied: {', '.join(views)}"
    skipped = -sum(n for n, _ in repeats if n < 0)
    if skipped:
        yield f"         {skipped:,} left out: rows that nothing reads"


# ---- tables ----------------------------------------------------------------------------------------


def structure(answer: PlanAnswer) -> str:
    """Returns a table of how the regions run.

    A streamed region has a row for each group. Other runs have one row each.
    """
    titles = ["region", "layers", "operators", "runs", "step", "calls", "repeated", "F", "cost"]
    rows: list[list[Cell]] = []
    total = sum(region["cost"] for region in answer["regions"]) or 1.0
    shown = set()
    for run in runs(answer["regions"]):
        members = answer["regions"][run.first : run.last + 1]
        ops = [op for region in members for op in region["operators"]]
        row: list[Cell]
        if not members[0]["streamed"]:
            shown.add("whole")
            what = f"{len(ops)} operators" if len(ops) > 1 else forms(answer, ops)
            row = [run.number, span(answer, ops), what, "whole", None]
            rows.append(row + _figures(members, total))
            continue
        for index, group in enumerate(members[0]["groups"]):
            name = SCHEMES[group["scheme"]]
            shown.add(name)
            step = f"{group['rows_per_step']}" + (f" x {group['hand_off']}" if group["hand_off"] else "")
            first, ops = run.number if not index else None, group["ops"]
            row = [first, span(answer, ops), forms(answer, ops), name, step]
            rows.append(row + _figures([group], total))
    legend = [_LEGEND[name] for name in _LEGEND if name in shown]
    return "\n".join(
        [table(titles, rows), "step: rows, or rows x pixels, that are computed at once", *legend]
    )


def _figures(works: Sequence[WorkView], total: float) -> list[Cell]:
    macs, once = sum(work["macs"] for work in works), sum(work["macs_once"] for work in works)
    cost = sum(work["cost"] for work in works)
    return [
        sum(work["calls"] for work in works),
        macs - once,
        f"{macs / once if once else 1.0:.3f}",
        f"{100 * cost / total:.0f} %",
    ]


def memory(answer: PlanAnswer) -> str:
    """Returns a table of the bytes that are live in the fullest step of each run."""
    fullest = []
    for run in runs(answer["regions"]):
        members = range(run.first, run.last + 1)
        fullest.append((run, max(members, key=lambda i: (answer["regions"][i]["live_bytes"], -i))))
    used = [u for u in USES if any(u in answer["regions"][i]["parts"] for _, i in fullest)]
    shares = any(answer["regions"][i]["shared_bytes"] for _, i in fullest)
    titles = ["region", "live", "share", *("sums" if use == "accumulators" else use for use in used)]
    titles += ["shared"] if shares else []
    rows: list[list[Cell]] = []
    for run, i in fullest:
        region = answer["regions"][i]
        number = run.number if run.first == run.last else f"{run.number} ({i})"
        row: list[Cell] = [number, region["live_bytes"], _share(region["live_bytes"], answer["arena_bytes"])]
        row += [region["parts"].get(use) for use in used]
        rows.append(row + ([-region["shared_bytes"] or None] if shares else []))
    return "\n".join(["Bytes live in each region's fullest step:", table(titles, rows)])


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def peak_table(answer: PlanAnswer) -> str:
    """Returns a table of the largest buffers in the fullest step."""
    peak = _peak(answer)
    buffers = peak["buffers"]
    titles = ["bytes", "share", "holds", "layer", "part", "from byte", "from step", "to step"]
    rows: list[list[Cell]] = []
    for entry in buffers[:MOST_AT_PEAK]:
        b = answer["buffers"][entry["buffer"]]
        share = _share(b["size"], answer["arena_bytes"])
        name, part = owner(answer, b), extent(b)
        rows.append([b["size"], share, _HOLDS[entry["use"]], name, part, b["offset"], b["first"], b["last"]])
    lines = [f"Largest buffers in the fullest step ({peak['step']:,}, region {peak['region']}):"]
    lines.append(table(titles, rows))
    if len(buffers) > len(rows):
        rest = buffers[len(rows) :]
        size = sum(answer["buffers"][entry["buffer"]]["size"] for entry in rest)
        lines.append(f"and {len(rest)} smaller: {count(size, 'byte')}")
    return "\n".join(lines)


def largest(answer: PlanAnswer) -> str:
    """Returns a table of the largest buffers of every streamed region, with their place and lifetime."""
    titles = ["region", "holds", "layer", "part", "bytes", "from byte", "from step", "to step"]
    rows: list[list[Cell]] = []
    for index, region in enumerate(answer["regions"]):
        if not region["streamed"]:
            continue
        buffers = sorted(
            region["buffers"],
            key=lambda entry: (-answer["buffers"][entry["buffer"]]["size"], entry["buffer"]),
        )
        for place, entry in enumerate(buffers[:MOST_OF_A_REGION]):
            b = answer["buffers"][entry["buffer"]]
            what: list[Cell] = [_HOLDS[entry["use"]], owner(answer, b), extent(b), b["size"]]
            rows.append([None if place else str(index), *what, b["offset"], b["first"], b["last"]])
    head = f"The {MOST_OF_A_REGION} largest buffers of each streamed region (--buffers: all of the plan):"
    return "\n".join([head, table(titles, rows)])


def _peak(answer: PlanAnswer) -> Peak:
    """Returns the fullest step. Every streamed plan has one."""
    peak = answer["peak"]
    assert peak is not None
    return peak
