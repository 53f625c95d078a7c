"""The answer to `quantize` as text: what was lost, and whether the result fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from buildtool.base.errors import from_data
from buildtool.fronts.texts.table import count, listing, plain
from buildtool.options import FRONT

if TYPE_CHECKING:
    from buildtool.schema.quantized import LostAccuracy, PlannedAtOnce, QuantizeAnswer

_SIZES_ONLY = (
    "accuracy: UNKNOWN, because random values decided the scales: sizes, plans and times hold, outputs do not"
)


def text(answer: QuantizeAnswer) -> str:
    """Returns where the scales are from, the accuracy of both networks, and the plan."""
    blocks = ["\n".join(_head(answer))]
    if answer["lost"] is None:
        blocks.append(_SIZES_ONLY)
    else:
        blocks.append("\n".join(_losses(answer["lost"], answer["reference"])))
    if answer["planned"] is not None:
        blocks.append(_plan(answer["planned"]))
    return "\n\n".join(blocks)


def _head(answer: QuantizeAnswer) -> Iterator[str]:
    yield f"{answer['model']}: {answer['activations']} activations, int8 weights, by {answer['quantiser']}"
    some = answer["inputs"] < answer["inputs_there"]
    whole = f" of {answer['inputs_there']:,}" if some else ""
    name = plain(answer["data"]) or "random values"
    inputs = f"{count(answer['inputs'], 'input')}{whole}"
    yield f"data: {name}, {inputs}; {answer['calibrated']:,} decide the scales"
    for tensor in answer["fed"]:
        yield f"input {plain(tensor['name'])} {tensor['shape']}: {tensor['how']}"
    yield f"file: {answer['float_bytes']:,} -> {count(answer['bytes'], 'byte')}"


def _losses(lost: LostAccuracy, reference: str) -> Iterator[str]:
    yield listing(
        lost["outputs"],
        {
            "output": lambda one: plain(one["name"]),
            "max error": lambda one: f"{one['max_abs']:.4g}",
            "mean error": lambda one: f"{one['mean_abs']:.4g}",
            "largest value": lambda one: f"{one['largest']:.4g}",
            "SQNR dB": lambda one: None if one["sqnr_db"] is None else f"{one['sqnr_db']:.1f}",
        },
    )
    yield f"the quantised outputs are those of {reference}"
    if lost["float"] is None or lost["quantised"] is None:
        yield f"no top-1 accuracy: {lost['no_top1']}"
        return
    for name, one in (("float", lost["float"]), ("quantised", lost["quantised"])):
        yield f"top-1, {name}: {100 * one['top1']:.2f} % ({one['correct']:,} of {one['inputs']:,})"
    yield f"both give the same class to {lost['agree']:,} of {count(lost['float']['inputs'], 'input')}"


def _plan(planned: PlannedAtOnce) -> str:
    """Returns a line with the plan's sizes, or with the reason why there is no plan."""
    if planned["error"] is None:
        sizes = f"arena {count(planned['arena_bytes'] or 0, 'byte')}, weights {planned['flash_bytes']:,}"
        return f"FITS {planned['board']}: {sizes}"
    error = from_data(planned["error"])
    error.path = ""
    return f"DOES NOT FIT {planned['board']}: {error.message(*FRONT.get()).removeprefix('error: ')}"
