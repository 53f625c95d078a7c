"""From regions to a placed plan. Read `assemble.py` first: it has the five steps, most with a file.

buffers and workspace (what lies in the arena, and the times that placing sees), overlaps (what may lie on
what), offsets (where it lies: placement finds the offsets, moves copies tensors between regions). Callers of
`assemble`: layerwise runs one operator after the other, loads brings weights into the arena of a plan.
"""
