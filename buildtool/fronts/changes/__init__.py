"""Compares two answers of buildtool that were saved as files."""
