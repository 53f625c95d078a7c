"""Rewrites: the same results with fewer operators. No byte of a result that still exists changes."""

from __future__ import annotations

from collections.abc import Callable

from buildtool.graph.consistency import check_graph
from buildtool.graph.rewrite.activations import fuse_activations
from buildtool.graph.rewrite.dead import drop_dead
from buildtool.graph.rewrite.draft import Draft
from buildtool.graph.rewrite.edges import strip_float_edges
from buildtool.graph.rewrite.folding import fold_constants
from buildtool.graph.rewrite.noops import drop_noops
from buildtool.graph.rewrite.pads import simplify_pads
from buildtool.graph.rewrite.signs import positive_scales
from buildtool.graph.rewrite.singles import convolve_single_channels
from buildtool.graph.rewrite.transposes import simplify_transposes
from buildtool.graph.types import Graph

# Dead operators go first, so that no reader is seen that does not count.
_PASSES: tuple[Callable[[Draft], None], ...] = (
    drop_dead,
    drop_noops,
    simplify_pads,
    simplify_transposes,
    fuse_activations,
    fold_constants,
    convolve_single_channels,
    positive_scales,
)


def rewrite(graph: Graph) -> Graph:
    """The graph simplified until nothing changes: int8 edges, no no-ops, pads folded.

    Network inputs and outputs keep their number and order. Raises UnsupportedError for float
    tensors inside the network and for constants too large to fold.
    """
    draft = Draft(graph)
    drop_dead(draft)
    strip_float_edges(draft)
    draft.changed = True
    while draft.changed:
        draft.changed = False
        for apply in _PASSES:
            apply(draft)
            draft.nodes = [node for node in draft.nodes if not node.dead]
    result = draft.graph()
    check_graph(result)
    return result
