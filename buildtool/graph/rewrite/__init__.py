"""Rewrites a graph to fewer operators. Every tensor that remains has the same bytes as before."""

from collections.abc import Callable

from buildtool.graph.consistency import check_graph
from buildtool.graph.rewrite import blocks, crops, edges, islands, joins, moves, pads, transposes, weights
from buildtool.graph.rewrite.draft import Draft
from buildtool.graph.rewrite.lookups import fold_constants, fuse_activations, fuse_lookups
from buildtool.graph.rewrite.taps import drop_taps
from buildtool.graph.states import settle_states
from buildtool.graph.types import Graph

# Dead operators go first, so that only live readers count.
_PASSES: tuple[Callable[[Draft], None], ...] = (
    moves.drop_dead,
    moves.drop_noops,
    blocks.dilate_convolutions,
    weights.simplify_matmuls,
    moves.drop_repeats,
    moves.pool_extremes,
    pads.simplify_pads,
    crops.fold_crops,
    drop_taps,
    pads.widen_additions,
    moves.slice_channels,
    moves.shuffle_channels,
    transposes.simplify_transposes,
    joins.simplify_joins,
    islands.shrink_islands,
    edges.order_inputs,
    fuse_activations,
    fold_constants,
    weights.convolve_single_channels,
    weights.positive_scales,
)


def rewrite(graph: Graph, *, lookups: bool = True) -> Graph:
    """Returns the graph, simplified until no rewrite changes it any more.

    Inputs and outputs become int8 where they are quantised, operators without effect are removed, and pads
    are folded. Network inputs and outputs keep their number and order. Each state is written into its own
    bytes (see `states`). With `lookups`, operators that together are a function of one byte become one
    LOOKUP, which .tflite does not have. Raises UnsupportedError for constants that are too large to fold.
    """
    draft = Draft(graph)
    moves.drop_dead(draft)
    edges.strip_float_edges(draft)
    draft.changed = True
    _settle(draft)
    blocks.lower_blocks(draft)  # the blocks that have not become part of a convolution
    _settle(draft)
    if lookups:  # last, after other passes have fused operators
        fuse_lookups(draft)
    result = draft.graph()
    if result.states:
        draft = Draft(settle_states(result))
        moves.drop_dead(draft)  # operators that a SHIFT has replaced
        result = draft.graph()
    check_graph(result)
    return result


def _settle(draft: Draft) -> None:
    """Applies all rewrites, in rounds, until a round changes nothing."""
    while draft.changed:
        draft.changed = False
        for apply in _PASSES:
            apply(draft)
            draft.nodes = [node for node in draft.nodes if not node.dead]
