"""The variants of a network that are planned beside one another, and the bounds that say which may pay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from buildtool.base.modes import Objective
from buildtool.graph.types import Graph
from buildtool.plan.choose import forms
from buildtool.plan.choose.fronts import least_cost, searched
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.summary.fit import holds
from buildtool.plan.types import Plan

Lighter = Callable[[Prepared, Graph, Plan], Graph | None]


@dataclass(frozen=True)
class Variant:
    """A kind of graphs that a network may run as.

    `graphs`: those there are, each with its index as in `Choice`. `forms`: of the problem of one of them,
    what is planned. `may_pay`: whether any of them may be better than the best plan so far, if there is one;
    `pays`: whether the problem of one of them may have such a plan. Both are bounds that cost less than
    planning. `part`: of the work that is left, how much each graph may take that has others behind it.

    `lighter`: what is tried in the place of a form whose plan needs more memory than the best plan of the
    variants before; without it plans count whatever they need.
    """

    name: str
    graphs: Callable[[Prepared], Iterable[tuple[int, Graph]]]
    forms: Callable[[Prepared], tuple[Graph, ...]] = lambda alone: alone.graphs
    may_pay: Callable[[Prepared, Plan | None], bool] = lambda prepared, best: True
    pays: Callable[[Prepared, Plan | None], bool] = lambda alone, best: True
    part: float = 1.0
    lighter: Lighter | None = None


def _passes_may_pay(prepared: Prepared, best: Plan | None) -> bool:
    """Whether second passes may make a better plan: before the search that finds them."""
    if not prepared.varied or not forms.may_have_passes(prepared.graphs, prepared.options):
        return False
    if best is None or not holds(prepared.target.board, best):
        return True
    if prepared.options.objective == Objective.RAM:
        return True
    return all(best.cost > least_cost(prepared.of(graph)) for graph in prepared.graphs)


def _pass_pays(alone: Prepared, best: Plan | None) -> bool:
    """Whether a network with some second passes may have a better plan."""
    if best is None or not holds(alone.target.board, best):
        return True
    graph = alone.graph
    if alone.options.objective == Objective.RAM:
        found = searched(graph, alone)
        return any(found.may_fit(i, best.arena_bytes - 1) for i in range(len(found.points)))
    bound = forms.least_cost_with_passes(graph, alone.target, alone.options, alone.session, alone.ram)
    return bound < best.cost


VARIANTS = (
    Variant("orders of the operators", lambda prepared: enumerate(prepared.graphs), part=0.5),
    Variant(
        "views of channels",
        lambda prepared: enumerate(prepared.unsliced if prepared.varied else ()),
        forms=lambda alone: forms.viewed(alone.graph, alone.target, alone.options),
        lighter=lambda alone, form, plan: forms.with_fewer_views(alone.graph, form, plan, alone.session),
    ),
    Variant(
        "second passes",
        lambda prepared: enumerate(prepared.twice, len(prepared.graphs)),
        may_pay=_passes_may_pay,
        pays=_pass_pays,
    ),
)
