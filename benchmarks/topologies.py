"""Prints arenas of the topologies that users bring: `python benchmarks/topologies.py [SEEDS] [BOARD]`.

For each network, drawn at random as the tests draw them: what is live at once where whole tensors are
computed one after the other as the file has them; the arena layer by layer; the least arena and its F; the
least one without repeated work (F 1.00).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from buildtool.api import handle
from buildtool.graph.tflite.writer import write_model

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from topologies import OTHERS, TOPOLOGIES, drawn

HEADINGS = ("network", "operators", "live at once", "layer by layer", "least", "F", "least at F 1.00")


def row(model: str, board: str) -> tuple[str, ...]:
    """A network's cells, in bytes but for F."""

    def planned(**options: Any) -> dict[str, Any]:
        found: dict[str, Any] = handle({"kind": "plan", "model": model, "board": board, "options": options})
        return found

    network = handle({"kind": "analyze", "model": model})["network"]
    layers, least = planned(strategy="layerwise"), planned(objective="ram")
    once = planned(objective="ram", max_f=1.0)
    return (
        Path(model).stem,
        str(network["operators"]),
        f"{network['live_bound_bytes']:,}",
        f"{layers['arena_bytes']:,}",
        f"{least['arena_bytes']:,}",
        f"{least['f']:.2f}",
        f"{once['arena_bytes']:,}",
    )


def main() -> None:
    """Prints the table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    board = sys.argv[2] if len(sys.argv) > 2 else "cortex-m55"
    print("| " + " | ".join(HEADINGS) + " |\n" + "| --- " * len(HEADINGS) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name in (*TOPOLOGIES, *OTHERS):
            for seed in range(seeds):
                model = Path(folder) / f"{name}-{seed}.tflite"
                model.write_bytes(write_model(drawn(name, seed)))
                print("| " + " | ".join(row(str(model), board)) + " |", flush=True)


if __name__ == "__main__":
    main()
