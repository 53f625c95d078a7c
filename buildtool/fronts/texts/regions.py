"""The regions of a streamed plan as text: how each runs, what is live in it, and its largest buffers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from buildtool.fronts.texts.table import Cell, count, layer, shorten, table

if TYPE_CHECKING:
    from buildtool.schema.plans import BufferView, Peak, PlanAnswer, RegionView, WorkView
    from buildtool.schema.reports import PointRegion


LAYERS_WIDTH = 28
FORMS_WIDTH = 20
BUFFER_WIDTH = 28


def extent(buffer: BufferView) -> str:
    """How much of its tensor a buffer holds."""
    if buffer["kind"] not in ("ring", "tensor"):
        return ""
    if not buffer["rows"]:
        return "whole"
    rows = count(buffer["rows"], "row")
    return f"{rows} x {buffer['columns']}" if buffer["columns"] else rows


def owner(answer: PlanAnswer, buffer: BufferView) -> str:
    """The layer a buffer belongs to."""
    if buffer["op"] >= 0:
        return layer_of(answer, buffer["op"], BUFFER_WIDTH)
    names = buffer["tensor_names"]
    known = _positions(tuple(op["name"] for op in answer["operators"])) if names else {}
    if names and names[0] in known:
        return layer_of(answer, answer["operators"][known[names[0]]]["position"], BUFFER_WIDTH)
    return layer(names[0] if names else buffer["name"], BUFFER_WIDTH)


def layer_of(answer: PlanAnswer, position: int, width: int) -> str:
    """The layer of the operator at a position, in at most `width` characters."""
    return shorten(_names(answer)[position], width)


def _names(answer: PlanAnswer) -> list[str]:
    return _short_names(tuple(op["name"] for op in answer["operators"]))


@lru_cache(maxsize=1)  # a report asks once a row
def _short_names(names: tuple[str, ...]) -> list[str]:
    return short_names(names)


@lru_cache(maxsize=1)
def _positions(names: tuple[str, ...]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}


def span(answer: PlanAnswer, ops: Sequence[int]) -> str:
    """From layer to layer: what both names begin with is said once, what both end with not at all.

    Where there is no room for two, the first one and how many follow.
    """
    if len(ops) == 1:
        return layer_of(answer, ops[0], LAYERS_WIDTH)
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


def forms(answer: PlanAnswer, ops: Sequence[int]) -> str:
    """The operators in short; of many the first ones."""
    names = [answer["operators"][position]["form"] for position in ops]
    text = ", ".join(names)
    while len(text) > FORMS_WIDTH and len(names) > 1:
        names.pop()
        text = ", ".join(names) + f", +{len(ops) - len(names)}"
    return text


def short_names(names: Sequence[str]) -> list[str]:
    """One name an operator: net/blocks/3/conv/depth/Relu6 becomes 3/depth.

    Of names that a converter joined with ';' the first counts. Folders that more than half of the
    names lie in go, and so do last words as long as their folder holds nothing else; but no two names
    become one.
    """
    found = [name.partition(";")[0].split("/") for name in names]
    held = Counter("/".join(words[:n]) for words in found for n in range(1, len(words) + 1))
    for words in found:
        while len(words) > 1 and held["/".join(words[:-1])] == 1:
            words.pop()
    inner = Counter(word for words in found for word in set(words[:-1]))
    common = {word for word, times in inner.items() if 2 * times > len(names)}
    short = ["/".join([*(w for w in words[:-1] if w not in common), words[-1]]) for words in found]
    times = Counter(short)
    return [s if times[s] == 1 else "/".join(words) for s, words in zip(short, found, strict=True)]


MOST_AT_PEAK = 8
MOST_OF_A_REGION = 4

SCHEMES = {"operator": "by rows", "h-cached": "columns", "halo": "strips", "branches": "branches"}
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


def runs(regions: Sequence[RegionView] | Sequence[PointRegion]) -> list[Run]:
    """All regions; neighbours that are not streamed are one run."""
    found: list[Run] = []
    for streamed, some in groupby(enumerate(regions), lambda one: one[1]["streamed"]):
        places = [index for index, _ in some]
        found += [Run(at, at) for at in places] if streamed else [Run(places[0], places[-1])]
    return found


# ---- figures ---------------------------------------------------------------------------------------


def peak_lines(answer: PlanAnswer) -> Iterator[str]:
    """The fullest step of the arena, its parts, and the bytes lost between buffers."""
    peak, placement = _peak(answer), answer["placement"]
    where = "while a row of the image is delivered"
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
    made_of = ", ".join(f"{use} {peak['parts'][use]:,}" for use in USES if use in peak["parts"])
    yield f"         = {made_of}" + (
        f", less {peak['shared_bytes']:,} shared" if peak["shared_bytes"] else ""
    )
    if placement["lost_bytes"]:
        yield f"         {count(placement['lost_bytes'], 'byte')} of the arena hold nothing then"


def work_lines(answer: PlanAnswer) -> Iterator[str]:
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
    passes = answer["second_passes"]
    if passes:
        region_of = {op: i for i, region in enumerate(answer["regions"]) for op in region["operators"]}
        at = ", ".join(str(region_of[one["reader"]]) for one in passes[:8])
        rest = ", ..." if len(passes) > 8 else ""
        yield (
            f"         {sum(one['macs'] for one in passes):,} in second passes, which spare "
            f"{count(len(passes), 'whole tensor')} before gates: region {at}{rest}"
        )
    # Channels that are not copied, because they lie in the pixels of wider tensors.
    read = {one["operator"] for one in answer["views"] if not one["written"]}
    joined = {one["operator"] for one in answer["views"] if one["written"]}
    said = [
        *([f"{count(len(read), 'slice')} read where the wider tensor lies"] if read else []),
        *([f"{count(len(joined), 'concatenation')} written in place, part by part"] if joined else []),
    ]
    if said:
        yield f"         channels not copied: {', '.join(said)}"
    fewer = -sum(n for n, _ in again if n < 0)
    if fewer:
        yield f"         {fewer:,} left out: rows that nothing reads"


# ---- tables ----------------------------------------------------------------------------------------


def structure(answer: PlanAnswer) -> str:
    """How the regions run: a line for each group of a streamed one, one for neighbours that are not."""
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
    return "\n".join([table(titles, rows), "step: rows, or rows x pixels, made in one go", *legend])


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
    """Bytes at each run's fullest step."""
    chosen = []
    for run in runs(answer["regions"]):
        members = range(run.first, run.last + 1)
        chosen.append((run, max(members, key=lambda i: (answer["regions"][i]["live_bytes"], -i))))
    used = [u for u in USES if any(u in answer["regions"][i]["parts"] for _, i in chosen)]
    shares = any(answer["regions"][i]["shared_bytes"] for _, i in chosen)
    titles = ["region", "live", "of it", *("sums" if use == "accumulators" else use for use in used)]
    titles += ["shared"] if shares else []
    rows: list[list[Cell]] = []
    for run, i in chosen:
        region = answer["regions"][i]
        number = run.number if run.first == run.last else f"{run.number} ({i})"
        row: list[Cell] = [number, region["live_bytes"], _share(region["live_bytes"], answer["arena_bytes"])]
        row += [region["parts"].get(use) for use in used]
        rows.append(row + ([-region["shared_bytes"] or None] if shares else []))
    return "\n".join(["Bytes live in each region's fullest step:", table(titles, rows)])


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def peak_table(answer: PlanAnswer) -> str:
    """The largest buffers of the fullest step."""
    peak = _peak(answer)
    held = peak["buffers"]
    titles = ["bytes", "of it", "holds", "of", "kept", "from byte", "from step", "to step"]
    rows: list[list[Cell]] = []
    for entry in held[:MOST_AT_PEAK]:
        b = answer["buffers"][entry["buffer"]]
        share = _share(b["size"], answer["arena_bytes"])
        name, kept = owner(answer, b), extent(b)
        rows.append([b["size"], share, _HOLDS[entry["use"]], name, kept, b["offset"], b["first"], b["last"]])
    lines = [f"Largest buffers in the fullest step ({peak['step']:,}, region {peak['region']}):"]
    lines.append(table(titles, rows))
    if len(held) > len(rows):
        rest = held[len(rows) :]
        size = sum(answer["buffers"][entry["buffer"]]["size"] for entry in rest)
        lines.append(f"and {len(rest)} smaller: {count(size, 'byte')}")
    return "\n".join(lines)


def largest(answer: PlanAnswer) -> str:
    """A few buffers of every streamed region, with their place and life."""
    titles = ["region", "holds", "of", "kept", "bytes", "from byte", "from step", "to step"]
    rows: list[list[Cell]] = []
    for index, region in enumerate(answer["regions"]):
        if not region["streamed"]:
            continue
        held = sorted(region["buffers"], key=lambda h: (-answer["buffers"][h["buffer"]]["size"], h["buffer"]))
        for place, entry in enumerate(held[:MOST_OF_A_REGION]):
            b = answer["buffers"][entry["buffer"]]
            what: list[Cell] = [_HOLDS[entry["use"]], owner(answer, b), extent(b), b["size"]]
            rows.append([None if place else str(index), *what, b["offset"], b["first"], b["last"]])
    head = f"The {MOST_OF_A_REGION} largest buffers of each streamed region (--buffers: all of the plan):"
    return "\n".join([head, table(titles, rows)])


def _peak(answer: PlanAnswer) -> Peak:
    """The fullest step: every streamed plan has one."""
    found = answer["peak"]
    assert found is not None
    return found
