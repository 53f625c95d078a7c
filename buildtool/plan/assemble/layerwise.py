"""Plans that run one operator after the other, each over its whole output."""

from __future__ import annotations

import math

from buildtool.base.errors import UsageError, did_you_mean, suggest
from buildtool.base.modes import Image, InPlace, Strategy
from buildtool.base.session import Session
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.schedule.overlap import IN_PLACE
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Plan, Region
from buildtool.target import catalogue
from buildtool.target.types import Target

IMAGES = (Image.OVERWRITABLE, Image.RESIDENT)


def plan(
    graph: Graph,
    target: Target,
    *,
    in_place: str = InPlace.ROWS,
    image: str = Image.OVERWRITABLE,
    enough: float = math.inf,
    session: Session | None = None,
) -> Plan:
    """Returns the plan with one region per operator, in the graph's order. Aliases have no region.

    in_place: the kernels whose output may lie over their dying input. With "rows" these are the kernels that
        work row by row or element by element, with "elementwise" those that work element by element. With
        "none" no output lies over its input.
    image: "resident" if the network's inputs stay in the arena to the end, "overwritable" if not.
    enough: tensors are moved only where the arena would have more bytes (see `assemble`).

    The plan may be larger than the board's memory (see `fit`). Raises UnsupportedError where the target has
    no kernel, and UsageError for an unknown value of `in_place` or `image`.
    """
    for name, value, known in (("in_place", in_place, IN_PLACE), ("image", image, IMAGES)):
        if value not in known:
            if value == Image.STREAM:
                text = "a layer-by-layer plan needs the whole input image; 'stream' delivers it row by row"
                helps = [suggest(image=Image.OVERWRITABLE), suggest(strategy=Strategy.BEST)]
                raise UsageError(text, option="image", hint=helps)
            raise UsageError(f"{name} cannot be '{value}'", hint=did_you_mean(value, known))
    kernels = catalogue.select_all(target, graph)
    regions = tuple(
        Region((Group((position,)),)) for position, kernel in enumerate(kernels) if kernel is not None
    )
    timeline = Timeline.of(graph, regions, image, session)
    return assemble(
        timeline, target, kernels, strategy="layerwise", in_place=in_place, enough=enough, session=session
    )
