"""Prints what networks that enlarge need: python benchmarks/enlarging.py [--board B]

U-Nets, feature pyramids, segmentation heads, super-resolution and decoders of transpose convolutions, each
layer by layer, with nothing computed twice, and with the least memory; arenas in bytes. Nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph
from buildtool.plan.assemble.layerwise import plan as layerwise
from buildtool.plan.check.check import check
from buildtool.plan.search.front import Front, Settings, front
from buildtool.plan.types import Plan
from buildtool.target.registry import load_target
from buildtool.target.types import Target

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

import upsampling as nets

NETWORKS: dict[str, Callable[[], Graph]] = {
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


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="cortex-m4")
    target = load_target(parser.parse_args().board)
    print("| network | layer by layer | F = 1.00 | image by rows | least (F) |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, make in NETWORKS.items():
        graph = rewrite(read_model(write_model(make())))
        whole = layerwise(graph, target).arena_bytes
        found = front(graph, target, Settings())
        streamed = _once(front(graph, target, Settings(image="stream")), graph, target)
        least, once = _checked(found, 0, graph, target), _once(found, graph, target)
        print(
            f"| {name} | {whole:,} | {once.arena_bytes:,} | {streamed.arena_bytes:,} "
            f"| {least.arena_bytes:,} ({least.f:.2f}) |"
        )


def _once(found: Front, graph: Graph, target: Target) -> Plan:
    """The plan of least memory that computes nothing twice."""
    index = next(i for i, point in enumerate(found.points) if point.f <= 1.0)
    return _checked(found, index, graph, target)


def _checked(found: Front, index: int, graph: Graph, target: Target) -> Plan:
    plan = found.plan(index)
    check(plan, graph, target)
    return plan


if __name__ == "__main__":
    main()
