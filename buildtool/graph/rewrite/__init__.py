"""Rewrites: the same results with fewer operators. No byte of a result that still exists changes."""

from __future__ import annotations

from collections.abc import Callable

from buildtool.graph.consistency import check_graph
from buildtool.graph.rewrite.activations import fuse_activations
from buildtool.graph.rewrite.blocks import dilate_convolutions, lower_blocks
from buildtool.graph.rewrite.channels import shuffle_channels, slice_channels
from buildtool.graph.rewrite.draft import Draft
from buildtool.graph.rewrite.edges import order_inputs, strip_float_edges
from buildtool.graph.rewrite.folding import fold_constants
from buildtool.graph.rewrite.lookups import look_up
from buildtool.graph.rewrite.matmuls import simplify_matmuls
from buildtool.graph.rewrite.noops import drop_dead, drop_noops
from buildtool.graph.rewrite.pads import simplify_pads, widen_additions
from buildtool.graph.rewrite.repeats import drop_repeats, pool_extremes
from buildtool.graph.rewrite.transposes import simplify_transposes
from buildtool.graph.rewrite.weights import convolve_single_channels, positive_scales
from buildtool.graph.states import settled
from buildtool.graph.types import Graph

# Dead operators go first, so that no reader is seen that does not count.
_PASSES: tuple[Callable[[Draft], None], ...] = (
    drop_dead,
    drop_noops,
    dilate_convolutions,
    simplify_matmuls,
    drop_repeats,
    pool_extremes,
    simplify_pads,
    widen_additions,
    slice_channels,
    shuffle_channels,
    simplify_transposes,
    order_inputs,
    fuse_activations,
    fold_constants,
    convolve_single_channels,
    positive_scales,
)


def rewrite(graph: Graph, *, lookups: bool = True) -> Graph:
    """The graph simplified until nothing changes: int8 edges, no no-ops, pads folded.

    Network inputs and outputs keep their number and order; state is settled (see `states`). `lookups`:
    whether operators that together are a function of one byte become one LOOKUP, which no file has. Raises
    UnsupportedError for float tensors inside the network and for constants too large to fold.
    """
    draft = Draft(graph)
    drop_dead(draft)
    strip_float_edges(draft)
    draft.changed = True
    _settle(draft)
    lower_blocks(draft)  # whatever no convolution has taken by now
    _settle(draft)
    if lookups:  # last: whatever takes operators over has taken them
        look_up(draft)
    result = _in_place(draft.graph())
    check_graph(result)
    return result


def _in_place(graph: Graph) -> Graph:
    """The graph with its states where they live, without what a SHIFT does instead."""
    if not graph.states:
        return graph
    draft = Draft(settled(graph))
    drop_dead(draft)
    draft.nodes = [node for node in draft.nodes if not node.dead]
    return draft.graph()


def _settle(draft: Draft) -> None:
    """Applies all passes until nothing changes."""
    while draft.changed:
        draft.changed = False
        for apply in _PASSES:
            apply(draft)
            draft.nodes = [node for node in draft.nodes if not node.dead]
