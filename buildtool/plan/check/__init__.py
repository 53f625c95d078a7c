"""Proves a plan legal without trusting the planner. Read `check.py` first: it says what the two share.

- hazard: plans of whole operators.
- replay: streamed plans, on a model of the arena.
- reads, contents, states: for both kinds of plans, what an operator reads, the buffers (also of loaded
  constants), and states between invokes.
"""
