"""How a region runs. Read `schedule.py` first (the order of a region's steps), then `timeline.py` (a plan's).

receptive: the rows and columns that an operator reads. inner: the rows that a group's operators need from
each other. branches: operators that advance together. rings: line buffers. overlap: how far an output may
lie over its input. costs: the kernel calls, their windows, and their cost.
"""
