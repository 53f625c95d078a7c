"""The answer to `validate` as text: whether the outputs are right, what ran the network, and which compiler
built it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.base.modes import Requantise
from buildtool.base.plain import duration
from buildtool.fronts.texts.boards import board_lines, note_lines
from buildtool.fronts.texts.table import (
    Cell,
    count,
    headline,
    layer,
    listing,
    plain,
    state_suffix,
    table,
    width,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from buildtool.schema.datasets import Accuracy, DatasetAnswer, ThroughFirmware
    from buildtool.schema.runs import OperatorBound, ReferenceAnswer, Run, ValidationAnswer


NAME_WIDTH = 32


def bound_lines(bounds: Sequence[OperatorBound]) -> list[str]:
    """Returns the table of the operators that may differ from the reference, or [] if there are none."""
    text = listing(
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
    return [text, ""] if bounds else []


def agreement(reference: ReferenceAnswer) -> str:
    """Returns the verdict on a run in which all values are right.

    Right values are equal to the reference's, or within the bounds that exp, log and tanh of float32 have. If
    LiteRT did not compute all outputs, the text also says why.
    """
    why, curves = reference["why"], reference["curves"]
    if curves is not None and curves["values_different"]:
        return f"WITHIN THE BOUNDS of {reference['text']}{_curves_text(reference)}"
    whole = f"EQUAL to {reference['text']}, to the bit"
    return whole + (f" ({plain(why)})" if why else "") + _curves_text(reference)


def first_exceeding(bounds: Sequence[OperatorBound]) -> OperatorBound | None:
    """Returns the first operator whose difference exceeds its proven bound, or None."""
    return next((row for row in bounds if row["max_abs_diff"] > row["bound"]), None)


def bounds_verdict(answer: Run) -> str:
    """Returns words about the bound that all operators keep, or the first operator that exceeds its bound."""
    wrong = first_exceeding(answer["bounds"])
    if wrong is not None:
        return (
            f"BEYOND ITS BOUND: {wrong['operator']}, tensor '{wrong['tensor']}', differs by "
            f"{count(wrong['max_abs_diff'], 'step')} from the reference on the same inputs, "
            f"at most {count(wrong['bound'], 'step')} are proven"
        )
    most = max((row["bound"] for row in answer["bounds"]), default=0)
    return (
        f"within {count(most, 'step')} in every operator, on the inputs of each: "
        f"{count(len(answer['bounds']), 'operator')} not exact ({answer['requantise']})"
    )


def text(answer: ValidationAnswer) -> str:
    """Returns the verdict, the first difference if any, and the memory that was used."""
    lines = [
        headline(answer),
        f"compared: {count(answer['tensors_compared'], 'tensor')}, {count(answer['inputs'], 'input')}"
        + (f" with {count(answer['resets'], 'reset')} of the state, " if answer["state_bytes"] else ", ")
        + f"{count(answer['output_values'], 'different output value')}",
        _memory(answer),
        *board_lines(answer),
        *bound_lines(answer["bounds"]),
        verdict(answer),
    ]
    return "\n".join(lines)


def verdict(answer: ValidationAnswer) -> str:
    """Returns a line that says EQUAL, or shows the first difference, or compares differences with bounds."""
    if answer["requantise"] != Requantise.EXACT:
        what = "tensors" if answer["tensors_compared"] > 1 else "the output"
        return (  # end to end, the differences of the operators add up
            f"{bounds_verdict(answer)}; end to end {what} within {count(answer['max_abs_diff'], 'step')} of "
            f"{answer['reference']['text']} as measured, "
            f"{count(answer['elements_different'], 'value')} different: "
            f"{count(answer['inputs'], 'input')}, {answer['inputs_equal']:,} equal"
        )
    reference = answer["reference"]
    if answer["within_bounds"]:
        return agreement(reference)
    line = _different(answer["reference"], answer)
    first = answer["first_difference"]
    if first is None:
        return line
    return (
        f"{line}; first in input {first['input']} at {first['operator']}, tensor '{first['tensor']}': "
        f"{count(first['elements'], 'element')}, from element {first['first_element']} on"
    )


def _curves_text(reference: ReferenceAnswer) -> str:
    """Returns words about operators with exp, log or tanh of float32, and how far they are from LiteRT's.

    Returns "" if the network has no such operators.
    """
    curves = reference["curves"]
    if curves is None:
        return ""
    text = (
        f"; in float32 {count(curves['operators'], 'operator')} with exp, log or tanh, "
        f"{curves['largest_ulp']} of at most {curves['bound_ulp']} units in the last place apart"
    )
    if not curves["values_different"]:
        return text + (f", with {curves['values']:,} equal values after them" if curves["values"] else "")
    return (
        f"{text}; after them {curves['values_different']:,} of {count(curves['values'], 'value')} "
        f"differ by up to {count(curves['largest_step'], 'step')}"
    )


def _memory(run: ValidationAnswer | ThroughFirmware) -> str:
    """Returns the arena and the stack that a run used."""
    stack = run["stack_high_water"]
    return (
        f"arena: {count(run['arena_bytes'], 'byte')}, {run['arena_high_water']:,} touched"
        + state_suffix(run["state_bytes"])
        + ("" if stack is None else f"; stack: {count(stack, 'byte')}")
    )


def _different(reference: ReferenceAnswer, run: ValidationAnswer | ThroughFirmware) -> str:
    """Returns words that say how many inputs and values differ from the reference, and by how much."""
    wrong = run["inputs"] - run["inputs_equal"]
    return (
        f"DIFFERENT from {reference['text']} by up to {run['max_abs_diff']}: "
        f"{count(run['inputs'], 'input')}, {run['inputs_equal']:,} equal, "
        f"{wrong:,} {'differs' if wrong == 1 else 'differ'} in {count(run['elements_different'], 'value')}"
    )


MOST_CLASSES = 20  # shown in a table; of more classes only the worst
MOST_PAIRS = 10  # shown pairs of confused classes
MOST_DIFFERING = 5
NAME = 16  # characters of a class's name above a column


def dataset_text(answer: DatasetAnswer, exceeded: Sequence[str] = ()) -> str:
    """Returns the run, its accuracy, and at the end the verdict.

    `exceeded` has a text for each lower limit that the accuracy is below.
    """
    blocks = ["\n".join(map(plain, _head(answer)))]
    accuracy = answer["accuracy"]
    if accuracy is None:
        blocks[0] += f"\ntop-1: none, because {plain(answer['no_accuracy'])}"
    else:
        blocks += [_classes(accuracy), _confusion(accuracy)]
        blocks.append(
            "\n".join(
                f"top-1 of the {name}: {100 * top1['top1']:.2f} % ({top1['correct']:,} of {top1['inputs']:,})"
                for name, top1 in (("firmware", accuracy["firmware"]), ("reference", accuracy["reference"]))
                if top1 is not None
            )
        )
    lines = [*bound_lines(answer["bounds"]), *map(plain, _verdict(answer))]
    lines += [f"LIMIT EXCEEDED: {limit}" for limit in exceeded]
    blocks.append("\n".join(lines))
    return "\n\n".join(block for block in blocks if block)


def _head(answer: DatasetAnswer) -> Iterator[str]:
    run = answer["firmware"]
    how = ", ".join((run["level_text"], run["compiler"], run["strategy"])) if run else "not run"
    yield f"{answer['model']} on {answer['board']} ({how})"
    selection = ""
    if answer["seed"] is not None:
        selection = f" of {answer['inputs_there']:,}, chosen by seed {answer['seed']}"
    yield f"data: {answer['data']}, {count(answer['inputs'], 'input')}{selection}"
    for tensor in answer["fed"]:
        yield f"input {tensor['name']} {tensor['shape']}: {tensor['how']}"
    why = "" if run else answer["reference"]["why"]  # with a run, the verdict says why
    yield f"reference: {answer['reference']['text']}" + (f" ({why})" if why else "")
    share, through = answer["share"], run["inputs"] if run else 0
    rest = answer["inputs"] - through
    yield f"through the firmware: {count(through, 'input')}; through the reference alone: {rest:,}"
    if share["by"] == "estimate" and rest and share["seconds"] is not None:
        basis = ""
        if share["instructions"] is not None and share["per_second"] is not None:
            how = "counted" if share["counted"] else "estimated"
            basis = f" ({share['instructions']:,} instructions each, {how}, {share['per_second']:,} a second)"
        yield (
            f"all of them would take about {duration(share['seconds'])} in the emulator{basis}: "
            "--through-firmware all runs them"
        )
    if run:
        yield _memory(run)
    yield from note_lines(answer["note"])


def _classes(accuracy: Accuracy) -> str:
    """Returns a table of the classes. If there are many, it has only those with the lowest recall."""
    classes = accuracy["classes"]
    title = ""
    if len(classes) > MOST_CLASSES:
        worst = sorted(
            (c for c in classes if c["recall"] is not None), key=lambda c: (c["recall"], c["label"])
        )
        title = f"the {MOST_CLASSES} of {len(classes):,} classes with the lowest recall:\n"
        classes = worst[:MOST_CLASSES]
    return title + listing(
        classes,
        {
            "label": lambda one: one["label"],
            "class": lambda one: plain(one["name"]),
            "inputs": lambda one: one["inputs"],
            "predicted": lambda one: one["predicted"],
            "correct": lambda one: one["correct"],
            "precision %": lambda one: None if one["precision"] is None else 100 * one["precision"],
            "recall %": lambda one: None if one["recall"] is None else 100 * one["recall"],
        },
    )


def _confusion(accuracy: Accuracy) -> str:
    """Returns the confusion matrix. If it is too wide, returns the pairs of classes confused most often."""
    cells = {(c["label"], c["predicted"]): c["inputs"] for c in accuracy["confusion"]}
    classes = accuracy["classes"]
    if len(classes) <= MOST_CLASSES:
        titles = ["label", *(str(c["label"]) for c in classes)]
        rows: list[list[Cell]] = []
        for one in classes:
            name = plain(one["name"])
            short = name if len(name) <= NAME else f"{name[: NAME - 3]}..."
            rows.append([short, *(cells.get((one["label"], other["label"]), 0) for other in classes)])
        matrix = table(titles, rows)
        if max(map(len, matrix.splitlines())) <= width.get():
            return f"confusion (rows: labels, columns: predictions):\n{matrix}"
    names = {c["label"]: plain(c["name"]) for c in classes}
    wrong = sorted(
        ((n, label, predicted) for (label, predicted), n in cells.items() if label != predicted),
        key=lambda one: (-one[0], one[1:]),
    )
    if not wrong:
        return ""
    pairs: list[list[Cell]] = [[names[label], names[at], n] for n, label, at in wrong[:MOST_PAIRS]]
    return f"confused most often:\n{table(['label', 'predicted', 'inputs'], pairs)}"


def _verdict(answer: DatasetAnswer) -> Iterator[str]:
    run, differing = answer["firmware"], answer["differing"]
    if run is None:
        yield "NOT COMPARED: only the reference was run"
        return
    inputs, equal = run["inputs"], run["inputs_equal"]
    if answer["requantise"] != Requantise.EXACT:
        within = "WITHIN THE BOUNDS" if answer["within_bounds"] else "BEYOND THE BOUNDS"
        yield (
            f"{within} of every operator, on the first inputs; end to end {equal:,} of "
            f"{count(inputs, 'input')} equal, the others within {count(run['max_abs_diff'], 'step')}"
        )
        return
    if not differing:
        yield f"{agreement(answer['reference'])}: {count(inputs, 'input')}"
        return
    yield _different(answer["reference"], run)
    for one in differing[:MOST_DIFFERING]:
        yield (
            f"  input {one['name']} at {one['operator']}, tensor '{one['tensor']}': "
            f"{count(one['elements'], 'element')}, from element {one['first_element']} on"
        )
    if len(differing) > MOST_DIFFERING:
        yield f"  and {len(differing) - MOST_DIFFERING:,} more: --json lists them"
