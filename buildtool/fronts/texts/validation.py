"""The answer of `validate` as text: equal or not, where it was run, and by what it was built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.base.modes import Requantise
from buildtool.fronts.texts.boards import board_lines
from buildtool.fronts.texts.table import count, headline, layer, listing, of_state, plain

if TYPE_CHECKING:
    from buildtool.schema.runs import OperatorBound, ReferenceAnswer, Run, ValidationAnswer

NAME_WIDTH = 32


def bound_lines(bounds: Sequence[OperatorBound]) -> list[str]:
    """The table of the operators that do not equal the reference; nothing where there are none."""
    made = listing(
        bounds,
        {
            "operator": lambda row: row["operator"],
            "tensor": lambda row: layer(row["tensor"], NAME_WIDTH),
            "channels": lambda row: f"{row['channels_rounded']:,} of {row['channels']:,}",
            "proven off": lambda row: f"{row['bound_before_rounding']:.4f}",
            "bound": lambda row: row["bound"],
            "seen": lambda row: row["max_abs_diff"],
            "values": lambda row: row["elements"],
            "different": lambda row: row["elements_different"],
        },
    )
    return [made, ""] if bounds else []


def judged(reference: ReferenceAnswer) -> str:
    """Who judged, in words; where it was our own executor, why and how to get the other."""
    why = reference["why"]
    return f"{reference['text']}, to the bit" + (f" ({plain(why)})" if why else "")


def beyond(bounds: Sequence[OperatorBound]) -> OperatorBound | None:
    """The first operator that was farther off than is proven."""
    return next((row for row in bounds if row["max_abs_diff"] > row["bound"]), None)


def bounds_verdict(answer: Run) -> str:
    """Within how many steps every operator was, or which one was not."""
    wrong = beyond(answer["bounds"])
    if wrong is not None:
        return (
            f"BEYOND ITS BOUND: {wrong['operator']}, tensor '{wrong['tensor']}', differs by "
            f"{count(wrong['max_abs_diff'], 'step')} from the reference on the same inputs, "
            f"{count(wrong['bound'], 'step')} at most are proven"
        )
    most = max((row["bound"] for row in answer["bounds"]), default=0)
    return (
        f"within {count(most, 'step')} in every operator, on the inputs that it had: "
        f"{count(len(answer['bounds']), 'operator')} not exact ({answer['requantise']})"
    )


def text(answer: ValidationAnswer) -> str:
    """The verdict, the first difference if there is one, and the memory really used."""
    stack = answer["stack_high_water"]
    lines = [
        headline(answer),
        f"compared: {count(answer['tensors_compared'], 'tensor')}, {count(answer['inputs'], 'input')}"
        + (f" with {count(answer['resets'], 'reset')} of the state, " if answer["state_bytes"] else ", ")
        + f"{count(answer['output_values'], 'different output value')}",
        f"arena: {count(answer['arena_bytes'], 'byte')}, {answer['arena_high_water']:,} touched"
        + of_state(answer["state_bytes"])
        + ("" if stack is None else f"; stack: {count(stack, 'byte')}"),
        *board_lines(answer),
        *bound_lines(answer["bounds"]),
        verdict(answer),
    ]
    return "\n".join(lines)


def verdict(answer: ValidationAnswer) -> str:
    """One line: EQUAL, or how different, and where first; or that every operator was within its bound."""
    if answer["requantise"] != Requantise.EXACT:
        return f"{bounds_verdict(answer)}; {_whole(answer)}"
    if answer["exact"]:
        return f"EQUAL to {judged(answer['reference'])}"
    inputs, equal = answer["inputs"], answer["inputs_equal"]
    wrong = inputs - equal
    line = (
        f"DIFFERENT from {answer['reference']['text']} by up to {answer['max_abs_diff']}: "
        f"{count(inputs, 'input')}, {equal} equal, "
        f"{wrong} {'differs' if wrong == 1 else 'differ'} in {count(answer['elements_different'], 'value')}"
    )
    first = answer["first_difference"]
    if first is None:
        return line
    return (
        f"{line}; first in input {first['input']} at {first['operator']}, tensor '{first['tensor']}': "
        f"{count(first['elements'], 'element')}, from element {first['first_element']} on"
    )


def _whole(answer: ValidationAnswer) -> str:
    """How the network as a whole differs, where its operators' differences add up."""
    inputs, equal = answer["inputs"], answer["inputs_equal"]
    what = "tensors" if answer["tensors_compared"] > 1 else "the output"
    return (
        f"end to end {what} within {count(answer['max_abs_diff'], 'step')} of "
        f"{answer['reference']['text']} as seen, "
        f"{count(answer['elements_different'], 'value')} different: {count(inputs, 'input')}, {equal} equal"
    )
