"""The top of the page: whether it fits and what binds, in a sentence, and the figures that count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.base.errors import Hint, Spelling, from_data
from buildtool.fronts.changes import sizetree
from buildtool.fronts.texts.html.wording import number, percent, short, size

if TYPE_CHECKING:
    from buildtool.schema.analysis import NeedAnswer
    from buildtool.schema.reports import ReportAnswer

_HOW = {"linked": "exactly", "bound": "at most", "estimated": "about", "uncounted": "without code"}


@dataclass(frozen=True)
class Card:
    """A figure: its name, value, context, and the share of a whole (None: no whole)."""

    name: str
    value: str
    unit: str
    more: str
    share: float | None = None
    state: str = ""


def sentence(answer: ReportAnswer) -> tuple[bool, str]:
    """Whether it fits, and what binds."""
    verdict = answer["verdict"]
    if "error" in verdict:
        return False, f"There is no verdict on this board: {short(verdict['error']['text'], 300)}"
    lacks = [
        f"{_need_name(need)} would have to hold {need['required']:,} bytes and has {need['available']:,}: "
        f"{need['excess']:,} too many"
        for need in verdict["needs"]
        if need["excess"]
    ]
    stack = verdict["stack"]
    if stack is not None and stack["required"] > stack["available"]:
        lacks.append(
            f"an invoke may take {stack['required']:,} bytes of stack, {stack['available']:,} are there"
        )
    if not verdict["fits"]:
        text = "; ".join(lacks)
        return False, f"{text[:1].upper()}{text[1:]}."
    fullest = max(verdict["needs"], key=lambda need: need["required"] / max(need["available"], 1))
    what = _need_name(fullest)
    text = (
        f"{what[0].upper()}{what[1:]} binds: {fullest['required']:,} of {fullest['available']:,} bytes, "
        f"{percent(fullest['required'], fullest['available'])}"
    )
    if verdict["binding_operator"]:
        text += (
            f". Most of the arena, {verdict['binding_bytes']:,} bytes, is live at "
            f"{short(verdict['binding_operator'], 100)}"
        )
    return True, text + "."


def _need_name(need: NeedAnswer) -> str:
    if need["what"] in ("RAM", "flash"):
        return f"the {need['what']} '{need['memory']}'"
    return f"the {need['what']}"


def cures(answer: ReportAnswer, spelling: Spelling) -> list[str]:
    """What would help where it does not fit; `spelling` writes options with their values."""
    verdict = answer["verdict"]
    if "error" in verdict:
        hints = list(from_data(verdict["error"]).hints)
    else:
        hints = [Hint(hint["text"], tuple(hint["settings"].items())) for hint in verdict["advice"]]
    found = [short(hint.spelled(spelling), 400) for hint in hints]
    if not verdict["fits"]:
        found.append("buildtool analyze, with this board: it plans what makes it fit, and its price")
    return found


def counting_words(answer: ReportAnswer) -> str:
    """How the memories were counted."""
    verdict = answer["verdict"]
    if "error" in verdict:
        return ""
    how = _HOW.get(verdict["counted"]["how"], verdict["counted"]["how"])
    compiler = verdict["counted"]["compiler"]
    return f"{how}, {compiler}" if compiler else how


def cards(answer: ReportAnswer, room: int) -> Iterator[Card]:
    """The figures that count."""
    verdict = answer["verdict"]
    yield _fill_card("Arena", answer["arena_bytes"], room, "")
    if answer["state_bytes"]:
        state = answer["state_bytes"]
        yield Card("State", *_apart(size(state)), f"{state:,} bytes kept between invokes, in no arena")
    # Of all the memories that hold code or weights.
    needs = [] if "error" in verdict else [need for need in verdict["needs"] if need["what"] == "flash"]
    if needs:
        names = ", ".join(dict.fromkeys(short(need["memory"], 20) for need in needs))
        used, there = (sum(need[key] for need in needs) for key in ("required", "available"))
        yield _fill_card("Flash", used, there, f" ({names})")
    else:
        weights = answer["flash_bytes"]
        yield Card("Weights in flash", *_apart(size(weights)), f"{weights:,} bytes")
    again, passes = answer["macs"] - answer["macs_layerwise"], len(answer["second_passes"])
    twice = f", for {passes} gates in second passes too" if passes else ""
    yield Card(
        "Work, F",
        f"{answer['f']:.3f}",
        "",
        f"{answer['macs']:,} multiply-accumulates"
        + (f", {again:,} of them repeated{twice}" if again > 0 else ", none repeated"),
    )
    yield _time(answer)


def _apart(text: str) -> tuple[str, str]:
    """A figure and its unit."""
    value, _, unit = text.partition(" ")
    return value, unit


def _fill_card(name: str, used: int, there: int, more: str) -> Card:
    """A card of used bytes and of all bytes."""
    text = f"{used:,} of {there:,} bytes{more}, {percent(used, there)}"
    return Card(name, *_apart(size(used)), text, used / max(there, 1), "over" if used > there else "")


def _time(answer: ReportAnswer) -> Card:
    """Time where it is known: measured, estimated from a run, or by the planner; else the cost."""
    board, run = answer["estimate"], answer["run"]
    if run is not None and run["milliseconds"] is not None:
        cycles = f"{run['cycles']:,} cycles, {run['how']}"
        return Card(f"Time, {run['cycles_are']}", *_time_of(run["milliseconds"]), short(cycles, 160))
    if board is not None:
        return Card("Time, estimated", *_time_of(1e3 * board["total_seconds"]), short(board["source"], 160))
    cost = f"{number(answer['cost'])} {answer['cost_unit']}, by the planner's formulas"
    if answer["estimated_ms"] is not None:
        return Card("Time, estimated", *_time_of(answer["estimated_ms"]), cost)
    if run is not None and run["instructions"] is not None:
        how = short(f"{run['instructions']:,}: {run['how']}", 160)
        return Card("Instructions, counted", *_millions(run["instructions"]), how)
    return Card(f"{answer['cost_unit'].capitalize()}, estimated", *_millions(answer["cost"]), cost)


def _time_of(milliseconds: float) -> tuple[str, str]:
    if milliseconds >= 10_000:
        return f"{milliseconds / 1e3:,.1f}", "s"
    return f"{milliseconds:,.{1 if milliseconds >= 10 else 2}f}", "ms"


def _millions(value: float) -> tuple[str, str]:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.1f}", name
    return f"{value:,.0f}", ""


# What the parts of a memory are, by what their names begin with.
_LOOKS = (
    ("arena", "tensor"),
    ("weights", "weights"),
    ("code and constants of the kernels", "library"),
    ("code and constants of the network", "network"),
    ("code and constants", "application"),
    ("stack", "accumulator"),
)


# ---- the linked image ----------------------------------------------------------------------------------

MOST_BELOW = 40  # lines that a part of the tree has; what is smaller is one line together


@dataclass(frozen=True)
class Leaf:
    """A line of the tree: a memory, owner, library, file or symbol, with its children."""

    level: str
    name: str
    bytes: int
    share: str
    below: tuple[Leaf, ...]


def image_trees(answer: ReportAnswer) -> list[Leaf]:
    """The linked image, a tree for each memory; empty where the report has no image."""
    image = answer["linked"]
    if image is None:
        return []
    there = {memory["memory"]: memory["size"] for memory in image["sizes"]}
    return [_leaf(node, there.get(node.name, 0)) for node in sizetree.tree((), image["parts"])]


def _leaf(node: sizetree.Node, room: int) -> Leaf:
    below, whole = node.children, node.after or 0
    shown = tuple(_leaf(child, whole) for child in below[:MOST_BELOW])
    if rest := below[MOST_BELOW:]:
        size = sum(child.after or 0 for child in rest)
        shown = (*shown, Leaf("rest", f"{len(rest)} smaller ones", size, percent(size, whole), ()))
    while len(shown) == 1 and shown[0].name.strip("()") == node.name.strip("()"):
        shown = shown[0].below  # a line that says the same once more
    return Leaf(node.level, short(node.name, 80), whole, percent(whole, room) if room else "", shown)


def look(name: str) -> str:
    """How a part of a memory is drawn."""
    return next((look for begins, look in _LOOKS if name.startswith(begins)), "rest")
