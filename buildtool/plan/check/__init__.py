"""Proves a plan legal without trusting its maker. Read `check.py` first: it says what the two share.

Plans of whole operators: hazard. Streamed plans: replay, on a model of the arena. Of both: reads (what an
operator reads), contents (buffers, and constants loaded into them), states.
"""
