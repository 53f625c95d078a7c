"""Summaries of a plan: its totals, the operator that needs the most memory, and whether it fits the board."""
