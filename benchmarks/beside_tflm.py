"""Arenas of networks beside TensorFlow Lite Micro's: python -m benchmarks.beside_tflm FOLDER

For every .tflite file in FOLDER that both read, such as those of strangers.toml: the bytes that TFLM's
interpreter allocates for activations and kernel scratch (as in benchmarks/peers; its own structures are not
counted), and the arenas of the default plan and of the plan with the least RAM, which count the same things.
All of them are for this machine, with plain kernels. The input image may be overwritten in all of them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.environments import Unavailable
from benchmarks.peers.systems import tflite_micro
from buildtool.api import handle
from buildtool.base.errors import BuildtoolError

Arenas = tuple[int, int, int]  # TFLM's, the default plan's, the least


def arenas(path: Path) -> Arenas | str:
    """Returns the bytes of the three arenas, or which program refuses the file."""
    request = {"kind": "plan", "model": str(path.resolve()), "board": "host"}
    try:
        plans = [handle({**request, "options": {"objective": one}}) for one in ("cost", "ram")]
    except BuildtoolError:
        return "refused here"
    try:
        (row,) = tflite_micro(path, ())
    except Unavailable:
        return "refused by TFLM"
    usual, least = (plan["arena_bytes"] for plan in plans)
    return row.bytes, usual, least


def summary(found: Sequence[Arenas]) -> list[str]:
    """Returns a table of the ratios to TFLM's arena: quantiles, and the geometric mean."""
    lines = ["| plan | least | quarter | median | three quarters | greatest | mean | below TFLM's |"]
    lines.append("| --- |" + " ---: |" * 7)
    for name, place in (("default", 1), ("least RAM", 2)):
        ratios = sorted(one[place] / one[0] for one in found)
        points = [ratios[round(part * (len(ratios) - 1) / 4)] for part in range(5)]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        below = sum(ratio <= 1 for ratio in ratios)
        cells = [f"{n:.2f}" for n in (*points, mean)]
        lines.append(f"| {name} | {' | '.join(cells)} | {below} of {len(ratios)} |")
    return lines


def main() -> None:
    """Prints the table, the files whose arena is above TFLM's, and how many files each program refuses."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    answers = [(path, arenas(path)) for path in sorted(parser.parse_args().folder.rglob("*.tflite"))]
    found = {path.stem: result for path, result in answers if not isinstance(result, str)}
    print("\n".join(summary(list(found.values()))))
    above = {name: row for name, row in found.items() if row[1] > row[0]}
    if above:
        print("\n| file | TFLM | default plan | least RAM |\n| --- | ---: | ---: | ---: |")
    for name, row in above.items():
        print(f"| {name} | {' | '.join(f'{n:,}' for n in row)} |")
    refused = [result for _, result in answers if isinstance(result, str)]
    print("\n" + ", ".join(f"{refused.count(who)} {who}" for who in sorted(set(refused))))


if __name__ == "__main__":
    main()
