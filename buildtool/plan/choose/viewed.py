"""Views of a planning problem: the networks with them that are planned as well.

A network with views (see `graph.partviews`) is one more graph of the problem, as one in another order of
operators is. A view keeps all of the wider tensor alive until its last reader has run, so that it may need
more memory than a copy; so does a tensor that its parts are written into, which is there from the first part
on. So the network without views is always planned, too. Where parts are written in place, it runs operator by
operator.
"""

from __future__ import annotations

from buildtool.base.modes import Image, Strategy
from buildtool.base.session import Session
from buildtool.graph.partviews import views, with_views, written_in_place
from buildtool.graph.types import Graph, OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.schedule.viewing import possible_views
from buildtool.plan.types import Plan
from buildtool.target.catalogue import select_all
from buildtool.target.types import Target


def graphs(graph: Graph, target: Target, options: PlanOptions) -> tuple[Graph, ...]:
    """A network with all the views that its kernels can read; with those that they can write, too, and alone.

    Nothing where there are none, or the options ask for a strategy without them.
    """
    if options.strategy not in (Strategy.BEST, Strategy.LAYERWISE):
        return ()
    kernels = select_all(target, graph)
    slices = _readable(graph, possible_views(graph, kernels), options.image)
    joined = tuple(
        position
        for position in possible_views(graph, kernels, joined=True)
        if graph.ops[position].kind is OpKind.CONCATENATION
    )
    choices = [slices]
    if joined and options.image != Image.STREAM:
        choices += [tuple(sorted((*slices, *joined))), joined]
    return tuple(with_views(graph, found) for found in dict.fromkeys(choices) if found)


def _readable(graph: Graph, slices: tuple[int, ...], image: str) -> tuple[int, ...]:
    """Of slices that may be views those that leave a streamed image one reader: its rows come once."""
    made = with_views(graph, slices)
    if image != Image.STREAM or len(made.consumers().get(made.inputs[0], ())) < 2:
        return slices
    return tuple(position for position in slices if made.ops[position].inputs[0] != made.inputs[0])


def lighter(graph: Graph, made: Graph, plan: Plan, session: Session) -> Graph | None:
    """`graph` with fewer of the views of `made`, whose plan needs too much; None where that cannot help.

    Those concatenations are copied whose outputs are there, for parts to come, when most bytes are.
    """
    from buildtool.plan.summary.binding import binding

    step, inside = binding(plan, made, session).step, written_in_place(made)
    alive = {t for buffer in plan.buffers if buffer.first <= step <= buffer.last for t in buffer.tensors}
    copied = {
        position
        for position in views(made)
        if made.ops[position].kind is OpKind.JOINED
        and made.ops[position].outputs[0] in alive
        and made.ops[position].outputs[0] not in inside
    }
    kept = tuple(position for position in views(made) if position not in copied)
    return with_views(graph, kept) if copied and kept else None
