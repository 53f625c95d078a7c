"""Splits the structure of networks: slim branches that a small board can run, trained and priced."""
