"""What a moving window saves: python -m benchmarks.listening [FILE:HOP...] [--board BOARD...]

HOP is the number of rows by which the window moves from invoke to invoke. The file "torch" is the network of
benchmarks/torch_series.py, which PyTorch exports. Without files, the networks are the keyword spotter of
MLPerf Tiny and those of buildtool/zoo/drawn_series.py.

The table has for each board the executed instructions of an invoke, and their share of those of the whole
window. `memory` is the arena and what is kept between invokes, beside the arena of the whole window, layer by
layer. If it is more, a second line is planned with as much memory as the whole window has. Every tensor of
every invoke is compared with LiteRT's on the whole window, over three windows, a reset and one more window.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.torch_series import export
from benchmarks.weights import SHARED
from buildtool.api import handle
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn_series import SERIES

BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32")


def networks(files: list[str]) -> Iterator[tuple[str, int, object]]:
    """Yields (name, rows by which the window moves, the model as a request has it)."""
    for text in files:
        path, _, hop = text.rpartition(":")
        if path != "torch":
            yield Path(path).stem, int(hop), path
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "motion.onnx"
            export(file)
            yield "motion, from PyTorch", int(hop), str(file)
    if not files:
        yield "mlperf_kws", 2, str(SHARED / "mlperf_kws.tflite")
        for name, make in SERIES.items():
            series = make()
            yield name, series.hop, {"name": f"{name}.tflite", "data": write_model(series.graph)}


def ask(kind: str, model: object, board: str, options: dict[str, object], **more: object) -> dict[str, Any]:
    """Returns the answer to a request in which all channels stay, as the weights may be random."""
    chosen = {"simplify": "structure", **options}
    return dict(handle({"kind": kind, "model": model, "board": board, "options": chosen, **more}))


def row(name: str, hop: int, model: object, boards: list[str], ram: int | None) -> str:
    """Returns a line of the table. Ends the run if a tensor differs."""
    options: dict[str, object] = {"hop": hop} if ram is None else {"hop": hop, "ram": ram}
    plan = ask("plan", model, boards[0], options)
    shares = []
    for board in boards:
        if not ask("validate", model, board, options, tensors=True, reference="litert")["exact"]:
            raise SystemExit(f"{name} on {board}: not exact")
        once, whole = (ask("profile", model, board, one)["instructions"] for one in (options, {}))
        shares.append(f"{once:,} ({once / whole:.4f})")
    window, layerwise = (
        plan["window"],
        ask("plan", model, boards[0], {"strategy": "layerwise"})["arena_bytes"],
    )
    memory = f"{plan['arena_bytes'] + plan['state_bytes']:,} of {layerwise:,}"
    cells = [name, f"{window['window_rows']:,}, {hop}", f"{plan['f']:.4f}", memory, *shares]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE:HOP")
    parser.add_argument("--board", nargs="+", default=list(BOARDS))
    asked = parser.parse_args()
    titles = ["network", "window, hop", "F", "memory, layer by layer", *asked.board]
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    for name, hop, model in networks(asked.files):
        ram = ask("plan", model, asked.board[0], {"strategy": "layerwise"})["arena_bytes"]
        plans = [ask("plan", model, asked.board[0], {"hop": hop})]
        print(row(name, hop, model, asked.board, None), flush=True)
        if plans[0]["arena_bytes"] + plans[0]["state_bytes"] > ram:
            print(row(name, hop, model, asked.board, ram), flush=True)


if __name__ == "__main__":
    main()
