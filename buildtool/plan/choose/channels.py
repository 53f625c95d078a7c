"""Chooses which channels of a network are computed on a target, and makes the network that computes these.

The weights say which channels need not be computed: channels that are constant for every input, or that
nothing reads (see `graph.rewrite.channels`). Kernels compute several channels at a time, so on some targets
it is quicker to remove fewer. The target's costs decide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from buildtool.base.errors import Hint, PlanError
from buildtool.base.modes import Simplify
from buildtool.graph.bounds import count_channels
from buildtool.graph.rewrite.channels import Kept, find_kept, without_channels
from buildtool.graph.types import Graph
from buildtool.plan.types import Narrowed, Removed
from buildtool.target.catalogue import select_all
from buildtool.target.costs import Pricer, once
from buildtool.target.types import Target

_MULTIPLES = (1, 4, 8, 16, 32)  # kernels are quick for multiples of these numbers of channels


class Simplified(NamedTuple):
    """A network without the channels that are not computed, and how it was made.

    graph: the network.
    whole: the network with all channels.
    removed: the channels of `whole` that are not computed.
    narrowed: the operators of `graph` whose weights are stored in four bits.
    """

    graph: Graph
    whole: Graph
    removed: tuple[Removed, ...] = ()
    narrowed: tuple[Narrowed, ...] = ()

    @property
    def in_plan(self) -> dict[str, Any]:
        """Returns the fields of a plan that say what was simplified."""
        return {"removed": self.removed, "narrowed": self.narrowed}


def simplify(graph: Graph, target: Target, how: Simplify) -> Simplified:
    """Returns the network without the channels whose removal makes it quicker.

    `how`: whether channels are removed at all. Several sets of channels are compared: the cost is that of the
    network run operator by operator. Of sets with the least cost, the one with the fewest constants is taken.
    """
    if how != Simplify.WEIGHTS:
        return Simplified(graph, graph)
    choices = [Simplified(graph, graph)]
    for multiple in _MULTIPLES:
        kept = find_kept(graph, multiple=multiple)
        removed = _list_removed(kept)
        if not removed:  # with larger multiples no more channels are removed
            break
        if all(removed != one.removed for one in choices):
            choices.append(Simplified(without_channels(graph, kept), graph, removed))
    return min(choices, key=lambda one: _price(one.graph, target)) if len(choices) > 1 else choices[0]


def simplify_as(graph: Graph, removed: tuple[Removed, ...]) -> Simplified:
    """Returns the network without the channels that a plan removes.

    Raises PlanError if a channel cannot be removed with these weights, or if the network has no such channel.
    """
    kept = {t: np.ones(count_channels(graph.tensors[t]), np.bool_) for t in graph.activations()}
    for one in removed:
        mask = kept.get(one.tensor)
        if mask is None or not all(0 <= channel < len(mask) for channel in one.channels):
            text = f"it removes channels that tensor {one.tensor} does not have here"
            raise PlanError(f"the plan is for another network: {text}")
        mask[list(one.channels)] = False
    needed = find_kept(graph, kept)
    for t, mask in kept.items():
        missing = np.flatnonzero(needed[t] & ~mask)
        if missing.size:
            single = f"channel {missing[0]}, which"
            several = f"{missing.size} channels (the first is {missing[0]}) that"
            what = single if missing.size == 1 else several
            raise PlanError(
                f"the plan removes {what} cannot be removed with these weights",
                tensor=graph.tensors[t].name,
                hint=Hint(
                    "make a plan for these weights: buildtool plan MODEL --board BOARD --out FILE; "
                    "with --simplify structure it serves all weights"
                ),
            )
    return Simplified(without_channels(graph, kept), graph, removed)


def _list_removed(kept: Kept) -> tuple[Removed, ...]:
    return tuple(
        Removed(t, tuple(np.flatnonzero(~mask).tolist())) for t, mask in kept.items() if not mask.all()
    )


def _price(graph: Graph, target: Target) -> tuple[float, int]:
    """Returns the cost of the network run operator by operator, and the bytes of its constants."""
    pricer, kernels = Pricer(target.costs), select_all(target, graph)
    cost = sum(
        once(pricer, kernel, graph, op) for kernel, op in zip(kernels, graph.ops, strict=True) if kernel
    )
    return cost, graph.constant_bytes
