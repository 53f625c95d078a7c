"""Chooses the operators whose weights the weight image stores in four bits.

Weights that are all from -8 to 7 need only half of their bytes in the weight image. The firmware expands them
before their kernel reads them, which takes time and scratch memory. So this is done only if flash must be
saved: if the objective is `flash`, or as far as the limit on the weight image requires.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from buildtool.base.errors import PlanError, UnsupportedError
from buildtool.base.modes import Objective, Simplify
from buildtool.emit.expanding import can_expand
from buildtool.emit.fourbits import AGAIN, LEAST, MOST, most_stored, slice_of, stored_bytes
from buildtool.emit.image import image_layout
from buildtool.graph.types import DType, Graph, Op, OpKind, Tensor, WeightedAttrs
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.channels import Simplified
from buildtool.plan.types import Narrowed
from buildtool.target.catalogue import (
    ALIGNMENT,
    constants_bytes,
    expanded_bytes,
    features,
    select,
    select_all,
    slices_of,
    takes_parts,
)
from buildtool.target.costs import Pricer, once
from buildtool.target.partitions import weights_room
from buildtool.target.types import KernelVariant, Target

_MOST_WHOLE = 8192  # bytes of constants that are expanded at once
_MOST_SLICE = 4096  # bytes of larger constants that are expanded at a time, in a multiple of _USUAL channels
_USUAL = 16  # channels of a slice at which kernels are fast
_MOST_BYTES = 12288  # if the constants of _USUAL channels have more bytes, _SMALL slices are tried
_SMALL = (8, 4)  # channels of a slice, the larger number first


class Choice(NamedTuple):
    """An operator whose weights can be stored in four bits.

    `narrowed`: the operator, and how its weights are stored.
    `saved`: the bytes of flash that this saves.
    `cost`: the cost that expanding the weights adds.
    """

    narrowed: Narrowed
    saved: int
    cost: float


def narrow(simplified: Simplified, target: Target, options: PlanOptions) -> Simplified:
    """Returns the network with marks at the operators whose weights are stored in four bits.

    With the objective `flash` these are all operators whose weights fit in four bits. Otherwise they are the
    cheapest ones with which the weight image fits the option `max_flash` and the board.
    """
    graph, kernels = simplified.graph, select_all(target, simplified.graph)
    room = weights_room(target.board)
    most = room if options.max_flash is None else min(options.max_flash, room)
    excess = image_layout(graph, kernels).size - most
    if options.objective != Objective.FLASH and excess <= 0:
        return simplified
    choices = list(_list_choices(graph, kernels, target, options.simplify))
    if options.objective != Objective.FLASH:
        choices = choose(choices, excess)
    return with_narrowed(simplified, tuple(choice.narrowed for choice in choices))


def narrow_as(simplified: Simplified, narrowed: tuple[Narrowed, ...], target: Target) -> Simplified:
    """Returns the network with a plan's marks for weights in four bits.

    Raises PlanError if the network cannot have them on this target.
    """
    if not narrowed:
        return simplified
    graph, kernels, before = simplified.graph, select_all(target, simplified.graph), -1
    for one in narrowed:
        kernel = kernels[one.op] if before < one.op < len(kernels) else None
        if kernel is None or not _is_possible(graph, graph.ops[one.op], kernel, target, one):
            text = f"the weights of operator {one.op} in four bits, {one.expanded} channels at a time"
            raise PlanError(
                f"the plan is for another network or board: it stores {text} in {one.stored} bytes, "
                "which is impossible here",
                hint=AGAIN,
            )
        before = one.op
    return with_narrowed(simplified, narrowed)


def _is_possible(graph: Graph, op: Op, kernel: KernelVariant, target: Target, mark: Narrowed) -> bool:
    """Whether an operator's weights can be stored and expanded as `mark` says, whatever values they have."""
    if _find_filter(graph, op) is None or not can_expand(kernel):
        return False
    channels = features(graph, op)["cout"]
    is_served = mark.expanded == channels or (
        0 < mark.expanded < channels and _can_slice(graph, op, kernel, target, mark.expanded)
    )
    return (
        is_served
        and 0 < mark.stored <= most_stored(kernel, graph, op, mark.expanded)
        and (mark.stored % ALIGNMENT == 0)
    )


def with_narrowed(simplified: Simplified, narrowed: tuple[Narrowed, ...]) -> Simplified:
    """Returns the network with these marks for weights in four bits. It does not check whether they are
    possible.
    """
    ops = list(simplified.graph.ops)
    for one in narrowed:
        attrs = ops[one.op].attrs
        assert isinstance(attrs, WeightedAttrs)
        ops[one.op] = replace(ops[one.op], attrs=replace(attrs, expanded=one.expanded, stored=one.stored))
    return simplified._replace(graph=replace(simplified.graph, ops=tuple(ops)), narrowed=narrowed)


def choose(choices: Sequence[Choice], excess: int) -> list[Choice]:
    """Returns the choices of least total cost that save at least `excess` bytes; all of them if that is not
    enough.

    It solves a knapsack problem by dynamic programming over the saved bytes, in units of ALIGNMENT.
    """
    units = -(-excess // ALIGNMENT)
    if sum(choice.saved for choice in choices) // ALIGNMENT < units:
        return list(choices)
    least = np.full(units + 1, np.inf)  # least[n]: for n units or more
    least[0] = 0.0
    taken = []
    for choice in choices:
        before = np.maximum(np.arange(units + 1) - choice.saved // ALIGNMENT, 0)
        cost = least[before] + choice.cost
        taken.append(cost < least)
        least = np.minimum(least, cost)
    chosen = []
    for choice, is_taken in zip(reversed(choices), reversed(taken), strict=True):
        if is_taken[units]:
            chosen.append(choice)
            units = max(0, units - choice.saved // ALIGNMENT)
    return chosen[::-1]


def _list_choices(
    graph: Graph, kernels: tuple[KernelVariant | None, ...], target: Target, simplify: Simplify | None
) -> Iterator[Choice]:
    pricer = Pricer(target.costs)
    for position, (op, kernel) in enumerate(zip(graph.ops, kernels, strict=True)):
        if kernel is None or not _is_narrow(graph, op, simplify) or not can_expand(kernel):
            continue
        before = constants_bytes(kernel, graph, op)
        for expanded in _list_sizes(graph, op, kernel, target):
            try:
                stored = stored_bytes(graph, op, kernel, expanded)
            except UnsupportedError:  # the packing does not take the values that `stored_bytes` tries
                continue
            if stored >= before:
                continue
            narrowed = Narrowed(position, expanded, stored)
            marked = with_narrowed(Simplified(graph, graph), (narrowed,)).graph
            pair = ((marked, marked.ops[position]), (graph, op))
            after, without = (once(pricer, kernel, each, of) for each, of in pair)
            yield Choice(narrowed, before - stored, max(after - without, 0.0))
            break


def _is_narrow(graph: Graph, op: Op, simplify: Simplify | None) -> bool:
    """Whether all weights of an operator fit in four bits.

    If `simplify` is `structure`, weights may be replaced later, so the values in the file prove nothing: the
    type of the weights must be int4.
    """
    filters = _find_filter(graph, op)
    if filters is None or (simplify is Simplify.STRUCTURE and not filters.is_int4):
        return False
    assert filters.data is not None
    return bool(filters.data.min() >= LEAST and filters.data.max() <= MOST)


def _find_filter(graph: Graph, op: Op) -> Tensor | None:
    """Returns the filter of an operator whose weights could be stored in four bits; None for other operators.

    The values of the weights are not checked.
    """
    if not isinstance(op.attrs, WeightedAttrs) or op.kind is OpKind.TRANSPOSE_CONV or len(op.inputs) < 2:
        return None
    filters = graph.tensors[op.inputs[1]]
    return filters if filters.data is not None and filters.dtype is DType.INT8 else None


def _list_sizes(graph: Graph, op: Op, kernel: KernelVariant, target: Target) -> Iterator[int]:
    """Yields the numbers of output channels whose weights may be expanded at a time, the best first.

    All channels are expanded at once for a depthwise convolution, since each slice would read the whole
    input; for an operator of few constants, whose output may then lie over its input; and for a kernel that
    serves no slices.
    """
    values = features(graph, op)
    channels = values["cout"]
    whole = expanded_bytes(kernel, graph, op, channels)
    if whole <= _MOST_WHOLE:
        yield channels
        return
    usual = channels * _MOST_SLICE // whole // _USUAL * _USUAL
    most = channels * _MOST_BYTES // whole
    for size in [max(usual, _USUAL), *_SMALL]:
        is_usual = size <= most or size == _SMALL[-1]
        if is_usual and _can_slice(graph, op, kernel, target, size):
            yield size
    yield channels


def _can_slice(graph: Graph, op: Op, kernel: KernelVariant, target: Target, size: int) -> bool:
    """Whether the operator's kernel can compute slices of `size` output channels."""
    values = features(graph, op)
    is_depthwise = op.kind is OpKind.DEPTHWISE_CONV_2D
    if is_depthwise or values["groups"] > 1 or not takes_parts(graph, kernel, op):
        return False
    sizes = slices_of(values["cout"], size)
    return all(_serves(graph, op, kernel, target, one) for one, _ in sizes)


def _serves(graph: Graph, op: Op, kernel: KernelVariant, target: Target, channels: int) -> bool:
    """Whether `kernel`, the operator's kernel, would also be selected for only the first `channels` output
    channels.
    """
    try:
        return select(target, *slice_of(graph, op, 0, channels)).name == kernel.name
    except UnsupportedError:
        return False
