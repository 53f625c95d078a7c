"""What `analyze` opens with: whether a network fits, what binds, and what would help, with its price."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from buildtool.base.errors import Hint, Spelling, from_data
from buildtool.fronts.texts.table import Cell, count, layer, table

if TYPE_CHECKING:
    from buildtool.schema.analysis import AnalysisAnswer, Cure, NoPlan, Verdict

PLACE_WIDTH = 64
EACH = 2  # boards at most that have sentences of their own


def lines(answer: AnalysisAnswer, spelling: Spelling, name: Callable[[str], str]) -> list[str]:
    """The answer in sentences: of a board or two each in its own, of more in one for all of them."""
    boards, model = answer["boards"], answer["model"]
    if len(boards) > EACH:
        return list(_overview(model, boards))
    found: list[str] = []
    for board in boards:
        found += [""] if found else []
        found += _verdict(model, board, spelling, name)
    return found


def _overview(model: str, boards: Sequence[Verdict | NoPlan]) -> Iterator[str]:
    fitting = [board["board"] for board in boards if board["fits"]]
    yield f"{model} fits {len(fitting)} of {len(boards)} boards{': ' if fitting else ''}{', '.join(fitting)}"
    for board in boards:
        if not board["fits"]:
            said = from_data(board["error"]).text if "error" in board else _missing(board)
            yield f"  {board['board']}: {said}"


def _verdict(
    model: str, board: Verdict | NoPlan, spelling: Spelling, name: Callable[[str], str]
) -> Iterator[str]:
    if "error" in board:
        yield f"{model} has no plan for {board['board']}:"
        yield from (f"  {line}" for line in from_data(board["error"]).message(spelling, name).splitlines())
        return
    place = f"{layer(board['binding_operator'], PLACE_WIDTH)}: {count(board['binding_bytes'], 'byte')}"
    if board["fits"]:
        yield f"{model} fits {board['board']}{_sureness(board)}: {_left_over(board)}"
        yield f"  what binds: {board['binds']}; the arena is fullest at {place}"
        smaller = board["smaller"]
        if smaller is not None:
            yield f"  the next smaller plan: {_price(smaller, spelling)}"
        return
    yield f"{model} does not fit {board['board']}{_sureness(board)}: {_missing(board)}"
    yield f"  what binds: {board['binds']}; the arena is fullest at {place}"
    if board["cures"]:
        yield "  what makes it fit, each planned and counted, the cheapest first:"
        yield from (f"    {line}" for line in _cures(board["cures"], spelling).splitlines())
    for hint in (Hint(hint["text"], tuple(hint["settings"].items())) for hint in board["advice"]):
        yield f"  try: {hint.spelled(spelling)}"


def _sureness(board: Verdict) -> str:
    words = {"estimated": " (its code is estimated)", "uncounted": " (without its code)"}
    return words.get(board["counted"]["how"], "")


def _left_over(board: Verdict) -> str:
    left = [
        f"{need['available'] - need['required']:,} bytes of {need['what']} ({need['memory']})"
        for need in board["needs"]
        if need["what"] in ("RAM", "flash")
    ]
    return f"{' and '.join(left)} are left"


def _missing(board: Verdict) -> str:
    found = [
        f"{need['excess']:,} bytes too many for {need['what']}"
        + (f" ({need['memory']})" if need["what"] in ("RAM", "flash") else "")
        for need in board["needs"]
        if need["excess"]
    ]
    stack = board["stack"]
    if stack is not None and stack["required"] > stack["available"]:
        found.append(f"{stack['required'] - stack['available']:,} bytes too many for the stack")
    return ", ".join(found)


def _cures(cures: Sequence[Cure], spelling: Spelling) -> str:
    """A line for each: its price (milliseconds where all costs are times) and what is left in its memory."""
    timed = all(cure["estimated_ms"] is not None for cure in cures)
    rows: list[list[Cell]] = [
        [
            _words(cure, spelling),
            cure["arena_bytes"],
            f"{cure['f']:.3f}",
            f"{cure['estimated_ms']:,.1f}" if timed else f"{cure['cost']:,.0f} {cure['cost_unit']}",
            _ratio(cure),
            *[f"{left['memory']} {left['bytes']:,}" for left in cure["left"][:1]],
        ]
        for cure in cures
    ]
    return table(["give", "arena bytes", "F", "est. ms" if timed else "cost", "times", "bytes left"], rows)


def _price(cure: Cure, spelling: Spelling) -> str:
    time = "" if cure["estimated_ms"] is None else f", about {cure['estimated_ms']:,.1f} ms"
    ratio = f" ({_ratio(cure)} times this one's)" if cure["cost_ratio"] is not None else ""
    cost = f"cost {cure['cost']:,.0f} {cure['cost_unit']}{ratio}{time}"
    return f"{_words(cure, spelling)}: {cure['arena_bytes']:,} bytes of arena, F {cure['f']:.3f}, {cost}"


def _ratio(cure: Cure) -> str:
    return "" if cure["cost_ratio"] is None else f"{cure['cost_ratio']:.3f}"


def _words(cure: Cure, spelling: Spelling) -> str:
    return " ".join(spelling(option, value) for option, value in cure["settings"].items())
