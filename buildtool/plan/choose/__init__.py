"""Chooses a plan: from a network, a target and options to one checked plan, or to a Pareto front of plans.

`problem` has the planning problem: the graphs that a network may run as, the options, the board. `limits` has
the limits for a plan. `choose` chooses among plans: it lists the variants, and plans them within the work
budget. `planners` makes the plan of one graph by a strategy: with the least cost or memory under limits
(`least`), together with loaded constants (`loads`), or over two memories (`memories`). `fronts` places the
points of a front. `kept` caches choices and refusals.
"""
