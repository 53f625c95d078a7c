"""Views of a planning problem: the networks with them that are planned as well.

A network with views (see `graph.partviews`) is one more graph of the problem, as one in another order of
operators is. A view keeps all of the wider tensor alive until its last reader has run, so that it may need
more memory than a copy: the network without views is always planned, too.
"""

from __future__ import annotations

from buildtool.graph.partviews import with_views
from buildtool.graph.types import Graph
from buildtool.modes import Image, Strategy
from buildtool.plan.schedule.viewing import possible_views
from buildtool.service.pipeline.options import PlanOptions
from buildtool.target.catalogue import select_all
from buildtool.target.types import Target


def graphs(graph: Graph, target: Target, options: PlanOptions) -> tuple[Graph, ...]:
    """A network with all the views that its kernels can read; nothing where there are none."""
    if options.strategy not in (Strategy.BEST, Strategy.LAYERWISE):
        return ()
    found = possible_views(graph, select_all(target, graph))
    made = with_views(graph, found)
    if options.image == Image.STREAM and len(made.consumers().get(made.inputs[0], ())) > 1:
        # rows that are delivered come once, for one reader
        found = tuple(p for p in found if made.ops[p].inputs[0] != made.inputs[0])
        made = with_views(graph, found)
    return (made,) if found else ()
