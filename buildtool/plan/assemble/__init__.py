"""From regions to a placed plan: lifetimes, workspaces, weight loads, moves, offsets, totals."""
