"""Searches for the Pareto front of memory and work, and for the cheapest plans within a limit on memory."""
