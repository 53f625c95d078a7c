"""The answers to requests: analysis, plans, fronts, reports, builds, lists, networks without a board."""
