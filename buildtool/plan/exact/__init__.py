"""Exact placement of arena items: branch and bound in C, with a readable twin in Python."""
