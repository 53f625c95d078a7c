"""Summaries of a plan: totals, what binds, whether it fits the board."""
