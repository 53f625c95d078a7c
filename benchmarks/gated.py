"""Prints what second passes gain in networks with gates: python benchmarks/gated.py [--board B]

EfficientNet-B0 with hard swish and with swish, and the zoo's MobileNet V3: arenas in bytes, layer by
layer, with nothing computed twice, and by the front within some F. Nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from buildtool.base.modes import Image
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Graph
from buildtool.plan.choose.fronts import Point, points
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.options import PlanOptions
from buildtool.target.registry import load_target
from buildtool.zoo import graph as zoo_graph

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from gatednets import efficient_net

NETWORKS: dict[str, tuple[Callable[[], Graph], Image]] = {
    "EfficientNet-B0, 96x96": (lambda: efficient_net(96), Image.OVERWRITABLE),
    "EfficientNet-B0, 160x160": (lambda: efficient_net(160), Image.OVERWRITABLE),
    "EfficientNet-B0 with swish, 96x96": (lambda: efficient_net(96, swish=True), Image.OVERWRITABLE),
    "`mobilenetv3_small`, image by rows": (lambda: zoo_graph("mobilenetv3_small"), Image.STREAM),
}
LIMITS = (1.0, 1.15, 1.25, 1.5, 6.0)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="cortex-m4")
    target = load_target(parser.parse_args().board)
    print("| network | layer by layer | F = 1.00 | F <= 1.15 | F <= 1.25 | F <= 1.50 | least (F) |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, (make, image) in NETWORKS.items():
        graph, most = rewrite(make()), 1 << 40
        found = points(Prepared(name, (graph,), target, PlanOptions(image=image), bounded=False), most)
        whole = Prepared(name, (graph,), target, PlanOptions(strategy="layerwise"), bounded=False)
        cells = [f"{points(whole, most)[0].plan.arena_bytes:,}"]
        cells += [f"{within(found, f).plan.arena_bytes:,}" for f in LIMITS[:-1]]
        least = within(found, LIMITS[-1]).plan
        print(f"| {name} | {' | '.join(cells)} | {least.arena_bytes:,} ({least.f:.2f}) |")


def within(found: tuple[Point, ...], most: float) -> Point:
    """The point of least memory within some F."""
    return min((p for p in found if p.plan.f <= most + 1e-9), key=lambda p: p.plan.arena_bytes)


if __name__ == "__main__":
    main()
