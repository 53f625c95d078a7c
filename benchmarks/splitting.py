"""Splits VGG16 and ResNet18 on CIFAR-10: python benchmarks/splitting.py --data DIR --out DIR [--network N]...

DIR has the data set as docs/guides/split.md says. The networks are trained at a part of their width, searched
block by block, and priced on the boards. Printed, as Markdown, are accuracy by block and factor, accuracy and
parameters of the compared networks, RAM and flash on the boards before and after, and the time of the run. If
it was killed, it continues, and recorded parts are not done again. `--counts` prints the parameters and MACs
of the published splits of VGG16 instead, and needs no data.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from buildtool.base.plain import duration
from buildtool.split import backend, training
from buildtool.split.branches import find_blocks, find_in, split_steps
from buildtool.split.data import Data, load
from buildtool.split.networks import steps_by_name
from buildtool.split.pricing import Pricer
from buildtool.split.records import Records, key_of
from buildtool.split.search import Candidate, SearchResult, Work, search
from buildtool.split.settings import Goals, Settings, SplitSettings
from buildtool.split.types import Choice, Fusion, counts_in

NETWORKS = ("vgg16", "resnet18")
# The published structures (arXiv 2002.03302): a title, the network, and the choice (None: whole). "Slice" and
# "full" are what a branch's first convolution reads.
PUBLISHED: tuple[tuple[str, str, Choice | None], ...] = (
    ("VGG16", "vgg16", None),
    ("I, full", "vgg16", Choice((8, 2, 2, 4, 4), "full")),
    ("I, slice", "vgg16", Choice((8, 2, 2, 4, 4))),
    ("II, slice", "vgg16", Choice((8, 2, 2, 2, 4))),
    ("naive, 4 ways, no fusion", "vgg16", Choice((4,) * 5, fusion=Fusion.NAIVE)),
    ("shared first three, then 4 ways", "vgg16", Choice((4,) * 5, "full", Fusion.SHARED, shared=3)),
    ("ResNet18", "resnet18", None),
    *(
        (f"ResNet18, {factor} ways, {first}", "resnet18", Choice((factor,) * 4, first))
        for factor in (2, 4, 6, 8)
        for first in ("full", "slice")
    ),
    ("ResNet18, naive, 4 ways", "resnet18", Choice((4,) * 4, fusion=Fusion.NAIVE)),
)
WIDTH = 0.125  # of the channels: 8 to 64
BOARDS = ("cortex-m4", "hifive1")
EPOCHS, FINE_EPOCHS, FINE_RATE = 12, 5, 0.05
SECONDS_BETWEEN = 30.0  # lines of progress


@dataclass
class Said:
    """Prints progress to standard output, at most one line per SECONDS_BETWEEN."""

    last: float = 0.0

    def __call__(self, text: str) -> None:
        """Prints the text with the time of day, unless another line was printed a short time ago."""
        if time.monotonic() - self.last > SECONDS_BETWEEN:
            self.last = time.monotonic()
            print(time.strftime("%H:%M:%S"), text, flush=True)


def main() -> None:
    """Prints the tables of each network."""
    given = arguments()
    if given.counts:
        print("\n".join(published()))
        return
    if given.threads:  # before TensorFlow or another backend is there
        names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
        os.environ |= dict.fromkeys(names, str(given.threads))
    backend.prepare()
    settings = Settings(
        epochs=given.epochs,
        fine_epochs=given.fine_epochs,
        fine_rate=given.fine_rate,
        weight_decay=given.weight_decay,
        seed=given.seed,
    )
    data = limited(load(given.data, cache=given.out / "data"), given.images)
    for name in given.network or NETWORKS:
        folder = given.out / f"{name}-{given.width:g}"
        base, trained = trained_base(name, given.width, data, settings, folder)
        print("\n".join(network_page(name, base, trained, data, settings, folder, given)), flush=True)


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--counts", action="store_true", help="the published splits' parameters and MACs")
    parser.add_argument("--data", type=Path, help="the data set")
    parser.add_argument("--out", type=Path, default=Path("split-bench"), help="where all of it is kept")
    parser.add_argument("--network", action="append", choices=NETWORKS)
    parser.add_argument("--width", type=float, default=WIDTH, help="share of the channels")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of a whole network")
    parser.add_argument("--fine-epochs", type=int, default=FINE_EPOCHS, help="of a candidate")
    parser.add_argument("--fine-rate", type=float, default=FINE_RATE, help="its largest learning rate")
    parser.add_argument("--first", choices=("slice", "full"), default="full", help="what a branch reads")
    parser.add_argument("--no-others", action="store_true", help="no naive, shared and second networks")
    parser.add_argument("--weight-decay", type=float, default=1e-3)
    parser.add_argument("--images", type=int, default=1 << 30, help="the most images to train with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="of an operator; 0: all cores")
    parser.add_argument("--max-drop", type=float, default=SplitSettings.max_drop, help="points")
    parser.add_argument(
        "--factors", type=int, nargs="+", default=SplitSettings.factors, help="rising, from 2 on"
    )
    parser.add_argument("--board", action="append", help=f"default: {', '.join(BOARDS)}")
    parser.add_argument("--blocks", type=int, default=1 << 30, help="split only this many first blocks")
    given = parser.parse_args()
    if not given.counts and given.data is None:
        parser.error("--data names the data set; --counts needs no data set")
    return given


def published() -> Iterator[str]:
    """Yields a table of the published structures: parameters of convolutions without biases, and MACs."""
    yield "| network | convolutions | fusion | total | of the original | MACs | of the original |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for title, network, choice in PUBLISHED:
        steps = steps_by_name(network)
        original = counts_in(steps)
        counts = original if choice is None else counts_in(split_steps(steps, find_in(steps), choice))
        total = counts.convolutions + counts.fusion
        fusion = f"{counts.fusion:,}" if counts.fusion else "-"
        share, macs = total / original.convolutions, counts.macs / original.macs
        yield (
            f"| {title} | {counts.convolutions:,} | {fusion} | {total:,} | {share:.3f} "
            f"| {counts.macs:,} | {macs:.3f} |"
        )


def limited(data: Data, count: int) -> Data:
    """Returns the data with at most `count` training images, chosen at random; test images are unchanged."""
    if count >= len(data.train_x):
        return data
    chosen = np.sort(np.random.default_rng(0).permutation(len(data.train_x))[:count])
    return Data(data.train_x[chosen], data.train_y[chosen], data.test_x, data.test_y, data.classes)


def trained_base(
    name: str, width: float, data: Data, settings: Settings, folder: Path
) -> tuple[Any, dict[str, Any]]:
    """Returns the network before it is split, trained now or in an earlier run, and its record."""
    from buildtool.split.networks import by_name

    records, path = Records(folder / "records.json"), folder / "base.keras"
    key = base_key(name, width, data, settings)
    record = records.get(key)
    if record is not None and path.is_file():
        return backend.load(path), record
    base = by_name(name, width=width, size=data.shape[0], classes=len(data.classes), seed=settings.seed)
    said = Said()
    found = training.train(
        base, data, settings, folder / "base.checkpoint.npz", lambda text: said(f"{name}: {text}")
    )
    test = training.accuracy(base, data.test_x, data.test_y, settings)
    backend.save(base, path)
    record = {"accuracy": found.accuracy, "test": test, "seconds": found.seconds, "epochs": found.epochs}
    records.put(key, record)
    return base, record


def base_key(name: str, width: float, data: Data, settings: Settings) -> str:
    """Returns the key for the record of the network before it is split.

    It does not depend on the settings for candidates.
    """
    own = {key: value for key, value in settings.data().items() if not key.startswith("fine")}
    return key_of({"base": name, "width": width, "settings": own, "data": data.digest()})


# ---- pages -----------------------------------------------------------------------------------------


def network_page(
    name: str,
    base: Any,
    trained: dict[str, Any],
    data: Data,
    settings: Settings,
    folder: Path,
    given: argparse.Namespace,
) -> Iterator[str]:
    """Runs the search for one network, and yields the text about it."""
    blocks = find_blocks(base)[: given.blocks]
    records, said = Records(folder / "records.json"), Said()
    records.prepare()
    pricers = {board: Everything(base, blocks, board, Goals(), records) for board in given.board or BOARDS}
    wanted = SplitSettings(
        name,
        given.data,
        "",
        max_drop=given.max_drop,
        factors=tuple(given.factors),
        settings=settings,
        compares=not given.no_others,
    )
    first = next(iter(pricers.values()))
    work = Work(wanted, base, blocks, data, first, records, lambda text: said(f"{name}: {text}"))
    found = search(work, given.first)
    yield f"## {name}, {given.width:g} of its channels"
    yield ""
    yield from took(trained, found, records, data, settings)
    yield from by_block(found)
    yield from compared(base, found)
    yield from on_boards(found, pricers)


class Everything(Pricer):
    """A pricer without goals, so that every choice is trained: the figures are not about one board."""

    def missed(self, choice: Choice) -> str:
        """Returns "", because there are no goals."""
        return ""

    def figures(self, choice: Choice) -> dict[str, float]:
        """Returns the RAM, flash and cost of a structure, without code."""
        price = self.price(choice)
        return {"ram": price.least.bytes, "flash": price.flash, "cost": price.best(Goals()).cost}


def took(
    trained: dict[str, Any], found: SearchResult, records: Records, data: Data, settings: Settings
) -> Iterator[str]:
    """Yields the text about what was run, where, and for how long."""
    once = {one.key: one for one in all_candidates(found)}.values()
    kept = [records.get(one.key) or {} for one in once]
    epochs, seconds = (sum(one[name] for one in kept) for name in ("epochs", "seconds"))
    yield f"Keras on {backend.prepare().backend.backend()}, {platform.machine()}."
    yield f"{len(data.train_x):,} images, {settings.validation:.0%} of them held out to judge candidates by;"
    yield f"{len(data.test_x):,} test images."
    yield f"The whole network: {trained['epochs']} epochs in {duration(trained['seconds'])}."
    yield f"{len(once)} candidates and baselines: {epochs} epochs in {duration(seconds)}."
    yield ""


def all_candidates(found: SearchResult) -> list[Candidate]:
    """Returns all networks that the search trained."""
    tried = [one.candidate for step in found.steps for one in step.tried if one.candidate is not None]
    return [
        *(step.baseline for step in found.steps if step.baseline is not None),
        *tried,
        *found.others.values(),
    ]


def by_block(found: SearchResult) -> Iterator[str]:
    """Yields the paper's first table: accuracy for each block and factor, in per cent of held-out images."""
    factors = sorted({one.factor for step in found.steps for one in step.tried})
    yield "| block | 1 | " + " | ".join(map(str, factors)) + " | kept |"
    yield "| --- |" + " ---: |" * (len(factors) + 2)
    for step in found.steps:
        by_factor = {one.factor: one.candidate for one in step.tried if one.candidate is not None}
        cells = [per_cent(by_factor[one].accuracy) if one in by_factor else "-" for one in factors]
        baseline = per_cent(step.baseline.accuracy) if step.baseline is not None else "-"
        yield f"| {step.block.index + 1} | {baseline} | {' | '.join(cells)} | {step.kept} |"
    yield ""


def compared(base: Any, found: SearchResult) -> Iterator[str]:
    """Yields the paper's second table: accuracy, parameters and MACs of the compared networks."""
    from buildtool.split.structure import build

    rows = {
        "original": found.original,
        "original, trained as long": found.others.get("original"),
        "chosen": found.chosen,
        **{name: one for name, one in found.others.items() if name != "original"},
    }
    yield "| network | factors | average | held out | test | parameters | MACs |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for name, one in rows.items():
        if one is None:
            continue
        model = (
            base
            if one.choice.is_whole
            else build(base, find_blocks(base)[: len(one.choice.factors)], one.choice)
        )
        parameters, macs = counted(model)
        average = sum(one.choice.factors) / len(one.choice.factors)
        yield (
            f"| {name} | {one.choice.key()} | {average:.1f} | {per_cent(one.accuracy)} | "
            f"{per_cent(one.test)} | {parameters:,} | {macs:,} |"
        )
    yield ""
    text = f"Drop of the chosen network, in points of the test images: {found.drop:.2f} against the original"
    if "original" in found.others:
        longer = 100 * (found.others["original"].test - found.chosen.test)
        text += f", {longer:.2f} against the original trained as long"
    yield f"{text}."
    yield ""


def on_boards(found: SearchResult, pricers: dict[str, Any]) -> Iterator[str]:
    """Yields a table of RAM, flash and cost on the boards, for the original and the chosen network."""
    yield "| board | network | RAM, layer by layer | RAM, least | flash | MACs | cost |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for board, pricer in pricers.items():
        for name, one in (("original", found.original), ("chosen", found.chosen)):
            price = pricer.price(one.choice)
            layerwise = f"{price.layerwise:,}" if price.layerwise is not None else "-"
            yield (
                f"| {board} | {name} | {layerwise} | {price.least.bytes:,} | {price.flash:,} "
                f"| {price.macs:,} | {price.best(Goals()).cost:,.0f} {price.unit} |"
            )
    yield ""


def per_cent(share: float) -> str:
    """Returns a share of images as text in per cent."""
    return f"{100 * share:.2f}"


def counted(model: Any) -> tuple[int, int]:
    """Returns a network's parameters of convolutions, without biases but with fusion, and its MACs."""
    from buildtool.split.graphs import steps_of

    found = counts_in(steps_of(model))
    return found.convolutions + found.fusion, found.macs


if __name__ == "__main__":
    main()
