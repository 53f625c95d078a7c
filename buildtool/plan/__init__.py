"""How a network will run on a target: groups, regions, arena offsets; the plan and its checker."""
