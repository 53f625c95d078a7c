"""How a region runs. Read `schedule.py` first: the one order of its steps; `timeline.py`: a plan's steps.

receptive (what an operator reads), inner (what a group's operators need of each other), branches (operators
that advance together), rings (line buffers), overlap (how far an output may lie over its input), costs (how
often kernels are called on which windows, and what that costs).
"""
