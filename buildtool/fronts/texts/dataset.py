"""The answer of `validate` on a data set as text: what ran where, top-1, classes, equal or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.base.modes import Requantise
from buildtool.base.plain import duration
from buildtool.fronts.texts.boards import note_lines
from buildtool.fronts.texts.table import Cell, count, listing, of_state, plain, table, width
from buildtool.fronts.texts.validation import bound_lines, judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from buildtool.schema.datasets import Accuracy, DatasetAnswer, Share

MOST_CLASSES = 20  # in a table; of more classes the worst ones
MOST_PAIRS = 10  # of confused classes
MOST_DIFFERING = 5
NAME = 16  # characters of a class's name above a column


def text(answer: DatasetAnswer, exceeded: Sequence[str] = ()) -> str:
    """What was run, what it gave, and last the verdict; `exceeded`: limits that a figure is below."""
    blocks = ["\n".join(map(plain, _head(answer)))]
    found = answer["accuracy"]
    if found is None:
        blocks[0] += f"\ntop-1: none, because {plain(answer['no_accuracy'])}"
    else:
        blocks += [_classes(found), _confusion(found)]
        blocks.append("\n".join(_top1(found)))
    lines = [*bound_lines(answer["bounds"]), *map(plain, _verdict(answer))]
    lines += [f"LIMIT exceeded: {limit}" for limit in exceeded]
    blocks.append("\n".join(lines))
    return "\n\n".join(block for block in blocks if block)


def _head(answer: DatasetAnswer) -> Iterator[str]:
    run = answer["firmware"]
    how = ", ".join((run["level_text"], run["compiler"], run["strategy"])) if run else "not run"
    yield f"{answer['model']} on {answer['board']} ({how})"
    chosen = ""
    if answer["seed"] is not None:
        chosen = f" of {answer['inputs_there']:,}, chosen by seed {answer['seed']}"
    yield f"data: {answer['data']}, {count(answer['inputs'], 'input')}{chosen}"
    for fed in answer["fed"]:
        yield f"input {fed['name']} {fed['shape']}: {fed['how']}"
    why = "" if run else answer["reference"]["why"]  # else the verdict says it
    yield f"reference: {answer['reference']['text']}" + (f" ({why})" if why else "")
    yield from _share(answer)
    if run:
        stack = run["stack_high_water"]
        yield (
            f"arena: {count(run['arena_bytes'], 'byte')}, {run['arena_high_water']:,} touched"
            + of_state(run["state_bytes"])
            + ("" if stack is None else f"; stack: {count(stack, 'byte')}")
        )
    yield from note_lines(answer["note"])


def _share(answer: DatasetAnswer) -> Iterator[str]:
    """How many inputs went which way, and why not all went through the firmware."""
    run, share = answer["firmware"], answer["share"]
    through = run["inputs"] if run else 0
    rest = answer["inputs"] - through
    yield f"through the firmware: {count(through, 'input')}; through the reference alone: {rest:,}"
    if share["by"] == "estimate" and rest and share["seconds"] is not None:
        yield (
            f"all of them would take about {duration(share['seconds'])} in the emulator{_by(share)}: "
            "--through-firmware all runs them"
        )


def _by(share: Share) -> str:
    """What an estimate goes by."""
    if share["instructions"] is None or share["per_second"] is None:
        return ""
    how = "counted" if share["counted"] else "estimated"
    return f" ({share['instructions']:,} instructions each, {how}, {share['per_second']:,} a second)"


def _top1(found: Accuracy) -> Iterator[str]:
    both = (("firmware", found["firmware"]), ("reference", found["reference"]))
    for name, top1 in both:
        if top1 is not None:
            share = f"{100 * top1['top1']:.2f} % ({top1['correct']:,} of {top1['inputs']:,})"
            yield f"top-1 of the {name}: {share}"


def _classes(found: Accuracy) -> str:
    """A row for each class; of too many the ones with the least recall."""
    classes = found["classes"]
    title = ""
    if len(classes) > MOST_CLASSES:
        worst = sorted(
            (c for c in classes if c["recall"] is not None), key=lambda c: (c["recall"], c["label"])
        )
        title = f"the {MOST_CLASSES} of {len(classes):,} classes with the least recall:\n"
        classes = worst[:MOST_CLASSES]
    return title + listing(
        classes,
        {
            "label": lambda one: one["label"],
            "class": lambda one: plain(one["name"]),
            "inputs": lambda one: one["inputs"],
            "predicted": lambda one: one["predicted"],
            "correct": lambda one: one["correct"],
            "precision %": lambda one: _percent(one["precision"]),
            "recall %": lambda one: _percent(one["recall"]),
        },
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _confusion(found: Accuracy) -> str:
    """The confusion matrix; where it is wider than the lines, the classes that are confused most often."""
    cells = {(c["label"], c["predicted"]): c["inputs"] for c in found["confusion"]}
    classes = found["classes"]
    if len(classes) <= MOST_CLASSES:
        titles = ["label", *(str(c["label"]) for c in classes)]
        rows: list[list[Cell]] = [
            [_short(one["name"]), *(cells.get((one["label"], other["label"]), 0) for other in classes)]
            for one in classes
        ]
        made = table(titles, rows)
        if max(map(len, made.splitlines())) <= width.get():
            return f"confusion (rows: labels, columns: predictions):\n{made}"
    names = {c["label"]: plain(c["name"]) for c in found["classes"]}
    wrong = sorted(
        ((n, label, predicted) for (label, predicted), n in cells.items() if label != predicted),
        key=lambda one: (-one[0], one[1:]),
    )
    if not wrong:
        return ""
    pairs: list[list[Cell]] = [[names[label], names[at], n] for n, label, at in wrong[:MOST_PAIRS]]
    return f"confused most often:\n{table(['label', 'predicted', 'inputs'], pairs)}"


def _short(name: str) -> str:
    name = plain(name)
    return name if len(name) <= NAME else f"{name[: NAME - 3]}..."


def _verdict(answer: DatasetAnswer) -> Iterator[str]:
    run, differing = answer["firmware"], answer["differing"]
    if run is None:
        yield "NOT COMPARED: the reference alone was run"
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
        yield f"EQUAL to {judged(answer['reference'])}: {count(inputs, 'input')}"
        return
    wrong = inputs - equal
    yield (
        f"DIFFERENT from {answer['reference']['text']} by up to {run['max_abs_diff']}: "
        f"{count(inputs, 'input')}, {equal:,} equal, "
        f"{wrong:,} {'differs' if wrong == 1 else 'differ'} in {count(run['elements_different'], 'value')}"
    )
    for one in differing[:MOST_DIFFERING]:
        yield (
            f"  input {one['name']} at {one['operator']}, tensor '{one['tensor']}': "
            f"{count(one['elements'], 'element')}, from element {one['first_element']} on"
        )
    if len(differing) > MOST_DIFFERING:
        yield f"  and {len(differing) - MOST_DIFFERING:,} more: --json lists them"
