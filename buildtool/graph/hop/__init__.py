"""A network that runs on a moving window: what it keeps of the last window, and what it computes anew.

At each hop the window moves by some rows, which are moments. Most rows of most tensors then have the values
that they had before, further down. The rewrite makes a network with state of it: its input is the new rows,
rings hold the rows that are read again, and its operators compute the other rows.
"""
