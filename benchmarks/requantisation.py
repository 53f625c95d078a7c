"""Requantises every sum of random channels by each family's kernels and as LiteRT does it, and compares.

    python benchmarks/requantisation.py --layers 4000
    python benchmarks/requantisation.py xcore_vpu --layers 4000 --seed 7

Kernels that round in a cheaper way do so only under conditions, which their packing proves for each channel;
this benchmark tests the proofs. A layer has 256 channels. Half of the layers are drawn where bounds are
tight: outputs on both sides of zero, and sums that just do not fit the cheapest way. Prints a row for each
family and kind of layers, and a line for each channel that is wrong; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from requantisers import LARGEST, REQUANTISERS, Requantiser, drawn, wrong

CHANNELS = 256
DENSE_SHARE = 8  # a dense layer's factors take as long to find as the sums of this many


def row(requantiser: Requantiser, layers: int, seed: int, largest: float) -> tuple[str, int]:
    """Returns a row of the table, and the number of wrong channels."""
    start, sums, found = time.process_time(), 0, 0
    layers_of = drawn(requantiser.kind, CHANNELS, seed, largest=largest)
    for number, layer in zip(range(layers), layers_of, strict=False):
        compared, faults = wrong(requantiser, layer)
        sums, found = sums + compared, found + len(faults)
        for fault in faults:
            print(f"{requantiser}: layer {number}, {fault}", file=sys.stderr)
    cells = (str(requantiser), f"{layers * CHANNELS:,}", f"{sums:,}", f"{found:,}")
    return f"| {' | '.join(cells)} | {time.process_time() - start:.0f} |", found


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table as Markdown, each row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="folders of kernels/; all without")
    parser.add_argument("--layers", type=int, default=400, help="of each family and kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=float, default=LARGEST, help="log2 of a channel's most sums")
    args = parser.parse_args(arguments)
    unknown = set(args.families) - {each.family for each in REQUANTISERS}
    if unknown:
        parser.error(f"no such family: {', '.join(sorted(unknown))}")
    print("| kernels | channels | sums | channels wrong | CPU s |\n| --- | ---: | ---: | ---: | ---: |")
    total = 0
    for each in REQUANTISERS:
        if args.families and each.family not in args.families:
            continue
        share = DENSE_SHARE if each.kind == "FULLY_CONNECTED" else 1
        printed, found = row(each, max(args.layers // share, 1), args.seed, args.largest)
        print(printed, flush=True)
        total += found
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
