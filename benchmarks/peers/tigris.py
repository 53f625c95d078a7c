"""TiGrIS (PyPI: tigris-ml) beside buildtool on the files of a folder.

    python -m benchmarks.peers.tigris FOLDER

TiGrIS divides activations between a fast and a slow memory. For each budget of fast memory, `tigris analyze`
tells the bytes that it needs in both; the table has the budget with the least sum. It counts activations
only, without kernel scratch. Our plans count scratch too, all in one memory, on a Cortex-M4.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import buildtool
from benchmarks.peers.environments import Environment, environment
from benchmarks.peers.measure import measured

VERSION = "0.12.1"
BUDGETS = [round(8192 * 2 ** (step / 4)) for step in range(30)]  # bytes: 8 KiB to 1.2 MiB
HEAD = """\
| network | tigris-ml {version}: fast + slow | ours, F = 1.00 | F <= 1.10 | F <= 1.10, image by rows |
| --- | ---: | ---: | ---: | ---: |"""


def main() -> None:
    """Prints the table; a file that is no integer network is left out."""
    place = environment("tigris-ml", VERSION)
    print(HEAD.format(version=VERSION))
    for model in sorted(Path(sys.argv[1]).glob("*.tflite")):
        try:
            arenas = ours(model)
        except buildtool.UnsupportedError:
            continue
        fast, slow = least(place, model)
        theirs = f"{fast + slow:,} ({fast:,} + {slow:,})" if fast else "refused"
        print(f"| `{model.stem}` | {theirs} | {' | '.join(f'{size:,}' for size in arenas)} |", flush=True)


def least(place: Environment, model: Path) -> tuple[int, int]:
    """Returns the bytes of fast and slow memory at the budget with the least sum; zeros: none is feasible."""
    needs = []
    for budget in BUDGETS:
        with tempfile.TemporaryDirectory() as folder:
            command = [place.command("tigris"), "analyze", str(model.absolute()), "--json"]
            command += ["-m", f"{budget}+64M"]
            answer: dict[str, Any] = json.loads(measured(command, folder).text)
        if answer["fast"]["verdict"] in ("ok", "tiled") and answer["slow"]["fits"]:
            whole = answer["fast"]["verdict"] == "ok"
            slow = 0 if whole else answer["slow"]["peak_bytes"]
            needs.append((answer["fast"]["scheduled_peak_bytes"], slow))
    return min(needs, key=sum, default=(0, 0))


def ours(model: Path) -> list[int]:
    """Returns the arenas of three plans for least RAM."""
    network = buildtool.open(model)
    kinds: list[dict[str, Any]] = [{"max_f": 1}, {"max_f": 1.1}, {"max_f": 1.1, "image": "stream"}]
    return [network.plan("cortex-m4", objective="ram", **kind).arena_bytes for kind in kinds]


if __name__ == "__main__":
    main()
