"""Prints how long fronts take: python benchmarks/front.py [--images I ...] [--chains] [NETWORK ...]

Each front in a fresh process of its own. Without names: every int8 model in ../shared/models, the zoo, and
MobileNet V2 at 320 pixels; with --chains: synthetic chains of several lengths instead, so that the growth
shows. `seconds` are of processor time, from the graph to all points (work as the objective, F up to 2);
`MB` is the peak of the whole process, Python and the graph included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from buildtool import zoo
from buildtool.errors import UsageError
from buildtool.graph.types import (
    Activation,
    ConvAttrs,
    DepthwiseAttrs,
    DType,
    ElementwiseAttrs,
    Graph,
    Op,
    OpKind,
    Pad,
    Quantization,
    Tensor,
)
from buildtool.plan.search.front import Settings, front
from buildtool.service.pipeline.models import load_model, read_graph
from buildtool.target.registry import load_target

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
IMAGES = ("overwritable", "resident", "stream")
CHAINS = tuple(f"chain:{n}" for n in (100, 250, 500, 1000)) + tuple(f"blocks:{n}" for n in (25, 50, 100, 200))
BOARD = "cortex-m4"
_QUANT = Quantization((0.5,), (0,))


class _Net:
    """Convolutions and additions one after the other; weights are zeros."""

    def __init__(self, height: int, width: int, channels: int) -> None:
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self.last = self._tensor((1, height, width, channels))

    def _tensor(self, shape: tuple[int, ...], constant: bool = False) -> int:
        data = np.zeros(shape, np.int8) if constant else None
        self.tensors.append(Tensor(f"t{len(self.tensors)}", shape, DType.INT8, _QUANT, data))
        return len(self.tensors) - 1

    def _append(self, op: Op, shape: tuple[int, ...]) -> None:
        assert op.outputs == (len(self.tensors),)
        self.last = self._tensor(shape)
        self.ops.append(op)

    def conv(self, channels: int) -> None:
        """1x1."""
        _, height, width, read = self.tensors[self.last].shape
        weights = self._tensor((channels, 1, 1, read), constant=True)
        attrs = ConvAttrs((1, 1), (1, 1), Pad(), Activation.NONE)
        op = Op(OpKind.CONV_2D, (self.last, weights, -1), (len(self.tensors),), attrs, len(self.ops))
        self._append(op, (1, height, width, channels))

    def depthwise(self, stride: int = 1) -> None:
        """3x3, SAME."""
        _, height, width, channels = self.tensors[self.last].shape
        weights = self._tensor((1, 3, 3, channels), constant=True)
        attrs = DepthwiseAttrs((stride, stride), (1, 1), Pad(1, 1, 1, 1), Activation.NONE, 1)
        inputs = (self.last, weights, -1)
        op = Op(OpKind.DEPTHWISE_CONV_2D, inputs, (len(self.tensors),), attrs, len(self.ops))
        self._append(op, (1, -(-height // stride), -(-width // stride), channels))

    def add(self, other: int) -> None:
        """A residual."""
        shape = self.tensors[self.last].shape
        op = Op(OpKind.ADD, (self.last, other), (len(self.tensors),), ElementwiseAttrs(), len(self.ops))
        self._append(op, shape)

    def graph(self) -> Graph:
        """What has been built."""
        return Graph("chain", tuple(self.tensors), tuple(self.ops), (0,), (self.last,))


def chain(operators: int) -> Graph:
    """Pairs of a 1x1 and a depthwise convolution; four strides, fewer rows and more channels with each."""
    net = _Net(64, 64, 4)
    strides = {operators * (i + 1) // 5 for i in range(4)}
    for i in range(operators // 2):
        net.conv(8 + 8 * (2 * i * 5 // operators))
        net.depthwise(2 if any(2 * i <= s < 2 * i + 2 for s in strides) else 1)
    return net.graph()


def blocks(count: int) -> Graph:
    """Inverted bottlenecks, all but four of them with a residual."""
    net = _Net(64, 64, 3)
    net.conv(8)
    strides = {count * (i + 1) // 5 for i in range(4)}
    for i in range(count):
        before, channels = net.last, 8 + 8 * (i * 5 // count)
        net.conv(6 * net.tensors[before].shape[3])
        net.depthwise(2 if i in strides else 1)
        net.conv(channels)
        if net.tensors[net.last].shape == net.tensors[before].shape:
            net.add(before)
    return net.graph()


def graph_of(name: str) -> Graph:
    """A synthetic network or a model."""
    kind, _, count = name.partition(":")
    if kind in ("chain", "blocks") and count:
        return chain(int(count)) if kind == "chain" else blocks(int(count))
    return read_graph(load_model(name))[1]


def measure(name: str, image: str) -> dict[str, float]:
    """In this process: points, seconds, peak memory; nothing where there is no such front."""
    graph, target = graph_of(name), load_target(BOARD)
    begun = time.process_time()
    try:
        points = front(graph, target, Settings(image=image)).points
    except UsageError:  # its image cannot be streamed
        return {}
    seconds = time.process_time() - begun
    status = Path("/proc/self/status").read_text()  # getrusage would count what the parent had
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return {"operators": len(graph.ops), "points": len(points), "seconds": seconds, "MB": peak / 1024}


def fresh(name: str, image: str, folder: Path) -> dict[str, float]:
    """In a process of its own; a zoo network as a file, for making it takes more memory than its front."""
    if not name.startswith(("chain:", "blocks:")) and not name.endswith(".tflite"):
        model = load_model(name)
        name = str(folder / "network.tflite")
        Path(name).write_bytes(model.data)
    command = [sys.executable, __file__, "--one", name, "--images", image]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--images", nargs="+", choices=IMAGES, default=list(IMAGES))
    parser.add_argument("--chains", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.images[0])))
        return
    models = [str(path) for path in sorted(MODELS.glob("*.tflite")) if "float" not in path.name]
    names = args.networks or (CHAINS if args.chains else [*models, *zoo.names(), "mobilenetv2:size=320"])
    print(
        "| network | operators | image | points | seconds | MB |\n| --- | ---: | --- | ---: | ---: | ---: |"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for image in args.images:
                found = fresh(name, image, Path(folder))
                if not found:
                    continue
                cells = f"{found['operators']} | {image} | {found['points']} | {found['seconds']:.2f}"
                print(f"| {Path(name).stem} | {cells} | {found['MB']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
