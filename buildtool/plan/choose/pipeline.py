"""The one way from a request's model, target and options to a plan: load, rewrite, prepare, choose, check.

    load_target, load_network       targets.py, models.py
    prepare                         prepare.py: orders of the operators; options that have no effect
    points                          fronts.py: the placed plans that no other beats
    chosen                          choose.py: one plan within the limits, checked
    refuse_unless_fits              needs.py: against the board's memories

`plan`, `front`, `analyze`, `emit`, `build`, `validate` and `profile` all go this way, so that an option
means the same to each of them. What follows, emitting and packing, is in emit/.
"""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.base.files import Named
from buildtool.base.session import Session
from buildtool.graph.partviews import without_views
from buildtool.graph.secondpass import without_second_passes
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions, TargetChoice
from buildtool.plan.choose.choose import choice as planned_choice
from buildtool.plan.choose.choose import chosen
from buildtool.plan.choose.cost_units import within_cost
from buildtool.plan.choose.prepare import Prepared, load_network, prepare
from buildtool.plan.models import Model
from buildtool.plan.types import Plan
from buildtool.target.choice import choice, load_target
from buildtool.target.types import Target


@dataclass(frozen=True)
class Planned:
    """A model, planned for a target: `graph` is the rewritten one that the plan is for."""

    model: Model
    source: Graph
    graph: Graph
    target: Target
    plan: Plan
    choice: TargetChoice
    options: PlanOptions
    session: Session
    order_status: str | None = None  # as in Prepared
    search_factor: float = 1.0  # as `fronts.plan_factor`
    placing_ended: bool = False  # as `kept.Choice.ended`


def planned(
    spec: Named, target: TargetChoice | Named, options: PlanOptions, session: Session | None = None
) -> Planned:
    """Reads, rewrites, plans and checks; does not ask whether the plan fits the board."""
    session = session or Session()
    chosen_target = choice(target)
    loaded = load_target(chosen_target, session)
    network = load_network(spec, session)
    prepared = prepare(network, loaded, options, session)
    found = planned_choice(prepared)
    return Planned(
        network.model,
        network.source,
        prepared.graph_for(found.index, found.plan),
        prepared.target.with_firmware(found.firmware),
        found.plan,
        chosen_target,
        options,
        session,
        prepared.order_status,
        found.factor,
        found.ended,
    )


def plan_of_every_kind(graph: Graph, target: Target, options: PlanOptions, session: Session) -> Plan:
    """The plan of a graph, which may have second passes or views, with those that the options ask for."""
    limited = within_cost(options, target)
    return chosen(
        Prepared("", (without_views(without_second_passes(graph)),), target, limited, session=session)
    )[1]


def make_plan(graph: Graph, target: Target, options: PlanOptions, session: Session | None = None) -> Plan:
    """The plan of a graph that is at hand, its operators in the order that they have."""
    limited = within_cost(options, target)
    alone = Prepared("", (graph,), target, limited, session=session or Session(), varied=False)
    return chosen(alone)[1]
