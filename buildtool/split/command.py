"""What `buildtool split` says: the tables, the chosen network's figures, and how to build it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from buildtool.split import run
from buildtool.split.wanted import Wanted

_GUESSED = 1.2  # times the accuracy of guessing: no sign of a trained network
Said = tuple[dict[str, Any], str, int]  # the answer, its text, the exit status


def split(wanted: Wanted, progress: Callable[[str], None]) -> Said:
    """Runs a split; see `run`. What was trained before an interruption or an error is kept."""
    found = run.run(wanted, progress)
    answer = dict(found.answer)
    return answer, text(wanted, found), 0 if found.is_met else 1


def text(wanted: Wanted, found: run.Outcome) -> str:
    """The tables, the figures of the chosen network, and how to build it."""
    blocks = [table.text() for table in found.tables]
    return "\n\n".join([*blocks, "\n".join(_lines(wanted, found.answer))])


def _lines(wanted: Wanted, answer: Mapping[str, Any]) -> Iterator[str]:
    share, firmware, plan = answer["accuracy"], answer["firmware"], answer["plan"]
    average = f"average factor {answer['average_factor']:.2f}"
    yield f"chosen for {answer['board']}: {answer['structure']}, {average}"
    yield (
        f"accuracy: {100 * share['test']:.2f} % of all test images, {answer['drop']:.2f} points below the "
        f"original's {100 * share['original_test']:.2f} %"
    )
    if share["original_test"] <= _GUESSED * share["guessing"]:
        yield (
            "DOUBTFUL: the original is hardly better than guessing; it may be untrained, its training too "
            "short, or --normalise another rule than it was trained with"
        )
    firm = "none" if share["firmware"] is None else f"{100 * share['firmware']:.2f} %"
    yield (
        f"of {share['images']:,} test images: float {100 * share['float']:.2f} %, "
        f"int8 {100 * share['int8']:.2f} % ({share['reference']}), firmware {firm}"
    )
    yield f"firmware on this machine: {firmware['equal']:,} of {firmware['images']:,} images equal to the bit"
    if firmware["board_not_run"]:
        yield f"firmware for {answer['board']}: not run, {firmware['board_not_run']}"
    else:
        ran, same = firmware["board_images"], firmware["board_equal"]
        yield f"firmware for {answer['board']}, emulated: {same:,} of {ran:,} images equal to the bit"
    if plan is not None:
        time = "" if plan["estimated_ms"] is None else f", about {plan['estimated_ms']:,.1f} ms"
        yield (
            f"plan: arena {plan['arena_bytes']:,} bytes, weights {plan['flash_bytes']:,} bytes, "
            f"F {plan['f']:.3f}{time}"
        )
        yield _flash(answer["board"], plan["flash_bytes"], plan["code_bytes"])
    if answer["misses"]:
        yield f"GOALS missed: {answer['misses']}"
    yield f"written to {wanted.out}: {', '.join(answer['files'])}"
    if plan is not None:
        files = f"model={wanted.out / run.TFLITE} plan={wanted.out / run.PLAN}"
        yield f"build it: scons board={wanted.board} {files}"


def _flash(board: str, weights: int, code: int | None) -> str:
    """What goes to flash, or why that is not known as a whole."""
    if code is None:
        return (
            f"flash: the code's size on {board} is not known before it is built, so weights alone are counted"
        )
    return f"flash: {weights + code:,} bytes at most, of which code and constants take {code:,}"
