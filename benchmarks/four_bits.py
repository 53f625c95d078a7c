"""What four-bit weights save and cost: python -m benchmarks.four_bits [NETWORK...] [--board BOARD...]

The trained networks of ../shared/models, with weights rounded to -7 to 7; their accuracy is not the subject.
For each board the weight image, the arena, and the executed instructions: with a byte for each weight, and
with `objective=flash`. The firmware runs in the board's emulator, and every tensor is compared with LiteRT's.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.weights import SHARED, change
from buildtool.api import handle
from buildtool.graph.numbering import graph_of
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, Quantization, WeightedAttrs

NETWORKS = ("mlperf_kws", "mlperf_resnet8", "mlperf_vww96", "mlperf_ad")
BOARDS = ("cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v")
_FACTOR = 18  # 127 / 7, rounded


def rounded(graph: Graph) -> Graph:
    """Returns the network with filters rounded to -7 to 7, and with scales that compensate for this."""
    tensors = list(graph.tensors)
    for op in graph.ops:
        for t in op.inputs[1:3] if isinstance(op.attrs, WeightedAttrs) else ():
            tensor = tensors[t]
            if t < 0 or tensor.data is None or tensor.quant is None:
                continue
            values = np.rint(tensor.data.astype(np.float64) / _FACTOR)
            data = (np.clip(values, -7, 7) if tensor.dtype.size == 1 else values).astype(tensor.data.dtype)
            scales = tuple(float(np.float32(scale * _FACTOR)) for scale in tensor.quant.scales)
            quant = Quantization(scales, tensor.quant.zero_points, tensor.quant.axis)
            tensors[t] = replace(tensor, data=data, quant=quant)
    return graph_of(graph.name, tensors, graph.ops, graph.inputs, graph.outputs, graph.states)


def figures(file: dict[str, object], board: str, objective: str) -> dict[str, Any]:
    """Returns the plan's and the profile's figures. Ends the run if a tensor differs."""
    request = {"model": file, "board": board, "options": {"objective": objective}}
    if not handle({**request, "kind": "validate", "tensors": True, "reference": "litert"})["exact"]:
        raise SystemExit(f"{file['name']} on {board}: not exact")
    return {
        **handle({**request, "kind": "plan"}),
        "instructions": handle({**request, "kind": "profile"})["instructions"],
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--board", nargs="+", default=BOARDS)
    asked = parser.parse_args()
    print("| network | board | weight image | arena | instructions |\n| --- | --- | --- | --- | --- |")
    for name in asked.networks:
        graph = read_model((SHARED / f"{name}.tflite").read_bytes())
        file: dict[str, object] = {"name": f"{name}.tflite", "data": write_model(rounded(graph))}
        for board in asked.board:
            bytes_, halves = (figures(file, board, objective) for objective in ("cost", "flash"))
            keys = ("flash_bytes", "arena_bytes", "instructions")
            cells = [change(bytes_[key], halves[key]) for key in keys]
            print(f"| {name} | {board} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
