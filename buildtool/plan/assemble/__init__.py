"""From regions to a placed plan. Read `assemble.py` first: it has the five steps.

workspace: the memory that a region needs by itself, and the time scale for placing. placement: offsets.
moves: copies of tensors between regions. Callers of `assemble`: layerwise runs one operator after the other;
loads brings weights into a plan's arena.
"""
