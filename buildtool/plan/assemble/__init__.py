"""From regions to a placed plan. Read `assemble.py` first: it has the five steps.

workspace (what a region needs by itself, and the times that placing sees), placement (offsets), moves (copies
of tensors between regions). Callers of `assemble`: layerwise runs one operator after the other, loads brings
weights into the arena of a plan.
"""
