"""Networks that run on a moving window: each invoke computes only what is new since the one before it.

The window is the network's input, and moves by some rows from invoke to invoke. Such a move is a hop. The
network of a hop keeps rows of some tensors as states between invokes, and computes the others again. Which
rows are kept is a choice between work and memory. This module makes the networks for several choices, from
the least work to the least memory.
"""

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
    """The network of one hop: it computes what is new when the moving window has moved by a hop.

    graph: this network.
    window: the network on the whole window, from which `graph` was made.
    needs: the rows that a hop computes and keeps.
    origins: name of a tensor of `graph` -> the rows of the window's tensors that it holds.
    in_columns: whether some images have moments (rows of the window) as columns, see `Hop`.
    asked: the options of the request.
    """

    graph: Graph
    window: Graph
    needs: Needs
    origins: Mapping[str, Origin]
    in_columns: bool
    asked: PlanOptions = field(default_factory=PlanOptions)

    @property
    def hop(self) -> Hop:
        """Returns what is kept between invokes, as a plan records it."""
        return replace(self.needs.hop, in_columns=self.in_columns)

    @property
    def analysis(self) -> Analysis:
        """Returns how the rows of the window's tensors move with the window."""
        return self.needs.analysis


def list_hoppings(window: Graph, rows: int) -> list[Hopping]:
    """Returns networks for a window that moves by `rows` rows, from the least work to the least memory.

    There are at most MOST_TRIED choices of what is kept. Each gives a network with moments in time as rows,
    and one with moments as columns if that is another network. Raises UsageError for a hop that the network
    cannot have, and UnsupportedError for a network that cannot run on a moving window.
    """
    found = []
    for needs in _pick(choices(analyse(window, rows)), MOST_TRIED):
        with_columns, _ = made = [_make(window, needs, in_columns) for in_columns in (True, False)]
        found += made if with_columns.in_columns else made[1:]
    return found


def hopping_that_keeps_all(window: Graph, rows: int) -> Hopping:
    """Returns the network of hops with the least work: it keeps all that later hops need.

    Raises the same errors as `list_hoppings`.
    """
    return _make(window, keep_all(analyse(window, rows)), in_columns=False)


def _pick(found: Sequence[Needs], most: int) -> list[Needs]:
    """Returns at most `most` of these choices, always with the first and the last one.

    `found`: choices from the least work to the least memory. The choices that are left out are those without
    which least of the front is lost (see `_loss`): if a limit would allow such a choice, the next one is used
    instead, and is nearly as good.
    """
    picked = list(found)
    while len(picked) > most:
        del picked[min(range(1, len(picked) - 1), key=lambda i: _loss(*picked[i - 1 : i + 2]))]
    return picked


def _loss(before: Needs, needs: Needs, after: Needs) -> float:
    """Returns how much worse a front is without one of its choices (`needs`).

    This is an area: the logarithm of the ratio in memory of the choice `before` to this one, times that of
    the ratio in work of the choice `after` to this one.
    """
    memory = math.log((before.state_bytes + 1) / (needs.state_bytes + 1))
    return memory * math.log((after.work + 1) / (needs.work + 1))


def hopping_as(window: Graph, hop: Hop) -> Hopping:
    """Returns the network of hops that a plan is for.

    `hop`: what the plan keeps. Raises PlanError if `window` cannot have that network.
    """
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
