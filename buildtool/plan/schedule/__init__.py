"""How a region runs. Read `schedule.py` first (the steps of a region), then `timeline.py` (those of a plan).

- receptive: the rows and columns that an operator reads.
- inner: the rows that a group's operators need from each other.
- branches: operators that advance together.
- bands: groups that keep rows from step to step.
- rings: line buffers.
- overlap: how far an output may lie over an input.
- costs: the kernel calls, their windows, and their cost.
"""
