"""Rewrites: the same results with fewer operators. No byte of a result that still exists changes."""

from collections.abc import Callable

from buildtool.graph.consistency import check_graph
from buildtool.graph.rewrite import blocks, edges, moves, pads, weights
from buildtool.graph.rewrite.draft import Draft
from buildtool.graph.rewrite.lookups import fold_constants, fuse_activations, look_up
from buildtool.graph.states import settle_states
from buildtool.graph.types import Graph

# Dead operators go first, so that every reader counts.
_PASSES: tuple[Callable[[Draft], None], ...] = (
    moves.drop_dead,
    moves.drop_noops,
    blocks.dilate_convolutions,
    weights.simplify_matmuls,
    moves.drop_repeats,
    moves.pool_extremes,
    pads.simplify_pads,
    pads.widen_additions,
    moves.slice_channels,
    moves.shuffle_channels,
    moves.simplify_transposes,
    edges.order_inputs,
    fuse_activations,
    fold_constants,
    weights.convolve_single_channels,
    weights.positive_scales,
)


def rewrite(graph: Graph, *, lookups: bool = True) -> Graph:
    """The graph simplified until nothing changes: int8 edges, no no-ops, pads folded.

    Network inputs and outputs keep their number and order; state is settled (see `states`). `lookups`:
    whether operators that together are a function of one byte become one LOOKUP, which no file has. Raises
    UnsupportedError for float tensors inside the network and for constants too large to fold.
    """
    draft = Draft(graph)
    moves.drop_dead(draft)
    edges.strip_float_edges(draft)
    draft.changed = True
    _settle(draft)
    blocks.lower_blocks(draft)  # those that no convolution has taken by now
    _settle(draft)
    if lookups:  # last: other passes have fused operators by now
        look_up(draft)
    result = draft.graph()
    if result.states:
        draft = Draft(settle_states(result))
        moves.drop_dead(draft)  # operators that a SHIFT replaces
        result = draft.graph()
    check_graph(result)
    return result


def _settle(draft: Draft) -> None:
    """Applies all passes until nothing changes."""
    while draft.changed:
        draft.changed = False
        for apply in _PASSES:
            apply(draft)
            draft.nodes = [node for node in draft.nodes if not node.dead]
