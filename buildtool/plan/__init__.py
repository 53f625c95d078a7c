"""How a network will run on a target: groups of operators, offsets in the arena; plans and their checker."""
