"""Proves a plan legal without trusting its maker. Read `check.py` first: it says what the two share.

Plans of whole operators: lifetimes, hazard (contracts of overlaps). Streamed plans: replay, on memory (a
model of the arena). Of both: reads (what an operator reads), loads (constants loaded into the arena).
"""
