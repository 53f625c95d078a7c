"""The page of a report: the context for the templates, and the file."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from buildtool.base.errors import Spelling, in_requests
from buildtool.base.layers import short_names
from buildtool.fronts.changes.figures import DATA_ID
from buildtool.fronts.texts import windows
from buildtool.fronts.texts.boards import board_lines
from buildtool.fronts.texts.html import arena, front, network, wording
from buildtool.fronts.texts.html.verdicts import (
    cards,
    counting_words,
    cures,
    image_trees,
    part_kind,
    sentence,
)
from buildtool.fronts.texts.regions import SCHEMES, runs
from buildtool.fronts.texts.table import four_bits_text, removed_text

if TYPE_CHECKING:
    from buildtool.schema.fronts import FrontAnswer
    from buildtool.schema.plans import BufferView, PlanAnswer
    from buildtool.schema.reports import ReportAnswer, ReportPoint


def page(answer: ReportAnswer, spelling: Spelling = in_requests) -> bytes:
    """Returns the HTML file. It is complete in itself and fetches nothing.

    `spelling` writes options with their values.
    """
    return document("page.html", ("sorting.js", "report.js"), **_context(answer, spelling))


def document(name: str, scripts: Sequence[str], **context: object) -> bytes:
    """Returns an HTML file from the template `name`. It may fetch nothing, and only `scripts` may run in it.

    The template writes `policy`, `style` and each of `scripts`. `context` has its further variables.
    """
    environment = _environment()
    style, *own = (_own_file(environment, file) for file in ("report.css", *scripts))
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, *own)]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests[1:])
    policy = (
        f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src {allowed}; style-src 'sha256-{digests[0]}'"
    )
    text = environment.get_template(name).render(**context, scripts=own, style=style, policy=policy)
    return text.encode("utf-8", "replace")


def draw_arena(answer: PlanAnswer) -> str:
    """Returns an HTML document with the arena of a plan over time, for a notebook."""
    picture = arena.picture(answer, sys.maxsize)  # the plan has kept the request's limit
    names = {"picture_size": arena, "kind_names": arena.KINDS, "answer": answer}
    return _drawing("arena_drawing.html", f"The arena of {answer['model']}", picture=picture, **names)


def draw_front(answer: FrontAnswer) -> str:
    """Returns an HTML document with the Pareto front of memory and work, for a notebook."""
    plot = front.plot(answer["points"], answer["beside"], answer["available_bytes"])
    return _drawing("front_drawing.html", f"The front of {answer['model']}", plot=plot, plot_size=front)


def _drawing(name: str, title: str, **values: object) -> str:
    environment = _environment()
    style = _own_file(environment, "report.css")
    template = environment.get_template("drawing.html")
    return template.render(name=name, title=title, style=style, alone=True, **values)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("buildtool.fronts.texts.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "size": wording.size,
        "number": wording.number,
        "short": wording.short,
        "look": part_kind,
        "px": lambda value: f"{value:.1f}".removesuffix(".0"),
    }
    environment.globals |= {"percent": wording.percent, "alone": False}
    return environment


def _own_file(environment: Environment, name: str) -> Markup:
    """Returns one of the templates' files unchanged, as it needs no escaping."""
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])


def embed_data(answer: Mapping[str, Any]) -> Markup:
    """Returns the data as JSON without the characters <, > and &, so that no text can end the element."""
    plain = {key: value for key, value in answer.items() if not isinstance(value, bytes)}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _context(answer: ReportAnswer, spelling: Spelling) -> dict[str, object]:
    counts = [layer["instructions"] or 0 for layer in answer["layers"]]
    share = max((layer["share"] for layer in answer["layers"]), default=0.0) or 1.0
    available, limit = answer["front"]["available_bytes"], answer["front"]["limit_bytes"]
    room = available if limit is None else min(available, limit)
    data = embed_data(answer)  # with the whole names
    full_names = [op["name"] for op in answer["operators"]]
    answer = _with_short_names(answer)
    names = [op["name"] for op in answer["operators"]]
    return {
        "answer": answer,
        "data_id": DATA_ID,
        "data": data,
        "headline": f"{wording.short(answer['model'], 80)} on {wording.short(answer['title'], 80)}",
        "sentence": sentence(answer),
        "cures": cures(answer, spelling),
        "cards": cards(answer, room),
        "notes": [*board_lines(answer), *_removed(answer), *_four_bits(answer), *_window_notes(answer)],
        "window": _window(answer),
        "counted": counting_words(answer),
        "room": room,
        "limited": limit is not None and limit <= available,
        "picture": arena.picture(answer, room, answer["steps"]),
        "picture_size": arena,
        "kind_names": arena.KINDS,
        "buffer_kinds": [arena.KINDS[kind] for kind in arena.buffer_kinds(answer)],
        "plot": front.plot(answer["front"]["points"], answer["front"]["beside"], room, answer),
        "plot_size": front,
        "points": [_point_rows(answer, point) for point in answer["front"]["points"]],
        "graph": network.layout(answer),
        "graph_size": network,
        "full_names": full_names,
        "regions": _regions(answer, names),
        "linked": image_trees(answer),
        "counts": any(layer["instructions"] is not None for layer in answer["layers"]),
        "cycles": any(layer["cycles"] is not None for layer in answer["layers"]),
        "most_share": max(counts) / sum(counts)
        if any(counts)
        else share,  # of a layer, in the share that the table shows
    }


def _four_bits(answer: ReportAnswer) -> list[str]:
    weights = answer["four_bits"]
    return [] if weights is None else [four_bits_text(weights)]


def _window_notes(answer: ReportAnswer) -> list[str]:
    """Returns notes about a moving window, if there is one."""
    return [
        " ".join(line.replace("- ", " ", 1).split())
        for line in windows.figures(answer["window"], answer["f"])
    ]


def _window(answer: ReportAnswer) -> dict[str, object] | None:
    """Returns the variables for the table of a moving window's rows; None without a moving window."""
    window = answer["window"]
    if window is None:
        return None
    return {"titles": windows.TITLES, "rows": windows.rows_of(window), "remarks": windows.remarks(window)}


def _removed(answer: ReportAnswer) -> list[str]:
    """Returns a note about channels that are not computed, if there are any."""
    removed = answer["removed"]
    return [] if removed is None else [f"channels: {removed_text(removed)}"]


def _with_short_names(answer: ReportAnswer) -> ReportAnswer:
    """Returns the answer with short names of layers and tensors in place of the file's names."""
    names = [op["name"] for op in answer["operators"]]
    short = dict(zip(names, map(wording.short, short_names(names)), strict=True))

    def label(name: str) -> str:
        return short.get(name) or wording.short(name.partition(";")[0])

    def of_buffers(buffers: Sequence[BufferView]) -> list[BufferView]:
        return [{**one, "tensor_names": list(map(label, one["tensor_names"]))} for one in buffers]

    peak, removed = answer["peak"], answer["removed"]
    return {
        **answer,
        "removed": removed
        and {**removed, "layers": [{**one, "name": label(one["name"])} for one in removed["layers"]]},
        "operators": [{**op, "name": label(op["name"])} for op in answer["operators"]],
        "layers": [{**layer, "name": label(layer["name"])} for layer in answer["layers"]],
        "buffers": of_buffers(answer["buffers"]),
        "states": of_buffers(answer["states"]),
        "peak": None if peak is None else {**peak, "name": label(peak["name"])},
    }


@dataclass(frozen=True)
class RegionRow:
    """A row of the table of regions: a streamed region, or neighbours that run operator by operator.

    `steps` and `parts` are known only for the report's own plan, not for other points of the front.
    """

    number: str
    layers: str
    runs: str
    live: int
    f: float
    cost: float
    steps: int = 0
    parts: str = ""


def _regions(answer: ReportAnswer, names: Sequence[str]) -> list[RegionRow]:
    rows = []
    for run in runs(answer["regions"]):
        members = answer["regions"][run.first : run.last + 1]
        fullest = max(members, key=lambda region: region["live_bytes"])
        once = sum(region["macs_once"] for region in members)
        rows.append(
            RegionRow(
                run.number,
                _span(names, members[0]["operators"][0], members[-1]["operators"][-1]),
                _how_text(members[0]["streamed"], [group["scheme"] for group in members[0]["groups"]]),
                fullest["live_bytes"],
                sum(region["macs"] for region in members) / once if once else 1.0,
                sum(region["cost"] for region in members),
                members[-1]["last_step"] - members[0]["first_step"] + 1,
                ", ".join(f"{use} {size:,}" for use, size in fullest["parts"].items()),
            )
        )
    return rows


def _point_rows(answer: ReportAnswer, point: ReportPoint) -> list[RegionRow]:
    """Returns the table rows for a point's regions. The names of operators are those of the report's plan."""
    names = [op["name"] for op in answer["operators"]]
    rows = []
    for run in runs(point["runs"]):
        members = point["runs"][run.first : run.last + 1]
        macs = sum(region["macs"] for region in members)
        once = sum(region["macs"] / region["f"] for region in members if region["f"])
        rows.append(
            RegionRow(
                run.number,
                wording.short(_span(names, members[0]["first"], members[-1]["last"])),
                _how_text(members[0]["streamed"], members[0]["schemes"]),
                max(region["live_bytes"] for region in members),
                macs / once if once else 1.0,
                sum(region["cost"] for region in members),
            )
        )
    return rows


def _span(names: Sequence[str], first: int, last: int) -> str:
    return names[first] if first == last else f"{names[first]} to {names[last]}"


def _how_text(streamed: bool, schemes: Sequence[str]) -> str:
    """Returns how regions run, in words. Each scheme is named once."""
    return ", ".join(dict.fromkeys(SCHEMES.get(one, one) for one in schemes)) if streamed else "whole"
