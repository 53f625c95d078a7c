"""Chooses a plan: from a network, a target and options to one checked plan, or to a Pareto front of plans.

- problem: the planning problem: the graphs that a network may run as, the options, the board.
- limits: the limits for a plan.
- choose: lists the variants of a network, plans them within the work budget, and chooses among their plans.
- planners: makes the plan of one graph by a strategy.
- selection: the plan of a front with the least cost or memory under limits.
- loads, memories: plans with loaded constants, and plans over two memories.
- scratch, narrow: other kernels, and narrower slices of constants, where these need less memory.
- fronts: places the points of a front.
- cache: keeps choices and refusals.
"""
