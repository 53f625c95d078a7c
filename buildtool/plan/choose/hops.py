"""The networks of hops of a network on a moving window, from the least work to the least memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from buildtool.base.errors import BuildtoolError, PlanError
from buildtool.graph.hop.build import Origin, build
from buildtool.graph.hop.choices import choices, keep_all
from buildtool.graph.hop.moments import Analysis, analyse
from buildtool.graph.hop.needs import Needs, needs_of
from buildtool.graph.hop.types import Hop
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions

MOST_TRIED = 12  # choices of what is kept that are planned


@dataclass(frozen=True)
class Hopping:
    """A network of hops: `graph`, and the network on the whole `window` from which it was made.

    `needs`: the rows that a hop computes and keeps. `origins`: the rows of the window's tensors that the
    tensors of `graph` hold, by name. `in_columns`: as in `Hop`. `asked`: the options of the request.
    """

    graph: Graph
    window: Graph
    needs: Needs
    origins: Mapping[str, Origin]
    in_columns: bool
    asked: PlanOptions = field(default_factory=PlanOptions)

    @property
    def hop(self) -> Hop:
        """What is kept, as a plan records it."""
        return replace(self.needs.hop, in_columns=self.in_columns)

    @property
    def analysis(self) -> Analysis:
        """What moves with the window."""
        return self.needs.analysis


def list_hoppings(window: Graph, rows: int) -> list[Hopping]:
    """The networks of hops of `rows` rows, from the least work to the least memory.

    They are made for at most MOST_TRIED choices of what is kept, each with moments as rows, and as columns
    where that is another network. Raises UsageError for a hop that the network cannot have, and
    UnsupportedError for a network that cannot run on a moving window.
    """
    found = []
    for needs in _pick(choices(analyse(window, rows)), MOST_TRIED):
        with_columns, _ = made = [_make(window, needs, in_columns) for in_columns in (True, False)]
        found += made if with_columns.in_columns else made[1:]
    return found


def hopping_that_keeps_all(window: Graph, rows: int) -> Hopping:
    """The network of hops with the least work. Raises what `list_hoppings` raises."""
    return _make(window, keep_all(analyse(window, rows)), in_columns=False)


def _pick(found: Sequence[Needs], most: int) -> list[Needs]:
    """At most `most` choices, the two ends among them.

    That choice is left out first whose neighbours are nearest: where a limit allows it, but not the one
    before, the next one stands in for it.
    """
    picked = list(found)
    while len(picked) > most:
        del picked[min(range(1, len(picked) - 1), key=lambda i: _loss(*picked[i - 1 : i + 2]))]
    return picked


def _loss(before: Needs, needs: Needs, after: Needs) -> float:
    """The area under the front that is lost without a choice, in logarithms of work and memory."""
    memory = math.log((before.state_bytes + 1) / (needs.state_bytes + 1))
    return memory * math.log((after.work + 1) / (needs.work + 1))


def hopping_as(window: Graph, hop: Hop) -> Hopping:
    """The network of hops of a plan. Raises PlanError if this network cannot have it."""
    try:
        needs = needs_of(analyse(window, hop.rows), hop) if hop.rows > 0 else None
    except BuildtoolError as error:
        raise PlanError(f"the plan is for another network: {error.text}") from None
    hopping = _make(window, needs, hop.in_columns) if needs else None
    if hopping is None or hopping.hop != hop:
        text = "the plan is for another network: it keeps rows that this one does not read"
        raise PlanError(text)
    return hopping


def _make(window: Graph, needs: Needs, in_columns: bool) -> Hopping:
    built = build(needs, in_columns=in_columns)
    return Hopping(built.graph, window, needs, built.origins, built.has_columns)
