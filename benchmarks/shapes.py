"""Prints what networks of special shapes need: python benchmarks/shapes.py enlarging|gated|orders [--board B]

- enlarging: U-Nets, feature pyramids, segmentation heads, super-resolution and decoders of transpose
  convolutions, each layer by layer, with nothing computed twice, and with the least memory; arenas in bytes.
- gated: what recomputation gains in EfficientNet-B0 with hard swish and with swish, and in the zoo's
  MobileNet V3: arenas in bytes, layer by layer, with nothing computed twice, and by the front within some F.
- orders: what orders of operators gain in Watts-Strogatz networks of one stage, with this many `--nodes`:
  live bytes of the least plan, layer by layer and by the front, in the given order, in the order of the least
  live sum, and in the order in which chains stay together.

Nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from buildtool.base.modes import Image
from buildtool.graph.flow import flow_of
from buildtool.graph.order import in_order, least_peak_of_chains, least_peak_order
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.layerwise import plan as layerwise
from buildtool.plan.check.check import check
from buildtool.plan.choose.fronts import Point, points
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.search.front import Front, Settings, front
from buildtool.plan.types import Plan
from buildtool.target.registry import load_target
from buildtool.target.types import Target
from buildtool.zoo import graph as zoo_graph

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

import namednets as nets
from namednets import efficient_net
from zeronet import wired_net

ENLARGING: dict[str, Callable[[], Graph]] = {
    "U-Net 64x64, 2 levels from 8 channels, nearest": lambda: nets.u_net(64, 8, 2, "nearest"),
    "the same, bilinear": lambda: nets.u_net(64, 8, 2, "half"),
    "the same, transpose convolutions": lambda: nets.u_net(64, 8, 2, "transpose"),
    "U-Net 64x64, 2 levels from 16 channels, nearest": lambda: nets.u_net(64, 16, 2, "nearest"),
    "U-Net 64x64, 3 levels from 8 channels, nearest": lambda: nets.u_net(64, 8, 3, "nearest"),
    "U-Net 96x96, 4 levels from 8 channels, nearest": lambda: nets.u_net(96, 8, 4, "nearest"),
    "feature pyramid 64x64, bilinear": lambda: nets.pyramid(64, 8, "half"),
    "segmentation head 64x64, bilinear": lambda: nets.head(64, 8, "half"),
    "super-resolution 48x48 to 96x96, bilinear": lambda: nets.super_resolution(48, 16, "half"),
    "autoencoder 96x96, transpose convolutions": lambda: nets.decoder(96, 96, 16),
}
GATED: dict[str, tuple[Callable[[], Graph], Image]] = {
    "EfficientNet-B0, 96x96": (lambda: efficient_net(96), Image.OVERWRITABLE),
    "EfficientNet-B0, 160x160": (lambda: efficient_net(160), Image.OVERWRITABLE),
    "EfficientNet-B0 with swish, 96x96": (lambda: efficient_net(96, swish=True), Image.OVERWRITABLE),
    "`mobilenetv3_small`, image by rows": (lambda: zoo_graph("mobilenetv3_small"), Image.STREAM),
}
SEEDS = range(4)
Rows = Iterator[tuple[object, ...]]


def enlarging(target: Target, _: int) -> Rows:
    """Yields rows for networks that enlarge their images; each plan is checked."""
    yield "network", "layer by layer", "F = 1.00", "image by rows", "least (F)"
    for name, make in ENLARGING.items():
        graph = rewrite(read_model(write_model(make())))

        fronts = {
            image: front(graph, target, Settings(image=image)) for image in (Settings().image, "stream")
        }

        def plan(found: Front, most: float, graph: Graph = graph) -> Plan:
            made = found.plan(next(i for i, point in enumerate(found.points) if point.f <= most))
            check(made, graph, target)
            return made

        least = plan(fronts[Settings().image], float("inf"))
        arenas = (layerwise(graph, target), *(plan(found, 1.0) for found in fronts.values()))
        yield name, *(one.arena_bytes for one in arenas), f"{least.arena_bytes:,} ({least.f:.2f})"


def gated(target: Target, _: int) -> Rows:
    """Yields rows for networks with gates: the least memory for several limits on F."""
    limits, most = (1.0, 1.15, 1.25, 1.5), 1 << 40
    yield "network", "layer by layer", "F = 1.00", *(f"F <= {f:.2f}" for f in limits[1:]), "least (F)"
    for name, (make, image) in GATED.items():
        graph = rewrite(make())
        found = points(Prepared(name, (graph,), target, PlanOptions(image=image), bounded=False), most)
        whole = Prepared(name, (graph,), target, PlanOptions(strategy="layerwise"), bounded=False)
        least = within(found, 6.0).plan
        arenas = [points(whole, most)[0], *(within(found, f) for f in limits)]
        yield name, *(one.plan.arena_bytes for one in arenas), f"{least.arena_bytes:,} ({least.f:.2f})"


def within(found: tuple[Point, ...], most: float) -> Point:
    """Returns the point with the least memory among those with F up to `most`."""
    return min((p for p in found if p.plan.f <= most + 1e-9), key=lambda p: p.plan.arena_bytes)


def orders(target: Target, nodes: int) -> Rows:
    """Yields a row for the random network of each seed: memory for several orders of its operators."""
    yield "seed", "operators", "layer by layer, given", "front, given", "least live sum", "chains together"
    for seed in SEEDS:
        graph = rewrite(wired_net(seed, nodes=nodes, stages=1))
        whole, flow = layerwise(graph, target).arena_bytes, flow_of(graph)
        other, chains = least_peak_order(flow), least_peak_of_chains(flow)
        given, ordered, together = (
            front(one, target, Settings()).points[0].live_bytes
            for one in (graph, in_order(graph, other), in_order(graph, chains))
        )
        least = f"{ordered:,} ({other.status})", f"{together:,} ({chains.status})"
        yield seed, len(graph.ops), whole, given, *least


TABLES = {"enlarging": (enlarging, "cortex-m4"), "gated": (gated, "cortex-m4"), "orders": (orders, "host")}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=TABLES)
    parser.add_argument("--nodes", type=int, default=24)
    parser.add_argument("--board")
    asked = parser.parse_args()
    made, board = TABLES[asked.what]
    for number, row in enumerate(made(load_target(asked.board or board), asked.nodes)):
        cells = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        print(f"| {' | '.join(cells)} |", flush=True)
        if not number:
            first = "---:" if asked.what == "orders" else "---"
            print(f"| {' | '.join([first, *['---:'] * (len(row) - 1)])} |", flush=True)


if __name__ == "__main__":
    main()
