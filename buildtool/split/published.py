"""The published structures of VGG16 and ResNet18 (arXiv 2002.03302), and what they count."""

from __future__ import annotations

from collections.abc import Iterator

from buildtool.split.blocks import find_in
from buildtool.split.branches import split_steps
from buildtool.split.counts import Counts, counts_in
from buildtool.split.networks import steps_by_name
from buildtool.split.types import Choice, Fusion

# Table rows: the network's title, the network, and the choice (None: whole). "Slice" and "full" are what a
# branch's first convolution reads; they are the published network's proposals (arXiv 2002.03302).
PROPOSED_1, PROPOSED_2 = (8, 2, 2, 4, 4), (8, 2, 2, 2, 4)
FOUR = (4, 4, 4, 4, 4)
PUBLISHED: tuple[tuple[str, str, Choice | None], ...] = (
    ("VGG16", "vgg16", None),
    ("I, full", "vgg16", Choice(PROPOSED_1, "full")),
    ("I, slice", "vgg16", Choice(PROPOSED_1)),
    ("II, slice", "vgg16", Choice(PROPOSED_2)),
    ("naive, 4 ways, no fusion", "vgg16", Choice(FOUR, fusion=Fusion.NAIVE)),
    ("shared first three, then 4 ways", "vgg16", Choice(FOUR, "full", Fusion.SHARED, shared=3)),
    ("ResNet18", "resnet18", None),
    *(
        (f"ResNet18, {factor} ways, {first}", "resnet18", Choice((factor,) * 4, first))
        for factor in (2, 4, 6, 8)
        for first in ("full", "slice")
    ),
    ("ResNet18, naive, 4 ways", "resnet18", Choice(FOUR[:4], fusion=Fusion.NAIVE)),
)


def published(width: float = 1.0, size: int = 32) -> Iterator[tuple[str, Counts, Counts]]:
    """Of each published network and baseline the title, its counts, and those of its original."""
    for title, network, choice in PUBLISHED:
        steps = steps_by_name(network, width, size)
        original = counts_in(steps)
        split = steps if choice is None else split_steps(steps, find_in(steps), choice)
        yield title, counts_in(split), original


def print_published(width: float = 1.0, size: int = 32) -> None:
    """Prints parameters of convolutions, biases left out, and MACs, as a table in Markdown."""
    print("| network | convolutions | fusion | total | of the original | MACs | of the original |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for title, counts, original in published(width, size):
        total = counts.convolutions + counts.fusion
        cells = (
            title,
            f"{counts.convolutions:,}",
            f"{counts.fusion:,}" if counts.fusion else "-",
            f"{total:,}",
            f"{total / original.convolutions:.3f}",
            f"{counts.macs:,}",
            f"{counts.macs / original.macs:.3f}",
        )
        print("|", " | ".join(cells), "|")
