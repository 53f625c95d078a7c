"""Compiles and links firmware, measures it, and runs it."""
