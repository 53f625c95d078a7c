"""Runs XS3 code on this machine: an assembler, a linker, and a simulator of one logical core with its vector
unit.
"""
