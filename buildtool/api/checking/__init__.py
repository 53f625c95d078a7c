"""Checking a target family: its kernels, one operator after the other, against the reference."""
