"""The regions of a streamed plan as text: how each runs, what is live in it, and its largest buffers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from buildtool.report.names import short_names
from buildtool.report.table import Cell, count, layer, shorten, table

Answer = Mapping[str, Any]
LAYERS_WIDTH = 28
FORMS_WIDTH = 20
BUFFER_WIDTH = 28
MOST_AT_PEAK = 8
MOST_OF_A_REGION = 4

USES = ("input", "output", "kept", "rings", "windows", "accumulators", "scratch", "weights")
_RUNS = {"operator": "by rows", "h-cached": "columns", "halo": "strips", "branches": "branches"}
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
_LEGEND = {
    "by rows": "by rows: through a ring of rows, nothing twice",
    "strips": "strips: whole rows, operator by operator, shared rows again",
    "columns": "columns: so many pixels at a time, columns kept, rows again",
    "branches": "branches: operators advance together, rows kept until they are read, nothing twice",
    "whole": "whole: one operator after the other",
}


class Run(NamedTuple):
    """Neighbouring regions that are shown as one: a streamed one, or several that are not."""

    first: int
    last: int

    @property
    def number(self) -> str:
        """As tables call it."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def runs(answer: Answer) -> list[Run]:
    """All regions, those that are not streamed joined with their neighbours."""
    found: list[Run] = []
    regions = answer["regions"]
    for index, region in enumerate(regions):
        joins = found and not region["streamed"] and not regions[index - 1]["streamed"]
        if joins:
            found[-1] = Run(found[-1].first, index)
        else:
            found.append(Run(index, index))
    return found


# ---- figures ---------------------------------------------------------------------------------------


def peak_lines(answer: Answer) -> Iterator[str]:
    """Where the arena is fullest, what that is made of, and what is lost between buffers."""
    peak, placement = answer["peak"], answer["placement"]
    where = "while a row of the image is delivered"
    if peak["operator"] >= 0:
        rows = "row {}".format(peak["rows"][0])
        if peak["rows"][1] - peak["rows"][0] > 1:
            rows = "rows {}-{}".format(peak["rows"][0], peak["rows"][1] - 1)
        where = (
            f"at {_layer(answer, peak['operator'], BUFFER_WIDTH)} ({_form(answer, peak['operator'])}), {rows}"
        )
    yield (
        f"         fullest in region {peak['region']}, step {peak['step']:,}, {where}: "
        f"{peak['live_bytes']:,} live"
    )
    made_of = ", ".join(f"{use} {size:,}" for use, size in _parts(peak))
    yield f"         = {made_of}" + (
        f", less {peak['shared_bytes']:,} shared" if peak["shared_bytes"] else ""
    )
    if placement["lost_bytes"]:
        yield f"         {count(placement['lost_bytes'], 'byte')} of the arena hold nothing then"


def work_lines(answer: Answer) -> Iterator[str]:
    """Where work is repeated, the most first; how many kernels are called."""
    again = [(region["macs"] - region["macs_once"], index) for index, region in enumerate(answer["regions"])]
    more = sorted((n, -index) for n, index in again if n > 0)[::-1]
    calls = sum(region["calls"] for region in answer["regions"])
    yield f"         {calls:,} kernel calls"
    moved = [
        (region["moved_bytes"], i) for i, region in enumerate(answer["regions"]) if region["moved_bytes"]
    ]
    if moved:
        places = ", ".join(str(i) for _, i in moved[:8]) + (", ..." if len(moved) > 8 else "")
        total = count(sum(size for size, _ in moved), "byte")
        yield f"         {total} moved within the arena, before region {places}"
    if more:
        places = ", ".join(f"region {-index} {n:,}" for n, index in more[:3])
        rest = ", ..." if len(more) > 3 else ""
        yield f"         {sum(n for n, _ in more):,} repeated: {places}{rest}"
    fewer = -sum(n for n, _ in again if n < 0)
    if fewer:
        yield f"         {fewer:,} left out: rows that nothing reads"


# ---- tables ----------------------------------------------------------------------------------------


def tables(answer: Answer) -> list[str]:
    """How the regions run, and what is live in each."""
    return [_structure(answer), _memory(answer), _peak_table(answer)]


def _structure(answer: Answer) -> str:
    titles = ["region", "layers", "operators", "runs", "step", "calls", "repeated", "F", "cost"]
    rows: list[list[Cell]] = []
    total = sum(region["cost"] for region in answer["regions"]) or 1.0
    shown = set()
    for run in runs(answer):
        members = answer["regions"][run.first : run.last + 1]
        ops = [op for region in members for op in region["operators"]]
        if not members[0]["streamed"]:
            shown.add("whole")
            what = f"{len(ops)} operators" if len(ops) > 1 else _forms(answer, ops)
            row: list[Cell] = [run.number, _span(answer, ops), what, "whole", None]
            rows.append(row + _figures(members, total))
            continue
        for index, group in enumerate(members[0]["groups"]):
            name = _RUNS[group["scheme"]]
            shown.add(name)
            step = f"{group['rows_per_step']}" + (f" x {group['hand_off']}" if group["hand_off"] else "")
            rows.append(
                [
                    run.number if not index else None,
                    _span(answer, group["ops"]),
                    _forms(answer, group["ops"]),
                    name,
                    step,
                    *_figures([group], total),
                ]
            )
    legend = [_LEGEND[name] for name in _LEGEND if name in shown]
    return "\n".join([table(titles, rows), "step: rows, or rows x pixels, made in one go", *legend])


def _figures(works: Sequence[Answer], total: float) -> list[Cell]:
    macs, once = (sum(work[key] for work in works) for key in ("macs", "macs_once"))
    cost = sum(work["cost"] for work in works)
    return [
        sum(work["calls"] for work in works),
        macs - once,
        f"{macs / once if once else 1.0:.3f}",
        f"{100 * cost / total:.0f} %",
    ]


def _memory(answer: Answer) -> str:
    """Bytes at each run's fullest step."""
    chosen = []
    for run in runs(answer):
        members = range(run.first, run.last + 1)
        chosen.append((run, max(members, key=lambda i: (answer["regions"][i]["live_bytes"], -i))))
    used = [u for u in USES if any(u in answer["regions"][i]["parts"] for _, i in chosen)]
    shares = any(answer["regions"][i]["shared_bytes"] for _, i in chosen)
    titles = ["region", "live", "of it", *(_title(use) for use in used), *(["shared"] if shares else [])]
    rows: list[list[Cell]] = []
    for run, i in chosen:
        region = answer["regions"][i]
        number = run.number if run.first == run.last else f"{run.number} ({i})"
        row: list[Cell] = [number, region["live_bytes"], _share(region["live_bytes"], answer["arena_bytes"])]
        row += [region["parts"].get(use) for use in used]
        rows.append(row + ([-region["shared_bytes"] or None] if shares else []))
    return "\n".join(["Bytes live in each region's fullest step:", table(titles, rows)])


def _title(use: str) -> str:
    return "sums" if use == "accumulators" else use


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def _peak_table(answer: Answer) -> str:
    """The largest buffers of the fullest step."""
    peak = answer["peak"]
    held = peak["buffers"]
    titles = ["bytes", "of it", "holds", "of", "kept", "from byte", "from step", "to step"]
    rows: list[list[Cell]] = []
    for entry in held[:MOST_AT_PEAK]:
        b = answer["buffers"][entry["buffer"]]
        share = _share(b["size"], answer["arena_bytes"])
        name, kept = _of(answer, b), kept_of(b)
        rows.append([b["size"], share, _HOLDS[entry["use"]], name, kept, b["offset"], b["first"], b["last"]])
    lines = [f"Largest buffers in the fullest step ({peak['step']:,}, region {peak['region']}):"]
    lines.append(table(titles, rows))
    if len(held) > len(rows):
        lines.append(_rest(answer, held[len(rows) :]))
    return "\n".join(lines)


def largest(answer: Answer) -> str:
    """A few buffers of every streamed region, with their place and life."""
    titles = ["region", "holds", "of", "kept", "bytes", "from byte", "from step", "to step"]
    rows: list[list[Cell]] = []
    for index, region in enumerate(answer["regions"]):
        if not region["streamed"]:
            continue
        held = sorted(region["buffers"], key=lambda h: (-answer["buffers"][h["buffer"]]["size"], h["buffer"]))
        for place, entry in enumerate(held[:MOST_OF_A_REGION]):
            b = answer["buffers"][entry["buffer"]]
            rows.append(
                [
                    None if place else str(index),
                    _HOLDS[entry["use"]],
                    _of(answer, b),
                    kept_of(b),
                    b["size"],
                    b["offset"],
                    b["first"],
                    b["last"],
                ]
            )
    head = f"The {MOST_OF_A_REGION} largest buffers of each streamed region (--buffers: all of the plan):"
    return "\n".join([head, table(titles, rows)])


def _rest(answer: Answer, held: Sequence[Answer]) -> str:
    size = sum(answer["buffers"][entry["buffer"]]["size"] for entry in held)
    return f"and {len(held)} smaller: {count(size, 'byte')}"


# ---- words -----------------------------------------------------------------------------------------


def kept_of(buffer: Answer) -> str:
    """How much of its tensor a buffer holds."""
    if buffer["kind"] not in ("ring", "tensor"):
        return ""
    if not buffer["rows"]:
        return "whole"
    rows = count(buffer["rows"], "row")
    return f"{rows} x {buffer['columns']}" if buffer["columns"] else rows


def _of(answer: Answer, buffer: Answer) -> str:
    """The layer a buffer belongs to."""
    if buffer["op"] >= 0:
        return _layer(answer, buffer["op"], BUFFER_WIDTH)
    names = buffer["tensor_names"]
    known = {op["name"]: op["position"] for op in answer["operators"]}
    if names and names[0] in known:
        return _layer(answer, known[names[0]], BUFFER_WIDTH)
    return layer(names[0] if names else buffer["name"], BUFFER_WIDTH)


def _layer(answer: Answer, position: int, width: int) -> str:
    return shorten(_names(answer)[position], width)


def _names(answer: Answer) -> list[str]:
    return short_names([op["name"] for op in answer["operators"]])


def _form(answer: Answer, position: int) -> str:
    return str(answer["operators"][position]["form"])


def _span(answer: Answer, ops: Sequence[int]) -> str:
    """From layer to layer: what both names begin with is said once, what both end with not at all.

    Where there is no room for two, the first one and how many follow.
    """
    if len(ops) == 1:
        return _layer(answer, ops[0], LAYERS_WIDTH)
    every = _names(answer)
    first, last = (every[p] for p in (ops[0], ops[-1]))
    folder = first.rpartition("/")[0] + "/"
    if len(folder) > 1 and last.startswith(folder):
        last = last.removeprefix(folder)
    elif len(first) + len(last) > LAYERS_WIDTH - 3:
        first, last = _without_ends(first, last)
    if len(first) + len(last) <= LAYERS_WIDTH - 3:
        return f"{first} - {last}"
    more = f" +{len(ops) - 1}"
    return shorten(every[ops[0]], LAYERS_WIDTH - len(more)) + more


def _without_ends(first: str, last: str) -> tuple[str, str]:
    """Two names without the words that both end with."""
    ends = re.split("(?=[_/])", first)
    others = re.split("(?=[_/])", last)
    while len(ends) > 1 and len(others) > 1 and ends[-1] == others[-1]:
        ends.pop()
        others.pop()
    return "".join(ends), "".join(others)


def _forms(answer: Answer, ops: Sequence[int]) -> str:
    """The operators in short; of many the first ones."""
    names = [_form(answer, position) for position in ops]
    text = ", ".join(names)
    while len(text) > FORMS_WIDTH and len(names) > 1:
        names.pop()
        text = ", ".join(names) + f", +{len(ops) - len(names)}"
    return text


def _parts(moment: Answer) -> list[tuple[str, int]]:
    return [(use, moment["parts"][use]) for use in USES if use in moment["parts"]]
