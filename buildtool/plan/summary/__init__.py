"""What a plan comes to: totals, what binds, whether it fits the board."""
