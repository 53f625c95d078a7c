"""Computes the stack that functions of a linked image need, from their machine code."""
