"""Operators and states that no output needs are dropped."""

from __future__ import annotations

from buildtool.graph.rewrite.draft import Draft


def drop_dead(draft: Draft) -> None:
    """Removes operators whose results are never used, last ones first."""
    _drop_states(draft)
    for node in reversed(draft.nodes):
        if not node.dead and not any(draft.readers(t) or t in draft.outputs for t in node.outputs):
            draft.remove(node)


def _drop_states(draft: Draft) -> None:
    """Removes states that are assigned and never read."""
    for index in reversed(range(len(draft.states))):
        at, end = len(draft.inputs) - len(draft.states), len(draft.outputs) - len(draft.states)
        before = draft.inputs[at + index]
        others = [*draft.outputs[: end + index], *draft.outputs[end + index + 1 :]]
        if not draft.readers(before) and before not in others:
            del draft.states[index], draft.inputs[at + index], draft.outputs[end + index]
            draft.changed = True
