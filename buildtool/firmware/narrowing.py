"""Chooses the operators whose weights the weight image stores in four bits.

Weights that are all from -8 to 7 need only half of their bytes there. The firmware expands them before their
kernel reads them, which takes time and scratch memory. So this is done where the flash has to be small: as
the objective says, or as far as the limit on the weight image requires.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from buildtool.base.errors import PlanError, UnsupportedError
from buildtool.base.modes import Objective, Simplify
from buildtool.emit.expanding import can_expand
from buildtool.emit.fourbits import LEAST, MOST, slice_of, stored_bytes
from buildtool.emit.image import image_layout
from buildtool.graph.types import AsUint8, DType, Graph, Op, OpKind, WeightedAttrs
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.channels import Simplified
from buildtool.plan.types import Narrowed
from buildtool.target.catalogue import (
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
_USUAL = 16  # the fewest channels of a slice, at which kernels are quick,
_MOST_BYTES = 12288  # unless these have more bytes;
_SMALL = (8, 4)  # then these, the larger first


class _Choice(NamedTuple):
    """An operator, how it would be stored, the bytes that this saves, and the cost that it adds."""

    narrowed: Narrowed
    saved: int
    cost: float


def narrow(simplified: Simplified, target: Target, options: PlanOptions) -> Simplified:
    """Returns the network with marks at the operators whose weights are stored in four bits.

    With objective `flash` they are all operators whose weights fit into four bits. Otherwise they are those
    that cost the least, as far as the weight image would not fit the option `max_flash` or the board.
    """
    graph, kernels = simplified.graph, select_all(target, simplified.graph)
    room = weights_room(target.board)
    most = room if options.max_flash is None else min(options.max_flash, room)
    excess = image_layout(graph, kernels).size - most
    if options.objective != Objective.FLASH and excess <= 0:
        return simplified
    choices = list(_list_choices(graph, kernels, target, options.simplify))
    if options.objective != Objective.FLASH:
        choices = _choose(choices, excess)
    return with_narrowed(simplified, tuple(choice.narrowed for choice in choices))


def with_narrowed(simplified: Simplified, narrowed: tuple[Narrowed, ...]) -> Simplified:
    """Returns the network with these marks. Raises PlanError if one is at an operator that cannot have it."""
    ops = list(simplified.graph.ops)
    for one in sorted(narrowed, key=lambda one: one.op):
        attrs = ops[one.op].attrs if 0 <= one.op < len(ops) else None
        if not isinstance(attrs, WeightedAttrs) or one.expanded <= 0 or one.stored <= 0:
            text = f"it stores the weights of operator {one.op} in four bits, which has none here"
            raise PlanError(f"the plan is for another network: {text}")
        ops[one.op] = replace(ops[one.op], attrs=replace(attrs, expanded=one.expanded, stored=one.stored))
    return simplified._replace(graph=replace(simplified.graph, ops=tuple(ops)), narrowed=narrowed)


def _choose(choices: list[_Choice], excess: int) -> list[_Choice]:
    """Returns choices that save at least `excess` bytes, or all if they do not: the cheapest for each byte.

    None of them could be left out.
    """
    chosen, saved = list[_Choice](), 0
    for choice in sorted(choices, key=lambda one: one.cost / one.saved):
        if saved >= excess:
            break
        chosen.append(choice)
        saved += choice.saved
    for choice in sorted(chosen, key=lambda one: -one.cost):
        if saved - choice.saved >= excess:
            chosen.remove(choice)
            saved -= choice.saved
    return sorted(chosen, key=lambda one: one.narrowed.op)


def _list_choices(
    graph: Graph, kernels: tuple[KernelVariant | None, ...], target: Target, simplify: Simplify | None
) -> Iterator[_Choice]:
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
            yield _Choice(narrowed, before - stored, max(after - without, 0.0))
            break


def _is_narrow(graph: Graph, op: Op, simplify: Simplify | None) -> bool:
    """Whether all weights of an operator fit into four bits, in every network of this structure if asked."""
    if not isinstance(op.attrs, WeightedAttrs) or isinstance(op.attrs, AsUint8):
        return False
    if op.kind is OpKind.TRANSPOSE_CONV or len(op.inputs) < 2:
        return False
    filters = graph.tensors[op.inputs[1]]
    if filters.data is None or filters.dtype is not DType.INT8:
        return False
    if simplify is not Simplify.WEIGHTS and not filters.is_int4:
        return False
    return bool(filters.data.min() >= LEAST and filters.data.max() <= MOST)


def _list_sizes(graph: Graph, op: Op, kernel: KernelVariant, target: Target) -> Iterator[int]:
    """Yields the numbers of output channels that may be expanded at a time, the best first.

    A depthwise convolution has one slice, since it reads each input channel once. So has an operator of few
    constants, whose output may then lie over its input, and one whose kernel serves no slices.
    """
    values = features(graph, op)
    channels = values["cout"]
    whole = expanded_bytes(kernel, graph, op, channels)
    if whole <= _MOST_WHOLE or values["groups"] > 1 or not takes_parts(graph, kernel, op):
        yield channels
        return
    usual = channels * _MOST_SLICE // whole // _USUAL * _USUAL
    most = channels * _MOST_BYTES // whole
    for size in [max(usual, _USUAL), *_SMALL]:
        is_usual = size <= most or size == _SMALL[-1]
        if is_usual and all(_serves(graph, op, kernel, target, one) for one, _ in slices_of(channels, size)):
            yield size
    yield channels


def _serves(graph: Graph, op: Op, kernel: KernelVariant, target: Target, channels: int) -> bool:
    """Whether the operator's kernel is also the one for its first `channels` output channels."""
    try:
        return select(target, *slice_of(graph, op, 0, channels)).name == kernel.name
    except UnsupportedError:
        return False
