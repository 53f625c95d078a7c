"""Instructions of int16 layers for each multiply-accumulate: python benchmarks/wide.py

Prints the table of docs/guides/int16.md: single layers, counted in the emulators, with the plain kernels and
those of Cortex-M4 and M55.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from buildtool.api import handle
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import WideNetBuilder

PLAIN = 'extends = "cortex-m4"\n[core]\nfamilies = ["reference"]\n'
CONVOLUTIONS = (
    *((12, 12, 8, 16, (1, 1)), (6, 6, 32, 32, (1, 1)), (10, 10, 8, 16, (3, 3)), (4, 4, 32, 20, (3, 3))),
    (20, 1, 10, 32, (9, 1)),
)
DEPTHWISE = ((6, 6, 32, (3, 3)), (8, 8, 64, (5, 5)))
DENSE = ((6, 6, 32, 12),)


def layers() -> tuple[list[str], bytes]:
    """Returns the names of the layers, and a network that has them all in parallel."""
    net = WideNetBuilder(3, "layers")
    names, outputs = [], []
    for rows, columns, depth, channels, kernel in CONVOLUTIONS:
        x = net.input((1, rows, columns, depth))
        outputs.append(net.conv(x, channels, kernel=kernel, same=True))
        size = f"{rows} x {columns} x {depth} to {channels} channels"
        names.append(f"{kernel[0]} x {kernel[1]}, {size}")
    for rows, columns, depth, kernel in DEPTHWISE:
        x = net.input((1, rows, columns, depth))
        outputs.append(net.conv(x, 0, kernel=kernel, same=True, depth_multiplier=1))
        names.append(f"depthwise {kernel[0]} x {kernel[1]}, {rows} x {columns} x {depth}")
    for rows, columns, depth, channels in DENSE:
        outputs.append(net.dense(net.input((1, rows * columns * depth)), channels))
        names.append(f"dense, {rows * columns * depth} to {channels}")
    return names, write_model(net.graph(outputs))


def main() -> None:
    """Counts the instructions, and prints a line for each layer."""
    names, model = layers()
    with tempfile.TemporaryDirectory() as name:
        file, plain = Path(name) / "layers.tflite", Path(name) / "plain.toml"
        file.write_bytes(model)
        plain.write_text(PLAIN)
        columns = []
        for board in (str(plain), "cortex-m4", "cortex-m55"):
            options = {"strategy": "layerwise"}
            answer = handle({"kind": "profile", "model": str(file), "board": board, "options": options})
            columns.append([row["instructions"] / row["macs"] for row in answer["per_operator"]])
    print("| layer | plain C on Cortex-M4 | Cortex-M4 | Cortex-M55 |\n| --- | --- | --- | --- |")
    for layer, *counts in zip(names, *columns, strict=True):
        print(f"| {layer} | " + " | ".join(f"{count:.2f}" for count in counts) + " |")


if __name__ == "__main__":
    main()
