"""Which plan: from a network, a target and options to one checked plan, or to a front of them.

`problem` says what is planned: the graphs that a network may run as, the options, the board; `prepare` makes
it. `limits` is what a plan has to keep to. `choose` has the choice among plans: the list of variants, and the
loop that plans them within the budget of work. `planners` makes the plan of one graph by a strategy: the
least of something under limits (`least`), together with constants that are loaded (`loads`) or over two
memories (`memories`). `fronts` places the points of a front, `kept` keeps choices and refusals.
"""
