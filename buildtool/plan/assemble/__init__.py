"""From regions to a placed plan. Read `assemble.py` first: it has the five steps.

- workspace: the memory that a region needs by itself, and the time scale for placing.
- placement: offsets of buffers.
- moves: copies of tensors between regions.
- memories: the same plan over two memories.
- layerwise calls `assemble` for one operator after the other.
- loads, with arrivals, calls it for plans whose weights are loaded into the arena.
"""
