"""What the requests answer beyond a plan: analysis, fronts, reports, networks without a board."""
