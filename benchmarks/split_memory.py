"""What splitting saves in memory and time, before any training: `python benchmarks/split_memory.py`.

Prints the rows of docs/internals/split-figures.md and more: VGG16 and ResNet18 at 32x32, whole and split,
planned for Cortex-M4 and for HiFive1 with as much flash and RAM as they need. `--width 0.25` takes narrower
networks.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

os.environ["BUILDTOOL_CACHE"] = "off"

from buildtool.split import backend
from buildtool.split.types import Choice, Fusion

BOARDS = {
    "Cortex-M4": 'extends = "cortex-m4"\n[memory.weights]\nbase = 0x30000000\nsize = "32M"\n',
    "HiFive1": 'extends = "hifive1"\n[memory.flash]\nsize = "32M"\n[memory.ram]\nsize = "4M"\n',
}
STRUCTURES = {
    "vgg16": (
        *(Choice((k,) * 5) for k in (1, 2, 4, 6, 8)),
        *(Choice((8, 2, 2, 4, 4)), Choice((8, 2, 2, 4, 4), "full"), Choice((4,) * 5, fusion=Fusion.NAIVE)),
    ),
    "resnet18": (*(Choice((k,) * 4) for k in (1, 2, 4, 6, 8)), Choice((4,) * 4, "full")),
}
HEAD = "| network | structure | MACs, millions | weights |"


def main() -> None:
    """Prints a row for each network and structure, as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--width", type=float, default=1.0)
    width = parser.parse_args().width
    backend.prepare()
    print(HEAD + "".join(f" {name} layer by layer | {name} streamed | ms |" for name in BOARDS))
    print("| --- | --- |" + " ---: |" * (2 + 3 * len(BOARDS)))
    with tempfile.TemporaryDirectory() as folder:
        boards = [Path(folder) / f"{name}.toml" for name in BOARDS]
        for path, text in zip(boards, BOARDS.values(), strict=True):
            path.write_text(text)
        for network, choices in STRUCTURES.items():
            _rows(network, choices, width, boards)


def _rows(network: str, choices: tuple[Choice, ...], width: float, boards: list[Path]) -> None:
    from buildtool.split import networks
    from buildtool.split.branches import find_blocks
    from buildtool.split.pricing import Pricer
    from buildtool.split.records import Records
    from buildtool.split.settings import Goals

    model = networks.by_name(network, width)
    records = Records(boards[0].parent / "records.json")
    pricers = [Pricer(model, find_blocks(model), board, Goals(), records) for board in boards]
    for choice in choices:
        prices = [pricer.price(choice) for pricer in pricers]
        cells = [network, choice.key(), f"{prices[0].macs / 1e6:,.1f}", f"{prices[0].flash:,}"]
        for price in prices:
            time = price.least.milliseconds
            cells += [f"{price.layerwise or 0:,}", f"{price.least.bytes:,}", f"{time or 0:,.0f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
