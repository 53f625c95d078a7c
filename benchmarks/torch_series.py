"""A network over time as PyTorch exports it: 1-D convolutions of motion sensors, quantised by onnxruntime.

    python -m benchmarks.torch_series motion.onnx          # needs torch, onnx and onnxruntime

Its weights are random, and so are the values that decide the scales: only the form of the file matters, 1 x 6
x 512 with channels first, BatchNorm and poolings. Three poolings halve the rows, so the window has to move by
a multiple of 8 rows.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any


def motion() -> Any:
    """Returns a torch.nn.Module with separable convolutions, poolings, and BatchNorm with statistics."""
    from torch import manual_seed, nn, randn

    manual_seed(0)
    layers: list[nn.Module] = []
    for before, after in ((6, 24), (24, 32), (32, 48)):
        layers += [nn.Conv1d(before, before, 9, groups=before, bias=False), nn.Conv1d(before, after, 1)]
        layers += [nn.BatchNorm1d(after), nn.ReLU(), nn.MaxPool1d(2)]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 6), nn.Softmax(1))
    for _ in range(20):
        net.train()(randn(8, 6, 512))
    return net.eval()


def export(path: Path) -> None:
    """Writes the quantised .onnx file."""
    import torch

    from buildtool.api import handle

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "motion.onnx"
        torch.onnx.export(motion(), (torch.zeros(1, 6, 512),), str(file), opset_version=17, dynamo=False)
        answer = handle({"kind": "quantize", "model": str(file), "sizes_only": True})
    (data,) = answer["files"].values()
    path.write_bytes(data)


if __name__ == "__main__":
    export(Path(sys.argv[1]))
