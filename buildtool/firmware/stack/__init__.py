"""The stack that functions of a linked image need, read from their machine code."""
