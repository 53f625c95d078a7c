"""Prints what orders of operators gain in random-wired networks: python benchmarks/orders.py [--nodes N]

Watts-Strogatz networks of one stage, live bytes of the least plan: layer by layer and by the front, in
the given order, in that of the least live sum, and in that in which chains stay together. Nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from buildtool.graph.flow import flow_of
from buildtool.graph.order import in_order, least_peak_of_chains, least_peak_order
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Graph
from buildtool.plan.assemble.layerwise import plan as layerwise
from buildtool.plan.search.front import Settings, front
from buildtool.target.registry import load_target
from buildtool.target.types import Target

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from wired import wired_net


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=24)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--board", default="host")
    asked = parser.parse_args()
    target = load_target(asked.board)
    print("| seed | operators | layer by layer, given | front, given | least live sum | chains together |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for seed in range(asked.seeds):
        graph = rewrite(wired_net(seed, nodes=asked.nodes, stages=1))
        whole, flow = layerwise(graph, target).arena_bytes, flow_of(graph)
        other, chains = least_peak_order(flow), least_peak_of_chains(flow)
        given, ordered, together = (
            least(one, target) for one in (graph, in_order(graph, other), in_order(graph, chains))
        )
        print(
            f"| {seed} | {len(graph.ops)} | {whole:,} | {given:,} | {ordered:,} ({other.status}) "
            f"| {together:,} ({chains.status}) |",
            flush=True,
        )


def least(graph: Graph, target: Target) -> int:
    """Live bytes of the front's least plan."""
    return front(graph, target, Settings()).points[0].live_bytes


if __name__ == "__main__":
    main()
