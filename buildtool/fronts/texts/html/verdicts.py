"""The top of the page: whether the plan fits, which memory is fullest, and the most important figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.base.errors import Hint, Spelling, from_data
from buildtool.fronts.changes import sizetree
from buildtool.fronts.texts.analysis import cure_words
from buildtool.fronts.texts.html.wording import number, percent, short, size

if TYPE_CHECKING:
    from buildtool.schema.analysis import NeedAnswer
    from buildtool.schema.reports import ReportAnswer

_HOW = {"linked": "exactly", "bound": "at most", "estimated": "about", "uncounted": "without code"}


@dataclass(frozen=True)
class Card:
    """A figure with its name, its unit and further words. `share` is its part of a whole, if there is one."""

    name: str
    value: str
    unit: str
    more: str
    share: float | None = None
    state: str = ""


def sentence(answer: ReportAnswer) -> tuple[bool, str]:
    """Returns whether the plan fits, and a sentence about the fullest memory, or about the missing bytes."""
    verdict = answer["verdict"]
    if "error" in verdict:
        return False, f"There is no verdict on this board: {short(verdict['error']['text'], 300)}"
    shortages = [
        f"{_need_name(need)} would need {need['required']:,} bytes and has {need['available']:,}: "
        f"{need['excess']:,} too many"
        for need in verdict["needs"]
        if need["excess"]
    ]
    stack = verdict["stack"]
    if stack is not None and stack["required"] > stack["available"]:
        shortages.append(
            f"an invoke may take {stack['required']:,} bytes of stack, {stack['available']:,} are reserved"
        )
    if not verdict["fits"]:
        text = "; ".join(shortages)
        return False, f"{text[:1].upper()}{text[1:]}."
    fullest = max(verdict["needs"], key=lambda need: need["required"] / max(need["available"], 1))
    what = _need_name(fullest)
    text = (
        f"{what[0].upper()}{what[1:]} binds: {fullest['required']:,} of {fullest['available']:,} bytes, "
        f"{percent(fullest['required'], fullest['available'])}"
    )
    if verdict["binding_layer"]:
        text += (
            f". Most of the arena, {verdict['binding_bytes']:,} bytes, is live at "
            f"{short(verdict['binding_layer'], 100)}"
        )
    return True, text + "."


def _need_name(need: NeedAnswer) -> str:
    return f"the {need['name']}"


def cures(answer: ReportAnswer, spelling: Spelling) -> list[str]:
    """Returns what would help if the plan does not fit. `spelling` writes options with their values."""
    verdict = answer["verdict"]
    if "error" in verdict:
        return [short(hint.spelled(spelling), 400) for hint in from_data(verdict["error"]).hints]
    hints = [Hint(hint["text"], tuple(hint["settings"].items())) for hint in verdict["advice"]]
    texts = [cure_words(cure, spelling) for cure in verdict["cures"]]
    return [*texts, *(short(hint.spelled(spelling), 400) for hint in hints)]


def counting_words(answer: ReportAnswer) -> str:
    """Returns words that say how the bytes of the memories were counted."""
    verdict = answer["verdict"]
    if "error" in verdict:
        return ""
    how = _HOW.get(verdict["counted"]["how"], verdict["counted"]["how"])
    compiler = verdict["counted"]["compiler"]
    return f"{how}, {compiler}" if compiler else how


def cards(answer: ReportAnswer, room: int) -> Iterator[Card]:
    """Yields cards with the most important figures. `room` is the number of bytes that the arena may have."""
    verdict = answer["verdict"]
    yield _fill_card("Arena", answer["arena_bytes"], room, "")
    if answer["state_bytes"]:
        state = answer["state_bytes"]
        yield Card("State", *_split_unit(size(state)), f"{state:,} bytes kept between invokes, in no arena")
    # All memories that hold code or weights together.
    needs = [] if "error" in verdict else [need for need in verdict["needs"] if need["what"] == "flash"]
    if needs:
        names = ", ".join(dict.fromkeys(short(need["memory"], 20) for need in needs))
        used, available = (sum(need[key] for need in needs) for key in ("required", "available"))
        yield _fill_card("Flash", used, available, f" ({names})")
    else:
        weights = answer["flash_bytes"]
        yield Card("Weights in flash", *_split_unit(size(weights)), f"{weights:,} bytes")
    repeated, passes = answer["macs"] - answer["macs_layerwise"], len(answer["second_passes"])
    second = f", for {passes} gates in second passes too" if passes else ""
    yield Card(
        "Work, F",
        f"{answer['f']:.3f}",
        "",
        f"{answer['macs']:,} multiply-accumulates"
        + (f", {repeated:,} of them repeated{second}" if repeated > 0 else ", none repeated"),
    )
    yield _time_card(answer)


def _split_unit(text: str) -> tuple[str, str]:
    """Returns (figure, unit) of a text."""
    value, _, unit = text.partition(" ")
    return value, unit


def _fill_card(name: str, used: int, available: int, more: str) -> Card:
    """Returns a card of used and available bytes."""
    text = f"{used:,} of {available:,} bytes{more}, {percent(used, available)}"
    state = "over" if used > available else ""
    return Card(name, *_split_unit(size(used)), text, used / max(available, 1), state)


def _time_card(answer: ReportAnswer) -> Card:
    """Returns a card with the measured or estimated time.

    If there is no time, the card has the number of instructions or the cost.
    """
    board, run = answer["estimate"], answer["run"]
    if run is not None and run["milliseconds"] is not None:
        cycles = f"{run['cycles']:,} cycles, {run['how']}"
        return Card(f"Time, {run['cycles_are']}", *_split_time(run["milliseconds"]), short(cycles, 160))
    if board is not None:
        return Card(
            "Time, estimated", *_split_time(1e3 * board["total_seconds"]), short(board["source"], 160)
        )
    cost = f"{number(answer['cost'])} {answer['cost_unit']}, by the planner's formulas"
    if answer["estimated_ms"] is not None:
        return Card("Time, estimated", *_split_time(answer["estimated_ms"]), cost)
    if run is not None and run["instructions"] is not None:
        how = short(f"{run['instructions']:,}: {run['how']}", 160)
        return Card("Instructions, counted", *_millions(run["instructions"]), how)
    return Card(f"{answer['cost_unit'].capitalize()}, estimated", *_millions(answer["cost"]), cost)


def _split_time(milliseconds: float) -> tuple[str, str]:
    if milliseconds >= 10_000:
        return f"{milliseconds / 1e3:,.1f}", "s"
    return f"{milliseconds:,.{1 if milliseconds >= 10 else 2}f}", "ms"


def _millions(value: float) -> tuple[str, str]:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.1f}", name
    return f"{value:,.0f}", ""


# Kinds of a memory's parts, by the beginnings of their names.
_LOOKS = (
    ("arena", "tensor"),
    ("weights", "weights"),
    ("code and constants of the kernels", "library"),
    ("code and constants of the network", "network"),
    ("code and constants", "application"),
    ("stack", "accumulator"),
)


# ---- the linked firmware image ---------------------------------------------------------------------------

MOST_BELOW = 40  # lines below a part of the tree; the smaller parts are one line together


@dataclass(frozen=True)
class Leaf:
    """A line of the tree: a memory, owner, library, file or symbol, with its children."""

    level: str
    name: str
    bytes: int
    share: str
    below: tuple[Leaf, ...]


def image_trees(answer: ReportAnswer) -> list[Leaf]:
    """Returns the contents of the linked firmware image, a tree for each memory; [] if there is no image."""
    image = answer["linked"]
    if image is None:
        return []
    sizes = {memory["memory"]: memory["size"] for memory in image["sizes"]}
    return [_leaf(node, sizes.get(node.name, 0)) for node in sizetree.tree((), image["parts"])]


def _leaf(node: sizetree.Node, room: int) -> Leaf:
    below, whole = node.children, node.after or 0
    shown = tuple(_leaf(child, whole) for child in below[:MOST_BELOW])
    if rest := below[MOST_BELOW:]:
        size = sum(child.after or 0 for child in rest)
        shown = (*shown, Leaf("rest", f"{len(rest)} smaller ones", size, percent(size, whole), ()))
    while len(shown) == 1 and shown[0].name.strip("()") == node.name.strip("()"):
        shown = shown[0].below  # skips a line with the same name
    return Leaf(node.level, short(node.name, 80), whole, percent(whole, room) if room else "", shown)


def part_kind(name: str) -> str:
    """Returns the kind that decides how a part of a memory is drawn. `name` is the name of the part."""
    return next((look for begins, look in _LOOKS if name.startswith(begins)), "rest")
