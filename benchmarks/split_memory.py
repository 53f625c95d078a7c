"""What splitting saves in memory and time, before any training: `python benchmarks/split_memory.py`.

Prints the table of docs/split.md: VGG16 and ResNet18 at 32x32, whole and split, planned for Cortex-M4 and
for HiFive1 with as much flash and RAM as they need. `--width 0.25` takes narrower networks.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

os.environ["BUILDTOOL_CACHE"] = "off"

from buildtool.split import backend

BOARDS = {
    "Cortex-M4": 'extends = "cortex-m4"\n[memory.weights]\nbase = 0x30000000\nsize = "32M"\n',
    "HiFive1": 'extends = "hifive1"\n[memory.flash]\nsize = "32M"\n[memory.ram]\nsize = "4M"\n',
}
STRUCTURES = {
    "vgg16": (
        *(f"{k}-{k}-{k}-{k}-{k},slice" for k in (1, 2, 4, 6, 8)),
        *("8-2-2-4-4,slice", "8-2-2-4-4,full", "4-4-4-4-4,slice,naive"),
    ),
    "resnet18": (*(f"{k}-{k}-{k}-{k},slice" for k in (1, 2, 4, 6, 8)), "4-4-4-4,full"),
}
HEAD = "| network | structure | MACs, millions | weights |"


def main() -> None:
    """Prints a row for each network and structure, as it is found."""
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
        for network, keys in STRUCTURES.items():
            _rows(network, keys, width, boards)


def _rows(network: str, keys: tuple[str, ...], width: float, boards: list[Path]) -> None:
    from buildtool.split import networks
    from buildtool.split.blocks import find_blocks
    from buildtool.split.pricing import Goals, Pricer
    from buildtool.split.types import Choice

    model = networks.by_name(network, width)
    pricers = [Pricer(model, find_blocks(model), board, Goals()) for board in boards]
    for key in keys:
        prices = [pricer.price(Choice.of_key(key)) for pricer in pricers]
        cells = [network, key, f"{prices[0].macs / 1e6:,.1f}", f"{prices[0].flash:,}"]
        for price in prices:
            time = price.least.milliseconds
            cells += [f"{price.layerwise or 0:,}", f"{price.least.bytes:,}", f"{time or 0:,.0f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
