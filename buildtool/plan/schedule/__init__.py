"""How a region runs: receptive fields, the order of its steps, windows, rings, branches, overlap."""
