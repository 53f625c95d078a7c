"""Checks the kernels of a target family against the reference, one operator at a time."""
