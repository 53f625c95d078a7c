"""Runs XS3 code: an assembler, a linker, and one logical core with its vector unit."""
