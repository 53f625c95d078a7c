"""Operators that no output needs are dropped."""

from __future__ import annotations

from buildtool.graph.rewrite.draft import Draft


def drop_dead(draft: Draft) -> None:
    """Removes operators whose results are never used, last ones first."""
    for node in reversed(draft.nodes):
        if not node.dead and not any(draft.readers(t) or t in draft.outputs for t in node.outputs):
            draft.remove(node)
