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

from buildtool import zoo
from buildtool.errors import UsageError
from buildtool.graph.types import Graph
from buildtool.plan.search.front import Settings, front
from buildtool.service.pipeline.models import load_model, read_graph
from buildtool.target.registry import load_target

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from zeronet import Net

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
IMAGES = ("overwritable", "resident", "stream")
CHAINS = tuple(f"chain:{n}" for n in (100, 250, 500, 1000)) + tuple(f"blocks:{n}" for n in (25, 50, 100, 200))
BOARD = "cortex-m4"


def chain(operators: int) -> Graph:
    """Pairs of a 1x1 and a depthwise convolution; four strides, fewer rows and more channels with each."""
    net = Net((1, 64, 64, 4), name="chain")
    x = net.inputs[0]
    strides = {operators * (i + 1) // 5 for i in range(4)}
    for i in range(operators // 2):
        stride = 2 if any(2 * i <= s < 2 * i + 2 for s in strides) else 1
        x = net.depthwise(net.conv(x, 8 + 8 * (2 * i * 5 // operators)), stride=(stride, stride))
    return net.graph(x)


def blocks(count: int) -> Graph:
    """Inverted bottlenecks, all but four of them with a residual."""
    net = Net((1, 64, 64, 3), name="chain")
    x = net.conv(net.inputs[0], 8)
    strides = {count * (i + 1) // 5 for i in range(4)}
    for i in range(count):
        before, stride = x, 2 if i in strides else 1
        x = net.depthwise(net.conv(before, 6 * net.shape(before)[3]), stride=(stride, stride))
        x = net.conv(x, 8 + 8 * (i * 5 // count))
        if net.shape(x) == net.shape(before):
            x = net.add(x, before)
    return net.graph(x)


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
