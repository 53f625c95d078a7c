"""How reports call layers and buffers: names and forms short enough for a column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import count, layer, shorten

if TYPE_CHECKING:
    from buildtool.schema.plans import BufferView, PlanAnswer

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


def form(answer: PlanAnswer, position: int) -> str:
    """The operator at a position in a few letters."""
    return answer["operators"][position]["form"]


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
    names = [form(answer, position) for position in ops]
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
