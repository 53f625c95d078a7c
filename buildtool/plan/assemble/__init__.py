"""From regions to a placed plan. Read `assemble.py` first: it has the five steps, each with a file.

lives (when memory is touched), buffers and workspace (what lies in the arena), overlaps (what may lie on
what), offsets (where it lies: ticks are the times that placing sees, placement finds the offsets, moves
copies tensors between regions), totals (what it comes to). Callers of `assemble`: layerwise runs one
operator after the other, loads brings weights into the arena of a plan.
"""
