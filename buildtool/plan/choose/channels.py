"""Which channels of a network are computed on a target, and the network that computes these.

The weights say which channels need not be computed (see `graph.rewrite.channels`). Kernels compute several
channels at a time, so on some targets it is quicker to leave out fewer. The target's costs decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buildtool.base.errors import Hint, PlanError
from buildtool.base.modes import Simplify
from buildtool.graph.bounds import count_channels
from buildtool.graph.rewrite.channels import Kept, find_kept, without_channels
from buildtool.graph.types import Graph
from buildtool.plan.types import LeftOut
from buildtool.target.catalogue import select_all
from buildtool.target.costs import Pricer, once
from buildtool.target.types import Target

_MULTIPLES = (1, 4, 8, 16, 32)  # of channels, at which kernels are quick


class Simplified(NamedTuple):
    """A network, the network with all channels, and the channels of the latter that are not computed."""

    graph: Graph
    whole: Graph
    left_out: tuple[LeftOut, ...] = ()


def simplify(graph: Graph, target: Target, how: Simplify) -> Simplified:
    """Returns the network without the channels that cost more than they are needed for.

    Of the choices with the least cost, run operator by operator, it is the one with the fewest constants.
    """
    if how is not Simplify.WEIGHTS:
        return Simplified(graph, graph)
    choices = [Simplified(graph, graph)]
    for multiple in _MULTIPLES:
        kept = find_kept(graph, multiple=multiple)
        left_out = _leave_out(kept)
        if not left_out:  # larger multiples leave out no more
            break
        if all(left_out != one.left_out for one in choices):
            choices.append(Simplified(without_channels(graph, kept), graph, left_out))
    return min(choices, key=lambda one: _price(one.graph, target)) if len(choices) > 1 else choices[0]


def simplify_as(graph: Graph, left_out: tuple[LeftOut, ...]) -> Simplified:
    """Returns the network without the channels that a plan leaves out.

    Raises PlanError if these weights need one of them, or if the network has no such channels.
    """
    kept = {t: np.ones(count_channels(graph.tensors[t]), np.bool_) for t in graph.activations()}
    for one in left_out:
        mask = kept.get(one.tensor)
        if mask is None or not all(0 <= channel < len(mask) for channel in one.channels):
            text = f"it leaves out channels that tensor {one.tensor} does not have here"
            raise PlanError(f"the plan is for another network: {text}")
        mask[list(one.channels)] = False
    needed = find_kept(graph, kept)
    for t, mask in kept.items():
        missing = np.flatnonzero(needed[t] & ~mask)
        if missing.size:
            others = f" and {missing.size - 1} more" if missing.size > 1 else ""
            raise PlanError(
                f"the plan leaves out channel {missing[0]}{others}, which these weights need",
                tensor=graph.tensors[t].name,
                hint=Hint(
                    "make a plan for these weights: buildtool plan MODEL --board BOARD --out FILE; "
                    "with --simplify structure it serves all weights"
                ),
            )
    return Simplified(without_channels(graph, kept), graph, left_out)


def _leave_out(kept: Kept) -> tuple[LeftOut, ...]:
    return tuple(
        LeftOut(t, tuple(np.flatnonzero(~mask).tolist())) for t, mask in kept.items() if not mask.all()
    )


def _price(graph: Graph, target: Target) -> tuple[float, int]:
    """Returns the cost of the network run operator by operator, and the bytes of its constants."""
    pricer, kernels = Pricer(target.costs), select_all(target, graph)
    cost = sum(
        once(pricer, kernel, graph, op) for kernel, op in zip(kernels, graph.ops, strict=True) if kernel
    )
    return cost, sum(tensor.size for tensor in graph.tensors if tensor.is_constant)
