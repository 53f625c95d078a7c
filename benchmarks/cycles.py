"""Prints the tables of docs/internals/time-figures.md:

    python benchmarks/cycles.py [NETWORK...] [--layers | --published]

The figures are estimates, nothing is measured: docs/internals/time.md says what is in them. For each network
on every board: the executed instructions of one input and the estimated cycles. The plan is layer by layer;
if that does not fit the board (HiFive1's 16 KB), it is the plan with the least memory, whose input image is
streamed. `--layers` prints a table for each network, with a line for each layer, on the first two boards.
`--published` prints MobileNets with the times that ST published for an STM32H747I-DISCO, beside estimates for
the same board. Every result is compared with the executor. Without names, the networks are those of the zoo.
Nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from buildtool import zoo
from buildtool.api import handle
from buildtool.base.errors import BuildtoolError

BOARDS = {"M4": "cortex-m4", "M7": "mps2-an500", "M55": "cortex-m55", "HiFive1": "hifive1"}
LAYERS = ("M4", "M7", "M55")
LAYERWISE = {"strategy": "layerwise"}
LEAST = {"strategy": "best", "objective": "ram", "image": "stream"}
NONE = "-"


class Network(NamedTuple):
    """A network with a time that ST published, in ms at 400 MHz. `zoo` is the most similar zoo network."""

    title: str
    zoo: str
    board: str
    milliseconds: float


# STMicroelectronics/stm32ai-modelzoo, README pages of mobilenetv1 and mobilenetv2: X-CUBE-AI 10.0.0, int8.
H747 = "stm32h747i-disco"
PUBLISHED = (
    Network("MobileNetV1 0.25, 96, 5 classes", "mobilenetv1_025_96", H747, 29.9),
    Network("MobileNetV2 0.35, 128", "mobilenetv2:alpha=0.35,size=128", H747, 116.1),
    Network("MobileNetV2 0.35, 224", "mobilenetv2:alpha=0.35,size=224", H747, 313.9),
    # Its weights are larger than the chip's flash: in an ideal memory.
    Network("MobileNetV2 1.0, 224", "mobilenetv2:alpha=1.0,size=224", BOARDS["M7"], 1106.6),
)
HERTZ = 400_000_000


def profile(network: str, board: str, options: Mapping[str, object]) -> dict[str, Any]:
    """Returns the answer to `profile`; exits if the result is not exact, or if there is no estimate."""
    answer: dict[str, Any] = handle(
        {"kind": "profile", "model": network, "board": board, "options": dict(options)}
    )
    if not answer["exact"]:
        raise SystemExit(f"{network} on {board} differs from the executor")
    if answer["cycles"] is None:
        raise SystemExit(f"{board}: {answer['no_cycles']}")
    rows, between = answer["per_operator"], answer["estimated_by"]["between"]
    if sum(row["cycles"] for row in rows) + between != answer["cycles"]:
        raise SystemExit(f"{network} on {board}: the sum over the layers is not the whole")
    return answer


def fitting(network: str, board: str) -> tuple[dict[str, Any] | None, str]:
    """Returns the profile of the first plan that fits, and "*" if it is not the layer-by-layer plan.

    The second plan tried has the least memory. Returns None if neither fits. HiFive1 has a stack of 1,536
    bytes, which may be too small for the nested loops of the second plan.
    """
    for options, mark in ((LAYERWISE, ""), (LEAST, "*")):
        try:
            return profile(network, board, options), mark
        except BuildtoolError as error:
            if error.code != "PLAN" and "stack overflow" not in error.text:
                raise
    return None, ""


def networks(names: Sequence[str]) -> Iterator[str]:
    """Yields the lines of the table of networks."""
    heads = [f"{board} {what}" for board in BOARDS for what in ("instructions", "cycles")]
    yield f"| network | {' | '.join(heads)} |"
    yield "| --- |" + " ---: |" * len(heads)
    for name in names:
        cells = []
        for board in BOARDS.values():
            answer, mark = fitting(name, board)
            if answer is None:
                cells += [NONE] * 2
                continue
            cells += [f"{answer['instructions']:,}{mark}", f"{answer['cycles']:,}"]
        yield f"| {name} | {' | '.join(cells)} |"


def layers(name: str) -> Iterator[str]:
    """Yields the lines of the table of a network's layers, for the layer-by-layer plan."""
    answers = [profile(name, BOARDS[board], LAYERWISE) for board in LAYERS]
    heads = [f"{board} {what}" for board in LAYERS for what in ("instructions", "cycles")]
    yield f"| {name} | operator | MACs | {' | '.join(heads)} |"
    yield "| --- | --- |" + " ---: |" * (len(heads) + 1)
    for rows in zip(*(answer["per_operator"] for answer in answers), strict=True):
        numbers = [f"{row[key]:,}" for row in rows for key in ("instructions", "cycles")]
        yield f"| {rows[0]['name']} | {rows[0]['operator']} | {rows[0]['macs']:,} | {' | '.join(numbers)} |"
    whole = [f"{answer[key]:,}" for answer in answers for key in ("instructions", "cycles")]
    yield f"| **all** | | {answers[0]['macs']:,} | {' | '.join(whole)} |"


def published() -> Iterator[str]:
    """Yields the lines of a table that compares ST's times with our estimates, in ms at 400 MHz."""
    heads = ("ST, measured", "ours, estimated", "million cycles", "pipeline", "several words", "memory", "F")
    yield f"| network | {' | '.join(heads)} |"
    yield "| --- |" + " ---: |" * len(heads)
    for network in PUBLISHED:
        answer = profile(network.zoo, network.board, {})
        parts = answer["estimated_by"]["parts"]
        cells = [_ms(network.milliseconds), _ms(answer["cycles"] / HERTZ * 1000)]
        waits = parts["code"] + parts["data"]
        for cycles in (answer["cycles"], parts["pipeline"], parts["words"], waits):
            cells.append(f"{cycles / 1e6:,.1f}")
        if network.board != H747:
            cells[-1] = "ideal"
        yield f"| {network.title} | {' | '.join(cells)} | {answer['f']:.3f} |"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.1f}"


def main() -> None:
    """Prints the table that the options choose."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("network", nargs="*")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--published", action="store_true")
    args = parser.parse_args()
    names = args.network or list(zoo.names())
    if args.published:
        found = published()
    elif args.layers:
        found = (line for name in names for line in (*layers(name), ""))
    else:
        found = networks(names)
    for line in found:
        print(line, flush=True)


if __name__ == "__main__":
    main()
