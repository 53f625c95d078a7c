"""The answer of `validate` as text: equal or not, where it was run, and by what it was built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.base.modes import Requantise
from buildtool.fronts.texts import bounds, estimate
from buildtool.fronts.texts.table import count, headline, of_state

if TYPE_CHECKING:
    from buildtool.schema.runs import ValidationAnswer


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
        *estimate.lines(answer),
        *bounds.lines(answer["bounds"]),
        verdict(answer),
    ]
    return "\n".join(lines)


def verdict(answer: ValidationAnswer) -> str:
    """One line: EQUAL, or how different, and where first; or that every operator was within its bound."""
    if answer["requantise"] != Requantise.EXACT:
        return f"{bounds.verdict(answer)}; {_whole(answer)}"
    if answer["exact"]:
        return f"EQUAL to {bounds.judged(answer['reference'])}"
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
